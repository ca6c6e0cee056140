//! Taking jobs in.

use super::Writer;
use super::bulk::{JobIn, Text};
use super::keys;
use super::place::{JobRow, Traveller};
use crate::error::Abort;
use crate::ids::pack;
use orchestrator_core::{Counters, JobState, Json, Limits, NewJob, TaskSpec, TaskState};
use orchestrator_store::Submitted;
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
            hash = keys::hash(&job.tenant, &job.spec.handler, &key.text, bucket);
            if let Some(holder) = self.holder(hash, tenant, &job.spec.handler, &key.text, bucket)? {
                let id = self.ids.job(holder.row.created, holder.seq);
                if !holder.state.is_terminal() || holder.state == JobState::Completed {
                    let same = job.payload.same_value(&Json::trusted(holder.row.payload));
                    return Ok(if same {
                        Submitted::Existing { id, state: holder.state }
                    } else {
                        Submitted::Conflict { id }
                    });
                }
                previous = Some((holder.seq, id));
            }
        }
        self.cache.last_seq += 1;
        let seq = self.cache.last_seq;
        let task = pack(seq, 0);
        let spec = self.spec_id(&job.spec)?;
        let lane_id = self.lane_id(&job.spec, &job.limits)?;
        let lane = self.cache.lane(lane_id);
        let tier = job.priority.tier();
        let who = Traveller { task, counters: Counters::default(), checkpoint: None };
        let entry = match job.run_at {
            Some(due) if due > now => {
                self.wait(due, lane_id, who)?;
                due.as_millis()
            }
            _ => {
                let standing = self.enter(lane.line, tier, tenant)?;
                self.stand(&lane, standing, who)?;
                standing.stamp
            }
        };
        self.hot.jobs.push(JobIn {
            seq,
            created: now.as_millis(),
            spec,
            lane: lane_id,
            tier,
            tenant,
            entry,
            key: job.key.as_ref().map(|key| key.text.clone()),
            bucket,
            previous: previous.map(|(seq, _)| seq),
            payload: Text(job.payload.clone()),
        })?;
        if job.key.is_some() {
            self.keys.add(hash, seq);
        } else {
            self.keys.skip(seq);
        }
        self.note(task, TaskState::Queued, 0);
        Ok(Submitted::Created { id: self.ids.job(now, seq), previous: previous.map(|(_, id)| id) })
    }

    /// The job that has a key now.
    fn holder(
        &mut self,
        hash: i64,
        tenant: i64,
        handler: &str,
        key: &str,
        bucket: i64,
    ) -> Result<Option<Holder>, Abort> {
        for seq in self.keys.candidates(hash, &mut self.sql.find_idem)? {
            let Some(row) = self.job_row(seq)? else { continue };
            let same = row.tenant == tenant
                && row.key.as_deref() == Some(key)
                && row.bucket == Some(bucket)
                && *self.cache.specs[&row.spec].handler == *handler;
            if same {
                let state = self.find(pack(seq, 0), &row)?.job_state();
                return Ok(Some(Holder { seq, row, state }));
            }
        }
        Ok(None)
    }

    /// The job that has the key of `row` now, which may be another than the row's.
    pub(super) fn key_holder(&mut self, row: &JobRow) -> Result<Option<i64>, Abort> {
        let (Some(key), Some(bucket)) = (&row.key, row.bucket) else { return Ok(None) };
        let handler = self.cache.specs[&row.spec].handler.clone();
        let tenant = self.cache.tenants[&row.tenant].clone();
        let hash = keys::hash(&tenant, &handler, key, bucket);
        Ok(self.holder(hash, row.tenant, &handler, key, bucket)?.map(|holder| holder.seq))
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

    fn spec_id(&mut self, spec: &Arc<TaskSpec>) -> Result<i64, Abort> {
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
