//! Reads a document into a definition, and names all that is wrong with its form at once.
//!
//! Form only: unknown and doubled fields, types, spans of time, words and names. What takes the whole
//! flow to see (cycles, needs that lead nowhere, templates) is for [`super::Plan::compile`].

mod fields;
#[cfg(test)]
mod tests;
mod value;

use super::def::{BackoffDef, FlowDef, IdempotencyDef, TaskDef, TaskDefaults};
use super::document::{Field, Kind, Node, Path, Problem};
use super::plan::Plan;
use fields::{Fields, Reader};
use std::collections::BTreeMap;

pub use crate::human::near;

/// The fields of a flow.
pub const FLOW_FIELDS: &[&str] = &[
    "flow",
    "description",
    "timeout",
    "max_recoveries",
    "priority",
    "defaults",
    "input",
    "idempotency",
    "tasks",
    "output",
];

/// The fields of a task.
pub const TASK_FIELDS: &[&str] = &[
    "title",
    "handler",
    "queue",
    "needs",
    "join",
    "when",
    "with",
    "for_each",
    "concurrency",
    "retries",
    "backoff",
    "timeout",
    "max_crashes",
    "optional",
    "estimate",
    "limits",
    "priority",
];

/// The fields of a flow's `defaults`.
pub const DEFAULTS_FIELDS: &[&str] = &["queue", "retries", "backoff", "timeout", "max_crashes", "priority"];

/// The fields of a `backoff`.
pub const BACKOFF_FIELDS: &[&str] = &["initial", "base", "max", "jitter_percent"];

/// The fields of a flow's `idempotency`.
pub const IDEMPOTENCY_FIELDS: &[&str] = &["key", "window"];

/// The longest name of a task, in bytes.
pub const MAX_TASK_NAME: usize = 64;

/// Whether `name` may name a task: a letter, then letters, digits, `_` and `-`.
pub fn is_task_name(name: &str) -> bool {
    name.len() <= MAX_TASK_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Reads a flow. Where its form is wrong, all of it is told.
pub fn read(document: &Node) -> Result<FlowDef, Vec<Problem>> {
    let mut reader = Reader::default();
    let def = flow(&mut reader, document);
    let problems = reader.into_problems();
    match def {
        Some(def) if problems.is_empty() => Ok(def),
        _ => Err(problems),
    }
}

/// Reads and compiles a flow. Where its form is wrong, what is wrong with the rest of it as a whole is told too.
pub fn compile(document: &Node) -> Result<Plan, Vec<Problem>> {
    let mut reader = Reader::default();
    let def = flow(&mut reader, document);
    let mut problems = reader.into_problems();
    let Some(def) = def else { return Err(problems) };
    match Plan::compile(def) {
        Ok(plan) if problems.is_empty() => Ok(plan),
        Ok(_) => Err(problems),
        Err(more) => {
            // What could not be read is missing in the whole: that need not be said again.
            let told: Vec<Path> = problems.iter().map(|problem| problem.path.clone()).collect();
            let known = |path: &Path| told.iter().any(|known| path.0.starts_with(&known.0));
            problems.extend(more.into_iter().filter(|problem| !known(&problem.path)));
            problems.sort();
            Err(problems)
        }
    }
}

fn flow(reader: &mut Reader, document: &Node) -> Option<FlowDef> {
    let fields = reader.fields(document, Path::root(), "a flow", FLOW_FIELDS)?;
    Some(FlowDef {
        name: reader.need(&fields, "flow", value::name).unwrap_or_default(),
        description: reader.take(&fields, "description", value::text),
        timeout: reader.take(&fields, "timeout", value::span),
        max_recoveries: reader.take(&fields, "max_recoveries", value::whole),
        priority: reader.take(&fields, "priority", value::priority),
        defaults: reader.nested(&fields, "defaults", defaults).unwrap_or_default(),
        input: reader.free(&fields, "input", value::schema),
        idempotency: reader.nested(&fields, "idempotency", idempotency),
        tasks: tasks(reader, &fields),
        output: reader.free(&fields, "output", value::any),
    })
}

fn defaults(reader: &mut Reader, node: &Node, path: Path) -> Option<TaskDefaults> {
    let fields = reader.fields(node, path, "defaults", DEFAULTS_FIELDS)?;
    Some(TaskDefaults {
        queue: reader.take(&fields, "queue", value::name),
        retries: reader.take(&fields, "retries", value::whole),
        backoff: reader.nested(&fields, "backoff", backoff),
        timeout: reader.take(&fields, "timeout", value::span),
        max_crashes: reader.take(&fields, "max_crashes", value::whole),
        priority: reader.take(&fields, "priority", value::priority),
    })
}

fn backoff(reader: &mut Reader, node: &Node, path: Path) -> Option<BackoffDef> {
    let fields = reader.fields(node, path, "a backoff", BACKOFF_FIELDS)?;
    Some(BackoffDef {
        initial: reader.take(&fields, "initial", value::span),
        base: reader.take(&fields, "base", value::counted),
        max: reader.take(&fields, "max", value::span),
        jitter_percent: reader.take(&fields, "jitter_percent", value::percent),
    })
}

fn idempotency(reader: &mut Reader, node: &Node, path: Path) -> Option<IdempotencyDef> {
    let fields = reader.fields(node, path, "an idempotency", IDEMPOTENCY_FIELDS)?;
    Some(IdempotencyDef {
        key: reader.need(&fields, "key", value::text).unwrap_or_default(),
        window: reader.take(&fields, "window", value::span),
    })
}

fn tasks(reader: &mut Reader, flow: &Fields<'_>) -> Vec<TaskDef> {
    let path = flow.path("tasks");
    let Some(node) = flow.get("tasks") else {
        reader.problem(path, "is required: the tasks of the flow, name by name");
        return vec![];
    };
    let Kind::Map(tasks) = &node.kind else {
        reader.problem(path, format!("must be a map of task names to tasks, {}", value::found(node)));
        return vec![];
    };
    let tasks = reader.once(tasks, &path, "task");
    let read = |field: &Field| {
        // One that cannot be read still stands for its name: others may need it.
        let unread = || TaskDef { name: field.name.clone(), ..TaskDef::default() };
        task(reader, field, path.key(&field.name)).unwrap_or_else(unread)
    };
    tasks.into_iter().map(read).collect()
}

fn task(reader: &mut Reader, field: &Field, path: Path) -> Option<TaskDef> {
    if !is_task_name(&field.name) {
        let rule = format!(
            "{:?} cannot name a task: a name is a letter, then letters, digits, _ and -, at most {MAX_TASK_NAME} together",
            field.name
        );
        reader.problem(path.clone(), rule);
    }
    let fields = reader.fields(&field.value, path, "a task", TASK_FIELDS)?;
    Some(TaskDef {
        name: field.name.clone(),
        title: reader.take(&fields, "title", value::text),
        handler: reader.need(&fields, "handler", value::name).unwrap_or_default(),
        queue: reader.take(&fields, "queue", value::name),
        needs: reader.nested(&fields, "needs", needs).unwrap_or_default(),
        join: reader.take(&fields, "join", value::join).unwrap_or_default(),
        when: reader.take(&fields, "when", value::text),
        with: reader.free(&fields, "with", value::any),
        for_each: reader.free(&fields, "for_each", value::items),
        concurrency: reader.take(&fields, "concurrency", value::counted),
        retries: reader.take(&fields, "retries", value::whole),
        backoff: reader.nested(&fields, "backoff", backoff),
        timeout: reader.take(&fields, "timeout", value::span),
        max_crashes: reader.take(&fields, "max_crashes", value::whole),
        optional: reader.take(&fields, "optional", value::flag).unwrap_or_default(),
        estimate: reader.take(&fields, "estimate", value::span),
        limits: reader.nested(&fields, "limits", limits).unwrap_or_default(),
        priority: reader.take(&fields, "priority", value::priority),
    })
}

/// One name, or a list of them.
fn needs(reader: &mut Reader, node: &Node, path: Path) -> Option<Vec<String>> {
    match &node.kind {
        Kind::Text(name) => Some(vec![name.clone()]),
        Kind::List(items) => {
            let names = items.iter().enumerate();
            Some(names.filter_map(|(n, item)| reader.read(item, path.index(n), value::text)).collect())
        }
        _ => {
            reader.problem(path, format!("must be a list of task names, {}", value::found(node)));
            None
        }
    }
}

fn limits(reader: &mut Reader, node: &Node, path: Path) -> Option<BTreeMap<String, String>> {
    let Kind::Map(limits) = &node.kind else {
        let form = "must be a map such as { host: \"example.org\" }";
        reader.problem(path, format!("{form}, {}", value::found(node)));
        return None;
    };
    let limits = reader.once(limits, &path, "limit");
    let read = limits.into_iter().filter_map(|field| {
        let path = path.key(&field.name);
        if !value::is_limit_kind(&field.name) {
            let rule = format!("{:?} cannot be a kind of limit: use a-z, 0-9, _ and -", field.name);
            reader.problem(path.clone(), rule);
        }
        Some((field.name.clone(), reader.read(&field.value, path, value::text)?))
    });
    Some(read.collect())
}
