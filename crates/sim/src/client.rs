//! People and programs outside: they submit, look, steer and wait, and the history hears every word.

use crate::fleet::{Fleet, Member};
use crate::jobs;
use crate::oracle::Violation;
use crate::script::{NewWork, Wish};
use crate::world::World;
use orchestrator_core::{JobId, JobState, LimitKey, LimitRule};
use orchestrator_engine::{SubmitError, WaitError, Waited};
use orchestrator_history::{Answer, Call, Seen, SeenTask};
use orchestrator_store::{
    Command, Controlled, JobView, LimitChange, LineFilter, RuleOrigin, StoreError, StoreResult, Submitted,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a client tries to get a job in.
const TRIES: u32 = 4;

/// Somebody outside.
#[derive(Clone)]
pub struct Client {
    /// Where it lives.
    pub world: Arc<World>,
    /// Whom it talks to.
    pub fleet: Arc<Fleet>,
}

impl Client {
    /// Submits a job, a few times if it must.
    pub async fn submit(self, number: u32, via: u8, work: NewWork) {
        let after = work.after.iter().filter_map(|job| self.world.job(*job)).collect();
        let job = jobs::new_job(number, &work, after, self.world.now());
        let call = Call::Submit { key: jobs::client_key(number, &work), payload: jobs::payload(&work) };
        for attempt in 0..TRIES {
            if let Some(member) = self.fleet.reach(via) {
                let id = self.world.call(call.clone());
                let answer = alive(&member, member.engine.submit(vec![job.clone()])).await;
                let (word, answer) = heard_of_submit(answer);
                self.world.count("submits", word);
                self.world.answer(id, answer.clone());
                match answer {
                    Answer::Acked { job, .. } => return self.world.name_job(number, job),
                    Answer::Failed => {}
                    // Without a key a second try would be another job.
                    Answer::Unknown if work.key.is_some() => {}
                    _ => return,
                }
            }
            sleep(Duration::from_millis(300 << attempt)).await;
        }
    }

    /// Asks something of a job.
    pub async fn ask(self, wish: Wish, number: u32, via: u8) {
        let (Some(job), Some(member)) = (self.aim(&wish, number), self.fleet.reach(via)) else { return };
        let command = match wish {
            Wish::Cancel => Command::Cancel(job),
            Wish::Pause => Command::Pause(job),
            Wish::Resume => Command::Resume(job),
            Wish::Retry => Command::Retry(job),
            Wish::Recover(from) => {
                Command::Recover { job, from: from.map(|task| jobs::task_name(task).into()) }
            }
        };
        self.command(&member, wish.word(), command).await;
    }

    /// The job that somebody means. Most people ask for what makes sense: where the job of that number is in no
    /// such state, they mean another one.
    fn aim(&self, wish: &Wish, number: u32) -> Option<JobId> {
        let fits = |state: JobState| match wish {
            Wish::Cancel | Wish::Pause => !state.is_terminal(),
            Wish::Resume => matches!(state, JobState::Pausing | JobState::Paused),
            Wish::Retry | Wish::Recover(_) => matches!(state, JobState::Failed | JobState::TimedOut),
        };
        let named = self.world.job(number)?;
        self.world.store.inspect(|model| {
            let fitting: Vec<JobId> =
                model.states().filter(|(_, state)| fits(*state)).map(|(job, _)| job).collect();
            let plain = fitting.is_empty() || fitting.contains(&named) || number.is_multiple_of(4);
            Some(if plain { named } else { fitting[number as usize % fitting.len()] })
        })
    }

    async fn command(&self, member: &Member, word: &'static str, command: Command) -> bool {
        let job = command.job();
        let call = match &command {
            Command::Cancel(_) => Some(Call::Cancel { job }),
            Command::Pause(_) => Some(Call::Pause { job }),
            Command::Resume(_) => Some(Call::Resume { job }),
            Command::Retry(_) | Command::Recover { .. } | Command::Requeue(_) => Some(Call::Revive { job }),
            Command::Discard(_) => None,
        };
        let id = call.map(|call| self.world.call(call));
        let answer = alive(member, member.engine.control(vec![command])).await;
        let answer = answer.map(|answer| answer.map(|mut answers| answers.pop()));
        let (how, heard) = heard_of_command(&answer);
        self.world.count(word, how);
        if let Some(id) = id {
            self.world.answer(id, heard.clone());
        }
        heard == Answer::Done
    }

    /// Resumes a job for good, as an operator does who is asked to clean up.
    pub async fn resume(&self, job: JobId) -> bool {
        let Some(member) = self.fleet.reach(0) else { return false };
        self.command(&member, "resume", Command::Resume(job)).await
    }

    /// Takes up a dead letter.
    pub async fn dead_letter(self, nth: u32, requeue: bool, via: u8) {
        let Some(member) = self.fleet.reach(via) else { return };
        let letters = member.engine.store().dead_letters(LineFilter::default(), None, 100);
        let Some(Ok(letters)) = alive(&member, letters).await else { return };
        if letters.is_empty() {
            return;
        }
        let task = letters[nth as usize % letters.len()].task;
        if requeue {
            self.command(&member, "requeue", Command::Requeue(task)).await;
        } else {
            self.command(&member, "discard", Command::Discard(task)).await;
        }
    }

    /// Looks at a job.
    pub async fn read(self, number: u32, via: u8) {
        let (Some(job), Some(member)) = (self.world.job(number), self.fleet.reach(via)) else { return };
        let id = self.world.call(Call::Read { job });
        let answer = match alive(&member, member.engine.store().job(job)).await {
            Some(Ok(Some(view))) => Answer::Seen(seen(&view)),
            Some(Ok(None)) => Answer::NotFound,
            Some(Err(_)) => Answer::Failed,
            None => Answer::Unknown,
        };
        self.world.answer(id, answer);
    }

    /// Writes or strikes a limit rule, until that is answered.
    pub async fn limit(self, key: LimitKey, rule: Option<LimitRule>, via: u8) {
        for attempt in 0..TRIES {
            if let Some(member) = self.fleet.reach(via) {
                let change = LimitChange { key: key.clone(), rule, origin: RuleOrigin::Operator };
                let answer = alive(&member, member.engine.store().set_limits(vec![change])).await;
                if matches!(answer, Some(Ok(()))) {
                    return;
                }
            }
            sleep(Duration::from_millis(300 << attempt)).await;
        }
    }

    /// Waits for the end of a job, and looks whether it is told the truth, and in time.
    pub async fn wait(self, number: u32, via: u8, limit: Option<u64>) {
        let (Some(job), Some(member)) = (self.world.job(number), self.fleet.reach(via)) else { return };
        let began = (Instant::now(), self.world.clock.ticks());
        let waited = member.engine.wait(job, limit.map(Duration::from_millis));
        let Some(waited) = alive(&member, waited).await else {
            return self.world.count("waits", "process gone");
        };
        self.world.trace(member.process.name, || {
            let state = waited.as_ref().map(|waited| waited.job().state);
            format!("waited for job {}: {state:?}", job.free_bits())
        });
        if let Err(what) = self.judge(job, waited, limit, began) {
            let what = format!("{} waited for job {job}: {what}", member.process.name);
            self.world.fail(Violation::new("wait", what));
        }
    }

    fn judge(
        &self,
        job: JobId,
        waited: Result<Waited, WaitError>,
        limit: Option<u64>,
        (began, tick): (Instant, u64),
    ) -> Result<(), String> {
        let settings = &self.world.script.settings;
        let calm = self.world.script.is_calm();
        // A look takes a way there and a way back; the pauses between looks grow to five times the first.
        let look = 4 * settings.latency + 100;
        let (now, took) = (self.world.clock.ticks(), began.elapsed().as_millis() as u64);
        match waited {
            Ok(Waited::Ended(view)) => {
                self.world.count("waits", "ended");
                let ends = self.world.ask(|oracle| oracle.ends(job).to_vec());
                let Some(end) = ends.iter().rev().find(|end| end.state == view.state) else {
                    return Err(format!("it is told {}, but its ends are {ends:?}", view.state));
                };
                let late = now.saturating_sub(end.at.max(tick));
                if calm && late > 5 * settings.poll + look {
                    return Err(format!("it ended at {} and was told {late} ms late", end.at));
                }
            }
            Ok(Waited::TimedOut(view)) => {
                self.world.count("waits", "time was up");
                let Some(limit) = limit else { return Err("the time was up without a limit".to_owned()) };
                if view.state.is_terminal() || took < limit || calm && took > limit + look {
                    return Err(format!("the time was up after {took} of {limit} ms, job {}", view.state));
                }
            }
            Err(WaitError::NotFound(_)) => return Err("it is not there, though it was taken in".to_owned()),
            Err(WaitError::Store(error)) if limit.is_none() || calm => {
                return Err(format!("it gave up: {error}"));
            }
            Err(WaitError::Store(_)) => self.world.count("waits", "store failed"),
        }
        Ok(())
    }
}

/// The answer of a process, if it lives to give one.
async fn alive<T>(member: &Member, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = member.process.ended() => None,
        answer = call => Some(answer),
    }
}

fn heard_of_submit(answer: Option<Result<Vec<Submitted>, SubmitError>>) -> (&'static str, Answer) {
    match answer {
        None => ("process gone", Answer::Unknown),
        Some(Ok(answers)) => match answers.first() {
            Some(Submitted::Created { id, .. }) => ("created", Answer::Acked { job: *id, created: true }),
            Some(Submitted::Existing { id, .. }) => ("existing", Answer::Acked { job: *id, created: false }),
            Some(Submitted::Conflict { .. }) => ("conflict", Answer::Refused),
            None => ("no answer", Answer::Unknown),
        },
        Some(Err(SubmitError::Store(StoreError::Unknown { .. }))) => ("unknown", Answer::Unknown),
        Some(Err(_)) => ("error", Answer::Failed),
    }
}

fn heard_of_command(answer: &Option<StoreResult<Option<Controlled>>>) -> (&'static str, Answer) {
    match answer {
        None => ("process gone", Answer::Unknown),
        Some(Ok(Some(controlled))) => match controlled {
            Controlled::Done(_) => ("done", Answer::Done),
            Controlled::Refused(_) => ("refused", Answer::Refused),
            Controlled::Superseded(_) => ("superseded", Answer::Refused),
            Controlled::NotFound => ("not found", Answer::NotFound),
            Controlled::NoSuchTask => ("no such task", Answer::Refused),
            Controlled::NoRecovery(_) => ("no recovery", Answer::Refused),
            Controlled::Changed(_) => ("changed", Answer::Refused),
        },
        Some(Ok(None)) => ("no answer", Answer::Unknown),
        Some(Err(StoreError::Unknown { .. })) => ("unknown", Answer::Unknown),
        Some(Err(_)) => ("error", Answer::Failed),
    }
}

fn seen(view: &JobView) -> Seen {
    let begun = view.tasks.iter().filter(|task| task.counters.attempt > 0 || task.ended.is_some());
    let tasks =
        begun.map(|task| SeenTask { index: task.index, state: task.state, attempt: task.counters.attempt });
    Seen { state: view.state, tasks: tasks.collect() }
}
