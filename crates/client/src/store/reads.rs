//! What the catalog shows, read from the server.

use super::{RemoteStore, views};
use crate::error::ClientError;
use crate::http::Repeat;
use async_trait::async_trait;
use orchestrator_api::dead_letters::DeadLetterPage;
use orchestrator_api::flows::FlowList;
use orchestrator_api::jobs::JobPage;
use orchestrator_api::limits::LimitList;
use orchestrator_api::old::RemovableJobs;
use orchestrator_api::queues::{QueueList, QueueView};
use orchestrator_api::stats::Daily;
use orchestrator_api::tasks::TaskList;
use orchestrator_api::workers::WorkerList;
use orchestrator_core::{Document, JobId, TaskId, Timestamp};
use orchestrator_store::*;
use orchestrator_worker::WorkSource;
use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, HeaderName};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::sync::watch;

/// The longest page that the server gives.
const PAGE: u32 = 500;
/// The most days of which the server tells.
const DAYS: u32 = 366;

/// How long an id is: nothing longer starts one.
const LONGEST_ID: usize = 36;

type Query = Vec<(String, String)>;

fn pair(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn maybe(name: &str, value: Option<&(impl ToString + ?Sized)>) -> Option<(String, String)> {
    value.map(|value| pair(name, value.to_string()))
}

/// What is not there is none.
fn found<T>(answer: Result<T, ClientError>) -> StoreResult<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl RemoteStore {
    async fn read<A: DeserializeOwned>(&self, path: &[&str], query: Query) -> Result<A, ClientError> {
        self.client.get(path, &query, Repeat::Safe).await
    }

    async fn queues(&self) -> StoreResult<Vec<QueueView>> {
        let QueueList { queues } = self.read(&["queues"], vec![]).await?;
        Ok(queues)
    }
}

fn line(filter: &LineFilter) -> Query {
    let pairs = [maybe("queue", filter.queue.as_deref()), maybe("handler", filter.handler.as_deref())];
    pairs.into_iter().flatten().collect()
}

fn filter(filter: &JobFilter) -> Query {
    let mut query = line(&filter.line);
    query.extend(maybe("task_state", filter.task.as_ref()));
    query.extend(filter.states.iter().map(|state| pair("state", state)));
    query.extend(maybe("flow", filter.flow.as_deref()));
    query.extend(filter.recoverable.then(|| pair("recoverable", true)));
    query.extend(maybe("created_from", filter.created_from.as_ref()));
    query.extend(maybe("created_before", filter.created_before.as_ref()));
    query.extend(
        filter.context.iter().map(|(field, value)| pair(&format!("context.{field}"), value.as_str())),
    );
    query.push(pair("order", if filter.newest_first { "newest" } else { "oldest" }));
    query
}

/// The name of a document, as the server writes it.
fn file_name(headers: &HeaderMap) -> String {
    let written = text(headers, &CONTENT_DISPOSITION);
    let name = written.split_once("filename*=UTF-8''").map_or("document", |(_, name)| name);
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[async_trait]
impl Catalog for RemoteStore {
    fn now(&self) -> Timestamp {
        self.time()
    }

    async fn close(&self) {}

    async fn leads(&self) -> bool {
        false
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        Ok(found(self.read(&["jobs", &id.to_string()], vec![]).await)?.map(views::job))
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        let path = ["jobs", &id.job.to_string(), "tasks", &id.index.to_string()];
        // A task may have a number for its name, and names go first.
        let task: Option<TaskView> = found(self.read(&path, vec![]).await)?;
        match task.filter(|task| task.index == id.index) {
            // Whether it is the task of a queue's job, only the job tells.
            Some(task) if id.index == 0 && task.input.is_none() => {
                Ok(self.job(id.job).await?.and_then(|job| job.tasks.into_iter().next()))
            }
            // The name of an item ends with its number.
            task => Ok(task.map(|task| {
                let item = task.name.ends_with(']');
                views::task(task, item)
            })),
        }
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        let (job, index) = (group.job.to_string(), group.index.to_string());
        let path = ["jobs", &job, "tasks", &index, "items"];
        let (mut all, mut after) = (vec![], after);
        while all.len() < limit as usize {
            let page = (limit - all.len() as u32).min(PAGE);
            let query = [Some(pair("limit", page)), maybe("after", after.as_ref())];
            let answer = found(self.read(&path, query.into_iter().flatten().collect()).await)?;
            let Some(TaskList { tasks, next }) = answer else { break };
            all.extend(tasks.into_iter().map(|task| views::task(task, true)));
            after = next;
            if next.is_none() {
                break;
            }
        }
        Ok(all)
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        let lost = self.source.lost(attempts.clone()).await.map_err(super::writes::of_source)?;
        Ok(attempts.iter().map(|held| !lost.contains(held)).collect())
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        let starts_one = prefix.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if prefix.len() > LONGEST_ID || !starts_one || limit == 0 {
            return Ok(vec![]);
        }
        let query = vec![pair("id_prefix", prefix), pair("limit", limit.min(PAGE))];
        let JobPage { jobs, .. } = self.read(&["jobs"], query).await?;
        Ok(jobs.into_iter().map(|job| job.id).collect())
    }

    async fn list(&self, wanted: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        let (mut all, mut after) = (vec![], page.after);
        while all.len() < page.limit as usize {
            let mut query = filter(&wanted);
            query.push(pair("limit", (page.limit - all.len() as u32).min(PAGE)));
            query.extend(maybe("cursor", after.as_ref()));
            let JobPage { jobs, next } = self.read(&["jobs"], query).await?;
            all.extend(jobs.into_iter().map(views::job));
            after = next;
            if next.is_none() {
                break;
            }
        }
        Ok(all)
    }

    async fn stats(&self) -> StoreResult<Stats> {
        let queues = self.queues().await?;
        Ok(Stats { lines: queues.into_iter().flat_map(|queue| queue.handlers).collect() })
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        if days == 0 {
            return Ok(vec![]);
        }
        let query = vec![pair("days", days.min(DAYS))];
        let Daily { days } = self.read(&["stats", "daily"], query).await?;
        Ok(days)
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        let paused = |queue: QueueView| Some(PausedQueue { queue: queue.queue, since: queue.paused? });
        Ok(self.queues().await?.into_iter().filter_map(paused).collect())
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        let WorkerList { workers } = self.read(&["workers"], vec![]).await?;
        Ok(workers)
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        let answer = found(self.client.fetch(&["jobs", &id.to_string(), "document"]).await)?;
        Ok(answer.map(|answer| {
            let media_type = text(&answer.headers, &CONTENT_TYPE).to_owned();
            Document::new(file_name(&answer.headers), media_type, answer.body)
        }))
    }

    async fn dead_letters(
        &self,
        wanted: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        let (mut all, mut after) = (vec![], after);
        while all.len() < limit as usize {
            let mut query = line(&wanted);
            query.push(pair("limit", (limit - all.len() as u32).min(PAGE)));
            query.extend(maybe("cursor", after.as_ref()));
            let DeadLetterPage { dead_letters, next } = self.read(&["dead-letters"], query).await?;
            all.extend(dead_letters);
            after = next;
            if next.is_none() {
                break;
            }
        }
        Ok(all)
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        let answer = match &name {
            None => Some(self.read(&["flows"], vec![]).await?),
            Some(name) => found(self.read(&["flows", name, "versions"], vec![]).await)?,
        };
        Ok(answer.map_or_else(Vec::new, |FlowList { flows }| flows))
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        let query = maybe("version", version.as_ref()).into_iter().collect();
        found(self.read(&["flows", &name], query).await)
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        let LimitList { limits } = self.read(&["limits"], vec![]).await?;
        Ok(limits)
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        let RemovableAsk { bygone, after, limit, look } = ask;
        let query = [
            maybe("completed_before", bygone.completed.as_ref()),
            maybe("failed_before", bygone.failed.as_ref()),
            maybe("dead_before", bygone.dead.as_ref()),
            maybe("cursor", after.as_ref()),
            // Shorter looks than asked for only mean more of them.
            Some(pair("limit", limit.clamp(1, 1000))),
            Some(pair("look", look.clamp(1, 10_000))),
        ];
        let page: RemovableJobs =
            self.read(&["jobs", "removable"], query.into_iter().flatten().collect()).await?;
        Ok(page.into())
    }

    async fn journal(&self, _after: EventId, _limit: u32) -> StoreResult<JournalPage> {
        Err(heard())
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        Err(heard())
    }
}

/// Events of a server are heard as they come ([`Client::events`](crate::Client::events)), not read by pages.
fn heard() -> StoreError {
    StoreError::Invalid("the journal of a server is read from its /events".to_owned())
}
