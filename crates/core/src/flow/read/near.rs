//! What a misspelt word most likely means.

/// The candidate nearest to `word`, if it is near enough to be meant: one slip for each three letters.
pub fn near<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word longer than any name is no slip of one, and comparing it would only cost time.
    if word.len() > 256 {
        return None;
    }
    let folded = word.to_lowercase();
    let length = word.chars().count();
    let slips = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= slips)
        .map(|candidate| (strsim::osa_distance(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= slips)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let tasks = ["download", "validate", "label"];
        assert_eq!(near("validat", tasks), Some("validate"));
        assert_eq!(near("donwload", tasks), Some("download"));
        assert_eq!(near("Label", tasks), Some("label"));
        assert_eq!(near("store", tasks), None);
        assert_eq!(near("", tasks), None);
        assert_eq!(near(&"validate".repeat(1000), tasks), None);
    }
}
