//! Whether another store's grant is a right answer, although the model would have chosen another.
//!
//! Ties between lines and between tiers on a level may be broken in any way. Everything else must be
//! as the contract says.

use super::Model;
use super::job::At;
use crate::verbs::{LeaseAsk, LeaseGrant, Leased};
use orchestrator_core::Timestamp;

impl Model {
    /// Says what is wrong with a grant, if anything: a task that could not start then, one that
    /// stood behind another, a free slot beside a task that could start, a wrong fact about a
    /// task, or a hint (`next_at`) that sleeps through the moment at which work becomes ready.
    pub fn check_grant(&self, ask: &LeaseAsk, grant: &LeaseGrant, now: Timestamp) -> Result<(), String> {
        self.clone().follow(ask, grant, now)
    }

    /// Does exactly what the grant says, if it is legal; else nothing.
    pub fn apply_grant(&mut self, ask: &LeaseAsk, grant: &LeaseGrant, now: Timestamp) -> Result<(), String> {
        let mut next = self.clone();
        next.follow(ask, grant, now)?;
        *self = next;
        Ok(())
    }

    fn follow(&mut self, ask: &LeaseAsk, grant: &LeaseGrant, now: Timestamp) -> Result<(), String> {
        if grant.tasks.len() > ask.slots as usize {
            return Err(format!("{} tasks for {} slots", grant.tasks.len(), ask.slots));
        }
        self.fall_due(now);
        for granted in &grant.tasks {
            let at = self.may_start(ask, granted, now)?;
            let expected = self.start(at, ask, now);
            if *granted != expected {
                return Err(format!(
                    "task {} was handed out as {granted:?}, expected {expected:?}",
                    granted.task
                ));
            }
        }
        self.commit(now);
        if grant.tasks.len() < ask.slots as usize {
            self.is_all(ask, grant, now)?;
        }
        Ok(())
    }

    /// With slots left over, nothing may be left that could start, and the hint must be in time.
    fn is_all(&self, ask: &LeaseAsk, grant: &LeaseGrant, now: Timestamp) -> Result<(), String> {
        if let Some((seq, index)) = self.heads(ask, now).into_values().next() {
            let task = self.at(seq).task_id(index);
            return Err(format!(
                "{} of {} slots were filled, but task {task} could start as well",
                grant.tasks.len(),
                ask.slots
            ));
        }
        match (grant.next_at, self.next_at(ask, now)) {
            (Some(hint), _) if hint <= now => Err(format!("next_at {hint:?} is not in the future ({now:?})")),
            (hint, Some(at)) if hint.is_none_or(|hint| hint > at) => {
                Err(format!("next_at is {hint:?}, but time makes a task ready at {at:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether this task may be the next to start.
    fn may_start(&self, ask: &LeaseAsk, granted: &Leased, now: Timestamp) -> Result<At, String> {
        let id = granted.task;
        let at = self.find(id).ok_or_else(|| format!("task {id} does not exist"))?;
        let task = self.task_at(at);
        let name = |(seq, index): At| self.at(seq).task_id(index);
        let heads = self.heads(ask, now);
        let Some(first) = heads.get(&self.at(at.0).tier(at.1)).copied() else {
            return Err(format!("task {id} cannot start now: {task:?}"));
        };
        if first != at {
            return Err(format!("task {id} cannot start now, or stands behind {}: {task:?}", name(first)));
        }
        let served_in = self.served_in(at, now);
        let urgent = heads.into_values().find(|other| self.served_in(*other, now) < served_in);
        match urgent {
            None => Ok(at),
            Some(other) => Err(format!(
                "task {id} (served in tier {served_in}) went before {} of a more urgent tier ({}): {task:?} and {:?}",
                name(other),
                self.served_in(other, now),
                self.task_at(other)
            )),
        }
    }
}
