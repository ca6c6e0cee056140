//! Spans and sizes as people write them: `30s`, `5m`, `1h30m`, `10MB`, `64KiB`.

use crate::time::Millis;

/// A text that is neither a span nor a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HumanError {
    /// Not a span.
    #[error("{0:?} is not a span of time; write it as 500ms, 30s, 5m, 24h, 7d or 1h30m")]
    Span(String),
    /// Not a size.
    #[error("{0:?} is not a size; write it as 512, 64KB, 10MB, 2GB or 64KiB")]
    Size(String),
}

const SPANS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads a span of time: one or more numbers with units (`ms s m h d`), or bare seconds.
pub fn parse_span(text: &str) -> Result<Millis, HumanError> {
    let bad = || HumanError::Span(text.to_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    if let Ok(seconds) = rest.parse::<u64>() {
        return seconds.checked_mul(1000).map(Millis).ok_or_else(bad);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let scale = SPANS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?.1;
        let part = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(scale).ok_or_else(bad)?,
            Err(_) => {
                let part = number.parse::<f64>().map_err(|_| bad())? * scale as f64;
                if !(0.0..1e15).contains(&part) {
                    return Err(bad());
                }
                part.round() as u64
            }
        };
        total = total.checked_add(part).ok_or_else(bad)?;
        rest = after.trim_start();
    }
    Ok(Millis(total))
}

/// Writes a span so that [`parse_span`] reads back the same one.
pub fn format_span(span: Millis) -> String {
    let mut left = span.0;
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, scale) in SPANS {
        if left >= scale {
            text.push_str(&format!("{}{unit}", left / scale));
            left %= scale;
        }
    }
    text
}

/// Reads a size in bytes: `KB MB GB` count in thousands, `KiB MiB GiB` in 1024s.
pub fn parse_size(text: &str) -> Result<u64, HumanError> {
    let bad = || HumanError::Size(text.to_owned());
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "k" => 1000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(bad()),
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(bad)
}

/// Writes a size in bytes for people, to one decimal.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

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

/// A span to the precision that people care for: `41s`, `3m12s`, `2h5m`, `3d4h`.
pub fn age(span: Millis) -> String {
    let seconds = span.0 / 1000;
    let parts = match seconds {
        0..60 => [(seconds, "s"), (0, "")],
        60..3600 => [(seconds / 60, "m"), (seconds % 60, "s")],
        3600..86_400 => [(seconds / 3600, "h"), (seconds % 3600 / 60, "m")],
        _ => [(seconds / 86_400, "d"), (seconds % 86_400 / 3600, "h")],
    };
    let [(first, unit), (second, minor)] = parts;
    if second == 0 { format!("{first}{unit}") } else { format!("{first}{unit}{second}{minor}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, ms) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("7", 7000),
            ("1.5s", 1500),
            ("2d", 172_800_000),
        ] {
            assert_eq!(parse_span(text), Ok(Millis(ms)), "{text}");
        }
        for text in ["", "fast", "5 minutes", "-3s", "5x", "99999999999999999999s", "1..2s"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in
            [("512", 512), ("64KB", 64_000), ("10MB", 10_000_000), ("64KiB", 65_536), ("2 GB", 2_000_000_000)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "1.5MB", "10 parsecs", "99999999999GB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_span_survives_writing_and_reading(ms in 0u64..1 << 50) {
            prop_assert_eq!(parse_span(&format_span(Millis(ms))), Ok(Millis(ms)));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse_span(&text);
            let _ = parse_size(&text);
        }
    }

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
