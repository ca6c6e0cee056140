//! Taking jobs in.

use super::Writer;
use super::bulk::{JobIn, Text};
use super::heads::Head;
use super::keys;
use super::place::{JobRow, Traveller};
use super::runs::not_after;
use crate::error::Abort;
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{
    Counters, Document, JobId, JobState, Json, Limits, NewJob, TaskSpec, TaskState, Timestamp, Work,
};
use orchestrator_store::Submitted;
use orchestrator_store::packed::pack;
use rusqlite::OptionalExtension;
use std::sync::Arc;

/// The job that has a key already.
struct Holder {
    seq: i64,
    row: JobRow,
    state: JobState,
}

impl Writer<'_> {
    pub(super) fn submit(&mut self, jobs: &[NewJob]) -> Result<Vec<Submitted>, Abort> {
        jobs.iter().map(|job| self.submit_one(job)).collect()
    }

    fn submit_one(&mut self, job: &NewJob) -> Result<Submitted, Abort> {
        let now = self.now;
        let tenant = self.tenant_id(&job.tenant)?;
        let bucket = job.key.as_ref().map(|key| key.bucket(now));
        let mut hash = 0;
        let mut previous = None;
        if let (Some(key), Some(bucket)) = (&job.key, bucket) {
            let scope = job.work.key_scope();
            hash = keys::hash(&job.tenant, &scope, &key.text, bucket);
            if let Some(holder) = self.holder(hash, tenant, &scope, &key.text, bucket)? {
                let id = self.ids.job(holder.row.created, holder.seq);
                if !holder.state.is_terminal() || holder.state == JobState::Completed {
                    let same = key.derived
                        || (job.payload.same_value(&Json::trusted(holder.row.payload))
                            && self.has_document(holder.seq, job.document.as_ref())?);
                    return Ok(if same {
                        Submitted::Existing { id, state: holder.state }
                    } else {
                        Submitted::Conflict { id }
                    });
                }
                previous = Some((holder.seq, id));
            }
        }
        if let (None, Some(id)) = (previous, job.rerun_of)
            && let Some(seq) = self.ids.seq(id)
            && self.job_row(seq)?.is_some_and(|row| row.created == id.created())
        {
            previous = Some((seq, id));
        }
        self.cache.last_seq += 1;
        let seq = self.cache.last_seq;
        if job.key.is_some() {
            self.keys.add(hash, seq);
        } else {
            self.keys.skip(seq);
        }
        let row = JobIn {
            seq,
            created: now.as_millis(),
            spec: None,
            lane: None,
            flow: None,
            tier: job.priority.tier(),
            tenant,
            entry: job.run_at.map(Timestamp::as_millis),
            key: job.key.as_ref().map(|key| key.text.clone()),
            bucket,
            previous: previous.map(|(seq, _)| seq),
            payload: Text(job.payload.clone()),
            meta: job.meta.text(),
        };
        self.count_today(JobState::Pending);
        if let Some(document) = &job.document {
            self.keep_document(seq, document)?;
        }
        match &job.work {
            Work::Task { spec, limits } if job.after.is_empty() => {
                self.submit_task(job, row, spec, limits)?
            }
            Work::Task { spec, limits } => {
                self.submit_flow(job, row, Arc::new(Plan::of_task(spec, limits)))?
            }
            Work::Flow(plan) => self.submit_flow(job, row, plan.clone())?,
        }
        Ok(Submitted::Created { id: self.ids.job(now, seq), previous: previous.map(|(_, id)| id) })
    }

    /// A job of a queue: its row, and its task in line. Nothing else is written for it.
    fn submit_task(
        &mut self,
        job: &NewJob,
        row: JobIn,
        spec: &Arc<TaskSpec>,
        limits: &Limits,
    ) -> Result<(), Abort> {
        let task = pack(row.seq, 0);
        let spec_id = self.spec_id(spec)?;
        let lane_id = self.lane_id(spec, limits)?;
        let lane = self.cache.lane(lane_id);
        let who = Traveller { task, counters: Counters::default(), checkpoint: None };
        let entry = match job.run_at {
            Some(due) if due > self.now => {
                self.wait(due, lane_id, row.tier, who)?;
                due.as_millis()
            }
            _ => {
                let standing = self.enter(lane.line, row.tier, row.tenant, false)?;
                self.stand(&lane, standing, who)?;
                standing.stamp
            }
        };
        self.hot.jobs.push(JobIn { spec: Some(spec_id), lane: Some(lane_id), entry: Some(entry), ..row })?;
        self.note(task, TaskState::Queued, 0);
        Ok(())
    }

    /// A job with a head: its row, its head, and its first tasks.
    fn submit_flow(&mut self, job: &NewJob, row: JobIn, plan: Arc<Plan>) -> Result<(), Abort> {
        let seq = row.seq;
        let flow = self.flow_id(&plan)?;
        let mut head = Box::new(Head {
            seq,
            flow,
            run: Run::new(&plan),
            plan,
            created: self.now,
            tenant: row.tenant,
            tier: row.tier,
            run_at: job.run_at,
            payload: job.payload.clone(),
            meta: Arc::new(job.meta.clone()),
            output: None,
            written: None,
            changed: false,
        });
        self.hot.jobs.push(JobIn { flow: Some(flow), ..row })?;
        self.note_job(seq, JobState::Pending);
        let refused = self.wait_for(&mut head, &job.after)?;
        if refused.is_none() && head.run.waits == 0 {
            self.begin(&mut head)?;
        }
        self.put_head(head);
        match refused {
            Some(reason) => self.stop(seq, JobState::Cancelled, Some(reason)),
            None => Ok(()),
        }
    }

    fn keep_document(&mut self, seq: i64, document: &Document) -> Result<(), Abort> {
        let size = i64::try_from(document.content().len()).unwrap_or(i64::MAX);
        let (name, media_type) = (&**document.name(), &**document.media_type());
        let row = (seq, name, media_type, size, &**document.sha256(), &**document.content());
        self.sql.insert_document.execute(row)?;
        Ok(())
    }

    /// Whether a job has a document with the same content, or none as well.
    fn has_document(&mut self, seq: i64, document: Option<&Document>) -> Result<bool, Abort> {
        let digest: Option<String> =
            self.sql.document_digest.query_row([seq], |row| row.get(0)).optional()?;
        Ok(digest.as_deref() == document.map(|document| &**document.sha256()))
    }

    /// Lets a job wait for others. Answers with the reason why it never can run, if there is one.
    fn wait_for(&mut self, head: &mut Head, after: &[JobId]) -> Result<Option<String>, Abort> {
        let mut met = vec![];
        for id in after {
            if met.contains(id) {
                continue;
            }
            met.push(*id);
            let row = match self.ids.seq(*id) {
                Some(seq) if seq != head.seq => self.job_row(seq)?.map(|row| (seq, row)),
                _ => None,
            };
            let Some((seq, row)) = row.filter(|(_, row)| row.created == id.created()) else {
                return Ok(Some(format!("it was to run after job {id}, which does not exist")));
            };
            match self.job_state(seq, &row)? {
                JobState::Completed => {}
                state if state.is_terminal() => return Ok(Some(not_after(*id, state))),
                _ => {
                    self.sql.insert_wait.execute((seq, head.seq))?;
                    self.cache.awaited.insert(seq);
                    head.run.waits += 1;
                }
            }
        }
        Ok(None)
    }

    /// The state of a job of either kind.
    pub(super) fn job_state(&mut self, seq: i64, row: &JobRow) -> Result<JobState, Abort> {
        if row.flow.is_some() {
            return Ok(self.head_of(seq)?.run.state);
        }
        Ok(self.find(pack(seq, 0), row)?.job_state())
    }

    /// The job that has a key now.
    fn holder(
        &mut self,
        hash: i64,
        tenant: i64,
        scope: &str,
        key: &str,
        bucket: i64,
    ) -> Result<Option<Holder>, Abort> {
        for seq in self.keys.candidates(hash, &mut self.sql.find_idem)? {
            let Some(row) = self.job_row(seq)? else { continue };
            let same = row.tenant == tenant
                && row.key.as_deref() == Some(key)
                && row.bucket == Some(bucket)
                && *self.key_scope(&row)? == *scope;
            if same {
                let state = self.job_state(seq, &row)?;
                return Ok(Some(Holder { seq, row, state }));
            }
        }
        Ok(None)
    }

    /// What the key of a job is unique in, beside its tenant.
    pub(super) fn key_scope(&mut self, row: &JobRow) -> Result<Arc<str>, Abort> {
        match (row.flow, row.spec) {
            (Some(flow), _) => Ok(self.plan(flow)?.key_scope()),
            (None, Some(spec)) => Ok(self.cache.specs[&spec].handler.clone()),
            (None, None) => Err(Abort::Invalid("a job row has neither task nor flow".to_owned())),
        }
    }

    /// The newer job that has the key of a job now, if there is one.
    pub(super) fn superseded_by(&mut self, seq: i64, row: &JobRow) -> Result<Option<JobId>, Abort> {
        let (Some(key), Some(bucket)) = (&row.key, row.bucket) else { return Ok(None) };
        let scope = self.key_scope(row)?;
        let tenant = self.cache.tenants[&row.tenant].clone();
        let hash = keys::hash(&tenant, &scope, key, bucket);
        let holder = self.holder(hash, row.tenant, &scope, key, bucket)?;
        Ok(holder
            .filter(|holder| holder.seq != seq)
            .map(|holder| self.ids.job(holder.row.created, holder.seq)))
    }

    fn tenant_id(&mut self, tenant: &Arc<str>) -> Result<i64, Abort> {
        if let Some(id) = self.cache.tenant_ids.get(tenant) {
            return Ok(*id);
        }
        // Ids start at 1: 0 is the front in the fairness table.
        let id = self.cache.tenants.len() as i64 + 1;
        self.sql.insert_tenant.execute((id, &**tenant))?;
        self.cache.learn_tenant(id, tenant.clone());
        Ok(id)
    }

    pub(super) fn spec_id(&mut self, spec: &Arc<TaskSpec>) -> Result<i64, Abort> {
        if let Some(id) = self.cache.spec_ids.get(spec) {
            return Ok(*id);
        }
        let id = self.cache.specs.len() as i64 + 1;
        let body = serde_json::to_string(&**spec).map_err(|e| Abort::Invalid(e.to_string()))?;
        self.sql.insert_spec.execute((id, body))?;
        self.cache.learn_spec(id, spec.clone());
        Ok(id)
    }

    /// The lane of a queue, a handler and limits.
    pub(super) fn lane_id(&mut self, spec: &TaskSpec, limits: &Limits) -> Result<i64, Abort> {
        let name = (spec.queue.clone(), spec.handler.clone(), limits.clone());
        if let Some(id) = self.cache.lane_ids.get(&name) {
            return Ok(*id);
        }
        let line = if limits.is_empty() { None } else { Some(self.lane_id(spec, &Limits::none())?) };
        let id = self.cache.lanes.len() as i64 + 1;
        let line = line.unwrap_or(id);
        let keys = serde_json::to_string(limits).map_err(|e| Abort::Invalid(e.to_string()))?;
        self.sql.insert_lane.execute((id, line, &*spec.queue, &*spec.handler, keys))?;
        self.cache.learn_lane(id, line, name);
        Ok(id)
    }
}
