//! Taking jobs in.

use super::moves::not_after;
use super::{Head, JobRow, Step, Stop, Work};
use crate::names::digest;
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{
    Counters, Document, JobId, JobState, Limits, NewJob, TaskSpec, TaskState, Timestamp,
};
use orchestrator_store::Submitted;
use orchestrator_store::packed::pack;
use std::sync::Arc;
use uuid::Uuid;

/// What stands for a key in a window.
pub fn key_digest(tenant: &str, scope: &str, text: &str, bucket: i64) -> Uuid {
    digest(&[tenant.as_bytes(), scope.as_bytes(), text.as_bytes(), &bucket.to_le_bytes()])
}

impl Work {
    /// Takes one job in.
    pub fn submit(&mut self, job: &NewJob) -> Step<Submitted> {
        let tenant = self.tenant_id(&job.tenant);
        let document = job.document.as_ref().map(Document::sha256);
        let bucket = job.key.as_ref().map(|key| key.bucket(self.now));
        let mut previous = None;
        let (mut named, mut former) = (None, None);
        if let (Some(key), Some(bucket)) = (&job.key, bucket) {
            let digest = key_digest(&job.tenant, &job.work.key_scope(), &key.text, bucket);
            named = Some(digest);
            if let Some(seq) = self.holder(digest)? {
                let row = self.job(seq)?.ok_or(Stop::Gone)?;
                let state = self.job_state(seq, &row)?;
                let id = self.ids.job(row.created, seq);
                if !state.is_terminal() || state == JobState::Completed {
                    let same = key.derived
                        || (job.payload.same_value(&row.payload) && row.document.as_ref() == document);
                    return Ok(if same {
                        Submitted::Existing { id, state }
                    } else {
                        Submitted::Conflict { id }
                    });
                }
                previous = Some((seq, id));
                former = Some(seq);
            }
        }
        if let (None, Some(id)) = (previous, job.rerun_of)
            && let Some(seq) = self.ids.seq(id)
            && self.job(seq)?.is_some_and(|row| row.created == id.created())
        {
            previous = Some((seq, id));
        }
        let seq = self.next_seq();
        if let Some(digest) = named {
            self.staged.holders.insert(digest, seq);
            self.staged.former.extend(former.map(|former| (digest, former)));
        }
        let row = JobRow {
            created: self.now,
            spec: None,
            lane: None,
            flow: None,
            tier: job.priority.tier(),
            tenant: tenant?,
            entry: job.run_at.map(Timestamp::as_millis),
            key: job.key.as_ref().map(|key| key.text.clone()),
            bucket,
            previous: previous.map(|(seq, _)| seq),
            payload: job.payload.clone(),
            document: document.cloned(),
        };
        self.count_today(JobState::Pending);
        self.staged.metas.extend(job.meta.text().map(|meta| (seq, meta)));
        self.staged.documents.extend(job.document.clone().map(|document| (seq, document)));
        match &job.work {
            orchestrator_core::Work::Task { spec, limits } if job.after.is_empty() => {
                self.submit_task(seq, row, job.run_at, spec, limits)?;
            }
            orchestrator_core::Work::Task { spec, limits } => {
                self.submit_flow(seq, row, job, Arc::new(Plan::of_task(spec, limits)))?;
            }
            orchestrator_core::Work::Flow(plan) => self.submit_flow(seq, row, job, plan.clone())?,
        }
        let id = self.ids.job(self.now, seq);
        Ok(Submitted::Created { id, previous: previous.map(|(_, id)| id) })
    }

    /// The number of the next job. Until there are enough, any number stands for the one to come.
    fn next_seq(&mut self) -> i64 {
        let used = self.staged.used;
        self.staged.used += 1;
        self.base.seqs.get(used).copied().unwrap_or_else(|| {
            self.needs.seqs += 1;
            // Negative, so that it is nobody's, and no two are the same.
            -(used as i64) - 1
        })
    }

    fn holder(&mut self, digest: Uuid) -> Step<Option<i64>> {
        if let Some(seq) = self.staged.holders.get(&digest) {
            return Ok(Some(*seq));
        }
        match self.base.holders.get(&digest) {
            Some(holder) => Ok(*holder),
            None => self.missing(|needs| {
                needs.holders.insert(digest);
            }),
        }
    }

    /// The newer job that has the key of a job now.
    pub fn superseded_by(&mut self, seq: i64, job: &JobRow) -> Step<Option<JobId>> {
        let (Some(key), Some(bucket)) = (&job.key, job.bucket) else { return Ok(None) };
        let tenant = self.tenant(job.tenant)?;
        let scope = match (job.spec, job.flow) {
            (Some(spec), _) => self.spec(spec)?.handler.clone(),
            _ => self.head(seq)?.plan.key_scope(),
        };
        let holder = self.holder(key_digest(&tenant, &scope, key, bucket))?;
        match holder.filter(|holder| *holder != seq) {
            Some(newer) => {
                let created = self.job(newer)?.ok_or(Stop::Gone)?.created;
                Ok(Some(self.ids.job(created, newer)))
            }
            None => Ok(None),
        }
    }

    /// A job of a queue: its row, and its task in line. Nothing else is written for it.
    fn submit_task(
        &mut self,
        seq: i64,
        row: JobRow,
        run_at: Option<Timestamp>,
        spec: &Arc<TaskSpec>,
        limits: &Limits,
    ) -> Step<()> {
        let task = pack(seq, 0);
        let (spec_id, lane_id) = (self.spec_id(spec), self.lane_id(spec, limits));
        let lane = self.lane(lane_id?)?;
        let entry = match run_at {
            Some(due) if due > self.now => {
                self.wait(task, lane.id, row.tier, due, Counters::default(), None);
                None
            }
            _ => {
                let spot = self.enter(lane.line, row.tier, row.tenant, false);
                self.stand(task, lane.id, row.tier, spot, Counters::default(), None);
                Some(spot.stamp)
            }
        };
        let row = JobRow { spec: Some(spec_id?), lane: Some(lane.id), entry, ..row };
        self.staged.jobs.insert(seq, row);
        self.note(task, TaskState::Queued, 0);
        Ok(())
    }

    /// A job with a head: its row, its head, and its first tasks.
    fn submit_flow(&mut self, seq: i64, row: JobRow, job: &NewJob, plan: Arc<Plan>) -> Step<()> {
        let flow = self.flow_id(&plan)?;
        let mut head = Head {
            seq,
            flow,
            run: Run::new(&plan),
            plan,
            created: self.now,
            tenant: row.tenant,
            tier: row.tier,
            run_at: job.run_at,
            payload: job.payload.clone(),
            output: None,
        };
        self.staged.jobs.insert(seq, JobRow { flow: Some(flow), ..row });
        self.note_job(seq, JobState::Pending);
        let refused = self.wait_for(&mut head, &job.after)?;
        if refused.is_none() && head.run.waits == 0 {
            self.begin(&mut head)?;
        }
        self.put_moved(head);
        match refused {
            Some(reason) => self.stop(seq, JobState::Cancelled, Some(reason)),
            None => Ok(()),
        }
    }

    /// Lets a job wait for others. Answers with the reason why it never can run, if there is one.
    fn wait_for(&mut self, head: &mut Head, after: &[JobId]) -> Step<Option<String>> {
        let mut met = vec![];
        for id in after {
            if met.contains(id) {
                continue;
            }
            met.push(*id);
            let row = match self.ids.seq(*id) {
                Some(seq) if seq != head.seq => self.job(seq)?.map(|row| (seq, row)),
                _ => None,
            };
            let Some((seq, row)) = row.filter(|(_, row)| row.created == id.created()) else {
                return Ok(Some(format!("it was to run after job {id}, which does not exist")));
            };
            match self.job_state(seq, &row)? {
                JobState::Completed => {}
                state if state.is_terminal() => return Ok(Some(not_after(*id, state))),
                _ => {
                    self.staged.waits.insert((seq, head.seq));
                    head.run.waits += 1;
                }
            }
        }
        Ok(None)
    }

    /// The state of a job of either kind.
    pub fn job_state(&mut self, seq: i64, row: &JobRow) -> Step<JobState> {
        if row.flow.is_some() {
            return Ok(self.head(seq)?.run.state);
        }
        let placed = self.placed(pack(seq, 0))?.ok_or(Stop::Gone)?;
        let started = placed.counters.attempt > 0;
        Ok(JobState::of_only_task(placed.state(), started || placed.end().is_some()))
    }
}
