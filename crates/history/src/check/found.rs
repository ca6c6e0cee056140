//! Where the rules put what they find.

use crate::{Finding, Kind};

/// Findings, in the order in which the rules came upon them.
#[derive(Default)]
pub(super) struct Found(Vec<Finding>);

impl Found {
    pub(super) fn lost(&mut self, what: String) {
        self.0.push(Finding { kind: Kind::Lost, what });
    }

    pub(super) fn doubled(&mut self, what: String) {
        self.0.push(Finding { kind: Kind::Doubled, what });
    }

    pub(super) fn stuck(&mut self, what: String) {
        self.0.push(Finding { kind: Kind::Stuck, what });
    }

    pub(super) fn wrong(&mut self, what: String) {
        self.0.push(Finding { kind: Kind::Wrong, what });
    }

    pub(super) fn unavailable(&mut self, what: String) {
        self.0.push(Finding { kind: Kind::Unavailable, what });
    }

    /// All of them, the worst kind first, and in the same order whatever the order of the rules and of hashes.
    pub(super) fn sorted(mut self) -> Vec<Finding> {
        self.0.sort();
        self.0
    }
}
