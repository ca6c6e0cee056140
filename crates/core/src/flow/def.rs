//! A flow as its author wrote it: plain data, nothing checked yet.
//!
//! [`super::Plan::compile`] checks it and makes it runnable. Its canonical text (what is hashed and
//! stored) is its JSON form with the tasks in their order and everything that was left out left out.

use crate::order::Priority;
use crate::time::Millis;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A flow: a DAG of tasks, with what holds for all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowDef {
    /// Its name.
    #[serde(rename = "flow")]
    pub name: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How long a job may take from when it may start to its end; 30 minutes where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// How often a job may be recovered; 3 where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_recoveries: Option<u32>,
    /// How urgent its jobs are, unless the submit says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What holds for tasks that say nothing themselves.
    #[serde(skip_serializing_if = "TaskDefaults::is_empty")]
    pub defaults: TaskDefaults,
    /// What an input must look like, as JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// How the idempotency key is made from the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<IdempotencyDef>,
    /// The tasks, in the order in which they were written.
    #[serde(serialize_with = "as_map")]
    pub tasks: Vec<TaskDef>,
    /// The job's output, as a template; without one it is the output of the last tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// What tasks get that say nothing themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskDefaults {
    /// See [`TaskDef::queue`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// See [`TaskDef::retries`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// See [`TaskDef::backoff`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffDef>,
    /// See [`TaskDef::timeout`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// See [`TaskDef::max_crashes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_crashes: Option<u32>,
    /// See [`TaskDef::priority`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

impl TaskDefaults {
    fn is_empty(&self) -> bool {
        *self == TaskDefaults::default()
    }
}

/// How long to wait between attempts. What is left out is as in [`crate::RetryPolicy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BackoffDef {
    /// The wait after the first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Millis>,
    /// What each further wait is multiplied by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u32>,
    /// The longest wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Millis>,
    /// How much of a wait is random, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_percent: Option<u8>,
}

/// How the idempotency key of a job is made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdempotencyDef {
    /// A template over the input.
    pub key: String,
    /// How long a key holds; for ever where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Millis>,
}

/// One task of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskDef {
    /// Its name, unique in the flow.
    #[serde(skip)]
    pub name: String,
    /// For people, where the name is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The code that runs it.
    pub handler: String,
    /// The line from which workers take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The tasks that must have ended before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// When it may start once they have.
    #[serde(skip_serializing_if = "JoinRule::is_default")]
    pub join: JoinRule,
    /// It is skipped unless this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What the handler gets, as a template; without one, the job's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    /// One task per item of this list: a template, or the list itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Value>,
    /// How many of them run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How often a failed attempt is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How long to wait between attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffDef>,
    /// The longest that one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// How often its worker may vanish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_crashes: Option<u32>,
    /// Whether the flow goes on without it: where it fails, it is skipped.
    #[serde(skip_serializing_if = "is_false")]
    pub optional: bool,
    /// How long it takes, roughly: for the progress, until past runs tell better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Millis>,
    /// The limits under which it runs: kind to name, where the name is a template.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// How urgent it is, where it differs from its job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// When a task may start, once all that it needs has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinRule {
    /// When each of them completed, or is optional and was skipped.
    #[default]
    AllCompleted,
    /// However they ended.
    AllDone,
    /// When at least one of them failed.
    AnyFailed,
}

impl JoinRule {
    /// Every rule.
    pub const ALL: [JoinRule; 3] = [JoinRule::AllCompleted, JoinRule::AllDone, JoinRule::AnyFailed];

    /// The word for the rule in a definition.
    pub const fn as_str(self) -> &'static str {
        match self {
            JoinRule::AllCompleted => "all_completed",
            JoinRule::AllDone => "all_done",
            JoinRule::AnyFailed => "any_failed",
        }
    }

    /// The rule that a word names; `always` is another word for `all_done`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "always" => Some(JoinRule::AllDone),
            _ => JoinRule::ALL.into_iter().find(|rule| rule.as_str() == word),
        }
    }

    fn is_default(&self) -> bool {
        *self == JoinRule::default()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn as_map<S: Serializer>(tasks: &[TaskDef], out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(tasks.iter().map(|task| (&task.name, task)))
}
