//! What a download remembers between its legs: where it is in its round, and what went wrong.
//!
//! Pure: time comes in as an argument.

use orchestrator_core::{ErrorClass, Failure, Json, Millis, Timestamp};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much of each source's message is kept, so that a checkpoint of 32 stays small.
const MAX_NOTE: usize = 300;

/// The checkpoint of a download.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Trail {
    /// The task's failures when the round began: another number means that another round begins.
    round: u32,
    /// The source whose turn it is; past the last one all have failed.
    pub source: usize,
    /// What went wrong with the sources before it, in this round.
    errors: Vec<Note>,
    /// Sources that asked not to be asked again before a moment. Kept over rounds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    waits: BTreeMap<usize, Timestamp>,
    /// Where the source sent us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<Hop>,
}

/// One source that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Note {
    source: usize,
    class: ErrorClass,
    message: String,
}

/// The latest redirect of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hop {
    pub url: String,
    count: u32,
}

impl Trail {
    /// Takes up what the last leg left, or begins a round.
    pub fn resume(checkpoint: Option<&Json>, failures: u32) -> Trail {
        let left: Trail = checkpoint.and_then(|json| json.read().ok()).unwrap_or_default();
        if left.round == failures {
            left
        } else {
            Trail { round: failures, waits: left.waits, ..Trail::default() }
        }
    }

    /// How often the source has sent us on.
    pub fn hops(&self) -> u32 {
        self.hop.as_ref().map_or(0, |hop| hop.count)
    }

    /// Notes where the source sent us.
    pub fn send_on(&mut self, url: &Url) {
        self.hop = Some(Hop { url: url.to_string(), count: self.hops() + 1 });
    }

    /// Notes the failure of the source whose turn it was.
    pub fn failed(&mut self, failure: Failure, now: Timestamp) {
        if let Some(span) = failure.retry_after.filter(|_| failure.class.is_retryable()) {
            self.waits.insert(self.source, now + span);
        }
        self.note(failure.class, failure.message.chars().take(MAX_NOTE).collect());
    }

    fn note(&mut self, class: ErrorClass, message: String) {
        self.errors.push(Note { source: self.source, class, message });
        self.source += 1;
        self.hop = None;
    }

    /// Steps over sources that must not be asked yet.
    pub fn pass_waiting(&mut self, now: Timestamp, sources: usize) {
        self.waits.retain(|_, until| *until > now);
        while self.source < sources
            && let Some(until) = self.waits.get(&self.source)
        {
            let left = until.since(now);
            self.note(ErrorClass::RateLimited, format!("asked not to be asked again for another {left}"));
        }
    }

    /// The end of a round in which every source failed.
    pub fn verdict(&self, now: Timestamp) -> Failure {
        let all: Vec<_> =
            self.errors.iter().map(|n| format!("source {}: {} ({})", n.source, n.message, n.class)).collect();
        let mut failure = Failure::new(self.class(), format!("no source has it: {}", all.join("; ")));
        failure.retry_after = self.earliest(now);
        failure
    }

    /// Whether the last source asked for more patience than the verdict leaves it.
    pub fn outlasts_its_verdict(&self, now: Timestamp) -> bool {
        let last = self.errors.last().and_then(|note| self.waits.get(&note.source));
        last.is_some_and(|until| until.since(now) > self.earliest(now).unwrap_or_default())
    }

    /// The first moment at which a source that may do better can be asked; `None` if right away.
    fn earliest(&self, now: Timestamp) -> Option<Millis> {
        let retryable = self.errors.iter().filter(|note| note.class.is_retryable());
        let waits =
            retryable.map(|note| self.waits.get(&note.source).map_or(Millis(0), |until| until.since(now)));
        waits.min().filter(|span| *span > Millis(0))
    }

    /// The class that says most about when another round makes sense; a final one only where no
    /// source can do better.
    fn class(&self) -> ErrorClass {
        use ErrorClass::*;
        let has = |class: &ErrorClass| self.errors.iter().any(|note| note.class == *class);
        if let Some(class) = [RateLimited, Unavailable, Network, Timeout, Transient].into_iter().find(has) {
            return class;
        }
        let same = self.errors.windows(2).all(|pair| pair[0].class == pair[1].class);
        self.errors.first().filter(|_| same).map_or(Permanent, |note| note.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn after(failures: &[Failure]) -> Trail {
        let mut trail = Trail::default();
        for failure in failures {
            trail.failed(failure.clone(), NOW);
        }
        trail
    }

    fn gone() -> Failure {
        Failure::new(ErrorClass::NotFound, "gone")
    }

    fn slow_down(secs: u64) -> Failure {
        Failure::new(ErrorClass::RateLimited, "slow down").retry_after(Millis::secs(secs))
    }

    #[test]
    fn the_verdict_waits_for_the_first_source_that_may_be_asked() {
        for (failures, class, wait) in [
            (vec![gone(), gone()], ErrorClass::NotFound, None),
            (vec![gone(), Failure::permanent("no")], ErrorClass::Permanent, None),
            (vec![gone(), slow_down(60)], ErrorClass::RateLimited, Some(Millis::secs(60))),
            (vec![slow_down(90), slow_down(60)], ErrorClass::RateLimited, Some(Millis::secs(60))),
            (vec![slow_down(90), Failure::new(ErrorClass::Network, "cut")], ErrorClass::RateLimited, None),
            (
                vec![Failure::new(ErrorClass::Timeout, "t"), Failure::new(ErrorClass::Unavailable, "u")],
                ErrorClass::Unavailable,
                None,
            ),
            (vec![gone().retry_after(Millis::secs(5))], ErrorClass::NotFound, None),
        ] {
            let verdict = after(&failures).verdict(NOW);
            assert_eq!((verdict.class, verdict.retry_after), (class, wait), "{failures:?}");
        }
        let message = after(&[gone(), slow_down(60)]).verdict(NOW).message;
        assert_eq!(
            message,
            "no source has it: source 0: gone (not_found); source 1: slow down (rate_limited)"
        );
    }

    #[test]
    fn a_wish_counts_from_when_it_was_heard() {
        let trail = after(&[slow_down(60)]);
        assert_eq!(trail.verdict(NOW + Millis::secs(45)).retry_after, Some(Millis::secs(15)));
        assert_eq!(trail.verdict(NOW + Millis::secs(75)).retry_after, None);
    }

    #[test]
    fn only_a_wish_that_would_be_forgotten_is_written_down() {
        assert!(!after(&[gone(), slow_down(60)]).outlasts_its_verdict(NOW), "the wait covers it");
        assert!(!after(&[slow_down(60), gone()]).outlasts_its_verdict(NOW), "it is in the checkpoint");
        assert!(after(&[slow_down(60), slow_down(90)]).outlasts_its_verdict(NOW));
        assert!(after(&[Failure::transient("x"), slow_down(90)]).outlasts_its_verdict(NOW));
    }

    #[test]
    fn a_new_round_begins_anew_but_remembers_who_must_wait() {
        let mut trail = after(&[slow_down(60), gone()]);
        trail.send_on(&Url::parse("http://example.org/x").unwrap());
        let left = Json::of(&trail).unwrap();

        let same = Trail::resume(Some(&left), 0);
        assert_eq!((same.source, same.hops()), (2, 1));

        let mut next = Trail::resume(Some(&left), 1);
        assert_eq!((next.source, next.hops(), next.errors.len()), (0, 0, 0));
        next.pass_waiting(NOW + Millis::secs(30), 3);
        assert_eq!(next.source, 1, "the first source has asked for 30 s more");

        let mut later = Trail::resume(Some(&left), 1);
        later.pass_waiting(NOW + Millis::secs(60), 3);
        assert_eq!(later.source, 0);
    }

    #[test]
    fn a_checkpoint_that_cannot_be_read_begins_a_round() {
        let trail = Trail::resume(Some(&Json::parse("[1]").unwrap()), 2);
        assert_eq!(trail, Trail { round: 2, ..Trail::default() });
    }
}
