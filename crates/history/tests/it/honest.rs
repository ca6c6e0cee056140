//! A small orchestrator in memory that does everything right, one step at a time.

use orchestrator_core::{JobId, JobState, Json, TaskId, TaskState, Timestamp};
use orchestrator_history::{Answer, Call, LastJob, LastTask, LastWord, Run, Seen, SeenTask};
use std::collections::HashMap;
use std::sync::Arc;

/// How an attempt ended.
pub enum Outcome {
    Completed(Json),
    Skipped,
    Failed { retry: bool },
    Lost,
}

/// The most crashes of a task.
const MAX_CRASHES: u32 = 3;

#[derive(Default)]
pub struct System {
    pub jobs: Vec<LastJob>,
    places: HashMap<JobId, usize>,
    keys: HashMap<Arc<str>, usize>,
}

fn ended_badly(state: JobState) -> bool {
    state.is_terminal() && state != JobState::Completed
}

impl System {
    /// Carries out a call.
    pub fn answer(&mut self, call: &Call) -> Answer {
        match call {
            Call::Submit { key, payload } => self.submit(key, payload),
            Call::Read { job } => self.at(*job).map_or(Answer::NotFound, |job| Answer::Seen(sight(job))),
            Call::Cancel { job } => self.command(*job, |job| {
                let live = !job.state.is_terminal();
                if live {
                    stop(job, JobState::Cancelled);
                }
                live
            }),
            Call::Pause { job } => self.command(*job, |job| {
                let may = matches!(job.state, JobState::Pending | JobState::Running);
                if may {
                    job.state = if is_busy(job) { JobState::Pausing } else { JobState::Paused };
                }
                may
            }),
            Call::Resume { job } => self.command(*job, |job| {
                let may = matches!(job.state, JobState::Paused | JobState::Pausing);
                if may {
                    job.state = JobState::Running;
                }
                may
            }),
            Call::Revive { job } => self.revive(*job),
        }
    }

    fn submit(&mut self, key: &Arc<str>, payload: &Json) -> Answer {
        if let Some(holder) = self.keys.get(key).map(|at| &self.jobs[*at])
            && !ended_badly(holder.state)
        {
            return Answer::Acked { job: holder.id, created: false };
        }
        let at = self.jobs.len();
        let id = JobId::from_parts(Timestamp::from_millis(1_700_000_000_000), at as u128);
        let needs: &[&[u32]] = if key.len().is_multiple_of(2) { &[&[]] } else { &[&[], &[0], &[0, 1]] };
        let task = |(index, needs): (usize, &&[u32])| LastTask {
            index: index as u32,
            name: format!("t{index}").into(),
            state: if needs.is_empty() { TaskState::Queued } else { TaskState::Pending },
            attempt: 0,
            failures: 0,
            crashes: 0,
            output: None,
            runs: true,
            needs: needs.to_vec(),
        };
        let tasks = needs.iter().enumerate().map(task).collect();
        let (key, payload) = (key.clone(), payload.clone());
        self.jobs.push(LastJob { id, key: Some(key.clone()), payload, state: JobState::Pending, tasks });
        self.places.insert(id, at);
        self.keys.insert(key, at);
        Answer::Acked { job: id, created: true }
    }

    fn at(&mut self, id: JobId) -> Option<&mut LastJob> {
        self.places.get(&id).map(|at| &mut self.jobs[*at])
    }

    fn command(&mut self, id: JobId, act: impl FnOnce(&mut LastJob) -> bool) -> Answer {
        match self.at(id).map(act) {
            None => Answer::NotFound,
            Some(true) => Answer::Done,
            Some(false) => Answer::Refused,
        }
    }

    /// Runs again what went wrong and what was skipped for it, unless the key belongs to another job now.
    fn revive(&mut self, id: JobId) -> Answer {
        let Some(at) = self.places.get(&id).copied() else { return Answer::NotFound };
        let holds_key = self.jobs[at].key.as_ref().is_some_and(|key| self.keys[key] == at);
        let job = &mut self.jobs[at];
        if !holds_key || !matches!(job.state, JobState::Failed | JobState::TimedOut) {
            return Answer::Refused;
        }
        for task in job.tasks.iter_mut().filter(|task| task.state != TaskState::Completed) {
            *task = LastTask { state: TaskState::Pending, failures: 0, crashes: 0, ..task.clone() };
        }
        job.state = JobState::Running;
        advance(job);
        Answer::Done
    }

    /// The tasks that may be handed out.
    pub fn ready(&self) -> Vec<TaskId> {
        let live = self.jobs.iter().filter(|job| matches!(job.state, JobState::Pending | JobState::Running));
        let queued = |task: &&LastTask| matches!(task.state, TaskState::Queued | TaskState::Retrying);
        let id = |job: JobId, task: &LastTask| TaskId { job, index: task.index };
        live.flat_map(|job| job.tasks.iter().filter(queued).map(move |task| id(job.id, task))).collect()
    }

    pub fn lease(&mut self, id: TaskId) -> Run {
        let job = self.at(id.job).expect("what is ready is there");
        job.state = JobState::Running;
        let task = &mut job.tasks[id.index as usize];
        task.state = TaskState::Running;
        task.attempt += 1;
        Run { task: id, attempt: task.attempt }
    }

    /// Ends an attempt, if it still holds its lease.
    pub fn settle(&mut self, run: Run, outcome: Outcome) -> bool {
        let job = self.at(run.task.job).expect("what ran is there");
        let task = &mut job.tasks[run.task.index as usize];
        if task.state != TaskState::Running || task.attempt != run.attempt {
            return false;
        }
        match outcome {
            Outcome::Completed(output) => (task.state, task.output) = (TaskState::Completed, Some(output)),
            Outcome::Skipped => task.state = TaskState::Skipped,
            Outcome::Failed { retry } => {
                task.failures += 1;
                task.state = if retry { TaskState::Retrying } else { TaskState::Failed };
            }
            Outcome::Lost => {
                task.crashes += 1;
                task.state = if task.crashes < MAX_CRASHES { TaskState::Queued } else { TaskState::Failed };
            }
        }
        if job.state == JobState::Pausing && !is_busy(job) {
            job.state = JobState::Paused;
        }
        advance(job);
        true
    }

    /// Ends a job by its deadline.
    pub fn time_out(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        if matches!(job.state, JobState::Pending | JobState::Running) {
            stop(job, JobState::TimedOut);
        }
    }

    pub fn last_word(&self) -> LastWord {
        LastWord { jobs: self.jobs.clone() }
    }
}

fn is_busy(job: &LastJob) -> bool {
    job.tasks.iter().any(|task| task.state == TaskState::Running)
}

fn stop(job: &mut LastJob, state: JobState) {
    let end = if state == JobState::TimedOut { TaskState::TimedOut } else { TaskState::Cancelled };
    for task in job.tasks.iter_mut().filter(|task| !task.state.is_terminal()) {
        task.state = end;
    }
    job.state = state;
}

/// Lets in what waits for nothing any more, and ends the job with its last task.
fn advance(job: &mut LastJob) {
    // Needs point backwards, so one pass is enough.
    for index in 0..job.tasks.len() {
        let needs: Vec<TaskState> =
            job.tasks[index].needs.iter().map(|need| job.tasks[*need as usize].state).collect();
        if job.tasks[index].state == TaskState::Pending && needs.iter().all(|state| state.is_terminal()) {
            let met = needs.iter().all(|state| *state == TaskState::Completed);
            job.tasks[index].state = if met { TaskState::Queued } else { TaskState::Skipped };
        }
    }
    if job.tasks.iter().all(|task| task.state.is_terminal()) {
        let failed = job.tasks.iter().any(|task| task.state == TaskState::Failed);
        job.state = if failed { JobState::Failed } else { JobState::Completed };
    }
}

fn sight(job: &mut LastJob) -> Seen {
    let told = job.tasks.iter().filter(|task| task.attempt > 0 || task.state.is_terminal());
    let seen = |task: &LastTask| SeenTask { index: task.index, state: task.state, attempt: task.attempt };
    Seen { state: job.state, tasks: told.map(seen).collect() }
}
