//! `storm kill`, `storm replicas` and `storm remote`: workers, the submitter and the servers between them, where there are any,
//! are killed at random moments.

use crate::feed::{Feed, moments};
use crate::record::Record;
use crate::report::Report;
use crate::tools::{Tools, Worker};
use crate::world::{Ending, Settings, World, ended_by_itself};
use crate::{Failure, Options, load};
use orchestrator_history::{Finding, Rules};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::watch;

/// Of so many kills one hits the submitter.
const SUBMITTER_ONE_IN: u64 = 4;
/// Of so many other kills one hits a server, where there are any.
const SERVER_ONE_IN: usize = 3;

const SERVER_KILLED: &str = "a server is killed";

/// Runs it under a name.
pub async fn run(
    name: &'static str,
    options: &Options,
    kills: u64,
    over: Duration,
) -> Result<Report, Failure> {
    let settings =
        Settings { name, lease_ttl: Duration::from_secs(2), grace: Duration::from_secs(5), db: None };
    let mut world = World::start(options, &settings).await?;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let of_submitter = kills / SUBMITTER_ONE_IN;
    let (progress, submitted) = watch::channel(0);
    let killer = Killer {
        tools: world.tools.clone(),
        record: world.record.clone(),
        workers: world.workers()?,
        servers: world.take_servers(),
        moments: moments(&mut rng, kills - of_submitter, options.jobs),
        rng: rng.fork(),
        killed: 0,
        servers_killed: 0,
        findings: vec![],
    };
    let killing = tokio::spawn(killer.run(submitted));
    world.operate();
    let mut submitter = world.submitter();
    let feed = Feed { over, kills: moments(&mut rng, of_submitter, options.jobs), progress };
    let submitter_kills = feed.run(&mut world, &mut submitter).await?;
    submitter.finish().await?;
    let killer = killing.await??;
    let mut faults = vec![("kills of workers", killer.killed), ("kills of the submitter", submitter_kills)];
    if !killer.servers.is_empty() {
        faults.push(("kills of servers", killer.servers_killed));
    }
    let ending = Ending {
        rules: Rules { limits: load::limits(), no_crashes: false },
        faults,
        findings: killer.findings,
        ..Ending::default()
    };
    world.put_servers(killer.servers);
    world.finish(killer.workers, ending).await
}

struct Killer {
    tools: Tools,
    record: Record,
    workers: Vec<Worker>,
    servers: Vec<Worker>,
    moments: VecDeque<u64>,
    rng: fastrand::Rng,
    killed: u64,
    servers_killed: u64,
    findings: Vec<Finding>,
}

impl Killer {
    /// Kills at each moment, and starts each anew.
    async fn run(mut self, mut submitted: watch::Receiver<u64>) -> Result<Killer, Failure> {
        while let Some(moment) = self.moments.pop_front() {
            // The last moment comes before the last job: it cannot be missed, and the sender outlives it.
            if submitted.wait_for(|submitted| *submitted >= moment).await.is_err() {
                break;
            }
            // Not always just after an answer to the submitter.
            tokio::time::sleep(Duration::from_micros(self.rng.u64(0..50_000))).await;
            if !self.servers.is_empty() && self.rng.usize(0..SERVER_ONE_IN) == 0 {
                self.kill_server().await?;
            } else {
                self.kill_worker().await?;
            }
        }
        Ok(self)
    }

    async fn kill_worker(&mut self) -> Result<(), Failure> {
        let worker = self.rng.usize(0..self.workers.len());
        if !self.workers[worker].kill().await? {
            self.findings.push(ended_by_itself("worker", worker));
        }
        self.killed += 1;
        self.rest().await;
        self.workers[worker] = self.tools.worker(worker)?;
        Ok(())
    }

    async fn kill_server(&mut self) -> Result<(), Failure> {
        let server = self.rng.usize(0..self.servers.len());
        self.record.fault_began(SERVER_KILLED);
        if !self.servers[server].kill().await? {
            self.findings.push(ended_by_itself("server", server));
        }
        self.servers_killed += 1;
        self.rest().await;
        self.servers[server] = self.tools.serve(server)?;
        self.tools.until_served().await?;
        self.record.fault_ended(SERVER_KILLED);
        Ok(())
    }

    /// Every other time it comes back only after a while.
    async fn rest(&mut self) {
        if self.rng.bool() {
            tokio::time::sleep(Duration::from_millis(self.rng.u64(0..400))).await;
        }
    }
}
