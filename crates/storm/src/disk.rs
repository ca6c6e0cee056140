//! `storm disk`: the disk fills up under load, and has room again after a while.

use crate::feed::{Feed, moments};
use crate::heal::{Before, Healed};
use crate::operator::Known;
use crate::report::Report;
use crate::tmpfs::SmallDisk;
use crate::tools::{Tools, Worker};
use crate::world::{Ending, Settings, World, ended_by_themselves};
use crate::{Failure, Options, load, out};
use orchestrator_history::{Finding, Kind, Rules};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The disk stays full for so long.
const FULL: Duration = Duration::from_secs(3);
/// What frees itself meanwhile is taken too, so often.
const TOP_UP: Duration = Duration::from_millis(50);
const WHAT: &str = "the disk is full";

/// Runs it; `None` where no small disk can be had.
pub async fn run(
    options: &Options,
    rounds: u64,
    megabytes: u64,
    over: Duration,
) -> Result<Option<Report>, Failure> {
    if options.db.is_some() || options.postgres {
        return Err(
            "storm disk puts an SQLite file on a small disk of its own: leave --db and --postgres out".into(),
        );
    }
    let Some(disk) = SmallDisk::mount(megabytes)? else { return Ok(None) };
    let disk = Arc::new(disk);
    let settings = Settings {
        name: "disk",
        // No lease may end only because heartbeats cannot be written for a while.
        lease_ttl: Duration::from_secs(10),
        grace: Duration::from_secs(5),
        db: Some(disk.path("storm.db").display().to_string()),
    };
    let mut world = World::start(options, &settings).await?;
    let (progress, submitted) = watch::channel(0);
    let filler = Filler {
        disk: disk.clone(),
        tools: world.tools.clone(),
        record: world.record.clone(),
        known: world.known.clone(),
        workers: world.workers()?,
        moments: moments(&mut fastrand::Rng::with_seed(options.seed), rounds, options.jobs),
        ending: Ending {
            rules: Rules { limits: load::limits(), no_crashes: false },
            faults: vec![("full disks", rounds)],
            ..Ending::default()
        },
    };
    let filling = tokio::spawn(filler.run(submitted));
    world.operate();
    let mut submitter = world.submitter();
    Feed { over, kills: VecDeque::new(), progress }.run(&mut world, &mut submitter).await?;
    world.feed_on(&mut submitter, &filling).await?;
    let failed = submitter.ended;
    submitter.finish().await?;
    let mut filler = filling.await??;
    if failed < rounds {
        let what = format!("{failed} submits failed in {rounds} rounds of a full disk: it was not full");
        filler.ending.findings.push(Finding { kind: Kind::Unavailable, what });
    }
    filler.ending.notes.push(format!("{failed} submits failed"));
    let report = world.finish(filler.workers, filler.ending).await?;
    if let Some(kept) = &report.kept {
        disk.save(kept)?;
    }
    Ok(Some(report))
}

struct Filler {
    disk: Arc<SmallDisk>,
    tools: Tools,
    record: crate::record::Record,
    known: Known,
    workers: Vec<Worker>,
    moments: VecDeque<u64>,
    ending: Ending,
}

impl Filler {
    async fn run(mut self, mut submitted: watch::Receiver<u64>) -> Result<Filler, Failure> {
        while let Some(moment) = self.moments.pop_front() {
            // The last moment comes before the last job, so it cannot be missed.
            if submitted.wait_for(|submitted| *submitted >= moment).await.is_err() {
                break;
            }
            self.round().await?;
        }
        Ok(self)
    }

    async fn round(&mut self) -> Result<(), Failure> {
        let room = self.disk.room()?;
        self.record.fault_began(WHAT);
        let end = Instant::now() + FULL;
        while Instant::now() < end {
            self.disk.fill()?;
            tokio::time::sleep(TOP_UP).await;
        }
        self.ending.findings.extend(ended_by_themselves(&mut self.workers));
        let before = Before::look(&self.tools, &self.known).await?;
        self.disk.free()?;
        let healed = Healed::wait(&self.tools, &self.known, before).await?;
        self.record.fault_ended(WHAT);
        let note = format!("filled {} MB; after there was room: {healed}", room >> 20);
        out::note(format!("  {note}"));
        self.ending.notes.push(note);
        self.ending.findings.extend(healed.findings("the disk had room again"));
        Ok(())
    }
}
