//! The heads of jobs of flows: read when one is needed, kept for a while, and written once per commit, however many
//! of the job's tasks it touched.

use super::Writer;
use super::bulk::{AliveIn, RunIn, Text};
use crate::error::Abort;
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{JobState, Json, Meta, Timestamp};
use orchestrator_store::packed::job_state_code;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How much is kept in memory between commits: a head, or what a task gets, counts as its bytes and some.
const KEPT: usize = 48 << 20;
/// What a head takes beside its payload.
const HEAD: usize = 400;
/// What a payload takes beside its text.
const ENTRY: usize = 80;
/// After so many reads while it is full, what is kept has shown to be of no use.
const MISSES: u32 = 20_000;

/// A job of a flow, as far as moving it on needs it.
pub struct Head {
    pub seq: i64,
    pub flow: i64,
    pub plan: Arc<Plan>,
    pub run: Run,
    pub created: Timestamp,
    pub tenant: i64,
    pub tier: u8,
    /// The moment before which its first tasks must not start.
    pub run_at: Option<Timestamp>,
    pub payload: Json,
    /// What it carries along.
    pub meta: Arc<Meta>,
    /// The output that its flow defines, once it has completed.
    pub output: Option<Json>,
    /// When it ends by itself, as the table has it; none if it is not in the table.
    pub written: Option<Alive>,
    /// Whether it differs from the table.
    pub changed: bool,
}

/// The deadline of a live job; none once it is over.
pub type Alive = Option<i64>;

impl Head {
    /// How much memory it takes, roughly.
    fn weight(&self) -> usize {
        HEAD + self.payload.size() + self.meta.context.as_ref().map_or(0, Json::size)
    }

    fn alive(&self) -> Alive {
        let forever = Timestamp::from_millis(i64::MAX);
        (!self.run.state.is_terminal()).then(|| self.run.times_out().unwrap_or(forever).as_millis())
    }
}

/// What was read or made of late and will be needed again soon. All of it is in the tables.
#[derive(Default)]
pub struct Heads {
    heads: FxHashMap<i64, Box<Head>>,
    /// What tasks get that came to life and were not leased yet.
    payloads: FxHashMap<i64, Json>,
    /// How much both hold together.
    weight: usize,
    /// How often something was read anew while it was full.
    misses: u32,
}

impl Heads {
    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Heads::default();
    }

    /// Whether nothing more should be kept. What came first is served first, so of a backlog its beginning is kept.
    fn is_full(&self) -> bool {
        self.weight > KEPT
    }

    /// Forgets everything when what is kept is not what is asked for: jobs that wait for long, or are paused.
    pub fn trim(&mut self) {
        if self.misses > MISSES {
            self.clear();
        }
    }

    /// What a task gets, if it is still known. It is asked for once, when the task is leased.
    pub fn take_payload(&mut self, task: i64) -> Option<Json> {
        let payload = self.payloads.remove(&task)?;
        self.weight -= payload.size() + ENTRY;
        Some(payload)
    }

    pub(super) fn keep_payload(&mut self, task: i64, payload: &Json) {
        // What it was to get before a recovery must not outlive it, whether this is kept or not.
        self.take_payload(task);
        if !self.is_full() {
            self.weight += payload.size() + ENTRY;
            self.payloads.insert(task, payload.clone());
        }
    }

    pub(super) fn keep(&mut self, head: Box<Head>) {
        self.weight += head.weight();
        if let Some(before) = self.heads.insert(head.seq, head) {
            self.weight -= before.weight();
        }
    }

    /// Forgets the head of a job that is removed.
    pub fn forget(&mut self, seq: i64) {
        self.take(seq);
    }

    fn take(&mut self, seq: i64) -> Option<Box<Head>> {
        let head = self.heads.remove(&seq)?;
        self.weight -= head.weight();
        Some(head)
    }
}

impl Writer<'_> {
    /// The head of a job, which must have one.
    pub(super) fn head_of(&mut self, seq: i64) -> Result<&mut Head, Abort> {
        if !self.heads.heads.contains_key(&seq) {
            let head = self.read_head(seq)?;
            self.heads.keep(head);
        }
        let head = self.heads.heads.get_mut(&seq);
        head.map(|head| &mut **head).ok_or_else(|| Abort::Invalid("a head vanished".to_owned()))
    }

    /// Takes the head of a job out of memory, to work on it beside everything else.
    pub(super) fn take_head(&mut self, seq: i64) -> Result<Box<Head>, Abort> {
        match self.heads.take(seq) {
            Some(head) => Ok(head),
            None => self.read_head(seq),
        }
    }

    /// Puts a head back that was changed.
    pub(super) fn put_head(&mut self, mut head: Box<Head>) {
        if !std::mem::replace(&mut head.changed, true) {
            self.changes.heads.push(head.seq);
        }
        self.heads.keep(head);
    }

    /// Puts a head back that was only looked at.
    pub(super) fn keep_head(&mut self, head: Box<Head>) {
        self.heads.keep(head);
    }

    fn read_head(&mut self, seq: i64) -> Result<Box<Head>, Abort> {
        self.hot.flush()?;
        self.heads.misses += u32::from(self.heads.is_full());
        type Row = (Vec<u8>, i64, i64, i64, u8, Option<i64>, Json, Option<String>);
        let (body, flow, created, tenant, tier, entry, payload, meta): Row =
            self.sql.run_by_seq.query_row([seq], |row| {
                let (payload, meta) = (Json::trusted(row.get_ref(6)?.as_str()?), row.get(7)?);
                let job = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
                Ok((row.get(0)?, job.0, job.1, job.2, job.3, job.4, payload, meta))
            })?;
        let plan = self.plan(flow)?;
        let meta = self.meta(meta.as_deref())?;
        let mut head = Box::new(Head {
            seq,
            flow,
            run: postcard::from_bytes(&body).map_err(|error| Abort::Invalid(error.to_string()))?,
            created: Timestamp::from_millis(created),
            tenant,
            tier,
            run_at: entry.map(Timestamp::from_millis),
            plan,
            payload,
            meta,
            output: None,
            written: None,
            changed: false,
        });
        head.written = Some(head.alive());
        Ok(head)
    }

    /// What a job carries along, from its row.
    pub(super) fn meta(&self, text: Option<&str>) -> Result<Arc<Meta>, Abort> {
        if text.is_none() {
            return Ok(self.no_meta.clone());
        }
        Meta::from_text(text).map(Arc::new).map_err(|error| Abort::Invalid(error.to_string()))
    }

    /// Writes the heads that changed in this transaction.
    pub(super) fn write_heads(&mut self) -> Result<(), Abort> {
        let mut changed = std::mem::take(&mut self.changes.heads);
        changed.sort_unstable();
        for seq in changed {
            let Some(head) = self.heads.heads.get_mut(&seq) else { continue };
            head.changed = false;
            let state = job_state_code(head.run.state);
            let alive = head.alive();
            let body = postcard::to_stdvec(&head.run).map_err(|error| Abort::Invalid(error.to_string()))?;
            let output = head.output.clone().map(Text);
            let before = head.written.replace(alive);
            if before != Some(alive) {
                let bad = matches!(head.run.state, JobState::Failed | JobState::TimedOut);
                if let Some(Some(deadline)) = before {
                    self.sql.delete_alive.execute((deadline, seq))?;
                }
                match alive {
                    Some(deadline) => {
                        self.hot.alive.push(AliveIn { deadline, seq })?;
                        if before == Some(None) {
                            self.sql.delete_bad.execute([seq])?;
                        }
                    }
                    None if bad => drop(self.sql.insert_bad.execute([seq])?),
                    None => {}
                }
            }
            self.hot.runs.push(RunIn { seq, state, body, output })?;
            // One that is over is asked for no more, as a rule.
            if alive.is_none() || self.heads.is_full() {
                self.heads.take(seq);
            }
        }
        Ok(())
    }
}
