//! The history, read once: what each call, job, task and run left behind, by its name.

use super::known::{Ends, Known};
use crate::{Answer, Call, CallId, Event, History, LastJob, LastTask, LastWord, Run};
use orchestrator_core::{JobId, JobState, Json, TaskId, TaskState};
use std::collections::HashMap;

/// A place in the history: the number of an event.
pub(super) type Place = usize;

/// After every event.
pub(super) const END: Place = Place::MAX;

/// A call with its answer.
pub(super) struct Asked<'a> {
    pub(super) call: &'a Call,
    pub(super) called: Place,
    pub(super) answer: &'a Answer,
    /// When it was answered; [`END`] if never.
    pub(super) answered: Place,
}

impl Asked<'_> {
    /// Whether nobody knows what came of it.
    pub(super) fn is_unknown(&self) -> bool {
        *self.answer == Answer::Unknown
    }

    /// The span in which it may have taken effect: none where it is known that it did not.
    fn effect(&self) -> Option<Span> {
        match self.answer {
            Answer::Failed | Answer::Refused | Answer::NotFound => None,
            Answer::Unknown => Some(Span { from: self.called, until: END }),
            Answer::Done | Answer::Acked { .. } | Answer::Seen(_) => {
                Some(Span { from: self.called, until: self.answered })
            }
        }
    }
}

/// From one place to another.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Place,
    pub(super) until: Place,
}

/// What an answer tells about its job, true at some moment between call and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// It is in this state.
    In(JobState),
    /// It has not ended badly: a submit was answered with it.
    HoldsKey,
    /// It has not ended: it was paused or resumed.
    Live,
    /// It had ended badly, and lives again.
    Revived,
    /// It was made just now.
    Made,
}

/// An answer that tells something about a job.
#[derive(Clone, Copy)]
pub(super) struct Sight {
    pub(super) called: Place,
    pub(super) answered: Place,
    pub(super) fact: Fact,
}

/// A task in the answer of a read.
#[derive(Clone, Copy)]
pub(super) struct TaskSight {
    pub(super) called: Place,
    pub(super) answered: Place,
    pub(super) state: TaskState,
    pub(super) attempt: u32,
}

/// What was seen of a job.
#[derive(Default)]
pub(super) struct JobTrace {
    /// In the order of the answers.
    pub(super) sights: Vec<Sight>,
    pub(super) ends: Ends<JobState>,
    /// Calls that were told that it does not exist: where they began.
    pub(super) not_found: Vec<Place>,
    /// When it was heard of first.
    pub(super) known: Option<Place>,
    /// When a cancel was first answered as done.
    pub(super) cancelled: Option<Place>,
    revivals: Vec<Span>,
}

impl JobTrace {
    /// Whether a revival may have taken effect between two places.
    pub(super) fn may_have_revived(&self, from: Place, until: Place) -> bool {
        self.revivals.iter().any(|revival| revival.from < until && revival.until > from)
    }

    /// Whether a revival may have taken effect at all.
    pub(super) fn may_have_been_revived(&self) -> bool {
        !self.revivals.is_empty()
    }

    fn hear(&mut self, asked: &Asked<'_>, fact: Fact) {
        self.known.get_or_insert(asked.answered);
        self.sights.push(Sight { called: asked.called, answered: asked.answered, fact });
        if let Fact::In(state) = fact
            && state.is_terminal()
        {
            self.ends.hear(state, asked.called, asked.answered);
        }
    }
}

/// What was seen of a task.
#[derive(Default)]
pub(super) struct TaskTrace {
    /// In the order of the answers.
    pub(super) sights: Vec<TaskSight>,
    pub(super) ends: Ends<TaskState>,
    /// Where a read began that saw it over, and at which attempt.
    pub(super) over: Known<(Place, u32)>,
    /// The highest attempt that a read saw.
    pub(super) seen: Known<u32>,
    /// The highest attempt that a handler started.
    pub(super) started: Known<u32>,
    /// Every start and its attempt.
    pub(super) starts: Vec<(Place, u32)>,
}

/// What was seen of a run.
#[derive(Default)]
pub(super) struct RunTrace<'a> {
    pub(super) starts: u32,
    pub(super) finishes: u32,
    pub(super) aborts: u32,
    /// Where it finished first.
    pub(super) finished: Place,
    /// What it gave then.
    pub(super) output: Option<&'a Json>,
}

/// A job at the end, its tasks by index.
pub(super) struct Ended<'a> {
    pub(super) job: &'a LastJob,
    pub(super) tasks: HashMap<u32, &'a LastTask>,
}

/// The history by names.
pub(super) struct Trace<'a> {
    /// In the order in which they were called.
    pub(super) calls: Vec<Asked<'a>>,
    pub(super) jobs: HashMap<JobId, JobTrace>,
    pub(super) tasks: HashMap<TaskId, TaskTrace>,
    pub(super) runs: HashMap<Run, RunTrace<'a>>,
    pub(super) last: HashMap<JobId, Ended<'a>>,
    nothing: JobTrace,
}

impl<'a> Trace<'a> {
    pub(super) fn new(history: &'a History, last: &'a LastWord) -> Self {
        let ended = |job: &'a LastJob| {
            (job.id, Ended { job, tasks: job.tasks.iter().map(|task| (task.index, task)).collect() })
        };
        let mut trace = Trace {
            calls: vec![],
            jobs: HashMap::new(),
            tasks: HashMap::new(),
            runs: HashMap::new(),
            last: last.jobs.iter().map(ended).collect(),
            nothing: JobTrace::default(),
        };
        let mut open: HashMap<CallId, usize> = HashMap::new();
        for (place, (_, event)) in history.events.iter().enumerate() {
            match event {
                Event::Called { id, call } => {
                    open.insert(*id, trace.calls.len());
                    trace.calls.push(Asked { call, called: place, answer: &Answer::Unknown, answered: END });
                }
                Event::Answered { id, answer } => {
                    let Some(asked) = open.remove(id).map(|at| &mut trace.calls[at]) else { continue };
                    (asked.answer, asked.answered) = (answer, place);
                    hear(asked, &mut trace.jobs, &mut trace.tasks);
                }
                Event::Started { run, .. } => {
                    trace.runs.entry(*run).or_default().starts += 1;
                    let task = trace.tasks.entry(run.task).or_default();
                    task.started.hear(place, run.attempt);
                    task.starts.push((place, run.attempt));
                }
                Event::Finished { run, output } => {
                    let run = trace.runs.entry(*run).or_default();
                    run.finishes += 1;
                    if run.finishes == 1 {
                        (run.finished, run.output) = (place, output.as_ref());
                    }
                }
                Event::Aborted { run } => trace.runs.entry(*run).or_default().aborts += 1,
                Event::FaultBegan { .. } | Event::FaultEnded { .. } => {}
            }
        }
        for asked in &trace.calls {
            if let (Call::Revive { job }, Some(effect)) = (asked.call, asked.effect()) {
                trace.jobs.entry(*job).or_default().revivals.push(effect);
            }
        }
        trace
    }

    /// What was seen of a job; nothing, if nobody asked for it.
    pub(super) fn job(&self, id: JobId) -> &JobTrace {
        self.jobs.get(&id).unwrap_or(&self.nothing)
    }

    /// A task at the end.
    pub(super) fn last_task(&self, id: TaskId) -> Option<&'a LastTask> {
        self.last.get(&id.job)?.tasks.get(&id.index).copied()
    }

    /// A job, for people.
    pub(super) fn name(&self, id: JobId) -> String {
        match self.last.get(&id).and_then(|ended| ended.job.key.as_ref()) {
            Some(key) => format!("job {id} (key {key})"),
            None => format!("job {id}"),
        }
    }

    /// A task, for people.
    pub(super) fn task_name(&self, id: TaskId) -> String {
        let job = self.name(id.job);
        match self.last_task(id) {
            Some(task) => format!("task {} ({}) of {job}", id.index, task.name),
            None => format!("task {} of {job}", id.index),
        }
    }
}

/// Takes in what an answer tells.
fn hear(asked: &Asked<'_>, jobs: &mut HashMap<JobId, JobTrace>, tasks: &mut HashMap<TaskId, TaskTrace>) {
    let (called, answered) = (asked.called, asked.answered);
    let id = match (asked.call, asked.answer) {
        (Call::Submit { .. }, Answer::Acked { job, .. }) => *job,
        (Call::Submit { .. }, _) => return,
        (
            Call::Read { job }
            | Call::Cancel { job }
            | Call::Pause { job }
            | Call::Resume { job }
            | Call::Revive { job },
            _,
        ) => *job,
    };
    let job = jobs.entry(id).or_default();
    match (asked.call, asked.answer) {
        (_, Answer::Acked { created: true, .. }) => job.hear(asked, Fact::Made),
        (_, Answer::Acked { created: false, .. }) => job.hear(asked, Fact::HoldsKey),
        (_, Answer::NotFound) => job.not_found.push(called),
        (_, Answer::Seen(seen)) => {
            job.hear(asked, Fact::In(seen.state));
            for seen in &seen.tasks {
                let task = tasks.entry(TaskId { job: id, index: seen.index }).or_default();
                let (state, attempt) = (seen.state, seen.attempt);
                task.sights.push(TaskSight { called, answered, state, attempt });
                task.seen.hear(answered, attempt);
                if state.is_terminal() {
                    task.ends.hear(state, called, answered);
                    task.over.hear(answered, (called, attempt));
                }
            }
        }
        (Call::Cancel { .. }, Answer::Done) => {
            // Only a job that has not ended can be cancelled, so this call ended it.
            job.hear(asked, Fact::In(JobState::Cancelled));
            job.cancelled.get_or_insert(answered);
        }
        (Call::Pause { .. } | Call::Resume { .. }, Answer::Done) => job.hear(asked, Fact::Live),
        (Call::Revive { .. }, Answer::Done) => job.hear(asked, Fact::Revived),
        (Call::Submit { .. } | Call::Read { .. }, Answer::Done) => {}
        (_, Answer::Refused | Answer::Failed | Answer::Unknown) => {}
    }
}
