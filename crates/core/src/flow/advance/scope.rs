//! What templates of a task see, and what they make.

use super::{Change, Machine, Past, invalid, readable, unresolved};
use crate::flow::plan::{LimitPlan, TaskPlan, Uses};
use crate::flow::run::Standing;
use crate::flow::template::{Scope, Template};
use crate::job::DEFAULT_MAX_PAYLOAD;
use crate::json::Json;
use crate::limit::{LimitKey, Limits};
use crate::outcome::Failure;
use serde_json::{Map, Value, json};

impl<P: Past> Machine<'_, P> {
    /// What the handler gets and the limits under which it runs.
    pub(super) fn render(&self, task: &TaskPlan, scope: &Scope) -> Result<(Option<Json>, Limits), Failure> {
        let payload = match &task.with {
            Some(with) if !with.is_literal() => {
                let payload = with.render_json(scope).map_err(|error| unresolved("with", &error))?;
                if payload.size() > DEFAULT_MAX_PAYLOAD {
                    let message = format!(
                        "its input has {} bytes, over the limit of {DEFAULT_MAX_PAYLOAD}: pass a reference instead of the data",
                        payload.size()
                    );
                    return Err(invalid(message));
                }
                Some(readable("with", payload)?)
            }
            _ => None,
        };
        let limits = match &task.limits {
            LimitPlan::Fixed(limits) => limits.clone(),
            LimitPlan::Templates(keys) => {
                let key = |(kind, name): &(String, Template)| {
                    let name = name.render_text(scope).map_err(|error| unresolved("limits", &error))?;
                    LimitKey::new(kind, &name).map_err(|error| bad_limit(&error))
                };
                let keys = keys.iter().map(key).collect::<Result<Vec<_>, _>>()?;
                Limits::new(keys).map_err(|error| bad_limit(&error))?
            }
        };
        Ok((payload, limits))
    }

    /// What templates see: only what they refer to is read.
    pub(super) fn scope(&mut self, uses: &Uses) -> Result<Scope, P::Error> {
        let mut base = Map::new();
        if uses.input {
            base.insert("input".to_owned(), self.facts.input.value());
        }
        if uses.job {
            let job = json!({ "id": self.facts.id.to_string(), "tenant": self.facts.tenant });
            base.insert("job".to_owned(), job);
        }
        if !uses.tasks.is_empty() {
            let mut tasks = Map::new();
            for used in &uses.tasks {
                let mut about = Map::new();
                let state = self.run.tasks[used.task as usize].state();
                about.insert("state".to_owned(), state.as_str().into());
                if used.output {
                    about.insert("output".to_owned(), self.output_of(used.task)?);
                }
                if used.error {
                    about.insert("error".to_owned(), self.error_of(used.task)?.into());
                }
                tasks.insert(self.plan.tasks()[used.task as usize].name.to_string(), about.into());
            }
            base.insert("tasks".to_owned(), tasks.into());
        }
        Ok(Scope::new(base))
    }

    /// The last error of a task: of this very move, where it could not start, else what was kept of it.
    pub(super) fn error_of(&mut self, task: u32) -> Result<Option<String>, P::Error> {
        let closed = self.moves.changes.iter().rev().find_map(|change| match change {
            Change::Close { index, failure: Some(failure), .. } if *index == task => {
                Some(failure.message.clone())
            }
            _ => None,
        });
        match closed {
            Some(message) => Ok(Some(message)),
            None => self.past.error(task),
        }
    }

    /// The output of a task; of an expanded one, the list of its items' outputs.
    pub(super) fn output_of(&mut self, task: u32) -> Result<Value, P::Error> {
        let Some(group) = self.run.group(task).cloned() else {
            let empty = self.plan.tasks()[task as usize].each.is_some()
                && self.run.tasks[task as usize] == Standing::Completed;
            if empty {
                return Ok(Value::Array(vec![]));
            }
            return Ok(self.past.output(task)?.map_or(Value::Null, |output| output.value()));
        };
        let item = |n| Ok(self.past.output(group.first + n)?.map_or(Value::Null, |output| output.value()));
        Ok(Value::Array((0..group.count).map(item).collect::<Result<_, P::Error>>()?))
    }
}

fn bad_limit(error: &crate::limit::BadLimit) -> Failure {
    invalid(format!("limits: {error}"))
}
