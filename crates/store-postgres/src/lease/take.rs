//! Leases one task: what it is called, how it is run, and what it gets.

use super::Leasing;
use super::line::Candidate;
use crate::load;
use crate::place::{At, Lease, Placed};
use crate::tx::Abort;
use orchestrator_core::{Counters, JobState, Json, TaskState};
use orchestrator_store::packed::{index_of, seq_of};
use orchestrator_store::{LeaseAsk, Leased};
use std::sync::Arc;

impl Leasing<'_> {
    /// Leases a task. None if its job is in other hands at this moment.
    pub(super) async fn take(
        &mut self,
        tier: u8,
        candidate: Candidate,
        ask: &LeaseAsk,
    ) -> Result<Option<Leased>, Abort> {
        let now = self.work.now;
        let seq = seq_of(candidate.task);
        if candidate.started == Some(false) && !self.start(seq) {
            return Ok(None);
        }
        let lane = self.lane(candidate.lane)?;
        let known = self.work.known.clone();
        let (name, flow, spec, payload) = match candidate.flow {
            None => {
                let spec = candidate.spec.ok_or_else(|| load::unreadable("a job"))?;
                ("main".into(), None, spec, candidate.payload.clone())
            }
            Some(flow) => self.of_flow(flow, seq, &candidate).await?,
        };
        let rules = self.spec(spec).await?;
        self.keys.take(&lane, now);
        let counters = Counters { attempt: candidate.counters.attempt + 1, ..candidate.counters };
        let (expires, times_out) = (now + ask.ttl, rules.timeout.map(|timeout| now + timeout));
        let Candidate { task, spot, checkpoint, .. } = candidate.clone();
        let was = match candidate.parked {
            Some(key) => At::Parked(key, spot),
            None => At::Ready(spot),
        };
        let placed =
            |at, counters| Some(Placed { lane: lane.id, tier, counters, checkpoint: checkpoint.clone(), at });
        self.work.base.tasks.insert(task, placed(was, candidate.counters));
        let lease = Lease { spec, spot, started: now, expires, times_out, worker: ask.worker.clone().into() };
        self.work.put(task, placed(At::Leased(lease), counters));
        self.work.note(task, TaskState::Running, counters.attempt);
        let front = self.fronts.entry((lane.line, tier)).or_default();
        *front = spot.stamp.max(*front);
        Ok(Some(Leased {
            task: self.work.ids.task(candidate.created, task),
            name,
            flow,
            counters,
            spec: rules,
            tenant: known
                .tenants
                .get(&candidate.tenant)
                .cloned()
                .ok_or_else(|| load::unreadable("a tenant"))?,
            key: candidate.key,
            payload,
            checkpoint,
            limits: lane.limits.clone(),
            meta: candidate.meta,
            expires,
            times_out,
        }))
    }

    /// Notes that a job has started. False if somebody else holds its head: then its tasks are left for the next time.
    fn start(&mut self, seq: i64) -> bool {
        let Ok(mut head) = self.work.peek_head(seq) else { return false };
        if head.run.started.is_none() {
            let pending = head.run.state == JobState::Pending;
            head.run.start(self.work.now);
            if pending {
                self.work.note_job(seq, JobState::Running);
            }
            self.work.put_head(head);
        }
        true
    }

    /// What a task of a flow is called, how it is run, and what it gets.
    async fn of_flow(
        &mut self,
        flow: i32,
        seq: i64,
        candidate: &Candidate,
    ) -> Result<(Arc<str>, Option<Arc<str>>, i32, Json), Abort> {
        let plan = self.work.known.flows.get(&flow).cloned().ok_or_else(|| load::unreadable("a flow"))?;
        let index = index_of(candidate.task);
        let (task, item) = if (index as usize) < plan.tasks().len() {
            (index, None)
        } else {
            // Which item of which list it is, the head tells. It is only looked at.
            let run = self.look_at_head(seq).await?;
            let place = run.place(index).ok_or_else(|| load::unreadable("an item"))?;
            (place.task, place.item)
        };
        let rules = &plan.tasks()[task as usize];
        let name: Arc<str> = match item {
            Some(item) => format!("{}[{item}]", rules.name).into(),
            None => rules.name.clone(),
        };
        let spec = match self.work.known.spec_ids.get(&rules.spec) {
            Some(spec) => *spec,
            None => {
                let needs = crate::work::Needs { specs: vec![rules.spec.clone()], ..Default::default() };
                self.naming.learn(self.names, &needs).await?;
                self.work.known = self.names.known();
                *self.work.known.spec_ids.get(&rules.spec).ok_or_else(|| load::unreadable("a spec"))?
            }
        };
        let own = candidate.own.clone().or_else(|| rules.literal.clone());
        let payload = own.unwrap_or_else(|| candidate.payload.clone());
        Ok((name, (!plan.is_implicit()).then(|| plan.name().clone()), spec, payload))
    }

    async fn look_at_head(&mut self, seq: i64) -> Result<orchestrator_core::flow::Run, Abort> {
        if let Ok(head) = self.work.peek_head(seq) {
            return Ok(head.run);
        }
        let rows = self.tx.query("SELECT body FROM runs WHERE seq = $1", &[&seq]).await?;
        let row = rows.first().ok_or_else(|| load::unreadable("the head of a job"))?;
        postcard::from_bytes(row.get(0)).map_err(|_| load::unreadable("the head of a job"))
    }

    async fn spec(&mut self, id: i32) -> Result<Arc<orchestrator_core::TaskSpec>, Abort> {
        self.work.known.specs.get(&id).cloned().ok_or_else(|| load::unreadable("a spec"))
    }
}
