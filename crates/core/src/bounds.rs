//! The largest outcome that is handed in.

use crate::{Failure, Json, Outcome};

impl Outcome {
    /// What it carries, and what that is called.
    fn carried(&self) -> Option<(&'static str, &Json)> {
        match self {
            Outcome::Completed(output) | Outcome::Skipped(output) => Some(("output", output)),
            Outcome::Continue(leg) => Some(("checkpoint", &leg.checkpoint)),
            Outcome::Failed(_) | Outcome::Released | Outcome::Lost => None,
        }
    }

    /// The size of what it carries, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Outcome::Failed(failure) => failure.message.len(),
            other => other.carried().map_or(0, |(_, json)| json.size()),
        }
    }

    /// The outcome, or a final failure where it carries more than `limit` bytes: another attempt would most likely bring as
    /// much, and whoever reads results later must not choke on them. The message of a failure is cut to what a [`Failure`] holds.
    pub fn bounded(self, limit: usize) -> Outcome {
        if let Outcome::Failed(Failure { class, message, retry_after }) = self {
            return Outcome::Failed(Failure { retry_after, ..Failure::new(class, message) });
        }
        let Some((what, json)) = self.carried() else { return self };
        let size = json.size();
        let message = if size > limit {
            format!(
                "the {what} has {size} bytes, over the limit of {limit}: keep the data elsewhere and return a reference to it"
            )
        } else if json.is_too_deep() {
            format!("the {what} nests deeper than {} levels", Json::MAX_DEPTH)
        } else {
            return self;
        };
        Outcome::Failed(Failure::permanent(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Leg;
    use crate::{ErrorClass, Limits, Millis};

    #[test]
    fn what_is_too_large_is_a_final_failure_that_tells_the_sizes() {
        let json = Json::parse("\"0123456789\"").unwrap();
        let leg = Leg { checkpoint: json.clone(), limits: Limits::none(), delay: Millis(0) };
        for (outcome, word) in [
            (Outcome::Completed(json.clone()), "output"),
            (Outcome::Skipped(json), "output"),
            (Outcome::Continue(leg), "checkpoint"),
        ] {
            assert_eq!(outcome.clone().bounded(12), outcome, "exactly the limit is fine");
            let Outcome::Failed(failure) = outcome.bounded(11) else { panic!("not a failure") };
            assert_eq!(failure.class, ErrorClass::Permanent);
            let expected = format!("the {word} has 12 bytes, over the limit of 11: ");
            assert!(failure.message.starts_with(&expected), "{failure}");
            assert!(failure.message.contains("reference"), "{failure}");
        }
    }

    #[test]
    fn what_is_too_deep_to_be_read_back_is_a_final_failure() {
        let deep =
            |levels: usize| Outcome::Completed(Json::trusted("[".repeat(levels) + &"]".repeat(levels)));
        assert_eq!(deep(Json::MAX_DEPTH).bounded(1000), deep(Json::MAX_DEPTH));
        let Outcome::Failed(failure) = deep(Json::MAX_DEPTH + 1).bounded(1000) else {
            panic!("not a failure")
        };
        assert_eq!(failure.class, ErrorClass::Permanent);
    }

    #[test]
    fn what_carries_nothing_is_left_alone() {
        for outcome in [Outcome::Released, Outcome::Failed(Failure::transient("a long story"))] {
            assert_eq!(outcome.clone().bounded(0), outcome);
        }
    }
}
