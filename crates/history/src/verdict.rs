//! What the checker found.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of what must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Something that was answered for is gone.
    Lost,
    /// Something happened twice that may happen once.
    Doubled,
    /// Something has not ended though nothing hinders it any more.
    Stuck,
    /// Something is not as it was answered, or happened when it must not.
    Wrong,
    /// Too few calls worked while nothing was broken, so the run shows little.
    Unavailable,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Lost => "lost",
            Kind::Doubled => "doubled",
            Kind::Stuck => "stuck",
            Kind::Wrong => "wrong",
            Kind::Unavailable => "unavailable",
        })
    }
}

/// One thing that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// Of which kind.
    pub kind: Kind,
    /// What it is, with the ids that help to look for it.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}

/// What came of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What must not be, the worst kind first.
    pub findings: Vec<Finding>,
    /// Calls that neither began, ran nor ended while something was broken.
    pub calm_calls: u64,
    /// How many of those were answered as a working system answers.
    pub calm_successes: u64,
    /// Calls of which nobody knows whether they took effect.
    pub unknown: u64,
}

impl Verdict {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings there are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.findings.iter().filter(|finding| finding.kind == kind).count()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |kind| self.count(kind);
        write!(
            f,
            "lost {}, doubled {}, stuck {}, wrong {}; {} of {} calm calls worked, {} unknown",
            count(Kind::Lost),
            count(Kind::Doubled),
            count(Kind::Stuck),
            count(Kind::Wrong),
            self.calm_successes,
            self.calm_calls,
            self.unknown
        )
    }
}
