//! What templates refer to: whether it can exist when they are evaluated, and what must be read for them.

use super::Checker;
use super::graph::Ancestors;
use crate::flow::document::Path;
use crate::flow::plan::{TaskUse, Uses};
use crate::flow::schema::InputSchema;
use crate::flow::template::Reference;

/// What templates of one place may refer to.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// What is known of the input.
    pub input: Option<&'a InputSchema>,
    /// What has ended whenever a task starts, where that is known.
    pub ancestors: Option<&'a Ancestors>,
    /// The task it belongs to; `None` for what is evaluated when all have ended.
    pub own: Option<u32>,
    /// Whether there is an `item`.
    pub item: bool,
}

impl Checker<'_> {
    /// Checks what a template refers to, and notes it.
    pub(super) fn refer(&mut self, reference: &Reference, path: Path, view: View<'_>, uses: &mut Uses) {
        let names = reference.names();
        let wrong = match (names[0], names.get(1).copied()) {
            ("input", _) => {
                uses.input = true;
                let excluded = view.input.is_some_and(|schema| !schema.allows(&names[1..]));
                excluded.then(|| format!("{reference} cannot resolve: the input has no such property"))
            }
            ("job", Some("id" | "tenant")) => {
                uses.job = true;
                None
            }
            ("job", _) => Some(format!("{reference} cannot resolve: there are job.id and job.tenant")),
            ("item" | "item_index", _) if view.item => None,
            ("item" | "item_index", _) => Some(format!(
                "{reference} cannot resolve: an item exists in `with` and `limits` of a task with for_each"
            )),
            ("tasks", Some(name)) => self.task_reference(name, names.get(2).copied(), view, uses),
            ("tasks", None) => Some("name the task: tasks.NAME.output".to_owned()),
            (root, _) => {
                Some(format!("{root:?} cannot resolve: there are input, tasks, job, and item in a for_each"))
            }
        };
        if let Some(message) = wrong {
            self.add(path, message);
        }
    }

    fn task_reference(
        &mut self,
        name: &str,
        field: Option<&str>,
        view: View<'_>,
        uses: &mut Uses,
    ) -> Option<String> {
        let Some(task) = self.index.get(name).copied() else {
            return Some(format!("there is no task {name:?}{}", self.suggest(name)));
        };
        if view.own == Some(task) {
            return Some(format!("{name:?} cannot refer to itself"));
        }
        if let (Some(ancestors), Some(own)) = (view.ancestors, view.own)
            && !ancestors.has(own, task)
        {
            return Some(format!("{name:?} may not have ended by then: add it to `needs`"));
        }
        let (output, error) = match field {
            Some("output") => (true, false),
            Some("error") => (false, true),
            Some("state") => (false, false),
            None => (true, true),
            Some(other) => {
                return Some(format!(
                    "tasks.{name}.{other} cannot resolve: a task has output, state and error"
                ));
            }
        };
        uses.join(Uses { tasks: vec![TaskUse { task, output, error }], ..Uses::default() });
        None
    }
}

impl Uses {
    pub(super) fn join(&mut self, other: Uses) {
        self.input |= other.input;
        self.job |= other.job;
        for used in other.tasks {
            match self.tasks.iter_mut().find(|known| known.task == used.task) {
                Some(known) => {
                    known.output |= used.output;
                    known.error |= used.error;
                }
                None => self.tasks.push(used),
            }
        }
    }
}
