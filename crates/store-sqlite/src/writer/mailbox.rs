//! What callers put into the writer's mailbox, and how they are answered.

use orchestrator_core::{Millis, NewJob, Timestamp};
use orchestrator_store::{
    Beat, Controlled, FlowChange, FlowChanged, Forget, Forgot, Held, LeaseAsk, LeaseGrant, LimitChange,
    QueueChange, Settled, Settlement, StoreError, StoreResult, Submitted, SweepAsk, Swept, Wish, WorkerNote,
};
use tokio::sync::oneshot;

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<StoreResult<T>>;

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident($ask:ty) -> $answer:ty,)*) => {
        /// One verb with its arguments and the caller who waits for it.
        pub enum Request { $($(#[$doc])* $name($ask, Reply<$answer>),)* }

        /// The answer to a request, held back until the commit.
        pub enum Answer { $($(#[$doc])* $name($answer),)* }

        impl Request {
            /// Answers the caller. One who went away is not missed.
            pub fn answer(self, answer: Answer) {
                match (self, answer) {
                    $((Request::$name(_, reply), Answer::$name(value)) => { let _ = reply.send(Ok(value)); })*
                    (request, _) => request.fail(StoreError::Closed),
                }
            }

            /// Tells the caller that nothing was done.
            pub fn fail(self, error: StoreError) {
                match self { $(Request::$name(_, reply) => { let _ = reply.send(Err(error)); })* }
            }
        }
    };
}

requests! {
    /// [`orchestrator_store::Store::submit`].
    Submit(Vec<NewJob>) -> Vec<Submitted>,
    /// [`orchestrator_store::Store::lease`].
    Lease(LeaseAsk) -> LeaseGrant,
    /// [`orchestrator_store::Store::extend`].
    Extend((Vec<Held>, Millis)) -> Vec<Beat>,
    /// [`orchestrator_store::Store::settle`].
    Settle(Vec<Settlement>) -> Vec<Settled>,
    /// [`orchestrator_store::Store::expired`].
    Expired(SweepAsk) -> Swept,
    /// [`orchestrator_store::Store::control`].
    Control(Vec<Wish>) -> Vec<Controlled>,
    /// [`orchestrator_store::Store::set_queues`].
    SetQueues(Vec<QueueChange>) -> (),
    /// [`orchestrator_store::Store::register`].
    Register(Vec<WorkerNote>) -> (),
    /// [`orchestrator_store::Store::check`].
    Check(()) -> (),
    /// [`orchestrator_store::Store::change_flows`].
    ChangeFlows(Vec<FlowChange>) -> Vec<FlowChanged>,
    /// [`orchestrator_store::Store::set_limits`].
    SetLimits(Vec<LimitChange>) -> (),
    /// [`orchestrator_store::Store::forget`].
    Forget(Vec<Forget>) -> Vec<Forgot>,
    /// [`orchestrator_store::Store::forget_journal`].
    ForgetJournal((Timestamp, u32)) -> u32,
}

impl Request {
    /// How much work it is, roughly, in tasks.
    pub fn weight(&self) -> usize {
        match self {
            Request::Submit(jobs, _) => jobs.len(),
            Request::Lease(ask, _) => ask.slots as usize,
            Request::Extend((held, _), _) => held.len(),
            Request::Settle(batch, _) => batch.len(),
            Request::Expired(ask, _) => ask.limit as usize,
            Request::Control(wishes, _) => wishes.len(),
            Request::SetQueues(changes, _) => changes.len(),
            Request::Register(workers, _) => workers.len(),
            Request::Check((), _) => 1,
            Request::ChangeFlows(changes, _) => changes.len(),
            Request::SetLimits(changes, _) => changes.len(),
            Request::Forget(jobs, _) => jobs.len(),
            Request::ForgetJournal((_, limit), _) => *limit as usize,
        }
    }

    /// Leases go last in a transaction, so that they see what the others made ready or freed.
    pub fn is_lease(&self) -> bool {
        matches!(self, Request::Lease(..))
    }
}
