//! `storm stop`: workers are frozen for longer than their leases hold, then go on as if nothing had happened.

use crate::feed::Feed;
use crate::report::Report;
use crate::tools::Worker;
use crate::world::{Ending, Settings, World};
use crate::{Failure, Options};
use rustix::process::Signal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// For so many times the span of a lease.
const FROZEN: u32 = 3;

/// Runs it.
pub async fn run(options: &Options, stops: u64, lease_ttl: Duration) -> Result<Report, Failure> {
    let settings = Settings { name: "stop", lease_ttl, grace: Duration::from_secs(5), db: None };
    let mut world = World::start(options, &settings).await?;
    // A third of the workers go on, so that somebody takes over.
    let frozen = Arc::new(Semaphore::new((options.workers * 2 / 3).max(1)));
    let number = options.workers as u64;
    let mut freezing = vec![];
    for (n, worker) in (0..).zip(world.workers()?) {
        let freezer = Freezer {
            worker,
            stops: stops / number + u64::from(n < stops % number),
            lease_ttl,
            frozen: frozen.clone(),
            rng: fastrand::Rng::with_seed(options.seed ^ n),
        };
        freezing.push(tokio::spawn(freezer.run()));
    }
    world.operate();
    let mut submitter = world.submitter();
    // About as long as the stops take: so many rounds, each a stop and a while at work.
    let rounds = stops.div_ceil(number) as u32;
    let over = lease_ttl * rounds * (2 * FROZEN + 3) / 2;
    let feed = Feed { over, kills: VecDeque::new(), progress: watch::Sender::new(0) };
    feed.run(&mut world, &mut submitter).await?;
    submitter.finish().await?;
    let mut workers = vec![];
    for freezer in freezing {
        workers.push(freezer.await?);
    }
    let notes = vec![format!("each for {FROZEN} times a lease of {lease_ttl:?}")];
    let ending = Ending { faults: vec![("stops", stops)], notes, ..Ending::default() };
    world.finish(workers, ending).await
}

struct Freezer {
    worker: Worker,
    stops: u64,
    lease_ttl: Duration,
    frozen: Arc<Semaphore>,
    rng: fastrand::Rng,
}

impl Freezer {
    async fn run(mut self) -> Worker {
        for _ in 0..self.stops {
            tokio::time::sleep(self.lease_ttl.mul_f64(0.5 + self.rng.f64() * 1.5)).await;
            // Nobody closes it.
            let _turn = self.frozen.acquire().await;
            self.worker.signal(Signal::STOP);
            tokio::time::sleep(self.lease_ttl * FROZEN).await;
            self.worker.signal(Signal::CONT);
        }
        self.worker
    }
}
