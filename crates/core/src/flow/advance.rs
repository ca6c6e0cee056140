//! How a job of many tasks moves on.
//!
//! Stores call these functions inside their transaction, with the job's [`Run`] in hand; what comes
//! back is what to write. Joins, conditions, expansion, skipping, the end of the job, its recovery:
//! all of it is decided here, so every store does the same. (Lists are in `each`, templates in `scope`.)

mod each;
mod recover;
mod scope;

pub use recover::{From, NoRecovery, Reset, Undone, recover, restart};

use super::def::JoinRule;
use super::plan::{Plan, TaskPlan};
use super::run::{Run, Standing};
use super::template::TemplateError;
use crate::decide::{Decision, Next};
use crate::id::JobId;
use crate::json::Json;
use crate::limit::Limits;
use crate::outcome::{ErrorClass, Failure};
use crate::planted::{Bug, planted};
use crate::state::{JobState, TaskState};
use crate::time::Timestamp;
use std::collections::VecDeque;

/// The most items of one `for_each`.
pub const MAX_ITEMS: usize = 500_000;
/// The most bytes that the inputs of its items may have together.
pub const MAX_EXPANSION: usize = 256 << 20;
/// The most tasks that one job may ever have.
pub const MAX_INDEX: u32 = 1 << 20;

/// What a job is, for its templates.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub tenant: &'a str,
    /// What was submitted.
    pub input: &'a Json,
    /// The moment of the transaction.
    pub now: Timestamp,
}

/// What earlier tasks left. Read only where a template asks for it.
pub trait Past {
    /// Why it could not be read.
    type Error;

    /// The output of the task at an index, if it ended with one.
    fn output(&mut self, index: u32) -> Result<Option<Json>, Self::Error>;

    /// The last error of the task at an index.
    fn error(&mut self, index: u32) -> Result<Option<String>, Self::Error>;
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A task comes to life.
    Release(Release),
    /// A task that waited behind the others of its `for_each` may come into line.
    Admit(u32),
    /// A `for_each` was expanded: it counts as running until its items have ended.
    Expanded(u32),
    /// A task ends without an attempt, or an expanded one with its items.
    Close {
        /// The task.
        index: u32,
        /// How it ends.
        state: TaskState,
        /// Why, where it fails.
        failure: Option<Failure>,
    },
}

/// A task that comes to life.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Its index.
    pub index: u32,
    /// The task of the plan.
    pub task: u32,
    /// What its handler gets, where that is neither the job's input nor written in the flow.
    pub payload: Option<Json>,
    /// The limits under which it runs.
    pub limits: Limits,
    /// The attempt after which its attempts are counted.
    pub attempt: u32,
    /// Whether it comes into line now, or waits behind the others of its `for_each`.
    pub admitted: bool,
}

/// What came of a move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// What to write, in order.
    pub changes: Vec<Change>,
    /// The output that the flow defines, if the job has just completed with one.
    pub output: Option<Json>,
}

/// What an optional task makes of its own failure: the flow goes on without it.
pub fn soften(decision: Decision, optional: bool) -> Decision {
    match decision.next {
        Next::End(TaskState::Failed, _) if optional && !planted(Bug::HardOptional) => {
            Decision { next: Next::End(TaskState::Skipped, None), ..decision }
        }
        _ => decision,
    }
}

/// Lets the first tasks in. For a job that waits for others: when it waits for none any more. `start` is the moment
/// from which on they may run: now, or the later one that was asked for. From then on the job's time runs.
pub fn begin<P: Past>(
    plan: &Plan,
    run: &mut Run,
    facts: Facts<'_>,
    past: &mut P,
    start: Timestamp,
) -> Result<Moves, P::Error> {
    run.deadline = plan.timeout().map(|span| start + span);
    if let Some(since) = &mut run.paused {
        *since = facts.now;
    }
    let mut machine = Machine::new(plan, run, facts, past);
    for root in plan.roots() {
        machine.enter_if_due(*root)?;
    }
    machine.run_down()
}

/// Goes on after the task at `index` ended in a state.
pub fn ended<P: Past>(
    plan: &Plan,
    run: &mut Run,
    facts: Facts<'_>,
    past: &mut P,
    index: u32,
    state: TaskState,
) -> Result<Moves, P::Error> {
    let mut machine = Machine::new(plan, run, facts, past);
    if (index as usize) < plan.tasks().len() {
        machine.set(index, Standing::of_end(state));
    } else {
        machine.item_ended(index, state);
    }
    machine.run_down()
}

/// Ends the job as a whole, in `Cancelled` or `TimedOut`: what has not ended ends with it. The changes close
/// what never came to life and what was expanded; the store ends what is alive, which it knows.
pub fn stop(run: &mut Run, state: JobState, reason: Option<String>, now: Timestamp) -> Vec<Change> {
    let (standing, end) = match state {
        JobState::TimedOut => (Standing::TimedOut, TaskState::TimedOut),
        _ => (Standing::Cancelled, TaskState::Cancelled),
    };
    let mut changes = vec![];
    for index in 0..run.tasks.len() as u32 {
        let place = &mut run.tasks[index as usize];
        let expanded = run.groups.iter().any(|group| group.task == index);
        if *place == Standing::Pending || (*place == Standing::Live && expanded) {
            changes.push(Change::Close { index, state: end, failure: None });
        }
        if !place.is_over() {
            *place = standing;
        }
    }
    for group in &mut run.groups {
        group.failed += group.count - group.ended;
        group.ended = group.count;
        // Nothing of it waits to be let in, also while other tasks of the job run again.
        group.admitted = group.count;
        group.again.clear();
    }
    run.state = state;
    run.ended = Some(now);
    run.paused = None;
    run.reason = reason;
    changes
}

struct Machine<'a, P> {
    plan: &'a Plan,
    run: &'a mut Run,
    facts: Facts<'a>,
    past: &'a mut P,
    moves: Moves,
    /// Tasks of the plan that have just ended: those that need them are looked at next.
    agenda: VecDeque<u32>,
}

impl<'a, P: Past> Machine<'a, P> {
    fn new(plan: &'a Plan, run: &'a mut Run, facts: Facts<'a>, past: &'a mut P) -> Self {
        Machine { plan, run, facts, past, moves: Moves::default(), agenda: VecDeque::new() }
    }

    /// Follows every end to its consequences, up to the end of the job.
    fn run_down(mut self) -> Result<Moves, P::Error> {
        while let Some(task) = self.agenda.pop_front() {
            let plan = self.plan;
            for dependent in &plan.tasks()[task as usize].dependents {
                self.enter_if_due(*dependent)?;
            }
        }
        if !self.run.state.is_terminal() && self.run.tasks.iter().all(|task| task.is_over()) {
            self.finish()?;
        }
        Ok(self.moves)
    }

    fn set(&mut self, task: u32, standing: Standing) {
        self.run.tasks[task as usize] = standing;
        if standing.is_over() {
            self.agenda.push_back(task);
        }
    }

    fn close(&mut self, task: u32, standing: Standing, failure: Option<Failure>) {
        self.moves.changes.push(Change::Close { index: task, state: standing.state(), failure });
        self.set(task, standing);
    }

    /// Evaluates a join, which happens once: when the last of its needs has ended.
    fn enter_if_due(&mut self, task: u32) -> Result<(), P::Error> {
        let needs = &self.plan.tasks()[task as usize].needs;
        let waits = self.run.tasks[task as usize] == Standing::Pending;
        let is_over = |need: &u32| self.run.tasks[*need as usize].is_over();
        let due = needs.iter().all(is_over) || planted(Bug::ForgetJoinCounter) && needs.iter().any(is_over);
        if waits && due {
            self.enter(task)?;
        }
        Ok(())
    }

    fn enter(&mut self, task: u32) -> Result<(), P::Error> {
        let plan = self.plan;
        let rules = &plan.tasks()[task as usize];
        if !self.join_holds(rules) {
            let blocked = rules.needs.iter().any(|need| self.run.tasks[*need as usize].is_bad());
            self.close(task, if blocked { Standing::Blocked } else { Standing::Skipped }, None);
            return Ok(());
        }
        let mut scope = self.scope(&rules.uses)?;
        let entered = match rules.when.as_ref().map(|when| when.holds(&scope)) {
            Some(Ok(false)) => {
                self.close(task, Standing::Skipped, None);
                return Ok(());
            }
            Some(Err(error)) => Err(unresolved("when", &error)),
            Some(Ok(true)) | None => match &rules.each {
                Some(each) => {
                    let items = self.scope(&each.uses)?;
                    each.items
                        .render(&items)
                        .map_err(|error| unresolved("for_each", &error))
                        .and_then(each::as_list)
                        .and_then(|items| self.expand(task, items, &mut scope))
                }
                None => self.render(rules, &scope).map(|(payload, limits)| {
                    let attempt = self.run.attempts_before(task);
                    let release = Release { index: task, task, payload, limits, attempt, admitted: true };
                    self.moves.changes.push(Change::Release(release));
                    self.set(task, Standing::Live);
                }),
            },
        };
        if let Err(failure) = entered {
            // What cannot be resolved will not get better by a retry.
            if rules.optional {
                self.close(task, Standing::Skipped, Some(failure));
            } else {
                self.close(task, Standing::Failed, Some(failure));
            }
        }
        Ok(())
    }

    fn join_holds(&self, task: &TaskPlan) -> bool {
        let standing = |need: &u32| self.run.tasks[*need as usize];
        match task.join {
            JoinRule::AllCompleted if planted(Bug::SkipJoinRule) => true,
            JoinRule::AllCompleted => task.needs.iter().all(|need| match standing(need) {
                Standing::Completed => true,
                Standing::Skipped => self.plan.tasks()[*need as usize].optional,
                _ => false,
            }),
            JoinRule::AllDone => true,
            JoinRule::AnyFailed => task.needs.iter().any(|need| standing(need).is_bad()),
        }
    }

    fn finish(&mut self) -> Result<(), P::Error> {
        let bad = self.run.tasks.iter().any(|task| task.is_bad());
        self.run.state = if bad { JobState::Failed } else { JobState::Completed };
        self.run.ended = Some(self.facts.now);
        self.run.paused = None;
        if bad {
            return Ok(());
        }
        if let Some(output) = self.plan.output() {
            let scope = self.scope(&output.uses)?;
            let output = output.template.render_json(&scope).map_err(|error| unresolved("output", &error));
            match output.and_then(|output| readable("output", output)) {
                Ok(output) => self.moves.output = Some(output),
                Err(failure) => {
                    self.run.state = JobState::Failed;
                    self.run.reason = Some(failure.message);
                }
            }
        }
        Ok(())
    }
}

/// Refuses what a template nested so deep that later templates could not read it.
fn readable(field: &str, json: Json) -> Result<Json, Failure> {
    if json.is_too_deep() {
        return Err(invalid(format!("{field}: the result nests deeper than {} levels", Json::MAX_DEPTH)));
    }
    Ok(json)
}

fn unresolved(field: &str, error: &TemplateError) -> Failure {
    invalid(format!("{field}: {error}"))
}

fn invalid(message: String) -> Failure {
    Failure::new(ErrorClass::Validation, message)
}
