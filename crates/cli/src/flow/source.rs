//! Where a flow comes from: a file, or the registry of the database.

use crate::config::near;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::find::flow_name;
use orchestrator_core::flow::{FlowDef, Path as DefPath, Plan, Problem};
use orchestrator_engine::unknown_handler;
use orchestrator_flowfile::{FlowFile, Format, Report, parse};
use orchestrator_store::{Catalog, FlowRef, FlowView};
use orchestrator_worker::Registry;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A flow that can run, and where it was found.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The flow.
    pub plan: Arc<Plan>,
    /// Its place.
    pub origin: Origin,
}

/// Where a flow was found.
#[derive(Clone, Debug)]
pub enum Origin {
    /// In a file.
    File(PathBuf),
    /// In the registry.
    Registry(FlowRef),
}

/// Whether a text means a file and not a name: it looks like a path, or there is such a file.
pub fn means_file(text: &str) -> bool {
    let path = Path::new(text);
    text.contains('/') || Format::of_path(path).is_some() || path.is_file()
}

/// The flow in a file, checked whole; what is wrong comes back with its places.
pub fn load(path: &Path) -> Result<Flow, Report> {
    let file = FlowFile::load(path)?;
    let plan = file.plan()?;
    let def = anchored(FlowDef::from(file), path);
    // Only directories changed, so what could be compiled still can.
    let plan = Plan::compile(def).unwrap_or(plan);
    Ok(Flow { plan: Arc::new(plan), origin: Origin::File(path.to_owned()) })
}

/// The flow that a text names: a file, or a flow of the registry, `name` or `name@3`.
pub async fn find(text: &str, store: Option<&dyn Catalog>) -> CliResult<Flow> {
    if means_file(text) {
        return load(Path::new(text)).map_err(|report| refused(&report));
    }
    let view = registered(text, store).await?;
    let plan = compile(&view)?;
    Ok(Flow { plan: Arc::new(plan), origin: Origin::Registry(view.flow) })
}

/// A flow of the registry.
pub async fn registered(text: &str, store: Option<&dyn Catalog>) -> CliResult<FlowView> {
    let (name, version) = flow_name(text)?;
    let Some(store) = store else { return Err(no_flow(text, &[], false)) };
    if let Some(view) = store.flow(name.clone(), version).await? {
        return Ok(view);
    }
    let known = store.flows(None).await?;
    let versions = !store.flows(Some(name)).await?.is_empty();
    Err(no_flow(text, &known, versions))
}

fn no_flow(text: &str, known: &[FlowView], versions: bool) -> CliError {
    let name = text.split('@').next().unwrap_or(text);
    let error = CliError::new(Exit::NotFound, "not_found", format!("there is no flow {text:?} here"));
    let meant = near(name, known.iter().map(|view| &*view.flow.name)).filter(|meant| *meant != name);
    error.hint(match meant {
        Some(meant) => format!("did you mean {meant}? `orchestrator flows list` shows what there is"),
        None if versions => format!("`orchestrator flows show {name} --versions` lists its versions"),
        None => "give the path of a file, or put it into the registry with `orchestrator flows apply FILE`"
            .to_owned(),
    })
}

/// The plan of a definition in the registry.
pub fn compile(view: &FlowView) -> CliResult<Plan> {
    Plan::from_text(view.definition.as_str()).map_err(|problems| {
        let name = format!("{}@{}", view.flow.name, view.flow.version);
        let error = CliError::new(Exit::Error, "invalid", format!("flow {name} cannot be read back"));
        CliError { details: problems.iter().map(ToString::to_string).collect(), ..error }
            .hint("a newer orchestrator wrote it")
    })
}

/// The error of a definition that cannot run.
pub fn refused(report: &Report) -> CliError {
    let findings = report.findings();
    let missing = findings.iter().any(|finding| finding.line == 0);
    let count = if findings.len() == 1 { "1 error".to_owned() } else { format!("{} errors", findings.len()) };
    let error = CliError::new(Exit::Usage, "invalid_flow", format!("{count} in the flow"));
    let error = CliError { details: findings.iter().map(ToString::to_string).collect(), ..error };
    if missing {
        error
    } else {
        error.hint("docs/reference/flow.md tells every field, `orchestrator flows schema` to editors")
    }
}

impl Flow {
    /// Tasks whose handler this program does not have, and payloads without expressions that their
    /// handler refuses.
    pub fn misfits(&self, registry: &Registry) -> Misfits {
        let (mut unknown, mut wrong) = (vec![], vec![]);
        for task in self.plan.tasks() {
            let path = DefPath::root().key("tasks").key(&*task.name);
            match (registry.get(&task.spec.handler), &task.literal) {
                (None, _) => unknown
                    .push(Problem::new(path.key("handler"), unknown_handler(registry, &task.spec.handler))),
                (Some(handler), Some(payload)) => {
                    let path = path.key("with");
                    wrong.extend(handler.check(payload).iter().map(|problem| {
                        let field = problem.field.strip_prefix("payload").unwrap_or(&problem.field);
                        let at = field.split(['.', '[']).find(|part| !part.is_empty());
                        let path = at.map_or_else(|| path.clone(), |name| path.key(name));
                        Problem::new(path, &*problem.message)
                    }));
                }
                (Some(_), None) => {}
            }
        }
        Misfits { unknown: self.report(&unknown), wrong: self.report(&wrong) }
    }

    /// Problems with their places, where the flow is in a file.
    fn report(&self, problems: &[Problem]) -> Option<Report> {
        if problems.is_empty() {
            return None;
        }
        let (name, document) = match &self.origin {
            Origin::File(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let format = Format::of_path(path).unwrap_or_else(|| Format::guess(&text));
                (path.display().to_string(), parse(&text, format).ok())
            }
            Origin::Registry(flow) => (format!("{}@{}", flow.name, flow.version), None),
        };
        let nowhere = || orchestrator_core::flow::Node::new(orchestrator_core::flow::document::Kind::Null);
        Some(Report::of_problems(&name, &document.unwrap_or_else(nowhere), problems))
    }
}

/// What does not fit the handlers of this program.
pub struct Misfits {
    /// Handlers that it does not have. Another program may.
    pub unknown: Option<Report>,
    /// Payloads that a handler refuses.
    pub wrong: Option<Report>,
}

impl Misfits {
    /// The first of both, as an error.
    pub fn refuse(&self) -> CliResult<()> {
        match self.wrong.as_ref().or(self.unknown.as_ref()) {
            Some(report) => Err(refused(report)),
            None => Ok(()),
        }
    }
}

/// The definition with the relative `cwd` of its `command` tasks made absolute, from the file's own
/// directory: so that it runs the same from wherever it is started.
fn anchored(mut def: FlowDef, file: &Path) -> FlowDef {
    let parent = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(dir) = parent.canonicalize() else { return def };
    for task in def.tasks.iter_mut().filter(|task| task.handler == "command") {
        let Some(Value::Object(with)) = &mut task.with else { continue };
        let Some(Value::String(cwd)) = with.get_mut("cwd") else { continue };
        if Path::new(cwd).is_relative() && !cwd.contains("{{") {
            *cwd = tidy(&dir.join(&*cwd)).display().to_string();
        }
    }
    def
}

/// Without `.` and `..`, which would make one directory look like several.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            part => tidied.push(part),
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names_are_told_apart() {
        for text in ["a/b", "x.yaml", "x.toml", "./x"] {
            assert!(means_file(text), "{text}");
        }
        assert!(!means_file("dataset-build") && !means_file("dataset-build@3"));
    }

    #[test]
    fn a_relative_directory_is_that_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flow.yaml");
        let text = "flow: a\ntasks:\n  a: { handler: command, with: { run: [ls], cwd: ./sub/../x } }\n  \
                    b: { handler: command, with: { run: [ls], cwd: /tmp } }\n  \
                    c: { handler: command, with: { run: [ls], cwd: \"{{ input.dir }}\" } }\n";
        std::fs::write(&path, text).unwrap();
        let flow = load(&path).unwrap();
        let cwd =
            |n: usize| flow.plan.def().tasks[n].with.as_ref().unwrap()["cwd"].as_str().unwrap().to_owned();
        assert_eq!(Path::new(&cwd(0)), dir.path().canonicalize().unwrap().join("x"));
        assert_eq!((cwd(1), cwd(2)), ("/tmp".to_owned(), "{{ input.dir }}".to_owned()));
    }

    #[test]
    fn misfits_are_told_with_their_places() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flow.yaml");
        let text =
            "flow: a\ntasks:\n  a: { handler: slep }\n  b:\n    handler: sleep\n    with: { for: soon }\n";
        std::fs::write(&path, text).unwrap();
        let registry = orchestrator_worker::builtin::registry(Default::default());
        let misfits = load(&path).unwrap().misfits(&registry);
        let (unknown, wrong) = (misfits.unknown.unwrap(), misfits.wrong.unwrap());
        let unknown = &unknown.findings()[0];
        assert_eq!((unknown.line, unknown.column, unknown.path.as_str()), (3, 17, "tasks.a.handler"));
        assert!(unknown.message.contains("did you mean sleep?"), "{unknown}");
        assert_eq!((wrong.findings()[0].line, wrong.findings()[0].path.as_str()), (6, "tasks.b.with.for"));
    }
}
