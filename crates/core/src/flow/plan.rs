//! A definition that was checked and compiled: what jobs run.

use super::def::{FlowDef, JoinRule, TaskDef};
use super::document::{Node, Path, Problem};
use super::schema::InputSchema;
use super::template::{Expression, Template, TemplateError};
use crate::idempotency::Key;
use crate::job::FieldError;
use crate::json::Json;
use crate::limit::Limits;
use crate::order::Priority;
use crate::retry::RetryPolicy;
use crate::spec::{DEFAULT_QUEUE, TaskSpec};
use crate::time::Millis;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

/// How long a job may take where its flow says nothing.
pub const DEFAULT_TIMEOUT: Millis = Millis::mins(30);
/// How often a job may be recovered where its flow says nothing.
pub const DEFAULT_RECOVERIES: u32 = 3;
/// The most tasks of one flow, before any `for_each` is expanded.
pub const MAX_TASKS: usize = 2_000;
/// The largest definition, in bytes of its canonical text.
pub const MAX_DEFINITION: usize = 1 << 20;

/// A flow that can run.
#[derive(Debug)]
pub struct Plan {
    def: FlowDef,
    name: Arc<str>,
    text: Arc<str>,
    hash: Arc<str>,
    tasks: Vec<TaskPlan>,
    roots: Vec<u32>,
    sinks: Vec<u32>,
    input: Option<InputSchema>,
    key: Option<Template>,
    output: Option<OutputPlan>,
    timeout: Option<Millis>,
    implicit: bool,
}

/// One task of a plan.
#[derive(Debug)]
pub struct TaskPlan {
    /// Its name.
    pub name: Arc<str>,
    /// How its attempts are run.
    pub spec: Arc<TaskSpec>,
    /// The tasks that must have ended before.
    pub needs: Vec<u32>,
    /// The tasks that need it.
    pub dependents: Vec<u32>,
    /// When it may start once they have.
    pub join: JoinRule,
    /// Whether the flow goes on without it.
    pub optional: bool,
    /// How long it takes, roughly.
    pub estimate: Option<Millis>,
    /// How urgent it is, where it differs from its job.
    pub priority: Option<Priority>,
    /// What it becomes one task per item of.
    pub each: Option<EachPlan>,
    /// It is skipped unless this holds.
    pub when: Option<Expression>,
    /// What the handler gets.
    pub with: Option<Template>,
    /// The limits under which it runs.
    pub limits: LimitPlan,
    /// What `when`, `with` and `limits` refer to.
    pub uses: Uses,
    /// What the handler gets where `with` holds no expression.
    pub literal: Option<Json>,
}

/// The limits of a task.
#[derive(Debug)]
pub enum LimitPlan {
    /// Always these.
    Fixed(Limits),
    /// Kinds and names.
    Templates(Vec<(String, Template)>),
}

/// The list of a `for_each`.
#[derive(Debug)]
pub struct EachPlan {
    /// The list.
    pub items: Template,
    /// What it refers to.
    pub uses: Uses,
    /// How many items run at once.
    pub concurrency: Option<u32>,
}

/// The output that a flow defines.
#[derive(Debug)]
pub struct OutputPlan {
    /// The output.
    pub template: Template,
    /// What it refers to.
    pub uses: Uses,
}

/// What templates refer to, so that only that is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uses {
    /// The job's input.
    pub input: bool,
    /// The job itself.
    pub job: bool,
    /// Tasks.
    pub tasks: Vec<TaskUse>,
}

/// What is wanted of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskUse {
    /// The task.
    pub task: u32,
    /// Its output.
    pub output: bool,
    /// Its last error.
    pub error: bool,
}

impl Plan {
    /// Checks a definition; all that is wrong with it at once.
    pub fn compile(def: FlowDef) -> Result<Plan, Vec<Problem>> {
        super::check::compile(def).map(Plan::assemble)
    }

    /// Reads and checks the canonical text of a flow.
    pub fn from_text(text: &str) -> Result<Plan, Vec<Problem>> {
        Plan::compile(read_text(text)?)
    }

    /// The flow of one task that stands behind a job of a queue, when such a job needs what flows have:
    /// a pause, or jobs to wait for. It has no deadline, as such jobs have none.
    pub fn of_task(spec: &TaskSpec, limits: &Limits) -> Plan {
        let def = FlowDef {
            name: spec.handler.to_string(),
            tasks: vec![TaskDef {
                name: "main".to_owned(),
                handler: spec.handler.to_string(),
                queue: Some(spec.queue.to_string()),
                ..TaskDef::default()
            }],
            ..FlowDef::default()
        };
        // Neither of the two has a value that JSON could not hold.
        let text: Arc<str> = serde_json::to_string(&(spec, limits)).unwrap_or_default().into();
        let task = TaskPlan {
            name: "main".into(),
            spec: Arc::new(spec.clone()),
            needs: vec![],
            dependents: vec![],
            join: JoinRule::default(),
            optional: false,
            estimate: None,
            priority: None,
            each: None,
            when: None,
            with: None,
            limits: LimitPlan::Fixed(limits.clone()),
            uses: Uses::default(),
            literal: None,
        };
        Plan {
            name: spec.handler.clone(),
            hash: hash(&text),
            text,
            def,
            tasks: vec![task],
            roots: vec![0],
            sinks: vec![0],
            input: None,
            key: None,
            output: None,
            timeout: None,
            implicit: true,
        }
    }

    /// Reads back the text of a plan that [`Plan::of_task`] made.
    pub fn of_task_from_text(text: &str) -> Result<Plan, serde_json::Error> {
        let (spec, limits): (TaskSpec, Limits) = serde_json::from_str(text)?;
        Ok(Plan::of_task(&spec, &limits))
    }

    fn assemble(parts: Parts) -> Plan {
        let Parts { def, text, tasks, input, key, output } = parts;
        let all = || (0..tasks.len() as u32).zip(&tasks);
        Plan {
            name: def.name.as_str().into(),
            hash: hash(&text),
            text,
            timeout: Some(def.timeout.unwrap_or(DEFAULT_TIMEOUT)),
            roots: all().filter(|(_, task)| task.needs.is_empty()).map(|(n, _)| n).collect(),
            sinks: all().filter(|(_, task)| task.dependents.is_empty()).map(|(n, _)| n).collect(),
            def,
            tasks,
            input,
            key,
            output,
            implicit: false,
        }
    }

    /// The flow's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The definition.
    pub fn def(&self) -> &FlowDef {
        &self.def
    }

    /// The canonical text of the definition.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The hash of the canonical text, as hexadecimal: equal flows have equal hashes.
    pub fn hash(&self) -> &Arc<str> {
        &self.hash
    }

    /// The tasks; a task's index is its place here.
    pub fn tasks(&self) -> &[TaskPlan] {
        &self.tasks
    }

    /// The tasks that need nothing.
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// The tasks that nothing needs.
    pub fn sinks(&self) -> &[u32] {
        &self.sinks
    }

    /// The output that the flow defines.
    pub fn output(&self) -> Option<&OutputPlan> {
        self.output.as_ref()
    }

    /// How long a job may take.
    pub fn timeout(&self) -> Option<Millis> {
        self.timeout
    }

    /// How often a job may be recovered.
    pub fn max_recoveries(&self) -> u32 {
        self.def.max_recoveries.unwrap_or(DEFAULT_RECOVERIES)
    }

    /// Whether it stands behind a job of a queue, and nobody has defined it.
    pub fn is_implicit(&self) -> bool {
        self.implicit
    }

    /// The task of a name.
    pub fn task_named(&self, name: &str) -> Option<u32> {
        self.tasks.iter().position(|task| *task.name == *name).map(|at| at as u32)
    }

    /// These tasks and all that come after them, in order.
    pub fn with_descendants(&self, tasks: &[u32]) -> Vec<u32> {
        let mut found = vec![false; self.tasks.len()];
        let mut open = tasks.to_vec();
        while let Some(task) = open.pop() {
            if !std::mem::replace(&mut found[task as usize], true) {
                open.extend(&self.tasks[task as usize].dependents);
            }
        }
        (0..self.tasks.len() as u32).filter(|task| found[*task as usize]).collect()
    }

    /// Everything that is wrong with an input.
    pub fn check_input(&self, input: &Json) -> Vec<FieldError> {
        self.input.as_ref().map(|schema| schema.check(&input.value())).unwrap_or_default()
    }

    /// The idempotency key that the flow makes of an input, if it makes one: null is none.
    pub fn derive_key(&self, input: &Json) -> Result<Option<Key>, TemplateError> {
        let Some(template) = &self.key else { return Ok(None) };
        let base = [("input".to_owned(), input.value())].into_iter().collect();
        let text = match template.render(&super::template::Scope::new(base))? {
            Value::Null => return Ok(None),
            Value::String(text) => text,
            other => other.to_string(),
        };
        let window = self.def.idempotency.as_ref().and_then(|def| def.window);
        Ok(Some(Key { text: text.into(), window, derived: true }))
    }

    /// What the name of the flow is in idempotency keys: apart from those of handlers.
    pub fn key_scope(&self) -> Arc<str> {
        if self.implicit { self.name.clone() } else { format!("flow:{}", self.name).into() }
    }
}

/// What a plan is made of, once it is checked.
pub(super) struct Parts {
    pub def: FlowDef,
    pub text: Arc<str>,
    pub tasks: Vec<TaskPlan>,
    pub input: Option<InputSchema>,
    pub key: Option<Template>,
    pub output: Option<OutputPlan>,
}

/// How the attempts of a task are run.
pub(super) fn spec_of(def: &FlowDef, task: &TaskDef) -> TaskSpec {
    let defaults = &def.defaults;
    let usual = RetryPolicy::default();
    let backoff = |pick: fn(&super::def::BackoffDef) -> Option<Millis>| {
        task.backoff.as_ref().and_then(pick).or(defaults.backoff.as_ref().and_then(pick))
    };
    let number = |pick: fn(&super::def::BackoffDef) -> Option<u32>| {
        task.backoff.as_ref().and_then(pick).or(defaults.backoff.as_ref().and_then(pick))
    };
    let base = TaskSpec::new(task.handler.as_str());
    TaskSpec {
        queue: task.queue.as_deref().or(defaults.queue.as_deref()).unwrap_or(DEFAULT_QUEUE).into(),
        retry: RetryPolicy {
            max_retries: task.retries.or(defaults.retries).unwrap_or(usual.max_retries),
            initial: backoff(|b| b.initial).unwrap_or(usual.initial),
            base: number(|b| b.base).unwrap_or(usual.base),
            max: backoff(|b| b.max).unwrap_or(usual.max),
            jitter_percent: number(|b| b.jitter_percent.map(u32::from))
                .map_or(usual.jitter_percent, |percent| percent.min(100) as u8),
        },
        timeout: task.timeout.or(defaults.timeout).or(base.timeout),
        max_crashes: task.max_crashes.or(defaults.max_crashes).unwrap_or(base.max_crashes),
        ..base
    }
}

/// Reads the canonical text of a flow.
pub(super) fn read_text(text: &str) -> Result<FlowDef, Vec<Problem>> {
    let document = Node::from_json(text)
        .map_err(|error| vec![Problem::new(Path::root(), format!("not a JSON document: {error}"))])?;
    super::read::read(&document)
}

fn hash(text: &str) -> Arc<str> {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing into a String does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.into()
}
