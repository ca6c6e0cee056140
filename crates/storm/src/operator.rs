//! Somebody who looks at jobs now and then, and steers them: each call a process of its own.

use crate::Failure;
use crate::record::Record;
use crate::tools::{Said, Tools};
use orchestrator_core::{Counters, JobId, JobState, TaskState};
use orchestrator_history::{Answer, Call, Seen, SeenTask};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// So many of the latest jobs are looked at and steered.
const REMEMBERED: usize = 2000;

/// The jobs that were taken in lately.
#[derive(Clone, Default)]
pub struct Known(Arc<Mutex<Jobs>>);

#[derive(Default)]
struct Jobs {
    latest: Vec<(JobId, bool)>,
    added: u64,
}

impl Known {
    /// One more; `limited` ones are never cancelled.
    pub fn add(&self, job: JobId, limited: bool) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.latest.len() >= REMEMBERED {
            jobs.latest.drain(..REMEMBERED / 2);
        }
        jobs.latest.push((job, limited));
        jobs.added += 1;
    }

    /// How many there were.
    pub fn added(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).added
    }

    fn pick(&self, rng: &mut fastrand::Rng) -> Option<(JobId, bool)> {
        let jobs = &self.0.lock().unwrap_or_else(PoisonError::into_inner).latest;
        // Rather the latest, which are at work.
        let from = jobs.len().saturating_sub(if rng.bool() { 40 } else { REMEMBERED });
        (from < jobs.len()).then(|| jobs[rng.usize(from..jobs.len())])
    }
}

/// Looks and steers.
pub struct Operator {
    /// How to call.
    pub tools: Tools,
    /// Where it is noted.
    pub record: Record,
    /// The jobs.
    pub known: Known,
    /// What to do next.
    pub rng: fastrand::Rng,
    /// The pause between two calls, in milliseconds.
    pub every: u64,
}

#[derive(Deserialize)]
struct Job {
    state: JobState,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    index: u32,
    state: TaskState,
    counters: Counters,
}

impl Operator {
    /// Works until it is told to stop. Leaves no job paused.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), Failure> {
        loop {
            let pause = Duration::from_millis(self.rng.u64(self.every / 2..=self.every * 3 / 2));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            }
            let Some((job, limited)) = self.known.pick(&mut self.rng) else { continue };
            match self.rng.u32(0..10) {
                0 if !limited => {
                    self.steer("cancel", Call::Cancel { job }, job).await?;
                }
                1 | 2 => self.pause(job).await?,
                _ => {
                    if self.look(job).await? == Some(JobState::Failed) {
                        self.steer("retry", Call::Revive { job }, job).await?;
                    }
                }
            }
        }
    }

    /// Reads a job; answers with its state.
    async fn look(&mut self, job: JobId) -> Result<Option<JobState>, Failure> {
        let call = self.record.call(Call::Read { job });
        let said = self.tools.run(&["jobs", "status", &job.to_string(), "--json"]).await?;
        let answer = match said.code {
            Some(0) => Answer::Seen(seen(&said.stdout)?),
            Some(3) => Answer::NotFound,
            // A read changes nothing.
            _ => Answer::Failed,
        };
        let state = if let Answer::Seen(seen) = &answer { Some(seen.state) } else { None };
        self.record.answer(call, answer);
        Ok(state)
    }

    async fn pause(&mut self, job: JobId) -> Result<(), Failure> {
        if self.steer("pause", Call::Pause { job }, job).await? == Answer::Refused {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(self.rng.u64(0..300))).await;
        // Until it is certain that the job goes on.
        while !matches!(
            self.steer("resume", Call::Resume { job }, job).await?,
            Answer::Done | Answer::Refused | Answer::NotFound
        ) {}
        Ok(())
    }

    async fn steer(&mut self, verb: &str, call: Call, job: JobId) -> Result<Answer, Failure> {
        let call = self.record.call(call);
        let said = self.tools.run(&["jobs", verb, &job.to_string(), "--json"]).await?;
        let answer = answer(&said);
        self.record.answer(call, answer.clone());
        Ok(answer)
    }
}

fn answer(said: &Said) -> Answer {
    match said.code {
        Some(0) => Answer::Done,
        Some(5) => Answer::Refused,
        Some(3) => Answer::NotFound,
        _ => Answer::Unknown,
    }
}

fn seen(document: &str) -> Result<Seen, Failure> {
    let job: Job = serde_json::from_str(document)?;
    let begun = |task: &&Task| task.counters.attempt > 0 || task.state.is_terminal();
    let shown =
        |task: &Task| SeenTask { index: task.index, state: task.state, attempt: task.counters.attempt };
    Ok(Seen { state: job.state, tasks: job.tasks.iter().filter(begun).map(shown).collect() })
}
