//! Handing out tasks and prolonging leases.

use super::{Job, Lease, Line, Location, Model, Tier};
use crate::verbs::{Beat, Held, LeaseAsk, LeaseGrant, Leased};
use orchestrator_core::order::effective_tier;
use orchestrator_core::{Event, LimitKey, Millis, TaskState, Timestamp};
use std::collections::BTreeMap;

impl Model {
    /// Hands out the best tasks that may run, one after the other.
    pub fn lease(&mut self, ask: &LeaseAsk, now: Timestamp) -> LeaseGrant {
        let mut events = self.fall_due(now);
        let mut tasks = vec![];
        while tasks.len() < ask.slots as usize {
            let Some(seq) = self.next_task(ask, now) else { break };
            tasks.push(self.start(seq, ask, now));
            events.push(self.at(seq).event());
        }
        self.commit(events, now);
        LeaseGrant { tasks, next_at: self.next_at(ask, now) }
    }

    /// Prolongs leases that are held. One that ran out is held until a sweep ends it.
    pub fn extend(&mut self, held: &[Held], ttl: Millis, now: Timestamp) -> Vec<Beat> {
        let mut beat = |held: &Held| {
            let Some(seq) = self.held(*held) else { return Beat::Lost };
            if let Location::Leased(lease) = &mut self.at_mut(seq).location {
                lease.expires = now + ttl;
            }
            Beat::Until(now + ttl)
        };
        held.iter().map(&mut beat).collect()
    }

    /// The job whose task this attempt holds. This is the fence.
    pub(super) fn held(&self, held: Held) -> Option<u64> {
        let seq = self.seq(held.task.job).filter(|_| held.task.index == 0)?;
        let job = self.at(seq);
        (job.lease().is_some() && job.counters.attempt == held.attempt).then_some(seq)
    }

    /// Everything whose moment has come enters its line, in order of the moments.
    pub(super) fn fall_due(&mut self, now: Timestamp) -> Vec<Event> {
        let due_at = |(seq, job): (&u64, &Job)| match job.location {
            Location::Waiting { due } if due <= now => Some((due, *seq)),
            _ => None,
        };
        let mut fallen: Vec<_> = self.jobs.iter().filter_map(due_at).collect();
        fallen.sort();
        let mut events = vec![];
        for (_, seq) in fallen {
            let was = self.at(seq).state();
            self.enter_line(seq, now);
            // A task that was only delayed has been queued all the while.
            if was == TaskState::Retrying {
                events.push(self.at(seq).event());
            }
        }
        events
    }

    /// Gives a task to the worker that asks.
    pub(super) fn start(&mut self, seq: u64, ask: &LeaseAsk, now: Timestamp) -> Leased {
        for key in self.at(seq).limits.clone().keys() {
            if let Some(rate) = self.rule(key).rate {
                let bucket = self.buckets.entry(key.clone()).or_default();
                *bucket = bucket.after_start(&rate, now);
            }
        }
        let turn = self.served.values().max().map_or(1, |last| last + 1);
        self.served.insert(self.at(seq).line(), turn);
        let spot = self.at(seq).spot().expect("only a task in line is started");
        let front = self.fronts.entry(self.at(seq).tier()).or_default();
        *front = spot.stamp.max(*front);

        let job = self.at_mut(seq);
        let expires = now + ask.ttl;
        let times_out = job.spec.timeout.map(|timeout| now + timeout);
        job.counters.attempt += 1;
        job.location =
            Location::Leased(Lease { worker: ask.worker.clone(), started: now, expires, times_out, spot });
        Leased {
            task: job.task(),
            counters: job.counters,
            spec: job.spec.clone(),
            tenant: job.tenant.clone(),
            key: job.key.as_ref().map(|(_, _, text, _)| text.clone()),
            payload: job.payload.clone(),
            checkpoint: job.checkpoint.clone(),
            limits: job.limits.clone(),
            expires,
            times_out,
        }
    }

    /// For each tier of the asked lines, the first task that may start now.
    pub(super) fn heads(&self, ask: &LeaseAsk, now: Timestamp) -> BTreeMap<Tier, u64> {
        let running = self.running();
        let mut heads = BTreeMap::new();
        for (seq, job) in &self.jobs {
            if serves(ask, &job.line()) && self.grantable(job, &running, now) {
                let head = heads.entry(job.tier()).or_insert(*seq);
                if self.place(*seq) < self.place(*head) {
                    *head = *seq;
                }
            }
        }
        heads
    }

    /// Whether a task stands in line and every limit of it has room now.
    pub(super) fn grantable(&self, job: &Job, running: &BTreeMap<LimitKey, u32>, now: Timestamp) -> bool {
        job.spot().is_some()
            && self.has_slots(job, running)
            && self.rates_allow_at(job).is_none_or(|at| at <= now)
    }

    /// Orders tasks inside a tier.
    pub(super) fn place(&self, seq: u64) -> (Option<i64>, u64) {
        (self.at(seq).spot().map(|spot| spot.stamp), seq)
    }

    /// The tier in which a task is served after its wait.
    pub(super) fn served_in(&self, seq: u64, now: Timestamp) -> u8 {
        let job = self.at(seq);
        let since = job.spot().map_or(now, |spot| spot.since);
        effective_tier(job.priority.tier(), now.since(since))
    }

    /// The best task that may start: lowest tier, lines in turn. Between tiers of one line that
    /// are on a level the longest wait wins, else new urgent work could hold up old work for ever.
    fn next_task(&self, ask: &LeaseAsk, now: Timestamp) -> Option<u64> {
        self.heads(ask, now).into_values().min_by_key(|seq| {
            let job = self.at(*seq);
            let turn = self.served.get(&job.line()).copied();
            (self.served_in(*seq, now), turn, job.spot().map(|spot| spot.since), *seq)
        })
    }

    /// When the passing of time alone may make another task of the asked lines ready.
    pub(super) fn next_at(&self, ask: &LeaseAsk, now: Timestamp) -> Option<Timestamp> {
        let running = self.running();
        let moment = |job: &Job| match job.location {
            Location::Waiting { due } => Some(due),
            Location::InLine(_) if self.has_slots(job, &running) => {
                self.rates_allow_at(job).filter(|at| *at > now)
            }
            _ => None,
        };
        self.jobs.values().filter(|job| serves(ask, &job.line())).filter_map(moment).min()
    }
}

/// Whether an ask is for tasks of this line.
pub(super) fn serves(ask: &LeaseAsk, line: &Line) -> bool {
    ask.queues.contains(&line.queue) && ask.handlers.contains(&line.handler)
}
