//! Jobs as the catalog shows them.

use super::row::Columns;
use super::tasks::{Wanted, view};
use super::{Read, Reader, sql, unreadable};
use crate::names::Known;
use futures_util::future::try_join;
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{JobId, JobState, Json, Meta, Priority, TaskId, TaskSpec, Timestamp};
use orchestrator_store::packed::pack;
use orchestrator_store::{DocumentView, FlowRef, JobView, TaskView};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// A job without its tasks.
pub struct Job {
    pub seq: i64,
    pub created: Timestamp,
    pub payload: Json,
    pub kind: Kind,
    meta: Meta,
    document: Option<DocumentView>,
    tenant: Arc<str>,
    key: Option<Arc<str>>,
    tier: u8,
    previous: Option<JobId>,
}

/// The two kinds of jobs.
pub enum Kind {
    /// A job of a queue: nothing but one task.
    Queue(Arc<TaskSpec>),
    /// A job with a head.
    Flow(Head),
}

/// What a head tells.
pub struct Head {
    pub flow: i32,
    pub plan: Arc<Plan>,
    pub run: Run,
    version: u32,
    output: Option<Json>,
}

impl Head {
    /// How views name the flow; the implicit ones have no name.
    fn reference(&self) -> Option<FlowRef> {
        (!self.plan.is_implicit()).then(|| FlowRef {
            name: self.plan.name().clone(),
            version: self.version,
            hash: self.plan.hash().clone(),
        })
    }
}

impl Job {
    /// How many tasks it shows.
    fn width(&self) -> u32 {
        match &self.kind {
            Kind::Queue(_) => 1,
            Kind::Flow(head) => head.plan.tasks().len() as u32,
        }
    }

    /// Whether it has a task at an index, items among them.
    fn has(&self, index: u32) -> bool {
        match &self.kind {
            Kind::Queue(_) => index == 0,
            Kind::Flow(head) => head.run.place(index).is_some(),
        }
    }

    fn view(&self, id: JobId, waits_for: Vec<JobId>, tasks: Vec<TaskView>) -> JobView {
        let base = JobView {
            id,
            state: JobState::Pending,
            flow: None,
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            created: self.created,
            started: None,
            ended: None,
            deadline: None,
            priority: Priority::from_tier(self.tier),
            previous: self.previous,
            waits_for,
            recoveries: 0,
            max_recoveries: 0,
            reason: None,
            payload: self.payload.clone(),
            meta: self.meta.clone(),
            document: self.document.clone(),
            output: None,
            tasks: vec![],
        };
        match &self.kind {
            Kind::Queue(_) => {
                let task = &tasks[0];
                JobView {
                    state: JobState::of_only_task(task.state, task.counters.attempt > 0),
                    started: task.started,
                    ended: task.ended,
                    output: task.output.clone(),
                    tasks,
                    ..base
                }
            }
            Kind::Flow(head) => {
                let run = &head.run;
                JobView {
                    state: run.state,
                    flow: head.reference(),
                    started: run.started,
                    ended: run.ended,
                    deadline: run.times_out(),
                    recoveries: run.recoveries,
                    max_recoveries: head.plan.max_recoveries(),
                    reason: run.reason.clone(),
                    output: match head.plan.output() {
                        Some(_) => head.output.clone(),
                        None if run.state == JobState::Completed => JobView::output_of(&head.plan, &tasks),
                        None => None,
                    },
                    tasks,
                    ..base
                }
            }
        }
    }
}

impl Reader<'_> {
    /// One job, if there is one with this id.
    pub async fn job(&self, id: JobId) -> Read<Option<JobView>> {
        let Some(seq) = self.ids.seq(id) else { return Ok(None) };
        // A job of a queue has one task, whose number is known: all is asked at once. For others that is in vain.
        let (mut jobs, facts) = try_join(self.jobs(&[seq]), self.facts(&[pack(seq, 0)], &[seq])).await?;
        let Some(job) = jobs.pop().filter(|job| self.is(job, id)) else { return Ok(None) };
        match job.kind {
            Kind::Queue(_) => {
                let task = view(Wanted { job: &job, index: 0 }, &mut { facts })?;
                Ok(Some(job.view(id, vec![], vec![task])))
            }
            Kind::Flow(_) => Ok(self.views(&[job]).await?.pop()),
        }
    }

    /// One task.
    pub async fn task(&self, id: TaskId) -> Read<Option<TaskView>> {
        match self.find(id.job).await?.filter(|job| job.has(id.index)) {
            Some(job) => Ok(self.tasks(&[Wanted { job: &job, index: id.index }]).await?.pop()),
            None => Ok(None),
        }
    }

    /// The items that a task was expanded into.
    pub async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> Read<Vec<TaskView>> {
        let Some(job) = self.find(group.job).await? else { return Ok(vec![]) };
        let Kind::Flow(head) = &job.kind else { return Ok(vec![]) };
        let Some(group) = head.run.group(group.index) else { return Ok(vec![]) };
        let from = after.map_or(group.first, |after| group.first.max(after.saturating_add(1)));
        let indexes = (from..group.first + group.count).take(limit as usize);
        let wanted: Vec<Wanted<'_>> = indexes.map(|index| Wanted { job: &job, index }).collect();
        self.tasks(&wanted).await
    }

    /// The job with an id. One with the same number that was created at another moment is not it.
    async fn find(&self, id: JobId) -> Read<Option<Job>> {
        let Some(seq) = self.ids.seq(id) else { return Ok(None) };
        let found = self.jobs(&[seq]).await?.pop();
        Ok(found.filter(|job| self.is(job, id)))
    }

    fn is(&self, job: &Job, id: JobId) -> bool {
        self.ids.job(job.created, job.seq) == id
    }

    /// The jobs with these numbers, in order of their numbers.
    pub(super) async fn jobs(&self, seqs: &[i64]) -> Read<Vec<Job>> {
        let rows = self.query(sql::JOBS, &[&seqs]).await?;
        let (mut specs, mut flows) = (vec![], vec![]);
        for row in &rows {
            specs.extend(row.try_get::<_, Option<i32>>("spec")?);
            flows.extend(row.try_get::<_, Option<i32>>("flow")?);
        }
        let known = self.shared(specs, flows).await?;
        rows.iter().map(|row| self.read_job(row, &known)).collect()
    }

    fn read_job(&self, row: &Row, known: &Known) -> Read<Job> {
        let previous = row.try_get::<_, Option<i64>>("previous")?.zip(row.maybe_moment("previous_created")?);
        let kind = match row.try_get::<_, Option<i32>>("flow")? {
            Some(flow) => Kind::Flow(Head {
                flow,
                plan: known.flows.get(&flow).cloned().ok_or_else(|| unreadable("the flow of a job"))?,
                run: read_run(row)?,
                version: row.count("version")?,
                output: row.json("output")?,
            }),
            None => {
                let spec = known.specs.get(&row.try_get::<_, i32>("spec")?);
                Kind::Queue(spec.cloned().ok_or_else(|| unreadable("how the task of a job is run"))?)
            }
        };
        Ok(Job {
            seq: row.try_get("seq")?,
            created: row.moment("created")?,
            payload: Json::trusted(row.text("payload")?),
            kind,
            meta: Meta::from_text(row.try_get("meta")?)
                .map_err(|_| unreadable("what a job carries along"))?,
            document: document(row)?,
            tenant: row.text("tenant")?,
            key: row.maybe_text("key")?,
            tier: row.small("tier")?,
            previous: previous.map(|(seq, created)| self.ids.job(created, seq)),
        })
    }

    /// The whole view of jobs, in the same order.
    pub(super) async fn views(&self, jobs: &[Job]) -> Read<Vec<JobView>> {
        let wanted: Vec<Wanted<'_>> =
            jobs.iter().flat_map(|job| (0..job.width()).map(move |index| Wanted { job, index })).collect();
        let mut tasks = self.tasks(&wanted).await?.into_iter();
        let mut waits = self.waits(jobs).await?;
        let view = |job: &Job| {
            let own = tasks.by_ref().take(job.width() as usize).collect();
            job.view(self.ids.job(job.created, job.seq), waits.remove(&job.seq).unwrap_or_default(), own)
        };
        Ok(jobs.iter().map(view).collect())
    }

    /// What jobs wait for, of those that do.
    async fn waits(&self, jobs: &[Job]) -> Read<FxHashMap<i64, Vec<JobId>>> {
        let mut found: FxHashMap<i64, BTreeMap<i64, JobId>> = FxHashMap::default();
        let waits = |job: &&Job| matches!(&job.kind, Kind::Flow(head) if head.run.waits > 0);
        let waiters: Vec<i64> = jobs.iter().filter(waits).map(|job| job.seq).collect();
        if !waiters.is_empty() {
            for row in self.query(sql::WAITS, &[&waiters]).await? {
                let seq: i64 = row.try_get("job")?;
                let id = self.ids.job(row.moment("created")?, seq);
                found.entry(row.try_get("waiter")?).or_default().insert(seq, id);
            }
        }
        Ok(found.into_iter().map(|(waiter, jobs)| (waiter, jobs.into_values().collect())).collect())
    }
}

/// What is shown of the document of a job.
fn document(row: &Row) -> Read<Option<DocumentView>> {
    let Some(name) = row.maybe_text("document_name")? else { return Ok(None) };
    Ok(Some(DocumentView {
        name,
        media_type: row.text("media_type")?,
        size: u64::try_from(row.try_get::<_, i64>("document_size")?).unwrap_or(0),
        sha256: row.text("sha256")?,
    }))
}

/// The head of a job, from the column `body`.
pub fn read_run(row: &Row) -> Read<Run> {
    postcard::from_bytes(row.try_get("body")?).map_err(|_| unreadable("the head of a job"))
}
