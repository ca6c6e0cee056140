//! The largest outcome that a pool hands in.

use orchestrator_core::{Failure, Json, Outcome};

/// The outcome, or a final failure where it carries more than `limit` bytes: another attempt would most
/// likely bring as much, and whoever reads results later must not choke on them.
pub(super) fn bounded(outcome: Outcome, limit: usize) -> Outcome {
    let (what, json) = match &outcome {
        Outcome::Completed(output) | Outcome::Skipped(output) => ("output", output),
        Outcome::Continue(leg) => ("checkpoint", &leg.checkpoint),
        Outcome::Failed(_) | Outcome::Released | Outcome::Lost => return outcome,
    };
    let size = json.size();
    if size <= limit {
        if json.is_too_deep() {
            let most = Json::MAX_DEPTH;
            return Outcome::Failed(Failure::permanent(format!(
                "the {what} nests deeper than {most} levels"
            )));
        }
        return outcome;
    }
    Outcome::Failed(Failure::permanent(format!(
        "the {what} has {size} bytes, over the limit of {limit}: keep the data elsewhere and return a reference to it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_core::outcome::Leg;
    use orchestrator_core::{ErrorClass, Limits, Millis};

    #[test]
    fn what_is_too_large_is_a_final_failure_that_tells_the_sizes() {
        let json = Json::parse("\"0123456789\"").unwrap();
        let leg = Leg { checkpoint: json.clone(), limits: Limits::none(), delay: Millis(0) };
        for (outcome, word) in [
            (Outcome::Completed(json.clone()), "output"),
            (Outcome::Skipped(json), "output"),
            (Outcome::Continue(leg), "checkpoint"),
        ] {
            assert_eq!(bounded(outcome.clone(), 12), outcome, "exactly the limit is fine");
            let Outcome::Failed(failure) = bounded(outcome, 11) else { panic!("not a failure") };
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
        assert_eq!(bounded(deep(Json::MAX_DEPTH), 1000), deep(Json::MAX_DEPTH));
        let Outcome::Failed(failure) = bounded(deep(Json::MAX_DEPTH + 1), 1000) else {
            panic!("not a failure")
        };
        assert_eq!(failure.class, ErrorClass::Permanent);
    }

    #[test]
    fn what_carries_nothing_is_left_alone() {
        for outcome in [Outcome::Released, Outcome::Failed(Failure::transient("a long story"))] {
            assert_eq!(bounded(outcome.clone(), 0), outcome);
        }
    }
}
