//! Leases that nobody takes: whoever asks may go away at any moment, also when the answer is already on its way. Then the
//! tasks go back to their places at once, and it costs no attempt.

use crate::{LeaseGrant, Settlement, StoreError, StoreResult};
use orchestrator_core::Outcome;
use tokio::sync::oneshot;

/// What gives the tasks of a grant back.
pub fn given_back(grant: &LeaseGrant) -> Vec<Settlement> {
    let release = |held| Settlement { held, outcome: Outcome::Released, jitter: 0.0 };
    grant.tasks.iter().map(|leased| release(leased.held())).collect()
}

/// Waits for the answer to an ask. If the waiting is dropped after the answer was sent, `give_back` gets what has to be
/// settled; before that, the sender is told that nobody waits.
pub async fn take(
    answer: oneshot::Receiver<StoreResult<LeaseGrant>>,
    give_back: impl FnOnce(Vec<Settlement>),
) -> StoreResult<LeaseGrant> {
    let mut waiting = Waiting { answer, give_back: Some(give_back) };
    let grant = (&mut waiting.answer).await;
    waiting.give_back = None;
    grant.map_err(|_| StoreError::Closed)?
}

struct Waiting<F: FnOnce(Vec<Settlement>)> {
    answer: oneshot::Receiver<StoreResult<LeaseGrant>>,
    give_back: Option<F>,
}

impl<F: FnOnce(Vec<Settlement>)> Drop for Waiting<F> {
    fn drop(&mut self) {
        let Some(give_back) = self.give_back.take() else { return };
        self.answer.close();
        if let Ok(Ok(grant)) = self.answer.try_recv()
            && !grant.tasks.is_empty()
        {
            give_back(given_back(&grant));
        }
    }
}
