//! Handing out tasks and prolonging leases.

use super::Model;
use super::job::{At, Lease, Line, Location, Task, Tier};
use crate::verbs::{Beat, Held, LeaseAsk, LeaseGrant, Leased};
use orchestrator_core::order::effective_tier;
use orchestrator_core::{JobState, LimitKey, Millis, TaskState, Timestamp};
use std::collections::BTreeMap;

impl Model {
    /// Hands out the best tasks that may run, one after the other.
    pub fn lease(&mut self, ask: &LeaseAsk, now: Timestamp) -> LeaseGrant {
        self.fall_due(now);
        let mut tasks = vec![];
        while tasks.len() < ask.slots as usize {
            let Some(at) = self.next_task(ask, now) else { break };
            tasks.push(self.start(at, ask, now));
        }
        self.commit(now);
        LeaseGrant { tasks, next_at: self.next_at(ask, now) }
    }

    /// Prolongs leases that are held. One that ran out is held until a sweep ends it.
    pub fn extend(&mut self, held: &[Held], ttl: Millis, now: Timestamp) -> Vec<Beat> {
        let mut beat = |held: &Held| {
            let Some(at) = self.fence(*held) else { return Beat::Lost };
            if let Location::Leased(lease) = &mut self.task_mut(at).location {
                lease.expires = now + ttl;
            }
            Beat::Until(now + ttl)
        };
        held.iter().map(&mut beat).collect()
    }

    /// Whether each attempt holds its lease.
    pub fn held(&self, attempts: &[Held]) -> Vec<bool> {
        attempts.iter().map(|held| self.fence(*held).is_some()).collect()
    }

    /// The task that this attempt holds, if it does.
    pub(super) fn fence(&self, held: Held) -> Option<At> {
        let at = self.find(held.task)?;
        let task = self.task_at(at);
        (task.lease().is_some() && task.counters.attempt == held.attempt).then_some(at)
    }

    /// Everything whose moment has come enters its line, in order of the moments.
    pub(super) fn fall_due(&mut self, now: Timestamp) {
        let due_at = |at: At, task: &Task| match task.location {
            Location::Waiting { due } if due <= now => Some((due, at)),
            _ => None,
        };
        let mut fallen: Vec<_> = self.tasks().filter_map(|(at, _, task)| due_at(at, task)).collect();
        fallen.sort();
        for (_, at) in fallen {
            self.come_due(at, now);
        }
    }

    /// Lets a task into line whose moment has come.
    pub(super) fn come_due(&mut self, at: At, now: Timestamp) {
        let was = self.task_at(at).state();
        self.enter_line(at, now);
        // A task that was only delayed has been queued all the while.
        if was == TaskState::Retrying {
            self.tell_task(at);
        }
    }

    /// Gives a task to the worker that asks.
    pub(super) fn start(&mut self, at: At, ask: &LeaseAsk, now: Timestamp) -> Leased {
        let (seq, index) = at;
        for key in self.task_at(at).limits.clone().keys() {
            if let Some(rate) = self.rule(key).rate {
                let bucket = self.buckets.entry(key.clone()).or_default();
                *bucket = bucket.after_start(&rate, now);
            }
        }
        let turn = self.served.values().max().map_or(1, |last| last + 1);
        self.served.insert(self.at(seq).line(index), turn);
        let spot = self.task_at(at).spot().expect("only a task in line is started");
        let front = self.fronts.entry(self.at(seq).tier(index)).or_default();
        *front = spot.stamp.max(*front);

        let job = self.at_mut(seq);
        let pending = job.state() == JobState::Pending;
        job.run.start(now);
        if pending {
            self.tell_job(seq, JobState::Running);
        }

        let spec = self.at(seq).rules(index).spec.clone();
        let expires = now + ask.ttl;
        let times_out = spec.timeout.map(|timeout| now + timeout);
        let task = self.task_mut(at);
        task.counters.attempt += 1;
        task.location =
            Location::Leased(Lease { worker: ask.worker.clone(), started: now, expires, times_out, spot });
        self.tell_task(at);

        let (job, task) = (self.at(seq), self.task_at(at));
        Leased {
            task: job.task_id(index),
            name: job.name(index),
            flow: job.flow(),
            counters: task.counters,
            spec,
            tenant: job.tenant.clone(),
            key: job.key.as_ref().map(|(_, _, text, _)| text.clone()),
            payload: job.input(index).expect("a task in line has its input"),
            checkpoint: task.checkpoint.clone(),
            limits: task.limits.clone(),
            meta: job.meta.clone(),
            expires,
            times_out,
        }
    }

    /// For each tier of the asked lines, the first task that may start now.
    pub(super) fn heads(&self, ask: &LeaseAsk, now: Timestamp) -> BTreeMap<Tier, At> {
        let running = self.running();
        let mut heads = BTreeMap::new();
        for (at, job, task) in self.tasks() {
            if self.grantable(task, &running, now) && self.serves(ask, &job.line(at.1)) {
                let head = heads.entry(job.tier(at.1)).or_insert(at);
                if self.place(at) < self.place(*head) {
                    *head = at;
                }
            }
        }
        heads
    }

    /// Whether a task stands in line and every limit of it has room now.
    fn grantable(&self, task: &Task, running: &BTreeMap<LimitKey, u32>, now: Timestamp) -> bool {
        task.spot().is_some()
            && self.has_slots(task, running)
            && self.rates_allow_at(task).is_none_or(|at| at <= now)
    }

    /// Orders tasks inside a tier.
    fn place(&self, at: At) -> (Option<i64>, At) {
        (self.task_at(at).spot().map(|spot| spot.stamp), at)
    }

    /// The tier in which a task is served after its wait.
    pub(super) fn served_in(&self, at: At, now: Timestamp) -> u8 {
        let since = self.task_at(at).spot().map_or(now, |spot| spot.since);
        let (_, tier) = self.at(at.0).tier(at.1);
        effective_tier(tier, now.since(since))
    }

    /// The best task that may start: lowest tier, lines in turn. Between tiers of one line that
    /// are on a level the longest wait wins, else new urgent work could hold up old work for ever.
    fn next_task(&self, ask: &LeaseAsk, now: Timestamp) -> Option<At> {
        self.heads(ask, now).into_values().min_by_key(|at| {
            let turn = self.served.get(&self.at(at.0).line(at.1)).copied();
            (self.served_in(*at, now), turn, self.task_at(*at).spot().map(|spot| spot.since), *at)
        })
    }

    /// When the passing of time alone may make another task of the asked lines ready.
    pub(super) fn next_at(&self, ask: &LeaseAsk, now: Timestamp) -> Option<Timestamp> {
        let running = self.running();
        let moment = |task: &Task| match task.location {
            Location::Waiting { due } => Some(due),
            Location::InLine(_) if self.has_slots(task, &running) => {
                self.rates_allow_at(task).filter(|at| *at > now)
            }
            _ => None,
        };
        let asked = self.tasks().filter(|(at, job, _)| self.serves(ask, &job.line(at.1)));
        asked.filter_map(|(_, _, task)| moment(task)).min()
    }

    /// Whether an ask is for tasks of this line, and they may be handed out.
    fn serves(&self, ask: &LeaseAsk, line: &Line) -> bool {
        let asked = ask.queues.contains(&line.queue) && ask.handlers.contains(&line.handler);
        asked && !self.paused.contains_key(&line.queue)
    }
}
