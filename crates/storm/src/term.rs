//! `storm term`: workers are asked to end under load, as a deploy does. It may cost nothing.

use crate::feed::{Feed, moments};
use crate::report::Report;
use crate::tools::{Tools, Worker};
use crate::world::{Ending, Settings, World};
use crate::{Failure, Options, load};
use orchestrator_history::{Finding, Kind, Rules};
use rustix::process::Signal;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long workers may take to stop. Shorter than the slowest request, so that some work is given back.
const GRACE: Duration = Duration::from_secs(1);
/// To give back what runs, and to close the store, on a busy machine.
const MARGIN: Duration = Duration::from_secs(4);
/// One that has not ended then hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Runs it.
pub async fn run(options: &Options, terms: u64, over: Duration) -> Result<Report, Failure> {
    // Leases far longer than any pause of the machine: whatever is lost was lost by a worker's end.
    let settings = Settings { name: "term", lease_ttl: Duration::from_secs(120), grace: GRACE, db: None };
    let mut world = World::start(options, &settings).await?;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let (progress, submitted) = watch::channel(0);
    let ender = Ender {
        tools: world.tools.clone(),
        workers: world.workers()?,
        moments: moments(&mut rng, terms, options.jobs),
        findings: vec![],
        slowest: Duration::ZERO,
    };
    let ending = tokio::spawn(ender.run(submitted));
    world.operate();
    let mut submitter = world.submitter();
    Feed { over, kills: VecDeque::new(), progress }.run(&mut world, &mut submitter).await?;
    submitter.finish().await?;
    let ender = ending.await??;
    let ending = Ending {
        rules: Rules { limits: load::limits(), no_crashes: true },
        faults: vec![("SIGTERMs", terms)],
        findings: ender.findings,
        notes: vec![format!(
            "the slowest ended {:.2} s after it was asked, with a grace of {GRACE:?}",
            ender.slowest.as_secs_f64()
        )],
    };
    world.finish(ender.workers, ending).await
}

struct Ender {
    tools: Tools,
    workers: Vec<Worker>,
    moments: VecDeque<u64>,
    findings: Vec<Finding>,
    slowest: Duration,
}

impl Ender {
    async fn run(mut self, mut submitted: watch::Receiver<u64>) -> Result<Ender, Failure> {
        for (n, moment) in std::mem::take(&mut self.moments).into_iter().enumerate() {
            // The last moment comes before the last job, so it cannot be missed.
            if submitted.wait_for(|submitted| *submitted >= moment).await.is_err() {
                break;
            }
            // In turn: one that has just started may not listen yet.
            let number = n % self.workers.len();
            let worker = &mut self.workers[number];
            let asked = Instant::now();
            worker.signal(Signal::TERM);
            let code = worker.end_within(HANGS).await?;
            let took = asked.elapsed();
            self.slowest = self.slowest.max(took);
            if code != Some(0) || took > GRACE + MARGIN {
                let what = format!(
                    "worker {number} ended with {code:?}, {took:?} after SIGTERM with a grace of {GRACE:?}"
                );
                self.findings.push(Finding { kind: Kind::Wrong, what });
                worker.kill().await?;
            }
            self.workers[number] = self.tools.worker(number)?;
        }
        Ok(self)
    }
}
