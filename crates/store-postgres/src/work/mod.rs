//! A transaction in memory: what was read, what is to be written, and the rules in between.
//!
//! A verb is computed on what is in [`Base`]: rows that were read and are locked. Where something is missing, the
//! computation says so ([`Needs`]) and goes on with the next request, to find what else is missing; then all of it is
//! read in a few set-based statements and the verb is computed anew. Nothing is written before it came through, and then
//! in one set-based statement per table: the difference between where each task was and where it is now.

mod control;
mod lifecycle;
mod moves;
mod place;
mod settle;
mod submit;

pub use submit::key_digest;

use crate::names::{Known, Lane, LaneName};
use crate::place::Placed;
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{Document, JobState, Json, Limits, TaskSpec, TaskState, Timestamp};
use orchestrator_store::packed::{Ids, index_of, job_state_code, seq_of, state_code};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// Why a computation did not come through.
#[derive(Debug)]
pub enum Stop {
    /// Something must be read first; it stands in [`Work::needs`].
    Missing,
    /// The request cannot be stored.
    Invalid(String),
    /// Something is not there that was a moment ago: somebody removed the job meanwhile.
    Gone,
}

/// The result of a step of a computation.
pub type Step<T> = Result<T, Stop>;

/// A job's row, which never changes but for what [`Staged`] says.
#[derive(Clone, Debug)]
pub struct JobRow {
    /// When it was taken in.
    pub created: Timestamp,
    /// How its task is run, if it is a job of a queue.
    pub spec: Option<i32>,
    /// The lane it was submitted to, if it is a job of a queue.
    pub lane: Option<i32>,
    /// Its flow, if it has a head.
    pub flow: Option<i32>,
    /// Its tier.
    pub tier: u8,
    /// Its tenant.
    pub tenant: i32,
    /// The stamp of its task, or the moment before which its flow must not start.
    pub entry: Option<i64>,
    /// The caller's key.
    pub key: Option<Arc<str>>,
    /// The key's window.
    pub bucket: Option<i64>,
    /// The job that it repeats or replaces.
    pub previous: Option<i64>,
    /// What was submitted.
    pub payload: Json,
    /// The digest of the document that is kept with it.
    pub document: Option<Arc<str>>,
}

/// A job of a flow, as far as moving it on needs it.
#[derive(Clone, Debug)]
pub struct Head {
    /// The job's number.
    pub seq: i64,
    /// Its flow.
    pub flow: i32,
    /// The same.
    pub plan: Arc<Plan>,
    /// Where it stands.
    pub run: Run,
    /// When it was taken in.
    pub created: Timestamp,
    /// Whose it is.
    pub tenant: i32,
    /// Its tier.
    pub tier: u8,
    /// The moment before which its first tasks must not start.
    pub run_at: Option<Timestamp>,
    /// What was submitted.
    pub payload: Json,
    /// The output that its flow defines, once it has completed.
    pub output: Option<Json>,
}

impl Head {
    /// When it ends by itself, while it lives: the end of time where it has no deadline or its clock stands still.
    pub fn alive(&self) -> Option<i64> {
        let forever = Timestamp::from_millis(i64::MAX);
        (!self.run.state.is_terminal()).then(|| self.run.times_out().unwrap_or(forever).as_millis())
    }
}

/// The row of a task of a flow that came to life.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// The lane in which it came to life.
    pub lane: i32,
    /// Its tier.
    pub tier: u8,
    /// What it gets, where that is its own.
    pub payload: Option<Json>,
}

/// The record of an attempt.
#[derive(Clone, Debug)]
pub struct Record {
    /// The task.
    pub task: i64,
    /// The attempt.
    pub attempt: u32,
    /// How it ended, as the table has it.
    pub how: String,
    /// For people.
    pub message: String,
}

/// A row of the fairness table: line, tier, tenant.
pub type FairKey = (i32, u8, i32);

/// What was read, and is locked where others might change it. `None` says that there is no such row.
#[derive(Debug, Default)]
pub struct Base {
    pub jobs: FxHashMap<i64, Option<JobRow>>,
    pub heads: FxHashMap<i64, Option<Head>>,
    pub tasks: FxHashMap<i64, Option<Placed>>,
    pub rows: FxHashMap<i64, Option<TaskRow>>,
    /// Where in the table `ready` the rows of tasks are that were met in line.
    pub ready_rows: FxHashMap<i64, String>,
    /// Jobs of which every task that lives is in `tasks` and `rows`.
    pub live: FxHashSet<i64>,
    /// Jobs of which every task that is over is in `tasks`.
    pub over: FxHashSet<i64>,
    pub errors: FxHashMap<i64, Option<String>>,
    pub waiters: FxHashMap<i64, Vec<i64>>,
    pub holders: FxHashMap<Uuid, Option<i64>>,
    /// The stamps of the places in line that are reserved.
    pub places: FxHashMap<FairKey, Vec<i64>>,
    /// Leases that were taken away when they were read.
    pub taken: FxHashSet<i64>,
    /// Flows that were looked up or written in this transaction.
    pub flow_ids: FxHashMap<(bool, Arc<str>), i32>,
    /// Numbers for new jobs.
    pub seqs: Vec<i64>,
    /// Jobs that others wait for, among those of which a request may end the only task.
    pub awaited: FxHashMap<i64, bool>,
}

/// What must be read before a computation can come through.
#[derive(Debug, Default)]
pub struct Needs {
    pub jobs: BTreeSet<i64>,
    pub heads: BTreeSet<i64>,
    pub tasks: BTreeSet<i64>,
    /// Tasks that are over most likely.
    pub past: BTreeSet<i64>,
    pub rows: BTreeSet<i64>,
    pub live: BTreeSet<i64>,
    pub over: BTreeSet<i64>,
    pub errors: BTreeSet<i64>,
    pub waiters: BTreeSet<i64>,
    pub awaited: BTreeSet<i64>,
    pub holders: BTreeSet<Uuid>,
    /// Places in line: how many more.
    pub places: BTreeMap<FairKey, i64>,
    /// Attempts that are to end, with the tasks in `tasks`.
    pub ending: Vec<(i64, i32)>,
    pub flows: Vec<Arc<Plan>>,
    pub flow_ids: BTreeSet<i32>,
    pub specs: Vec<Arc<TaskSpec>>,
    pub tenants: Vec<Arc<str>>,
    pub lanes: Vec<LaneName>,
    pub lane_ids: BTreeSet<i32>,
    pub spec_ids: BTreeSet<i32>,
    pub tenant_ids: BTreeSet<i32>,
    pub seqs: usize,
}

impl Needs {
    /// Whether nothing is missing that a computation depends on: numbers for jobs and places are only written down.
    pub fn is_settled(&mut self) -> bool {
        let (places, seqs) = (std::mem::take(&mut self.places), std::mem::take(&mut self.seqs));
        let settled = self.is_empty();
        (self.places, self.seqs) = (places, seqs);
        settled
    }

    /// Whether nothing is missing but places in line, if anything.
    pub fn are_places(&mut self) -> bool {
        let places = std::mem::take(&mut self.places);
        let are_places = self.is_empty();
        self.places = places;
        are_places
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        let Needs {
            jobs,
            heads,
            tasks,
            past,
            rows,
            live,
            over,
            errors,
            waiters,
            awaited,
            holders,
            places,
            ending,
            flows,
            flow_ids,
            specs,
            tenants,
            lanes,
            lane_ids,
            spec_ids,
            tenant_ids,
            seqs,
        } = self;
        let numbers = [jobs, heads, tasks, past, rows, live, over, errors, waiters, awaited];
        let ids = [flow_ids, lane_ids, spec_ids, tenant_ids];
        numbers.iter().all(|set| set.is_empty())
            && ids.iter().all(|set| set.is_empty())
            && (holders.is_empty() && places.is_empty() && flows.is_empty() && ending.is_empty())
            && (specs.is_empty() && tenants.is_empty() && lanes.is_empty() && *seqs == 0)
    }
}

/// What is to be written.
#[derive(Debug, Default)]
pub struct Staged {
    /// New jobs, in order.
    pub jobs: BTreeMap<i64, JobRow>,
    /// What new jobs carry along, and their documents.
    pub metas: FxHashMap<i64, String>,
    pub documents: BTreeMap<i64, Document>,
    /// Heads that changed.
    pub heads: FxHashMap<i64, Head>,
    /// Where tasks are now; none for one that stands nowhere any more.
    pub tasks: FxHashMap<i64, Option<Placed>>,
    /// Rows of tasks that came, changed or went.
    pub rows: FxHashMap<i64, Option<TaskRow>>,
    /// Jobs of queues that got a head.
    pub upgraded: FxHashMap<i64, i32>,
    /// Who has a key from now on.
    pub holders: FxHashMap<Uuid, i64>,
    /// Jobs that had a key which another job has now.
    pub former: Vec<(Uuid, i64)>,
    /// How many of the places in line were used.
    places: FxHashMap<FairKey, usize>,
    /// Those among them that were not reserved yet, each as its number in the order of its key.
    promised: Vec<(FairKey, usize)>,
    pub records: Vec<Record>,
    /// Ranges of tasks whose records go.
    pub forgotten: Vec<(i64, i64)>,
    pub waits: BTreeSet<(i64, i64)>,
    /// Jobs that wait no more.
    pub wait_no_more: BTreeSet<i64>,
    /// Jobs for which nobody waits any more.
    pub told: BTreeSet<i64>,
    pub tallies: BTreeMap<(i32, u8), i64>,
    /// How many jobs came or ended on a day.
    pub daily: BTreeMap<(i32, u8), i64>,
    pub timings: BTreeMap<(i32, u32), (i64, i64)>,
    /// Slots of limit keys that were given back, and places behind them that went unused.
    pub freed: BTreeMap<i32, i32>,
    pub unused: BTreeMap<i32, u32>,
    pub events: Vec<(i64, u32, u8, u32)>,
    /// Whether more may be ready.
    pub wake: bool,
    /// Whether tasks may stand anywhere in line that were not there before.
    pub anywhere: bool,
    /// How many of the numbers for new jobs were used.
    used: usize,
    /// Ended jobs whose waiters are to be told.
    ending: VecDeque<i64>,
}

/// A transaction.
pub struct Work {
    /// Its moment.
    pub now: Timestamp,
    /// The ids of the database.
    pub ids: Ids,
    /// The names that are known.
    pub known: Arc<Known>,
    /// What was read.
    pub base: Base,
    /// What is to be written.
    pub staged: Staged,
    /// What is to be read.
    pub needs: Needs,
}

impl Work {
    /// A transaction that has read nothing.
    pub fn new(now: Timestamp, ids: Ids, known: Arc<Known>) -> Self {
        Work { now, ids, known, base: Base::default(), staged: Staged::default(), needs: Needs::default() }
    }

    /// Computes requests one after the other. `None` when something is missing: read it and ask again. Places in line may be
    /// missing all the same; they can be put in afterwards ([`Work::take_promised_places`]).
    pub fn compute<Q, A>(
        &mut self,
        requests: &[Q],
        mut one: impl FnMut(&mut Work, &Q) -> Step<A>,
    ) -> Step<Option<Vec<A>>> {
        self.staged = Staged::default();
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            match one(self, request).and_then(|answer| self.tell_waiters().map(|()| answer)) {
                Ok(answer) => answers.push(answer),
                // What follows something that is missing may look wrong, and is computed again anyway.
                Err(stop) if self.needs.is_settled() => return Err(stop),
                Err(_) => self.staged.ending.clear(),
            }
        }
        Ok(self.needs.are_places().then_some(answers))
    }

    fn missing<T>(&mut self, need: impl FnOnce(&mut Needs)) -> Step<T> {
        need(&mut self.needs);
        Err(Stop::Missing)
    }

    /// A job's row, if there is one.
    pub fn job(&mut self, seq: i64) -> Step<Option<JobRow>> {
        if let Some(job) = self.staged.jobs.get(&seq) {
            return Ok(Some(job.clone()));
        }
        match self.base.jobs.get(&seq) {
            Some(job) => {
                let mut job = job.clone();
                if let (Some(job), Some(flow)) = (&mut job, self.staged.upgraded.get(&seq)) {
                    job.flow = Some(*flow);
                }
                Ok(job)
            }
            None => self.missing(|needs| {
                needs.jobs.insert(seq);
            }),
        }
    }

    /// The head of a job, which must have one. To be put back with [`Work::put_head`] if it is changed.
    pub fn head(&mut self, seq: i64) -> Step<Head> {
        if let Some(head) = self.staged.heads.get(&seq) {
            return Ok(head.clone());
        }
        match self.base.heads.get(&seq) {
            Some(Some(head)) => Ok(head.clone()),
            Some(None) => Err(Stop::Gone),
            None => self.missing(|needs| {
                needs.heads.insert(seq);
            }),
        }
    }

    /// The head of a job, if it was read already.
    pub fn peek_head(&self, seq: i64) -> Result<Head, ()> {
        let staged = self.staged.heads.get(&seq);
        staged.or_else(|| self.base.heads.get(&seq).and_then(Option::as_ref)).cloned().ok_or(())
    }

    /// Keeps a head that was changed.
    pub fn put_head(&mut self, head: Head) {
        self.staged.heads.insert(head.seq, head);
    }

    /// Where a task is; none if it stands nowhere.
    pub fn placed(&mut self, task: i64) -> Step<Option<Placed>> {
        if let Some(placed) = self.staged.tasks.get(&task) {
            return Ok(placed.clone());
        }
        match self.base.tasks.get(&task) {
            Some(placed) => Ok(placed.clone()),
            None if self.staged.jobs.contains_key(&seq_of(task)) => Ok(None),
            None => self.missing(|needs| {
                needs.tasks.insert(task);
            }),
        }
    }

    /// Where a task is that is over most likely.
    pub fn past(&mut self, task: i64) -> Step<Option<Placed>> {
        if self.staged.tasks.contains_key(&task) || self.base.tasks.contains_key(&task) {
            return self.placed(task);
        }
        self.missing(|needs| {
            needs.past.insert(task);
        })
    }

    /// Moves a task. The lanes that it leaves and enters have to be known when it is written.
    pub fn put(&mut self, task: i64, placed: Option<Placed>) {
        for lane in placed.iter().chain(self.base.tasks.get(&task).into_iter().flatten()).map(|p| p.lane) {
            if !self.known.lanes.contains_key(&lane) {
                self.needs.lane_ids.insert(lane);
            }
        }
        self.staged.tasks.insert(task, placed);
    }

    /// The row of a task of a flow.
    pub fn row(&mut self, task: i64) -> Step<Option<TaskRow>> {
        if let Some(row) = self.staged.rows.get(&task) {
            return Ok(row.clone());
        }
        match self.base.rows.get(&task) {
            Some(row) => Ok(row.clone()),
            None if self.staged.jobs.contains_key(&seq_of(task)) => Ok(None),
            None => self.missing(|needs| {
                needs.rows.insert(task);
            }),
        }
    }

    /// The tasks of a job that live and stand somewhere or wait to be let in, in order.
    pub fn live_tasks(&mut self, seq: i64) -> Step<Vec<i64>> {
        if !self.base.live.contains(&seq) && !self.staged.jobs.contains_key(&seq) {
            return self.missing(|needs| {
                needs.live.insert(seq);
            });
        }
        let all = self.base.rows.keys().chain(self.staged.rows.keys());
        let mut tasks: BTreeSet<i64> = all.copied().filter(|task| seq_of(*task) == seq).collect();
        let gone = |task: &i64| matches!(self.staged.rows.get(task), Some(None));
        let over = |task: &i64| {
            let placed = self.staged.tasks.get(task).or_else(|| self.base.tasks.get(task));
            placed.is_some_and(|placed| placed.as_ref().is_some_and(|placed| placed.end().is_some()))
        };
        let absent = |task: &i64| {
            !self.staged.rows.contains_key(task) && matches!(self.base.rows.get(task), Some(None))
        };
        tasks.retain(|task| !gone(task) && !over(task) && !absent(task));
        Ok(tasks.into_iter().collect())
    }

    /// The tasks of a job between two of them that are over, in order.
    pub fn ended_tasks(&mut self, from: i64, to: i64) -> Step<Vec<i64>> {
        let seq = seq_of(from);
        if !self.base.over.contains(&seq) && !self.staged.jobs.contains_key(&seq) {
            return self.missing(|needs| {
                needs.over.insert(seq);
            });
        }
        let all = self.base.tasks.keys().chain(self.staged.tasks.keys()).copied();
        let tasks: BTreeSet<i64> = all.filter(|task| (from..to).contains(task)).collect();
        let mut ended = vec![];
        for task in tasks {
            if self.placed(task)?.is_some_and(|placed| placed.end().is_some()) {
                ended.push(task);
            }
        }
        Ok(ended)
    }

    /// The number of a spec.
    pub fn spec_id(&mut self, spec: &Arc<TaskSpec>) -> Step<i32> {
        match self.known.spec_ids.get(spec) {
            Some(id) => Ok(*id),
            None => self.missing(|needs| needs.specs.push(spec.clone())),
        }
    }

    /// The spec of a number.
    pub fn spec(&mut self, id: i32) -> Step<Arc<TaskSpec>> {
        match self.known.specs.get(&id) {
            Some(spec) => Ok(spec.clone()),
            None => self.missing(|needs| {
                needs.spec_ids.insert(id);
            }),
        }
    }

    /// The number of a tenant.
    pub fn tenant_id(&mut self, tenant: &Arc<str>) -> Step<i32> {
        match self.known.tenant_ids.get(tenant) {
            Some(id) => Ok(*id),
            None => self.missing(|needs| needs.tenants.push(tenant.clone())),
        }
    }

    /// The tenant of a number.
    pub fn tenant(&mut self, id: i32) -> Step<Arc<str>> {
        match self.known.tenants.get(&id) {
            Some(tenant) => Ok(tenant.clone()),
            None => self.missing(|needs| {
                needs.tenant_ids.insert(id);
            }),
        }
    }

    /// The number of a lane.
    pub fn lane_id(&mut self, spec: &TaskSpec, limits: &Limits) -> Step<i32> {
        let name = (spec.queue.clone(), spec.handler.clone(), limits.clone());
        match self.known.lane_ids.get(&name) {
            Some(id) => Ok(*id),
            None => self.missing(|needs| needs.lanes.push(name)),
        }
    }

    /// The lane of a number.
    pub fn lane(&mut self, id: i32) -> Step<Arc<Lane>> {
        match self.known.lanes.get(&id) {
            Some(lane) => Ok(lane.clone()),
            None => self.missing(|needs| {
                needs.lane_ids.insert(id);
            }),
        }
    }

    /// The number of a flow, which is written down if it is new.
    pub fn flow_id(&mut self, plan: &Arc<Plan>) -> Step<i32> {
        let name = (plan.is_implicit(), plan.hash().clone());
        match self.known.flow_ids.get(&name).or_else(|| self.base.flow_ids.get(&name)) {
            Some(id) => Ok(*id),
            None => self.missing(|needs| needs.flows.push(plan.clone())),
        }
    }

    /// Notes for the journal that a task entered a state.
    pub fn note(&mut self, task: i64, state: TaskState, attempt: u32) {
        self.staged.events.push((seq_of(task), index_of(task), state_code(state), attempt));
    }

    /// Notes the record of an attempt.
    pub fn record(&mut self, task: i64, attempt: u32, how: String, message: String) {
        self.staged.records.push(Record { task, attempt, how, message });
    }

    /// Counts a job that came, that ended in a state, or that was taken up again after its end.
    pub fn count_today(&mut self, entered: JobState) {
        let day = i32::try_from(self.now.day()).unwrap_or(i32::MAX);
        *self.staged.daily.entry((day, job_state_code(entered))).or_default() += 1;
    }

    /// Counts an ended task of a line, or takes it back.
    pub fn tally(&mut self, line: i32, state: TaskState, by: i64) {
        *self.staged.tallies.entry((line, state_code(state))).or_default() += by;
    }
}
