//! `storm database`: the database restarts, crashes, loses sessions and is cut off under load.

use crate::feed::{Feed, moments};
use crate::heal::{Before, Healed};
use crate::operator::Known;
use crate::postgres::Postgres;
use crate::proxy::Proxy;
use crate::record::Record;
use crate::report::Report;
use crate::tools::{Tools, Worker};
use crate::world::{Ending, Settings, World, ended_by_themselves};
use crate::{Failure, Options, load, out};
use orchestrator_history::Rules;
use pg_harness::{Server, USER};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::watch;

/// The database that is stormed.
const NAME: &str = "storm";
/// For so long the wire is cut, or silent.
const OFF: std::ops::RangeInclusive<u64> = 500..=3000;

/// How often what happens.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Restarts of the server, every other one like a crash.
    pub restarts: u64,
    /// Times that sessions are ended: one of them, or all.
    pub kills: u64,
    /// Times that the wire is cut or goes silent.
    pub cuts: u64,
}

/// Runs it.
pub async fn run(options: &Options, faults: Faults, over: Duration) -> Result<Report, Failure> {
    if options.db.is_some() {
        return Err("storm database breaks a server of its own: leave --db out".into());
    }
    let server = Postgres::launch().await?;
    let make = format!("CREATE DATABASE {NAME} OWNER {USER}");
    server.with(move |server| server.sql("postgres", &make)).await?;
    let proxy = Proxy::start(server.port()).await?;
    let settings = Settings {
        name: "database",
        // No lease may end only because heartbeats cannot be written for a while.
        lease_ttl: Duration::from_secs(20),
        grace: Duration::from_secs(5),
        db: Some(format!("postgres://{USER}@127.0.0.1:{}/{NAME}", proxy.port())),
    };
    let mut world = World::start(options, &settings).await?;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let (progress, submitted) = watch::channel(0);
    let number = faults.restarts + faults.kills + faults.cuts;
    let breaker = Breaker {
        server,
        proxy,
        tools: world.tools.clone(),
        record: world.record.clone(),
        known: world.known.clone(),
        workers: world.workers()?,
        moments: moments(&mut rng, number, options.jobs),
        faults: shuffled(&mut rng, faults),
        rng,
        sessions: 0,
        slowest: Slowest::default(),
        ending: Ending {
            rules: Rules { limits: load::limits(), no_crashes: false },
            faults: vec![
                ("restarts of the server", faults.restarts),
                ("kills of sessions", faults.kills),
                ("cuts and silences", faults.cuts),
            ],
            ..Ending::default()
        },
    };
    let breaking = tokio::spawn(breaker.run(submitted));
    world.operate();
    let mut submitter = world.submitter();
    Feed { over, kills: VecDeque::new(), progress }.run(&mut world, &mut submitter).await?;
    world.feed_on(&mut submitter, &breaking).await?;
    let failed = submitter.ended;
    submitter.finish().await?;
    let mut breaker = breaking.await??;
    breaker.tell(failed);
    world.finish(breaker.workers, breaker.ending).await
}

/// What happens to the database.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The server ends all sessions, writes everything down and starts again.
    Restart,
    /// The server dies and recovers.
    Crash,
    /// One session ends.
    KillOne,
    /// All sessions end.
    KillAll,
    /// All connections are cut, and new ones for a while, too.
    Cut,
    /// Nothing passes for a while.
    Silence,
}

impl Fault {
    fn what(self) -> &'static str {
        match self {
            Fault::Restart => "the server restarted",
            Fault::Crash => "the server crashed",
            Fault::KillOne => "a session was killed",
            Fault::KillAll => "all sessions were killed",
            Fault::Cut => "all connections were cut",
            Fault::Silence => "the wire was silent",
        }
    }
}

/// Every kind in turn, all in random order.
fn shuffled(rng: &mut fastrand::Rng, faults: Faults) -> VecDeque<Fault> {
    let turns = |number: u64, kinds: [Fault; 2]| (0..number as usize).map(move |n| kinds[n % 2]);
    let mut all: Vec<Fault> = turns(faults.restarts, [Fault::Crash, Fault::Restart])
        .chain(turns(faults.kills, [Fault::KillOne, Fault::KillAll]))
        .chain(turns(faults.cuts, [Fault::Cut, Fault::Silence]))
        .collect();
    rng.shuffle(&mut all);
    all.into()
}

/// After which fault it took longest until something went on. The load is held back while much is live, so submits may
/// have waited for that.
#[derive(Default)]
struct Slowest {
    submits: Option<(Duration, Fault)>,
    works: Option<(Duration, Fault)>,
}

impl Slowest {
    fn see(&mut self, healed: Healed, fault: Fault) {
        for (slowest, took) in [(&mut self.submits, healed.submits), (&mut self.works, healed.works)] {
            if let Some(took) = took
                && slowest.is_none_or(|(most, _)| took > most)
            {
                *slowest = Some((took, fault));
            }
        }
    }
}

struct Breaker {
    server: Postgres,
    proxy: Proxy,
    tools: Tools,
    record: Record,
    known: Known,
    workers: Vec<Worker>,
    moments: VecDeque<u64>,
    faults: VecDeque<Fault>,
    rng: fastrand::Rng,
    /// How many sessions were killed.
    sessions: usize,
    slowest: Slowest,
    ending: Ending,
}

impl Breaker {
    async fn run(mut self, mut submitted: watch::Receiver<u64>) -> Result<Breaker, Failure> {
        while let (Some(moment), Some(fault)) = (self.moments.pop_front(), self.faults.pop_front()) {
            // The last moment comes before the last job, so it cannot be missed.
            if submitted.wait_for(|submitted| *submitted >= moment).await.is_err() {
                break;
            }
            self.round(fault).await?;
        }
        Ok(self)
    }

    async fn round(&mut self, fault: Fault) -> Result<(), Failure> {
        self.record.fault_began(fault.what());
        self.strike(fault).await?;
        let before = Before::look(&self.tools, &self.known).await?;
        let healed = Healed::wait(&self.tools, &self.known, before).await?;
        self.record.fault_ended(fault.what());
        out::note(format!("  {}; after that: {healed}", fault.what()));
        self.ending.findings.extend(healed.findings(fault.what()));
        self.ending.findings.extend(ended_by_themselves(&mut self.workers));
        self.slowest.see(healed, fault);
        Ok(())
    }

    /// Breaks something; it is whole again at the end.
    async fn strike(&mut self, fault: Fault) -> Result<(), Failure> {
        let span = Duration::from_millis(self.rng.u64(OFF));
        match fault {
            Fault::Restart => self.server.with(Server::restart).await?,
            Fault::Crash => {
                self.server.with(Server::stop).await?;
                tokio::time::sleep(span).await;
                self.server.with(Server::start_again).await?;
            }
            Fault::KillOne => self.sessions += self.server.with(kill_one).await?,
            Fault::KillAll => self.sessions += self.server.with(Server::kill_backends).await?,
            Fault::Cut => self.proxy.cut(span).await,
            Fault::Silence => self.proxy.fall_silent(span, self.rng.bool()).await,
        }
        Ok(())
    }

    fn tell(&mut self, failed: u64) {
        self.ending.notes.push(format!("{} sessions killed, {failed} submits failed", self.sessions));
        for (what, slowest) in [("work", self.slowest.works), ("submits", self.slowest.submits)] {
            if let Some((took, fault)) = slowest {
                let took = took.as_secs_f64();
                self.ending.notes.push(format!("slowest: {what} went on {took:.2} s after {}", fault.what()));
            }
        }
    }
}

/// Ends one session of ours, whichever.
fn kill_one(server: &Server) -> usize {
    let sql = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
            WHERE usename = '{USER}' ORDER BY random() LIMIT 1) a"
    );
    server.sql("postgres", &sql).trim().parse().unwrap_or(0)
}
