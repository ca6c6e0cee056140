//! What operators ask: cancel, pause, resume, limit rules; running again is in `recover`.

use super::Model;
use super::job::{Location, Task};
use crate::verbs::{Command, Controlled, LimitChange, RuleOrigin, Wish};
use orchestrator_core::flow::advance::From;
use orchestrator_core::{JobState, TaskId, Timestamp};

impl Model {
    /// Carries out wishes, one after the other.
    pub fn control(&mut self, wishes: &[Wish], now: Timestamp) -> Vec<Controlled> {
        let mut one = |wish: &Wish| {
            let Some(seq) = self.seq(wish.command.job()) else { return Controlled::NotFound };
            let state = self.at(seq).state();
            if wish.expect.is_some_and(|expected| expected != state) {
                return Controlled::Changed(state);
            }
            self.command(seq, &wish.command, now)
        };
        let answers = wishes.iter().map(&mut one).collect();
        self.commit(now);
        answers
    }

    fn command(&mut self, seq: u64, command: &Command, now: Timestamp) -> Controlled {
        match command {
            Command::Cancel(_) => self.cancel(seq, now),
            Command::Pause(_) => self.pause(seq, now),
            Command::Resume(_) => self.resume(seq, now),
            Command::Retry(_) if self.at(seq).header => self.recover(seq, From::Failures, false, now),
            Command::Retry(_) => self.retry(seq, now),
            Command::Recover { from, .. } => self.recover_from(seq, from.as_deref(), now),
            Command::Requeue(task) => self.requeue(*task, now),
            Command::Discard(task) => self.discard(*task),
        }
    }

    fn cancel(&mut self, seq: u64, now: Timestamp) -> Controlled {
        let state = self.at(seq).state();
        if state.is_terminal() {
            return Controlled::Refused(state);
        }
        self.stop(seq, JobState::Cancelled, None, now);
        self.follow_up(seq, now);
        Controlled::Done(JobState::Cancelled)
    }

    fn pause(&mut self, seq: u64, now: Timestamp) -> Controlled {
        let job = self.at_mut(seq);
        let busy = job.is_busy();
        let mut run = job.run.clone();
        if !run.pause(busy, now) {
            return Controlled::Refused(run.state);
        }
        if !job.header {
            // Of a job that was only its task nothing is known but the attempt that runs.
            run.started = job.tasks.values().find_map(Task::lease).map(|lease| lease.started);
            job.header = true;
        }
        job.run = run;
        for task in job.tasks.values_mut() {
            match task.location {
                Location::InLine(spot) => task.location = Location::Held { spot: Some(spot), due: None },
                Location::Waiting { due } => task.location = Location::Held { spot: None, due: Some(due) },
                _ => {}
            }
        }
        let state = job.run.state;
        self.tell_job(seq, state);
        Controlled::Done(state)
    }

    fn resume(&mut self, seq: u64, now: Timestamp) -> Controlled {
        let job = self.at_mut(seq);
        if !job.run.resume(now) {
            return Controlled::Refused(job.run.state);
        }
        self.tell_job(seq, JobState::Running);
        let indexes: Vec<u32> = self.at(seq).tasks.keys().copied().collect();
        for at in indexes.into_iter().map(|index| (seq, index)) {
            let Location::Held { spot, due } = self.task_at(at).location else { continue };
            match (due, spot) {
                (Some(due), _) if due > now => self.task_mut(at).location = Location::Waiting { due },
                (_, Some(spot)) => self.task_mut(at).location = Location::InLine(spot),
                _ => self.come_due(at, now),
            }
        }
        Controlled::Done(JobState::Running)
    }

    fn discard(&mut self, task: TaskId) -> Controlled {
        let Some(at) = self.dead_at(task) else { return Controlled::NoSuchTask };
        if let Location::Ended(end) = &mut self.task_mut(at).location {
            end.dead = None;
        }
        Controlled::Done(self.at(at.0).state())
    }

    /// Writes or strikes limit rules. The configuration does not touch what an operator wrote.
    pub fn set_limits(&mut self, changes: Vec<LimitChange>) {
        for LimitChange { key, rule, origin } in changes {
            let standing = self.rules.get(&key).map(|(_, origin)| *origin);
            if origin == RuleOrigin::Config && standing == Some(RuleOrigin::Operator) {
                continue;
            }
            match rule {
                Some(rule) => self.rules.insert(key, (rule, origin)),
                None => self.rules.remove(&key),
            };
        }
    }
}
