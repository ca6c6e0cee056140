//! Names that people type into jobs and tasks: ids or unique prefixes of them, names of tasks or
//! their numbers.

use crate::config::near;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use orchestrator_core::{JobId, TaskId};
use orchestrator_store::{Catalog, JobView, TaskView};
use std::sync::Arc;

/// So many candidates are shown.
const SHOWN: u32 = 5;
/// Items are read in pages of this length.
const PAGE: u32 = 1000;

/// The job that a text names: an id, or a prefix that only one id has.
pub async fn id(store: &dyn Catalog, text: &str) -> CliResult<JobId> {
    let text = text.trim().to_ascii_lowercase();
    let looks_like_one = !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !looks_like_one {
        return Err(CliError::usage(format!("{text:?} is not a job id"))
            .hint("an id is a UUID or the start of one; `orchestrator jobs list` shows them"));
    }
    if let Ok(id) = text.parse::<JobId>() {
        return match store.ids(id.to_string(), 1).await?.first() {
            Some(id) => Ok(*id),
            None => Err(no_job(&text)),
        };
    }
    let found = store.ids(text.clone(), SHOWN + 1).await?;
    match found.as_slice() {
        [] => Err(no_job(&text)),
        [one] => Ok(*one),
        several => {
            let mut details: Vec<String> =
                several.iter().take(SHOWN as usize).map(ToString::to_string).collect();
            if several.len() > details.len() {
                details.push("...".to_owned());
            }
            let error = CliError::new(Exit::Usage, "ambiguous", format!("several jobs start with {text}"));
            Err(CliError { details, ..error }.hint("give more of the id"))
        }
    }
}

fn no_job(text: &str) -> CliError {
    CliError::new(Exit::NotFound, "not_found", format!("there is no job {text}"))
        .hint("`orchestrator jobs list` shows what there is; --db or --server names another place")
}

/// The job that a text names.
pub async fn job(store: &dyn Catalog, text: &str) -> CliResult<JobView> {
    let id = id(store, text).await?;
    store.job(id).await?.ok_or_else(|| no_job(&id.to_string()))
}

/// The task of a job that a text names: by name, by `name[3]` for an item, or by number.
pub async fn task(store: &dyn Catalog, job: &JobView, text: &str) -> CliResult<TaskView> {
    if let Some(task) = job.task_named(text) {
        return Ok(task.clone());
    }
    if let Some(index) = job.index_of(text)
        && let Some(task) = store.task(TaskId { job: job.id, index }).await?
    {
        return Ok(task);
    }
    let error = CliError::new(Exit::NotFound, "not_found", format!("job {} has no task {text:?}", job.id));
    let name = text.split('[').next().unwrap_or(text);
    let meant = near(name, job.tasks.iter().map(|task| &*task.name))
        .map(|meant| format!("did you mean {meant}? "))
        .unwrap_or_default();
    Err(error.hint(format!("{meant}`orchestrator tasks list {}` shows what there is", job.id)))
}

/// Every item of an expanded task, in order.
pub async fn items(store: &dyn Catalog, job: JobId, group: &TaskView) -> CliResult<Vec<TaskView>> {
    let mut found: Vec<TaskView> = vec![];
    if group.items.is_none() {
        return Ok(found);
    }
    loop {
        let after = found.last().map(|task| task.index);
        let page = store.items(TaskId { job, index: group.index }, after, PAGE).await?;
        let ended = page.len() < PAGE as usize;
        found.extend(page);
        if ended {
            return Ok(found);
        }
    }
}

/// A name with an optional version: `dataset-build@3`.
pub fn flow_name(text: &str) -> CliResult<(Arc<str>, Option<u32>)> {
    match text.split_once('@') {
        None => Ok((text.into(), None)),
        Some((name, version)) => match version.parse() {
            Ok(version) => Ok((name.into(), Some(version))),
            Err(_) => Err(CliError::usage(format!("{version:?} is not the number of a version")).hint(
                format!("write it as {name}@3; `orchestrator flows show {name} --versions` lists them"),
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_carry_a_version() {
        assert_eq!(flow_name("a").unwrap(), ("a".into(), None));
        assert_eq!(flow_name("a@3").unwrap(), ("a".into(), Some(3)));
        assert_eq!(flow_name("a@latest").unwrap_err().exit, Exit::Usage);
    }
}
