//! What operators ask: retry, cancel, limit rules.

use super::{End, Location, Model};
use crate::verbs::{Command, Controlled, LimitChange, RuleOrigin};
use orchestrator_core::{Counters, JobState, TaskState, Timestamp};

impl Model {
    /// Carries out commands, one after the other.
    pub fn control(&mut self, commands: &[Command], now: Timestamp) -> Vec<Controlled> {
        let mut events = vec![];
        let mut answers = vec![];
        for command in commands {
            let (Command::Retry(id) | Command::Cancel(id)) = command;
            let Some(seq) = self.seq(*id) else {
                answers.push(Controlled::NotFound);
                continue;
            };
            let answer = match command {
                Command::Retry(_) => self.retry(seq, now),
                Command::Cancel(_) => self.cancel(seq, now),
            };
            if let Controlled::Done(_) = answer {
                events.push(self.at(seq).event());
            }
            answers.push(answer);
        }
        self.commit(events, now);
        answers
    }

    fn retry(&mut self, seq: u64, now: Timestamp) -> Controlled {
        let job = self.at(seq);
        let state = job.job_state();
        if !matches!(state, JobState::Failed | JobState::TimedOut) {
            return Controlled::Refused(state);
        }
        let holder = job.key.as_ref().and_then(|key| self.keys.get(key)).copied();
        if let Some(newer) = holder.filter(|holder| *holder != seq) {
            return Controlled::Superseded(self.at(newer).id);
        }
        let job = self.at_mut(seq);
        job.counters = Counters { attempt: job.counters.attempt, ..Counters::default() };
        job.checkpoint = None;
        job.limits = job.submitted_limits.clone();
        self.enter_line(seq, now);
        Controlled::Done(self.at(seq).job_state())
    }

    fn cancel(&mut self, seq: u64, now: Timestamp) -> Controlled {
        let job = self.at_mut(seq);
        let state = job.job_state();
        if state.is_terminal() {
            return Controlled::Refused(state);
        }
        job.checkpoint = None;
        job.location =
            Location::Ended(End { state: TaskState::Cancelled, at: now, output: None, dead: None });
        Controlled::Done(job.job_state())
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
