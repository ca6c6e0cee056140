//! A run as data: what is set up, what may break by itself, and what is done when.
//!
//! A script is made from a seed (`generate`), shortened (`shrink`), kept as a file and replayed. Nothing else
//! decides what happens in a run, save the streams of [`crate::chance`], which the script's seed names.

use orchestrator_core::flow::JoinRule;
use orchestrator_core::{LimitKey, LimitRule, Priority};
use serde::{Deserialize, Serialize};
use std::fmt;

/// So many errors in a thousand calls cost no lease, if leases are long.
pub const RARE: u16 = 40;
/// A lease that outlasts five errors in a row, in milliseconds.
pub const LONG_LEASE: u64 = 5_500;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Where it comes from; it also names all streams of chance.
    pub seed: u64,
    /// The processes and their store.
    pub settings: Settings,
    /// What breaks by itself.
    pub faults: Faults,
    /// How handlers behave.
    pub handlers: Habits,
    /// What is done, in order of time.
    pub steps: Vec<Step>,
}

impl Script {
    /// Whether nothing in it can cost a lease or an answer: only load, operators and graceful restarts.
    pub fn is_calm(&self) -> bool {
        self.faults == Faults::default() && self.is_harmless()
    }

    /// Whether no lease may run out: at most, a call fails now and then, and is repeated.
    pub fn keeps_leases(&self) -> bool {
        let rare = Faults { error: self.faults.error.min(RARE), ..Faults::default() };
        self.faults == rare && self.is_harmless() && self.settings.lease_ttl >= LONG_LEASE || self.is_calm()
    }

    fn is_harmless(&self) -> bool {
        !self.steps.iter().any(|step| step.action.is_harm())
    }
}

/// The processes and their store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How many processes share the store.
    pub replicas: u8,
    /// Tasks that each runs at once.
    pub workers: u8,
    /// See `PoolConfig::lease_ttl`; all spans are in milliseconds.
    pub lease_ttl: u64,
    /// See `PoolConfig::heartbeat`.
    pub heartbeat: u64,
    /// See `PoolConfig::grace`.
    pub grace: u64,
    /// See `PoolConfig::cancel_grace`.
    pub cancel_grace: u64,
    /// See `PoolConfig::watch`.
    pub watch: u64,
    /// See `PoolConfig::prefetch`: how far ahead, and at most how many.
    pub prefetch: (u64, usize),
    /// See `EngineConfig::poll_every`.
    pub poll: u64,
    /// See `EngineConfig::sweep_every`.
    pub sweep: u64,
    /// See `EngineConfig::sweep_page`.
    pub sweep_page: u32,
    /// Whether a process hears of what others changed, or has to poll.
    pub hints: bool,
    /// The longest that a healthy call takes.
    pub latency: u64,
    /// The limit rules at the start.
    pub limits: Vec<(LimitKey, LimitRule)>,
}

/// What breaks by itself: how often in a thousand calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// A verb fails and did nothing.
    pub error: u16,
    /// A verb took effect, and its caller hears that nobody knows.
    pub unknown_after: u16,
    /// A verb did nothing, and its caller hears that nobody knows.
    pub unknown_before: u16,
    /// A verb takes seconds.
    pub slow: u16,
    /// A verb takes longer than a lease.
    pub stall: u16,
    /// A settlement arrives once more, later.
    pub duplicate: u16,
    /// A hint that work may be ready gets lost.
    pub lost_hint: u16,
}

/// How handlers behave: how often in a thousand attempts. The rest completes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Habits {
    /// Fails, with any class.
    pub fail: u16,
    /// Panics.
    pub panic: u16,
    /// Hangs until its token fires.
    pub hang: u16,
    /// Hangs for ever.
    pub deaf: u16,
    /// Does one leg and asks for another.
    pub leg: u16,
    /// Says that there is nothing to do.
    pub skip: u16,
    /// Gives the task back.
    pub give_back: u16,
    /// Brings more than a pool hands in.
    pub too_large: u16,
    /// Takes longer than a lease holds without a heartbeat.
    pub long: u16,
    /// What any other takes at most, in milliseconds.
    pub span: u64,
}

/// One thing that is done at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, in milliseconds from the start.
    pub at: u64,
    /// What.
    pub action: Action,
}

/// What is done. Jobs go by the number that their submit gave them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Somebody submits a job through a process.
    Submit {
        /// The job's number, by which other actions name it.
        job: u32,
        /// The process.
        via: u8,
        /// What is submitted.
        what: NewWork,
    },
    /// Somebody asks something of a job.
    Ask {
        /// What.
        what: Wish,
        /// Of which job.
        job: u32,
        /// Through which process.
        via: u8,
    },
    /// Somebody looks through the dead letters and takes one up.
    DeadLetter {
        /// Which one, counted round.
        nth: u32,
        /// To run it again, or to put it away.
        requeue: bool,
        /// Through which process.
        via: u8,
    },
    /// Somebody waits for the end of a job.
    Wait {
        /// Which one.
        job: u32,
        /// Through which process.
        via: u8,
        /// At most so long.
        limit: Option<u64>,
    },
    /// Somebody looks at a job.
    Read {
        /// Which one.
        job: u32,
        /// Through which process.
        via: u8,
    },
    /// An operator writes or strikes a limit rule.
    Limit {
        /// Of which key.
        key: LimitKey,
        /// The rule.
        rule: Option<LimitRule>,
        /// Through which process.
        via: u8,
    },
    /// A process ends in good order, and another one takes its place.
    Restart {
        /// Which one.
        replica: u8,
        /// How long its tasks may go on.
        grace: u64,
        /// How long until the next one starts.
        down: u64,
    },
    /// A process is killed.
    Kill {
        /// Which one.
        replica: u8,
        /// How long until the next one starts.
        down: u64,
    },
    /// A process stands still, and then goes on.
    Freeze {
        /// Which one.
        replica: u8,
        /// For how long.
        span: u64,
    },
    /// The store's clock is set.
    Jump {
        /// By how much, in milliseconds.
        by: i64,
    },
    /// The store answers nobody for a while.
    Outage {
        /// For how long.
        span: u64,
        /// Calls take until the end of it, instead of failing.
        hang: bool,
    },
}

impl Action {
    /// Whether it may cost a lease or an answer.
    pub fn is_harm(&self) -> bool {
        matches!(
            self,
            Action::Kill { .. } | Action::Freeze { .. } | Action::Jump { .. } | Action::Outage { .. }
        )
    }

    /// The word for it in figures.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Submit { .. } => "submit",
            Action::Ask { what, .. } => what.word(),
            Action::DeadLetter { requeue: true, .. } => "requeue",
            Action::DeadLetter { requeue: false, .. } => "discard",
            Action::Wait { .. } => "wait",
            Action::Read { .. } => "read",
            Action::Limit { .. } => "set limit",
            Action::Restart { .. } => "graceful restart",
            Action::Kill { .. } => "kill",
            Action::Freeze { .. } => "freeze",
            Action::Jump { by } if *by < 0 => "clock jump back",
            Action::Jump { .. } => "clock jump forward",
            Action::Outage { hang: true, .. } => "outage (hangs)",
            Action::Outage { hang: false, .. } => "outage (fails)",
        }
    }
}

/// What is asked of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// To end.
    Cancel,
    /// To pause.
    Pause,
    /// To go on.
    Resume,
    /// To run again what failed.
    Retry,
    /// To be taken up again, from a task of this number or from what went wrong.
    Recover(Option<u8>),
}

impl Wish {
    /// The word for it in figures.
    pub fn word(&self) -> &'static str {
        match self {
            Wish::Cancel => "cancel",
            Wish::Pause => "pause",
            Wish::Resume => "resume",
            Wish::Retry => "retry",
            Wish::Recover(_) => "recover",
        }
    }
}

/// A job to submit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewWork {
    /// Its idempotency key; jobs with the same number have the same key.
    pub key: Option<u32>,
    /// Tells payloads apart.
    pub payload: u32,
    /// Whose it is: one of a few tenants.
    pub tenant: u8,
    /// How urgent it is.
    pub priority: Priority,
    /// Not before so many milliseconds from its submit.
    pub run_in: Option<u64>,
    /// Not before these jobs, by number, have completed.
    pub after: Vec<u32>,
    /// What is to be done.
    pub shape: Shape,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One task in a queue.
    Task(TaskShape),
    /// A flow.
    Flow {
        /// Its deadline, in milliseconds.
        deadline: Option<u64>,
        /// How often it may be recovered.
        recoveries: u32,
        /// Its tasks; they need only those before them.
        tasks: Vec<TaskShape>,
    },
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskShape {
    /// Which of the few handlers runs it; the last one has a queue of its own.
    pub handler: u8,
    /// The tasks that it needs, by their place. None in a queue's job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<u8>,
    /// When it may start.
    #[serde(default, skip_serializing_if = "Join::is_default")]
    pub join: Join,
    /// Whether the flow goes on without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Skipped unless the payload's number divides by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<u32>,
    /// One task per item: how many, and how many at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<(u32, Option<u32>)>,
    /// The limit keys under which it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitKey>,
    /// How often it is tried again.
    pub retries: u32,
    /// How long an attempt may take.
    pub timeout: Option<u64>,
    /// How often its worker may vanish.
    pub crashes: u32,
}

/// A join rule, as a word in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// See [`JoinRule::AllCompleted`].
    #[default]
    AllCompleted,
    /// See [`JoinRule::AllDone`].
    AllDone,
    /// See [`JoinRule::AnyFailed`].
    AnyFailed,
}

impl Join {
    fn is_default(&self) -> bool {
        *self == Join::default()
    }
}

impl From<Join> for JoinRule {
    fn from(join: Join) -> JoinRule {
        match join {
            Join::AllCompleted => JoinRule::AllCompleted,
            Join::AllDone => JoinRule::AllDone,
            Join::AnyFailed => JoinRule::AnyFailed,
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {:?}", self.seed, self.settings)?;
        writeln!(f, "{:?}", self.faults)?;
        writeln!(f, "{:?}", self.handlers)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { at, action } = self;
        write!(f, "{:>9.3} s  {:<17} ", *at as f64 / 1000.0, action.word())?;
        match action {
            Action::Submit { job, via, what } => write!(f, "job {job} via {via}: {what:?}"),
            Action::Ask { what: Wish::Recover(Some(from)), job, via } => {
                write!(f, "job {job} from task {from} via {via}")
            }
            Action::Ask { job, via, .. } | Action::Read { job, via } => write!(f, "job {job} via {via}"),
            Action::DeadLetter { nth, via, .. } => write!(f, "dead letter {nth} via {via}"),
            Action::Wait { job, via, limit } => write!(f, "job {job} via {via}, limit {limit:?}"),
            Action::Limit { key, rule, via } => write!(f, "{key} {rule:?} via {via}"),
            Action::Restart { replica, grace, down } => {
                write!(f, "replica {replica}, grace {grace} ms, down {down} ms")
            }
            Action::Kill { replica, down } => write!(f, "replica {replica}, down {down} ms"),
            Action::Freeze { replica, span } => write!(f, "replica {replica} for {span} ms"),
            Action::Jump { by } => write!(f, "by {by} ms"),
            Action::Outage { span, .. } => write!(f, "for {span} ms"),
        }
    }
}
