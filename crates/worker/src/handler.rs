//! The code that runs a task.

use async_trait::async_trait;
use orchestrator_core::{BadLimit, ErrorClass, Failure, FieldError, Json, Limits, Outcome};
use orchestrator_store::Leased;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
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

impl Work {
    /// The task's name in its flow, such as `validate`, or `validate[3]` for an item of a `for_each`. The task of
    /// a queue's job is called `main`.
    pub fn name(&self) -> &str {
        &self.leased.name
    }

    /// The flow that the task belongs to.
    pub fn flow(&self) -> Option<&str> {
        self.leased.flow.as_deref()
    }

    /// The number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.leased.counters.attempt
    }

    /// What the task is to work on. What does not fit the type is a failure that no retry mends.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.leased.payload.read().map_err(|error| {
            Failure::new(
                ErrorClass::Validation,
                format!("the input of {} does not fit: {error}", self.name()),
            )
        })
    }
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

    /// The limits under which a job of one task with this payload starts, where some were named for it.
    fn limits(&self, payload: &Json, named: Limits) -> Result<Limits, BadLimit> {
        let _ = payload;
        Ok(named)
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

struct Typed<F, In, Out>(F, PhantomData<fn(In) -> Out>);

#[async_trait]
impl<F, Fut, In, Out> Handler for Typed<F, In, Out>
where
    F: Fn(In, Work) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, Failure>> + Send,
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send + 'static,
{
    async fn run(&self, work: Work) -> Outcome {
        let result = match work.input() {
            Ok(input) => (self.0)(input, work).await,
            Err(failure) => Err(failure),
        };
        let unwritable = |error| {
            Failure::new(
                ErrorClass::Defect,
                format!("the handler's output cannot be written as JSON: {error}"),
            )
        };
        match result.and_then(|output| Json::of(&output).map_err(unwritable)) {
            Ok(output) => Outcome::Completed(output),
            Err(failure) => Outcome::Failed(failure),
        }
    }

    fn check(&self, payload: &Json) -> Vec<FieldError> {
        payload
            .read::<In>()
            .err()
            .map(|error| FieldError::new("payload", error.to_string()))
            .into_iter()
            .collect()
    }
}

/// Makes a handler of an async function from an input to an output, both of any type that serde knows.
///
/// ```
/// use orchestrator_worker::{Registry, typed};
///
/// #[derive(serde::Deserialize)]
/// struct Order { item: String, count: u32 }
///
/// let registry = Registry::new().with("price", typed(|order: Order, _work| async move {
///     Ok(serde_json::json!({ "item": order.item, "price": order.count * 3 }))
/// }));
/// ```
///
/// An input that does not fit the type is refused at submit where an edge checks payloads, and else fails the
/// task for good. To skip a task or to go on in another leg, use [`handler_fn`].
pub fn typed<F, Fut, In, Out>(run: F) -> impl Handler
where
    F: Fn(In, Work) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, Failure>> + Send,
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send + 'static,
{
    Typed(run, PhantomData)
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
