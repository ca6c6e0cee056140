//! Flows made in Rust: the same definition that a document gives.
//!
//! ```
//! use orchestrator_core::Millis;
//! use orchestrator_core::flow::{Flow, Task};
//! use serde_json::json;
//!
//! let flow = Flow::new("dataset-build")
//!     .timeout(Millis::mins(30))
//!     .idempotency("{{ input.source | normalize_url }}", Some(Millis::hours(24)))
//!     .task(Task::new("download", "download-images").retries(3).with(json!({"url": "{{ input.source }}"})))
//!     .task(Task::new("validate", "validate-images").needs(["download"]));
//! assert_eq!(flow.definition().tasks[1].needs, ["download"]);
//! ```

use super::def::{BackoffDef, FlowDef, IdempotencyDef, JoinRule, TaskDef, TaskDefaults};
use super::document::Problem;
use super::plan::Plan;
use crate::order::Priority;
use crate::time::Millis;
use serde_json::Value;

/// A flow in the making. Nothing is checked before [`Flow::plan`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow(FlowDef);

impl Flow {
    /// A flow without tasks.
    pub fn new(name: impl Into<String>) -> Self {
        Flow(FlowDef { name: name.into(), ..FlowDef::default() })
    }

    /// What it is for, for people.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.0.description = Some(text.into());
        self
    }

    /// How long a job may take from when it may start to its end.
    pub fn timeout(mut self, span: Millis) -> Self {
        self.0.timeout = Some(span);
        self
    }

    /// How often a job may be recovered.
    pub fn max_recoveries(mut self, times: u32) -> Self {
        self.0.max_recoveries = Some(times);
        self
    }

    /// How urgent its jobs are, unless the submit says otherwise.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.0.priority = Some(priority);
        self
    }

    /// What holds for tasks that say nothing themselves.
    pub fn defaults(mut self, defaults: TaskDefaults) -> Self {
        self.0.defaults = defaults;
        self
    }

    /// What an input must look like, as JSON Schema.
    pub fn input_schema(mut self, schema: impl Into<Value>) -> Self {
        self.0.input = Some(schema.into());
        self
    }

    /// How the idempotency key is made from the input, and how long it holds: `None` for ever.
    pub fn idempotency(mut self, key: impl Into<String>, window: Option<Millis>) -> Self {
        self.0.idempotency = Some(IdempotencyDef { key: key.into(), window });
        self
    }

    /// Adds a task.
    pub fn task(mut self, task: Task) -> Self {
        self.0.tasks.push(task.into());
        self
    }

    /// The job's output, as a template.
    pub fn output(mut self, template: impl Into<Value>) -> Self {
        self.0.output = Some(template.into());
        self
    }

    /// The definition so far.
    pub fn definition(&self) -> &FlowDef {
        &self.0
    }

    /// Checks the flow and makes it runnable, or tells all that is wrong with it.
    pub fn plan(self) -> Result<Plan, Vec<Problem>> {
        Plan::compile(self.0)
    }
}

impl From<Flow> for FlowDef {
    fn from(flow: Flow) -> FlowDef {
        flow.0
    }
}

/// A task in the making.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task(TaskDef);

impl Task {
    /// A task that a handler runs.
    pub fn new(name: impl Into<String>, handler: impl Into<String>) -> Self {
        Task(TaskDef { name: name.into(), handler: handler.into(), ..TaskDef::default() })
    }

    /// Its name for people.
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.0.title = Some(text.into());
        self
    }

    /// The line from which workers take it.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.0.queue = Some(name.into());
        self
    }

    /// Adds tasks that must have ended before it.
    pub fn needs<T: Into<String>>(mut self, tasks: impl IntoIterator<Item = T>) -> Self {
        self.0.needs.extend(tasks.into_iter().map(T::into));
        self
    }

    /// When it may start once they have.
    pub fn join(mut self, rule: JoinRule) -> Self {
        self.0.join = rule;
        self
    }

    /// It is skipped unless this holds.
    pub fn when(mut self, condition: impl Into<String>) -> Self {
        self.0.when = Some(condition.into());
        self
    }

    /// What the handler gets, as a template.
    pub fn with(mut self, template: impl Into<Value>) -> Self {
        self.0.with = Some(template.into());
        self
    }

    /// One task per item of this list: a template, or the list itself.
    pub fn for_each(mut self, items: impl Into<Value>) -> Self {
        self.0.for_each = Some(items.into());
        self
    }

    /// How many of the items run at once.
    pub fn concurrency(mut self, at_once: u32) -> Self {
        self.0.concurrency = Some(at_once);
        self
    }

    /// How often a failed attempt is repeated.
    pub fn retries(mut self, times: u32) -> Self {
        self.0.retries = Some(times);
        self
    }

    /// How long to wait between attempts.
    pub fn backoff(mut self, backoff: BackoffDef) -> Self {
        self.0.backoff = Some(backoff);
        self
    }

    /// The longest that one attempt may take.
    pub fn timeout(mut self, span: Millis) -> Self {
        self.0.timeout = Some(span);
        self
    }

    /// How often its worker may vanish.
    pub fn max_crashes(mut self, times: u32) -> Self {
        self.0.max_crashes = Some(times);
        self
    }

    /// The flow goes on without it where it fails.
    pub fn optional(mut self) -> Self {
        self.0.optional = true;
        self
    }

    /// How long it takes, roughly.
    pub fn estimate(mut self, span: Millis) -> Self {
        self.0.estimate = Some(span);
        self
    }

    /// Adds a limit under which it runs; the name is a template.
    pub fn limit(mut self, kind: impl Into<String>, name: impl Into<String>) -> Self {
        self.0.limits.insert(kind.into(), name.into());
        self
    }

    /// How urgent it is, where it differs from its job.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.0.priority = Some(priority);
        self
    }
}

impl From<Task> for TaskDef {
    fn from(task: Task) -> TaskDef {
        task.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Node, read::read};
    use serde_json::json;

    #[test]
    fn every_field_is_the_one_of_the_document() {
        let backoff = BackoffDef { initial: Some(Millis::secs(2)), ..BackoffDef::default() };
        let built = Flow::new("all")
            .description("everything at once")
            .timeout(Millis::mins(30))
            .max_recoveries(2)
            .priority(Priority::High)
            .defaults(TaskDefaults { retries: Some(2), ..TaskDefaults::default() })
            .input_schema(json!({"type": "object"}))
            .idempotency("{{ input.a }}", Some(Millis::hours(24)))
            .task(Task::new("first", "command").title("First").needs(Vec::<String>::new()))
            .task(
                Task::new("second", "http")
                    .queue("slow")
                    .needs(["first"])
                    .join(JoinRule::AnyFailed)
                    .when("{{ input.b }}")
                    .with(json!({"url": "{{ item }}"}))
                    .for_each("{{ input.list }}")
                    .concurrency(8)
                    .retries(1)
                    .backoff(backoff)
                    .timeout(Millis::secs(10))
                    .max_crashes(1)
                    .optional()
                    .estimate(Millis::secs(300))
                    .limit("host", "{{ input.a | host }}")
                    .priority(Priority::Low),
            )
            .output("{{ tasks.second.output }}");
        let written = Node::from_json(
            r#"{
                "flow": "all", "description": "everything at once", "timeout": "30m", "max_recoveries": 2,
                "priority": "high", "defaults": {"retries": 2}, "input": {"type": "object"},
                "idempotency": {"key": "{{ input.a }}", "window": "24h"},
                "tasks": {
                    "first": {"handler": "command", "title": "First"},
                    "second": {
                        "handler": "http", "queue": "slow", "needs": "first", "join": "any_failed",
                        "when": "{{ input.b }}", "with": {"url": "{{ item }}"},
                        "for_each": "{{ input.list }}", "concurrency": 8, "retries": 1,
                        "backoff": {"initial": "2s"}, "timeout": 10, "max_crashes": 1, "optional": true,
                        "estimate": 300, "limits": {"host": "{{ input.a | host }}"}, "priority": "low"
                    }
                },
                "output": "{{ tasks.second.output }}"
            }"#,
        )
        .unwrap();
        assert_eq!(read(&written), Ok(built.into()));
    }
}
