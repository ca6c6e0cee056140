//! A store in miniature: it holds one job, carries out what `advance` decides, and checks every move on
//! the way.

use orchestrator_core::flow::advance::{self, Change, Facts, From, Moves, NoRecovery, Past, Release, Undone};
use orchestrator_core::flow::plan::TaskPlan;
use orchestrator_core::flow::run::Standing;
use orchestrator_core::flow::{Flow, Plan, Run, Task};
use orchestrator_core::{
    Counters, Decision, Failure, JobId, JobState, Json, Limits, Millis, Next, Outcome, TaskState, Timestamp,
    decide,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub fn task(name: &str) -> Task {
    Task::new(name, "work").retries(0)
}

pub fn flow(tasks: impl IntoIterator<Item = Task>) -> Flow {
    tasks.into_iter().fold(Flow::new("test"), Flow::task)
}

/// A task as the store would show it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub state: TaskState,
    pub attempt: u32,
    pub payload: Option<Json>,
    pub limits: Limits,
    pub output: Option<Json>,
    pub error: Option<String>,
}

impl Default for Seen {
    fn default() -> Self {
        let (payload, limits) = (None, Limits::none());
        Seen { state: TaskState::Pending, attempt: 0, payload, limits, output: None, error: None }
    }
}

struct Left<'a>(&'a BTreeMap<u32, Seen>);

impl Past for Left<'_> {
    type Error = Infallible;

    fn output(&mut self, index: u32) -> Result<Option<Json>, Infallible> {
        Ok(self.0.get(&index).and_then(|seen| seen.output.clone()))
    }

    fn error(&mut self, index: u32) -> Result<Option<String>, Infallible> {
        Ok(self.0.get(&index).and_then(|seen| seen.error.clone()))
    }
}

/// A job, its tasks, and what has happened.
pub struct Job {
    pub plan: Plan,
    pub run: Run,
    pub now: Timestamp,
    pub output: Option<Value>,
    /// The tasks that came into line since this was last taken, in order.
    pub entered: Vec<String>,
    tasks: BTreeMap<u32, Seen>,
    input: Json,
    /// Every attempt that ever was.
    attempts: BTreeSet<(u32, u32)>,
}

impl Job {
    /// Submits a job.
    pub fn new(flow: Flow, input: Value) -> Job {
        Job::of(flow.plan().unwrap(), input)
    }

    /// Submits a job of a plan.
    pub fn of(plan: Plan, input: Value) -> Job {
        let mut job = Job {
            run: Run::new(&plan),
            tasks: (0..plan.tasks().len() as u32).map(|index| (index, Seen::default())).collect(),
            plan,
            now: START,
            output: None,
            entered: vec![],
            input: input.into(),
            attempts: BTreeSet::new(),
        };
        job.begin();
        job
    }

    pub fn begin(&mut self) {
        self.step(|plan, run, facts, past| advance::begin(plan, run, facts, past, facts.now));
    }

    fn step(
        &mut self,
        step: impl FnOnce(&Plan, &mut Run, Facts<'_>, &mut Left<'_>) -> Result<Moves, Infallible>,
    ) {
        let id = JobId::from_parts(START, 7);
        let facts = Facts { id, tenant: "acme", input: &self.input, now: self.now };
        let before = self.run.state;
        let Ok(moves) = step(&self.plan, &mut self.run, facts, &mut Left(&self.tasks));
        for change in moves.changes {
            self.apply(change);
        }
        self.output = moves.output.map(|output| output.value());
        assert!(before == self.run.state || before.can_become(self.run.state), "{before} {}", self.run.state);
        self.check();
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Release(Release { index, task, payload, limits, attempt, admitted }) => {
                assert_eq!(self.run.place(index).map(|place| place.task), Some(task));
                assert!(attempt == self.run.attempts_before(index), "{index}");
                let seen = self.tasks.entry(index).or_default();
                assert_eq!(seen.state, TaskState::Pending, "{index} was released before");
                *seen = Seen { payload, limits, attempt, error: seen.error.take(), ..Seen::default() };
                if admitted {
                    self.enter(index);
                }
            }
            Change::Admit(index) => self.enter(index),
            Change::Expanded(index) => self.turn(index, TaskState::Running),
            Change::Close { index, state, failure } => {
                self.turn(index, state);
                let seen = self.tasks.get_mut(&index).unwrap();
                seen.error = failure.map(|failure| failure.message).or(seen.error.take());
            }
        }
    }

    fn enter(&mut self, index: u32) {
        let needs = &self.rules(index).needs;
        assert!(needs.iter().all(|need| self.tasks[need].state.is_terminal()), "{index} came too early");
        self.turn(index, TaskState::Queued);
        self.entered.push(self.name(index));
    }

    fn turn(&mut self, index: u32, state: TaskState) {
        let seen = self.tasks.get_mut(&index).unwrap();
        assert!(seen.state.can_become(state), "{index} is {}, cannot become {state}", seen.state);
        seen.state = state;
    }

    /// What must hold at any moment.
    fn check(&self) {
        for (index, standing) in (0..).zip(&self.run.tasks) {
            let state = self.tasks[&index].state;
            let agrees = match state {
                TaskState::Pending => *standing == Standing::Pending,
                state if state.is_terminal() => standing.is_over() && standing.state() == state,
                _ => *standing == Standing::Live,
            };
            assert!(agrees, "task {index} is {state}, and {standing:?} for the run");
        }
        for group in &self.run.groups {
            let count = |wanted: fn(TaskState) -> bool| {
                let items = group.first..group.first + group.count;
                items.filter(|index| wanted(self.tasks[index].state)).count() as u32
            };
            assert_eq!(group.ended, count(TaskState::is_terminal), "{group:?}");
            let inside = count(|state| !state.is_terminal() && state != TaskState::Pending);
            let most = self.plan.tasks()[group.task as usize].each.as_ref().and_then(|each| each.concurrency);
            assert!(inside <= most.unwrap_or(u32::MAX), "{inside} of {group:?} at once");
            assert!(inside > 0 || group.ended == group.count, "{group:?} stands still");
        }
        if self.run.state.is_terminal() {
            assert!(self.tasks.values().all(|seen| seen.state.is_terminal()), "{}", self.states());
        }
        assert_eq!(self.run.ended.is_some(), self.run.state.is_terminal());
    }

    fn rules(&self, index: u32) -> &TaskPlan {
        &self.plan.tasks()[self.run.place(index).unwrap().task as usize]
    }

    pub fn name(&self, index: u32) -> String {
        let place = self.run.place(index).unwrap();
        let name = &self.plan.tasks()[place.task as usize].name;
        place.item.map_or_else(|| name.to_string(), |item| format!("{name}[{item}]"))
    }

    pub fn index(&self, name: &str) -> u32 {
        self.tasks.keys().copied().find(|index| self.name(*index) == name).expect(name)
    }

    pub fn seen(&self, name: &str) -> &Seen {
        &self.tasks[&self.index(name)]
    }

    /// What the handler of a task gets.
    pub fn payload(&self, name: &str) -> Value {
        let literal = || self.rules(self.index(name)).literal.clone();
        self.seen(name).payload.clone().or_else(literal).unwrap_or_else(|| self.input.clone()).value()
    }

    pub fn error(&self, name: &str) -> &str {
        self.seen(name).error.as_deref().unwrap_or_default()
    }

    /// Every task and its state, items right after what they are items of.
    pub fn states(&self) -> String {
        let mut all: Vec<_> = self.tasks.iter().map(|(index, seen)| (*index, seen.state)).collect();
        all.sort_by_key(|(index, _)| self.run.place(*index).map(|place| (place.task, place.item)));
        let all = all.into_iter().map(|(index, state)| format!("{} {state}", self.name(index)));
        all.collect::<Vec<_>>().join(", ")
    }

    /// The tasks that are in line.
    pub fn ready(&self) -> Vec<u32> {
        self.tasks
            .iter()
            .filter(|(_, seen)| seen.state == TaskState::Queued)
            .map(|(index, _)| *index)
            .collect()
    }

    pub fn take_entered(&mut self) -> String {
        std::mem::take(&mut self.entered).join(" ")
    }

    /// Every attempt that ever was, by index and number.
    pub fn attempts(&self) -> BTreeSet<(u32, u32)> {
        self.attempts.clone()
    }

    pub fn completed(&self) -> Vec<u32> {
        let all = self.tasks.iter().filter(|(_, seen)| seen.state == TaskState::Completed);
        all.map(|(index, _)| *index).collect()
    }

    /// A worker takes a task from the line and ends it in this way.
    pub fn attempt(&mut self, index: u32, outcome: Outcome) {
        self.run.start(self.now);
        self.turn(index, TaskState::Running);
        let (spec, optional) = (self.rules(index).spec.clone(), self.rules(index).optional);
        let seen = self.tasks.get_mut(&index).unwrap();
        seen.attempt += 1;
        assert!(self.attempts.insert((index, seen.attempt)), "{index}: attempt {} again", seen.attempt);
        let counters = Counters { attempt: seen.attempt, failures: 0, crashes: 0 };
        let decision = advance::soften(decide(&spec, counters, &outcome, self.now, 0.0), optional);
        let Decision { next: Next::End(state, _), .. } = decision else { panic!("{decision:?} is no end") };
        match outcome {
            Outcome::Completed(output) | Outcome::Skipped(output) => seen.output = Some(output),
            Outcome::Failed(failure) => seen.error = Some(failure.message),
            other => panic!("{other:?} is no end"),
        }
        self.turn(index, state);
        self.step(|plan, run, facts, past| advance::ended(plan, run, facts, past, index, state));
    }

    pub fn complete(&mut self, name: &str, output: Value) {
        self.attempt(self.index(name), Outcome::Completed(output.into()));
    }

    pub fn skip(&mut self, name: &str) {
        self.attempt(self.index(name), Outcome::Skipped(Json::null()));
    }

    pub fn fail(&mut self, name: &str) {
        self.attempt(self.index(name), Outcome::Failed(Failure::permanent(format!("{name} broke"))));
    }

    /// Completes all that comes into line, up to the end.
    pub fn complete_all(&mut self) {
        while let Some(index) = self.ready().first().copied() {
            self.attempt(index, Outcome::Completed(Json::null()));
        }
        assert!(self.run.state.is_terminal(), "{}", self.states());
    }

    /// Cancels the job, or lets its time run out.
    pub fn stop(&mut self, state: JobState) {
        let end = if state == JobState::TimedOut { TaskState::TimedOut } else { TaskState::Cancelled };
        let static_tasks = self.run.tasks.len() as u32;
        let alive = |(index, seen): (&u32, &Seen)| match seen.state {
            TaskState::Queued => Some(*index),
            TaskState::Pending if *index >= static_tasks => Some(*index),
            _ => None,
        };
        for index in self.tasks.iter().filter_map(alive).collect::<Vec<_>>() {
            self.turn(index, end);
        }
        for change in advance::stop(&mut self.run, state, Some("that is enough".to_owned()), self.now) {
            self.apply(change);
        }
        self.check();
    }

    /// Takes the job up again, a second later.
    pub fn recover(&mut self, from: From, counted: bool) -> Result<(), NoRecovery> {
        let reset = advance::recover(&self.plan, &mut self.run, from, counted)?;
        self.now = self.now + Millis::secs(1);
        self.entered.clear();
        let mut undone = Undone::default();
        for index in &reset.tasks {
            undone.tasks.push((*index, self.undo(*index)));
        }
        for group in &reset.gone {
            self.tasks.retain(|index, _| !group.has(*index));
        }
        for group in &reset.reopened {
            self.undo(group.task);
            for index in group.first..group.first + group.count {
                use TaskState::{Cancelled, Failed, TimedOut};
                let bad = matches!(self.tasks[&index].state, Failed | TimedOut | Cancelled);
                if bad && reset.item.is_none_or(|item| item == index) {
                    undone.items.push((index, self.undo(index)));
                }
            }
        }
        assert_eq!(self.run.state, JobState::Running);
        self.step(|plan, run, facts, past| advance::restart(plan, run, facts, past, &undone));
        Ok(())
    }

    fn undo(&mut self, index: u32) -> u32 {
        self.turn(index, TaskState::Pending);
        let seen = self.tasks.get_mut(&index).unwrap();
        seen.output = None;
        seen.attempt
    }
}
