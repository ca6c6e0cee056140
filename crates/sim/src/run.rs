//! One run from its script to its verdict: the script, healing, the drain, the end.
//!
//! Everything happens in one thread on virtual time, so a script always runs the same way.

use crate::client::Client;
use crate::fleet::Fleet;
use crate::last::last_word;
use crate::oracle::Violation;
use crate::panics;
use crate::rules::ends_follow_the_rules;
use crate::script::{Action, Script};
use crate::tally::Tally;
use crate::world::{Outage, Remains, World};
use orchestrator_core::{JobState, LimitRule};
use orchestrator_history::{Event, Kind, Rules, check};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// So long may nothing happen, in virtual time, before what has not ended is stuck. Longer than any wait that a
/// script can ask for.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How long clients may still wait when everything has ended.
const LAST_LOOK: Duration = Duration::from_secs(120);

/// The longest that a call may still be on its way when the faults end.
const ON_THE_WAY: Duration = Duration::from_secs(60);

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What went wrong first.
    pub violation: Option<Violation>,
    /// The trace, where it was asked for.
    pub lines: Vec<String>,
    /// A digest of the whole trace, where it was asked for.
    pub digest: u64,
    /// What was exercised.
    pub tally: Tally,
}

/// Runs a script.
pub fn run(script: &Script, trace: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing that can fail");
    let watch = panics::watch();
    let Remains { mut violation, lines, digest, tally } = runtime.block_on(async {
        let world = Arc::new(World::new(script.clone(), trace));
        Director::new(world.clone()).direct().await;
        world.close()
    });
    drop(runtime);
    if let Some(panic) = watch.first() {
        // Whatever else went wrong most likely follows from it.
        violation = Some(Violation::new("panic", panic));
    }
    Outcome { violation, lines, digest, tally }
}

struct Director {
    world: Arc<World>,
    fleet: Arc<Fleet>,
    client: Client,
    /// What is under way: calls of clients, and processes that come back.
    errands: JoinSet<()>,
    waits: JoinSet<()>,
}

impl Director {
    fn new(world: Arc<World>) -> Self {
        let fleet = Arc::new(Fleet::new(world.clone()));
        let client = Client { world: world.clone(), fleet: fleet.clone() };
        Director { world, fleet, client, errands: JoinSet::new(), waits: JoinSet::new() }
    }

    async fn direct(&mut self) {
        let over = self.world.over.clone();
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            judged = self.play() => {
                if let Err(violation) = judged {
                    self.world.fail(violation);
                }
            }
        }
    }

    async fn play(&mut self) -> Result<(), Violation> {
        let calm = self.world.script.is_calm();
        self.world.count("runs", if calm { "calm" } else { "with faults" });
        if !calm {
            self.world.note(Event::FaultBegan { what: "the script".into() });
        }
        (0..self.fleet.size()).for_each(|replica| self.fleet.start(replica));
        for (key, rule) in self.world.script.settings.limits.clone() {
            self.client.clone().limit(key, Some(rule), 0).await;
        }
        self.perform().await;
        self.heal().await;
        self.drain().await?;
        self.finish().await
    }

    async fn perform(&mut self) {
        let start = Instant::now();
        for step in self.world.script.steps.clone() {
            sleep_until(start + Duration::from_millis(step.at)).await;
            self.world.trace("--", || step.to_string().trim_start().to_owned());
            self.world.count("actions", step.action.word());
            self.act(step.action);
        }
    }

    fn act(&mut self, action: Action) {
        let client = self.client.clone();
        let fleet = self.fleet.clone();
        match action {
            Action::Submit { job, via, what } => {
                self.errands.spawn(client.submit(job, via, what));
            }
            Action::Ask { what, job, via } => {
                self.errands.spawn(client.ask(what, job, via));
            }
            Action::DeadLetter { nth, requeue, via } => {
                self.errands.spawn(client.dead_letter(nth, requeue, via));
            }
            Action::Wait { job, via, limit } => {
                self.waits.spawn(client.wait(job, via, limit));
            }
            Action::Read { job, via } => {
                self.errands.spawn(client.read(job, via));
            }
            Action::Limit { key, rule, via } => {
                self.errands.spawn(client.limit(key, rule, via));
            }
            Action::Restart { replica, grace, down } => {
                self.errands.spawn(async move { fleet.restart(replica, grace, down).await });
            }
            Action::Kill { replica, down } => {
                self.errands.spawn(async move { fleet.kill_and_start(replica, down).await });
            }
            Action::Freeze { replica, span } => self.fleet.freeze(replica, span),
            Action::Jump { by } => self.world.jump(by),
            Action::Outage { span, hang } => {
                let until = Instant::now() + Duration::from_millis(span);
                self.world.begin_outage(Outage { until, hang });
            }
        }
    }

    /// Ends every fault, and takes back what operators left lying.
    async fn heal(&mut self) {
        self.world.heal();
        self.world.trace("--", || "all faults end".to_owned());
        while self.errands.join_next().await.is_some() {}
        (0..self.fleet.size()).for_each(|replica| self.fleet.start(replica));
        if !self.world.script.is_calm() {
            self.world.note(Event::FaultEnded { what: "the script".into() });
        }
        for key in self.world.ask(|oracle| oracle.stopped_keys()) {
            self.client.clone().limit(key, Some(LimitRule::at_most(1)), 0).await;
        }
        let paused = |state: JobState| matches!(state, JobState::Pausing | JobState::Paused);
        let stopped = self.world.store.inspect(|model| {
            model.states().filter(|(_, state)| paused(*state)).map(|(job, _)| job).collect::<Vec<_>>()
        });
        for job in stopped {
            self.client.resume(job).await;
        }
    }

    /// Lets time pass until every job has ended.
    async fn drain(&mut self) -> Result<(), Violation> {
        let (mut length, mut moved) = (0, Instant::now());
        loop {
            let (open, entries) = self.world.store.inspect(|model| {
                let open = model.states().filter(|(_, state)| !state.is_terminal()).map(|(job, _)| job);
                (open.collect::<Vec<_>>(), model.journal_len())
            });
            if open.is_empty() {
                return Ok(());
            }
            if entries > length {
                (length, moved) = (entries, Instant::now());
            }
            if moved.elapsed() > PATIENCE {
                let jobs = open.iter().filter_map(|job| self.world.store.inspect(|model| model.job(*job)));
                let jobs: Vec<_> = jobs.collect();
                let what =
                    format!("nothing moves any more, and {} jobs have not ended: {jobs:?}", jobs.len());
                return Err(Violation::new("stuck", what));
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Ends the processes, and holds everything against the history.
    async fn finish(&mut self) -> Result<(), Violation> {
        let waits = async { while self.waits.join_next().await.is_some() {} };
        if timeout(LAST_LOOK, waits).await.is_err() {
            let what = format!("{} clients still wait though every job has ended", self.waits.len());
            return Err(Violation::new("wait", what));
        }
        if !self.world.is_healthy() {
            sleep(ON_THE_WAY).await;
            self.world.is_settled();
        }
        let grace = self.world.script.settings.grace;
        let mut ends = JoinSet::new();
        for replica in 0..self.fleet.size() {
            let fleet = self.fleet.clone();
            ends.spawn(async move { fleet.retire(replica, grace).await });
        }
        while ends.join_next().await.is_some() {}
        let used = self.world.store.inspect(|model| model.limits());
        if let Some(limit) = used.iter().find(|limit| limit.running > 0) {
            return Err(Violation::new("leak", format!("{} still has {} running", limit.key, limit.running)));
        }
        self.world.store.inspect(|model| {
            for (_, state) in model.states() {
                self.world.count("ends", end_word(state));
            }
        });
        let last = self.world.store.inspect(last_word);
        self.world.store.inspect(ends_follow_the_rules)?;
        let rules = Rules { no_crashes: self.world.script.keeps_leases(), ..Rules::default() };
        let verdict = check(&self.world.history(), &last, &rules);
        match verdict.findings.first() {
            None => Ok(()),
            Some(finding) => Err(Violation::new(kind_word(finding.kind), finding.what.clone())),
        }
    }
}

fn end_word(state: JobState) -> &'static str {
    match state {
        JobState::Completed => "completed",
        JobState::Failed => "failed",
        JobState::TimedOut => "timed out",
        JobState::Cancelled => "cancelled",
        _ => "open",
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Lost => "history: lost",
        Kind::Doubled => "history: doubled",
        Kind::Stuck => "history: stuck",
        Kind::Wrong => "history: wrong",
        Kind::Unavailable => "history: unavailable",
    }
}
