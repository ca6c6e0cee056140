//! From a definition to the parts of a plan: everything that can be known to be wrong before it runs.

mod graph;
mod refer;

use super::def::{BackoffDef, FlowDef, TaskDef};
use super::document::{Path, Problem};
use super::plan::{
    EachPlan, LimitPlan, MAX_DEFINITION, MAX_TASKS, OutputPlan, Parts, TaskPlan, Uses, read_text, spec_of,
};
use super::read::{MAX_TASK_NAME, is_task_name, near};
use super::schema::InputSchema;
use super::template::{Expression, Template};
use crate::json::Json;
use crate::limit::{LimitKey, Limits, MAX_KEYS};
use crate::spec::{MAX_NAME, is_name};
use crate::time::Millis;
use graph::Ancestors;
use refer::View;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The most retries of one task.
const MAX_RETRIES: u32 = 1_000;

/// With so many problems, nobody reads on to what a name may have meant; looking for it takes time.
const MAX_SUGGESTIONS: usize = 100;

/// Checks a definition and compiles its parts.
pub(super) fn compile(def: FlowDef) -> Result<Parts, Vec<Problem>> {
    let text = canonical(&def).map_err(|problem| vec![problem])?;
    let mut checker = Checker::new(&def);
    checker.names();
    let needs = checker.needs();
    checker.rings(&needs);
    // Where the graph is broken, what is missing from it would be told as a mistake of the templates.
    let ancestors = checker.problems.is_empty().then(|| Ancestors::of(&needs));
    checker.header();
    let input = checker.input();
    let key = checker.key(input.as_ref());
    let mut tasks: Vec<TaskPlan> = vec![];
    for ((n, task), needs) in (0..).zip(&def.tasks).zip(&needs) {
        let (input, item) = (input.as_ref(), task.for_each.is_some());
        let view = View { input, ancestors: ancestors.as_ref(), own: Some(n), item };
        tasks.push(checker.task(task, needs.clone(), view));
    }
    let output = checker.output(input.as_ref());
    for (task, needed) in (0..).zip(&needs) {
        for need in needed {
            tasks[*need as usize].dependents.push(task);
        }
    }
    let mut problems = checker.problems;
    if problems.is_empty() {
        problems.extend(unreadable(&def, &text));
    }
    problems.sort();
    problems.dedup();
    if problems.is_empty() { Ok(Parts { def, text, tasks, input, key, output }) } else { Err(problems) }
}

/// The canonical text. What is too large is not looked into any further.
fn canonical(def: &FlowDef) -> Result<Arc<str>, Problem> {
    if def.tasks.len() > MAX_TASKS {
        let message = format!("{} tasks; at most {MAX_TASKS} (for_each makes many of one)", def.tasks.len());
        return Err(Problem::new(Path::root().key("tasks"), message));
    }
    let text = serde_json::to_string(def)
        .map_err(|error| Problem::new(Path::root(), format!("cannot be written as JSON: {error}")))?;
    if text.len() > MAX_DEFINITION {
        let message = format!("the definition has {} bytes; at most {MAX_DEFINITION}", text.len());
        return Err(Problem::new(Path::root(), message));
    }
    Ok(text.into())
}

/// What keeps a definition that was made in Rust from being read back. Jobs outlive the process: a flow
/// whose text says anything else than its definition would be lost with the next start.
fn unreadable(def: &FlowDef, text: &str) -> Vec<Problem> {
    match read_text(text) {
        Ok(again) if again == *def => vec![],
        Ok(_) => vec![Problem::new(Path::root(), "means something else once it is written as JSON")],
        Err(problems) => problems,
    }
}

struct Checker<'d> {
    def: &'d FlowDef,
    index: HashMap<&'d str, u32>,
    problems: Vec<Problem>,
}

impl<'d> Checker<'d> {
    fn new(def: &'d FlowDef) -> Self {
        let index = (0..).zip(&def.tasks).map(|(n, task)| (task.name.as_str(), n)).collect();
        Checker { def, index, problems: vec![] }
    }

    fn add(&mut self, path: Path, message: impl Into<String>) {
        self.problems.push(Problem::new(path, message));
    }

    fn header(&mut self) {
        let root = Path::root();
        self.name(root.key("flow"), Some(&self.def.name));
        if self.def.tasks.is_empty() {
            self.add(root.key("tasks"), "a flow needs at least one task");
        }
        self.span(root.key("timeout"), self.def.timeout);
        let defaults = &self.def.defaults;
        let at = root.key("defaults");
        self.name(at.key("queue"), defaults.queue.as_ref());
        self.attempts(&at, defaults.timeout, defaults.retries, defaults.backoff);
    }

    /// How attempts are run, for all tasks or for one.
    fn attempts(
        &mut self,
        at: &Path,
        timeout: Option<Millis>,
        retries: Option<u32>,
        backoff: Option<BackoffDef>,
    ) {
        self.span(at.key("timeout"), timeout);
        if retries.is_some_and(|retries| retries > MAX_RETRIES) {
            self.add(at.key("retries"), format!("at most {MAX_RETRIES}"));
        }
        if backoff.and_then(|backoff| backoff.base) == Some(0) {
            self.add(at.key("backoff").key("base"), "must be at least 1");
        }
    }

    fn name(&mut self, at: Path, name: Option<&String>) {
        if name.is_some_and(|name| !is_name(name)) {
            self.add(at, format!("must be a name: 1 to {MAX_NAME} of A-Z a-z 0-9 . _ - /"));
        }
    }

    fn span(&mut self, at: Path, span: Option<Millis>) {
        if span == Some(Millis(0)) {
            self.add(at, "must be longer than zero");
        }
    }

    fn names(&mut self) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (n, task) in self.def.tasks.iter().enumerate() {
            let path = Path::root().key("tasks").key(&task.name);
            if !is_task_name(&task.name) {
                self.add(
                    path.clone(),
                    format!("a task's name is a letter and up to {} of A-Z a-z 0-9 _ -", MAX_TASK_NAME - 1),
                );
            }
            if seen.insert(&task.name, n).is_some() {
                self.add(path, format!("the name {:?} is used twice", task.name));
            }
        }
    }

    fn needs(&mut self) -> Vec<Vec<u32>> {
        let mut all = vec![];
        for (n, task) in self.def.tasks.iter().enumerate() {
            let mut found: Vec<u32> = vec![];
            for (at, name) in task.needs.iter().enumerate() {
                let wrong = match self.index.get(name.as_str()).copied() {
                    None => format!("there is no task {name:?}{}", self.suggest(name)),
                    Some(need) if need as usize == n => "a task cannot need itself".to_owned(),
                    Some(need) if found.contains(&need) => format!("{name:?} stands here twice"),
                    Some(need) => {
                        found.push(need);
                        continue;
                    }
                };
                self.add(Path::root().key("tasks").key(&task.name).key("needs").index(at), wrong);
            }
            all.push(found);
        }
        all
    }

    fn suggest(&self, name: &str) -> String {
        if self.problems.len() >= MAX_SUGGESTIONS {
            return String::new();
        }
        match near(name, self.def.tasks.iter().map(|task| task.name.as_str())) {
            Some(meant) => format!("; did you mean {meant:?}?"),
            None => {
                let names: Vec<_> = self.def.tasks.iter().take(12).map(|task| task.name.as_str()).collect();
                let more = if self.def.tasks.len() > 12 { ", ..." } else { "" };
                format!("; there are {}{more}", names.join(", "))
            }
        }
    }

    /// Names rings by their path.
    fn rings(&mut self, needs: &[Vec<u32>]) {
        for ring in graph::rings(needs) {
            let name = |task: &u32| self.def.tasks[*task as usize].name.as_str();
            let names: Vec<_> = ring.iter().chain(&ring[..1]).map(name).collect();
            let message = format!("the tasks need each other in a circle: {}", names.join(" needs "));
            let path = Path::root().key("tasks").key(names[0]).key("needs");
            self.add(path, message);
        }
    }

    fn input(&mut self) -> Option<InputSchema> {
        let schema = self.def.input.as_ref()?;
        match InputSchema::compile(schema) {
            Ok(schema) => Some(schema),
            Err(found) => {
                for (at, message) in found {
                    let path = inner(Path::root().key("input"), &at);
                    self.add(path, message);
                }
                None
            }
        }
    }

    fn key(&mut self, input: Option<&InputSchema>) -> Option<Template> {
        let def = self.def.idempotency.as_ref()?;
        let path = Path::root().key("idempotency");
        if def.window.is_some_and(|window| window.0 == 0) {
            self.add(path.key("window"), "must be longer than zero");
        }
        let view = View { input, ancestors: None, own: None, item: false };
        let (template, uses) = self.template(&Value::String(def.key.clone()), &path.key("key"), view)?;
        if !uses.tasks.is_empty() || uses.job {
            self.add(path.key("key"), "a key is made of the input alone: nothing has run yet");
        }
        Some(template)
    }

    fn output(&mut self, input: Option<&InputSchema>) -> Option<OutputPlan> {
        let source = self.def.output.as_ref()?;
        let view = View { input, ancestors: None, own: None, item: false };
        let (template, uses) = self.template(source, &Path::root().key("output"), view)?;
        Some(OutputPlan { template, uses })
    }

    fn task(&mut self, task: &TaskDef, needs: Vec<u32>, view: View<'_>) -> TaskPlan {
        let path = Path::root().key("tasks").key(&task.name);
        self.name(path.key("handler"), Some(&task.handler));
        self.name(path.key("queue"), task.queue.as_ref());
        self.attempts(&path, task.timeout, task.retries, task.backoff);
        if task.concurrency.is_some() && task.for_each.is_none() {
            self.add(
                path.key("concurrency"),
                "says how many items of a for_each run at once; this task has none (see limits)",
            );
        }
        if task.concurrency == Some(0) {
            self.add(path.key("concurrency"), "must be at least 1");
        }
        let mut uses = Uses::default();
        let each = task.for_each.as_ref().and_then(|source| {
            let at = path.key("for_each");
            let view = View { item: false, ..view };
            let (template, uses) = self.template(source, &at, view)?;
            if template.is_literal() && !source.is_array() {
                self.add(at, "must be a list, or an expression such as {{ tasks.a.output.files }}");
            }
            Some(EachPlan { items: template, uses, concurrency: task.concurrency })
        });
        let when = task.when.as_ref().and_then(|source| {
            let at = path.key("when");
            let view = View { item: false, ..view };
            match Expression::compile(source) {
                Ok(when) => {
                    when.references().for_each(|found| self.refer(found, at.clone(), view, &mut uses));
                    Some(when)
                }
                Err(problem) => {
                    self.add(at, problem.message);
                    None
                }
            }
        });
        let with = task.with.as_ref().and_then(|source| {
            let (template, own) = self.template(source, &path.key("with"), view)?;
            uses.join(own);
            Some(template)
        });
        let mut limits = vec![];
        for (kind, name) in &task.limits {
            let at = path.key("limits").key(kind);
            if let Some((template, own)) = self.template(&Value::String(name.clone()), &at, view) {
                let name = if template.is_literal() { name } else { "x" };
                // Each alone, so that the message is about it; how many there are is looked at below.
                if let Err(error) = LimitKey::new(kind, name).and_then(|key| Limits::new([key])) {
                    self.add(at, error.to_string());
                }
                uses.join(own);
                limits.push((kind.clone(), template));
            }
        }
        if task.limits.len() > MAX_KEYS {
            self.add(path.key("limits"), format!("at most {MAX_KEYS} limits on one task"));
        }
        let literal =
            with.as_ref().filter(|with| with.is_literal()).map(|with| Json::from(with.source().clone()));
        let fixed = limits.iter().all(|(_, name)| name.is_literal()).then(|| {
            let key = |(kind, name): (&String, &String)| LimitKey::new(kind, name).ok();
            Limits::new(task.limits.iter().filter_map(key)).ok()
        });
        let limits = fixed.flatten().map_or(LimitPlan::Templates(limits), LimitPlan::Fixed);
        TaskPlan {
            name: task.name.as_str().into(),
            spec: Arc::new(spec_of(self.def, task)),
            needs,
            dependents: vec![],
            join: task.join,
            optional: task.optional,
            estimate: task.estimate,
            priority: task.priority.or(self.def.defaults.priority),
            each,
            when,
            with,
            limits,
            uses,
            literal,
        }
    }

    fn template(&mut self, source: &Value, path: &Path, view: View<'_>) -> Option<(Template, Uses)> {
        match Template::compile(source) {
            Ok(template) => {
                let mut uses = Uses::default();
                for (at, found) in template.references() {
                    self.refer(found, inner(path.clone(), at), view, &mut uses);
                }
                Some((template, uses))
            }
            Err(found) => {
                for problem in found {
                    self.add(inner(path.clone(), &problem.at), problem.message);
                }
                None
            }
        }
    }
}

/// The path into a value, from a text such as `.json.file[0]["any name"]`.
fn inner(mut path: Path, at: &str) -> Path {
    let mut rest = at;
    while !rest.is_empty() {
        if let Some((name, after)) = rest.strip_prefix("[\"").and_then(quoted) {
            path = path.key(name);
            rest = after.strip_prefix(']').unwrap_or(after);
            continue;
        }
        let is_item = rest.starts_with('[');
        // A bracket that closes nothing is passed, too: each turn takes something.
        rest = rest.strip_prefix(['.', '[', ']']).unwrap_or(rest);
        let (part, after) = rest.split_at(rest.find(['.', '[', ']']).unwrap_or(rest.len()));
        path = match part.parse() {
            Ok(n) if is_item => path.index(n),
            _ => path.key(part),
        };
        rest = if is_item { after.strip_prefix(']').unwrap_or(after) } else { after };
    }
    path
}

/// Reads up to the closing quote of a text that was written with `{:?}`; the text, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text.chars());
    loop {
        match rest.next()? {
            '"' => return Some((name, rest.as_str())),
            '\\' => match rest.next()? {
                'n' => name.push('\n'),
                'r' => name.push('\r'),
                't' => name.push('\t'),
                '0' => name.push('\0'),
                'u' => {
                    let (code, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                    name.push(u32::from_str_radix(code, 16).ok().and_then(char::from_u32)?);
                    rest = after.chars();
                }
                other => name.push(other),
            },
            other => name.push(other),
        }
    }
}
