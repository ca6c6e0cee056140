//! Random plays of the honest system: clients whose calls overlap and sometimes go unheard, workers that crash, come
//! late or speak after their time. Whatever the seed, the checker must find nothing.

use crate::honest::{Outcome, System};
use crate::scene::{json, limit, payload};
use fastrand::Rng;
use orchestrator_core::{JobId, JobState, LimitKey, Timestamp};
use orchestrator_history::{Answer, Call, CallId, Event, History, LastJob, LastWord, Rules, Run, check};
use std::sync::Arc;

/// What a play left behind.
#[derive(Clone)]
pub struct Story {
    pub history: History,
    pub last: LastWord,
    pub rules: Rules,
}

struct Open {
    id: CallId,
    call: Call,
    answer: Option<Answer>,
    /// Whether somebody still waits for the answer.
    heard: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Leased,
    Started,
    /// It has finished, and the store has not heard of it.
    Finished,
}

struct Work {
    run: Run,
    stage: Stage,
    outcome: Option<Outcome>,
}

struct Play {
    rng: Rng,
    system: System,
    history: History,
    open: Vec<Open>,
    works: Vec<Work>,
    broken: bool,
    /// No lease is ever lost, so limits hold for what is seen too.
    steady: bool,
    keys: Vec<Arc<str>>,
}

/// At most so many handlers at once, in a steady play.
const MOST: usize = 2;

fn the_limit() -> LimitKey {
    limit("host:x")
}

/// Plays a seed to its end.
pub fn play(seed: u64) -> Story {
    let mut rng = Rng::with_seed(seed);
    let keys = (0..rng.usize(1..6)).map(|n| "k".repeat(n + 1).into()).collect();
    let (steps, steady) = (rng.usize(10..300), rng.bool());
    let (system, history) = (System::default(), History::new());
    let mut play = Play { rng, system, history, open: vec![], works: vec![], broken: false, steady, keys };
    for _ in 0..steps {
        play.step();
    }
    play.heal();
    let mut rules = Rules { no_crashes: steady, ..Rules::default() };
    if steady {
        rules.limits.insert(the_limit(), MOST as u32);
    }
    Story { history: play.history, last: play.system.last_word(), rules }
}

impl Play {
    fn note(&mut self, event: Event) {
        let tick = self.history.events.len() as u64;
        self.history.note(tick, event);
    }

    fn step(&mut self) {
        match self.rng.u32(0..100) {
            0..20 => self.ask(),
            20..40 => self.carry_out(),
            40..57 => self.reply(),
            57..70 => self.lease(),
            70..96 => self.work_on(),
            96..97 if !self.system.jobs.is_empty() => {
                let at = self.rng.usize(..self.system.jobs.len());
                self.system.time_out(at);
            }
            _ if self.broken || self.rng.u32(0..3) == 0 => self.toggle_fault(),
            _ => {}
        }
    }

    fn toggle_fault(&mut self) {
        self.broken = !self.broken;
        let what = "weather".into();
        self.note(if self.broken { Event::FaultBegan { what } } else { Event::FaultEnded { what } });
        if !self.broken {
            // Who asked while it was broken hears no more, whatever becomes of the call.
            for open in &mut self.open {
                open.heard = false;
            }
        }
    }

    fn ask(&mut self) {
        let unknown = JobId::from_parts(Timestamp::from_millis(0), 0);
        let mut pick = |fits: fn(&LastJob) -> bool| {
            let fitting = self.system.jobs.iter().filter(|job| fits(job)).map(|job| job.id);
            self.rng.choice(fitting.collect::<Vec<_>>()).unwrap_or(unknown)
        };
        let any = pick(|_| true);
        let bad = pick(|job| matches!(job.state, JobState::Failed | JobState::TimedOut));
        let job = if self.rng.u32(0..20) == 0 { unknown } else { any };
        let key = self.keys[self.rng.usize(..self.keys.len())].clone();
        let call = match self.rng.u32(0..20) {
            0..8 => Call::Submit { payload: payload(&key), key },
            8..14 => Call::Read { job },
            14..15 => Call::Cancel { job },
            15..16 => Call::Pause { job },
            16..18 => Call::Resume { job },
            18 => Call::Revive { job },
            _ => Call::Revive { job: bad },
        };
        let tick = self.history.events.len() as u64;
        let id = self.history.call(tick, call.clone());
        self.open.push(Open { id, call, answer: None, heard: true });
    }

    /// A call takes effect, sometimes long after its client has given up.
    fn carry_out(&mut self) {
        let waiting: Vec<usize> = (0..self.open.len()).filter(|at| self.open[*at].answer.is_none()).collect();
        if let Some(at) = self.rng.choice(waiting) {
            self.open[at].answer = Some(self.system.answer(&self.open[at].call));
        }
    }

    fn reply(&mut self) {
        let waiting: Vec<usize> = (0..self.open.len()).filter(|at| self.open[*at].heard).collect();
        let Some(at) = self.rng.choice(waiting) else { return };
        let (id, lucky) = (self.open[at].id, !self.broken || self.rng.bool());
        let answer = match self.open[at].answer.clone() {
            Some(answer) if lucky => {
                self.open.swap_remove(at);
                answer
            }
            Some(_) => {
                self.open.swap_remove(at);
                Answer::Unknown
            }
            None if !self.broken => return,
            None if lucky => {
                self.open.swap_remove(at);
                Answer::Failed
            }
            None => {
                self.open[at].heard = false;
                Answer::Unknown
            }
        };
        self.note(Event::Answered { id, answer });
    }

    fn lease(&mut self) {
        if self.steady && self.works.len() >= MOST {
            return;
        }
        if let Some(task) = self.rng.choice(self.system.ready()) {
            let run = self.system.lease(task);
            self.works.push(Work { run, stage: Stage::Leased, outcome: None });
        }
    }

    fn work_on(&mut self) {
        if self.works.is_empty() {
            return;
        }
        let at = self.rng.usize(..self.works.len());
        let (run, stage) = (self.works[at].run, self.works[at].stage);
        if !self.steady && self.rng.u32(0..10) == 0 {
            // The lease runs out. The worker may be dead, or only late.
            self.system.settle(run, Outcome::Lost);
            if self.rng.bool() {
                self.works.swap_remove(at);
                if stage == Stage::Started && self.rng.bool() {
                    self.note(Event::Aborted { run });
                }
                return;
            }
        }
        match stage {
            Stage::Leased => {
                self.note(Event::Started { run, limits: vec![the_limit()] });
                self.works[at].stage = Stage::Started;
            }
            Stage::Started => {
                let given = json(&format!("{{\"by\":{}}}", run.attempt));
                let (output, outcome) = match self.rng.u32(0..10) {
                    0..6 => (Some(given.clone()), Outcome::Completed(given)),
                    6 => (None, Outcome::Skipped),
                    _ => (None, Outcome::Failed { retry: self.rng.bool() }),
                };
                self.note(Event::Finished { run, output });
                self.works[at].stage = Stage::Finished;
                self.works[at].outcome = Some(outcome);
            }
            Stage::Finished => {
                if let Some(outcome) = self.works.swap_remove(at).outcome {
                    self.system.settle(run, outcome);
                }
            }
        }
    }

    /// All is well again: what was lost is taken up, what waits goes on, everything ends.
    fn heal(&mut self) {
        if self.broken {
            self.toggle_fault();
        }
        while let Some(at) = self.open.iter().position(|open| open.heard) {
            let Open { id, call, answer, .. } = self.open.swap_remove(at);
            let answer = answer.unwrap_or_else(|| self.system.answer(&call));
            self.note(Event::Answered { id, answer });
        }
        self.steady = true;
        loop {
            for at in 0..self.system.jobs.len() {
                let job = self.system.jobs[at].id;
                self.system.answer(&Call::Resume { job });
            }
            while !self.works.is_empty() {
                self.work_on();
            }
            self.lease();
            if self.works.is_empty() {
                return;
            }
        }
    }
}

#[test]
fn an_honest_system_is_found_honest() {
    for seed in 0..2000 {
        let Story { history, last, rules } = play(seed);
        let verdict = check(&history, &last, &rules);
        assert!(verdict.is_clean(), "seed {seed}: {verdict}\n{:#?}", verdict.findings);
    }
}
