//! The code that runs a task.

use async_trait::async_trait;
use orchestrator_core::{FieldError, Json, Outcome};
use orchestrator_store::Leased;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One attempt, as a handler gets it.
#[derive(Clone, Debug)]
pub struct Work {
    /// The task with its payload, its counters and what an earlier leg left.
    pub leased: Leased,
    /// Fires when the attempt must end: its lease is lost, its time is up or the pool stops. A
    /// handler that does not look is dropped at its next await point.
    pub cancelled: CancellationToken,
}

/// Runs tasks of one name. Execution is at least once: make outside effects idempotent with the
/// task id, or with task id and attempt where each attempt must differ.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt to its end. When `work.cancelled` fires the future is dropped shortly after,
    /// so whatever it holds (a child process, a temporary file) must clean up in `Drop`.
    async fn run(&self, work: Work) -> Outcome;

    /// What is wrong with a payload, so that an edge can refuse it before it is taken in.
    fn check(&self, payload: &Json) -> Vec<FieldError> {
        let _ = payload;
        vec![]
    }
}

struct FnHandler<F>(F);

#[async_trait]
impl<F, Fut> Handler for FnHandler<F>
where
    F: Fn(Work) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    async fn run(&self, work: Work) -> Outcome {
        (self.0)(work).await
    }
}

/// Makes a handler of an async function.
pub fn handler_fn<F, Fut>(run: F) -> impl Handler
where
    F: Fn(Work) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    FnHandler(run)
}

/// The handlers that a worker has, by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<Arc<str>, Arc<dyn Handler>>);

impl Registry {
    /// No handlers.
    pub fn new() -> Self {
        Registry::default()
    }

    /// With one more handler; a later one of the same name replaces the earlier.
    pub fn with(mut self, name: &str, handler: impl Handler) -> Self {
        self.0.insert(name.into(), Arc::new(handler));
        self
    }

    /// The handler of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Handler>> {
        self.0.get(name)
    }

    /// Every name, in order.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }
}
