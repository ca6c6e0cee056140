//! Writes the history while it happens.

use crate::clock;
use orchestrator_history::{Answer, Call, CallId, Event, History, Run};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The history in the making; clones write the same one.
#[derive(Clone, Default)]
pub struct Record(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    history: History,
    figures: Figures,
    /// How many attempts of each task the other side let fail.
    faulted: HashMap<orchestrator_core::TaskId, u32>,
}

/// Counts of what was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Calls of clients.
    pub calls: u64,
    /// Handlers that started.
    pub starts: u64,
    /// Handlers whose client went away before the answer.
    pub aborts: u64,
}

impl Record {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client asks. To be noted before anything is sent.
    pub fn call(&self, call: Call) -> CallId {
        let mut inner = self.inner();
        inner.figures.calls += 1;
        // The clock is read under the lock, so that the order of the events is that of their ticks.
        inner.history.call(clock::now(), call)
    }

    /// What the client heard. To be noted after all of it was read.
    pub fn answer(&self, id: CallId, answer: Answer) {
        self.inner().history.answer(clock::now(), id, answer);
    }

    /// Anything else.
    pub fn note(&self, event: Event) {
        let mut inner = self.inner();
        match &event {
            Event::Started { .. } => inner.figures.starts += 1,
            Event::Aborted { .. } => inner.figures.aborts += 1,
            _ => {}
        }
        inner.history.note(clock::now(), event);
    }

    /// The other side lets an attempt fail.
    pub fn faulted(&self, run: Run) {
        *self.inner().faulted.entry(run.task).or_default() += 1;
    }

    /// How many attempts of a task the other side let fail.
    pub fn faults(&self, task: orchestrator_core::TaskId) -> u32 {
        self.inner().faulted.get(&task).copied().unwrap_or_default()
    }

    /// Something breaks now.
    pub fn fault_began(&self, what: &str) {
        self.note(Event::FaultBegan { what: what.into() });
    }

    /// It works again.
    pub fn fault_ended(&self, what: &str) {
        self.note(Event::FaultEnded { what: what.into() });
    }

    /// The counts so far.
    pub fn figures(&self) -> Figures {
        self.inner().figures
    }

    /// The whole history, with what others noted put in its place.
    pub fn finish(&self, others: Vec<(u64, Event)>) -> History {
        let mut inner = self.inner();
        inner.figures.starts +=
            others.iter().filter(|(_, event)| matches!(event, Event::Started { .. })).count() as u64;
        let mut history = std::mem::take(&mut inner.history);
        history.events.extend(others);
        history.events.sort_by_key(|(at, _)| *at);
        history
    }
}
