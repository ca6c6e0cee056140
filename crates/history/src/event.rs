//! The history: events in the order in which one recorder saw them.

use orchestrator_core::{JobId, JobState, Json, LimitKey, TaskId, TaskState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A moment by the recorder's clock, which never goes back. Its unit is the recorder's affair.
pub type Tick = u64;

/// Names one call of a client; handed out by [`History::call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// To take a job in.
    Submit {
        /// The client's key, unique among the works of this history: the same key is the same work.
        key: Arc<str>,
        /// What goes with it.
        payload: Json,
    },
    /// To look at a job.
    Read {
        /// The job.
        job: JobId,
    },
    /// To end a job.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// To start nothing new of a job.
    Pause {
        /// The job.
        job: JobId,
    },
    /// To go on with a job.
    Resume {
        /// The job.
        job: JobId,
    },
    /// To run an ended job again, or what failed of it: a retry, a recovery, a requeued dead letter.
    Revive {
        /// The job.
        job: JobId,
    },
}

/// What a client heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A submit was taken: this job stands for it now.
    Acked {
        /// The job.
        job: JobId,
        /// Whether this very call made it.
        created: bool,
    },
    /// A read found the job so.
    Seen(Seen),
    /// A read found no such job.
    NotFound,
    /// A command was carried out.
    Done,
    /// A command makes no sense in the job's state, which stays as it is. The call itself worked.
    Refused,
    /// The call failed, and for certain had no effect.
    Failed,
    /// Nobody knows whether it had an effect: no answer came, the client was killed, or the answer says so.
    Unknown,
}

/// A job as a read found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its state.
    pub state: JobState,
    /// Those of its tasks that have started or ended, where the read tells.
    pub tasks: Vec<SeenTask>,
}

/// A task as a read found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTask {
    /// Its place in the job.
    pub index: u32,
    /// Its state.
    pub state: TaskState,
    /// The number of its last attempt.
    pub attempt: u32,
}

/// One run of a handler: an attempt at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A client asks.
    Called {
        /// Its name.
        id: CallId,
        /// What for.
        call: Call,
    },
    /// The answer. A call without one is [`Answer::Unknown`].
    Answered {
        /// Which call.
        id: CallId,
        /// What was heard.
        answer: Answer,
    },
    /// A handler began to work.
    Started {
        /// On what.
        run: Run,
        /// Under which limits.
        limits: Vec<LimitKey>,
    },
    /// A handler has given its answer. The store may or may not have heard it.
    Finished {
        /// Of what.
        run: Run,
        /// What it gave, if it ended well.
        output: Option<Json>,
    },
    /// A handler is gone without an answer: its process died, or its lease was taken away.
    Aborted {
        /// Of what.
        run: Run,
    },
    /// Something is being broken: until the matching [`Event::FaultEnded`] calls may fail.
    FaultBegan {
        /// What, for people.
        what: Arc<str>,
    },
    /// It works again.
    FaultEnded {
        /// What, for people.
        what: Arc<str>,
    },
}

/// Everything that was seen, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The events and when they were seen.
    pub events: Vec<(Tick, Event)>,
    calls: u64,
}

impl History {
    /// Nothing yet.
    pub fn new() -> Self {
        History::default()
    }

    /// Notes something.
    pub fn note(&mut self, at: Tick, event: Event) {
        self.events.push((at, event));
    }

    /// Notes that a client asks, and names the call.
    pub fn call(&mut self, at: Tick, call: Call) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.note(at, Event::Called { id, call });
        id
    }

    /// Notes what the client heard.
    pub fn answer(&mut self, at: Tick, id: CallId, answer: Answer) {
        self.note(at, Event::Answered { id, answer });
    }
}
