//! A grant on its way back. Dropped there, it leaves no lease behind, as the contract says.

use super::SimStore;
use orchestrator_core::Outcome;
use orchestrator_store::{Held, LeaseGrant, Leased, Settlement};

/// Leases of which the asker has not heard yet.
pub(super) struct Unanswered<'a> {
    store: &'a SimStore,
    held: Vec<Held>,
}

impl<'a> Unanswered<'a> {
    pub fn new(store: &'a SimStore, grant: &LeaseGrant) -> Self {
        Unanswered { store, held: grant.tasks.iter().map(Leased::held).collect() }
    }

    /// The call has come to its end, whichever it is.
    pub fn forget(&mut self) {
        self.held.clear();
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let SimStore { world, process, .. } = self.store;
        if self.held.is_empty() || process.is_dead() || world.is_closed() {
            return;
        }
        world.count("faults", "lease given back");
        let give_back = |held: &Held| Settlement { held: *held, outcome: Outcome::Released, jitter: 0.0 };
        let batch = self.held.iter().map(give_back).collect();
        let (world, name) = (world.clone(), process.name);
        // The model answers at its first poll; a task of its own because nothing can be awaited here.
        tokio::spawn(async move {
            world.settle(format!("{name}~"), batch).await;
            world.ring(name);
        });
    }
}
