//! `storm disk`: the disk fills up under load, and has room again after a while.

use crate::feed::{Feed, moments};
use crate::operator::Known;
use crate::report::Report;
use crate::tmpfs::SmallDisk;
use crate::tools::{Tools, Worker};
use crate::watch::Counts;
use crate::world::{Ending, Settings, World, ended_by_itself};
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
/// Work goes on at the latest so long after there is room.
const HEALED: Duration = Duration::from_secs(30);
/// How often it is looked whether it does.
const LOOK: Duration = Duration::from_millis(50);
const WHAT: &str = "the disk is full";

/// Runs it; `None` where no small disk can be had.
pub async fn run(
    options: &Options,
    rounds: u64,
    megabytes: u64,
    over: Duration,
) -> Result<Option<Report>, Failure> {
    if options.db.is_some() {
        return Err("storm disk puts the database on a small disk of its own: leave --db out".into());
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
    // What is left of the last round needs somebody who submits, or nobody could see that it goes on.
    while !filling.is_finished() {
        let batch = submitter.submit(vec![world.load.next()], None).await?;
        batch.acked.iter().for_each(|(job, work)| world.known.add(*job, work.limited));
        tokio::time::sleep(LOOK).await;
    }
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
        for (number, worker) in self.workers.iter_mut().enumerate() {
            if !worker.lives() {
                self.ending.findings.push(ended_by_itself(number));
            }
        }
        let (before, added) = (Counts::now(&self.tools).await?, self.known.added());
        self.disk.free()?;
        let freed = Instant::now();
        let done = before.map_or(0, |counts| counts.done);
        let (mut submits, mut works) = (None, None);
        while (submits.is_none() || works.is_none()) && freed.elapsed() < HEALED {
            if submits.is_none() && self.known.added() > added {
                submits = Some(freed.elapsed());
            }
            if works.is_none() && Counts::now(&self.tools).await?.is_some_and(|counts| counts.done > done) {
                works = Some(freed.elapsed());
            }
            tokio::time::sleep(LOOK).await;
        }
        self.record.fault_ended(WHAT);
        let told = |after: Option<Duration>| {
            after.map_or("never".to_owned(), |span| format!("{:.2} s", span.as_secs_f64()))
        };
        let note = format!(
            "filled {} MB; after there was room: submits {}, work {}",
            room >> 20,
            told(submits),
            told(works)
        );
        out::note(format!("  {note}"));
        self.ending.notes.push(note);
        for (what, after) in [("submits", submits), ("work", works)] {
            if after.is_none() {
                let what = format!("{what} did not go on within {HEALED:?} after the disk had room again");
                self.ending.findings.push(Finding { kind: Kind::Stuck, what });
            }
        }
        Ok(())
    }
}
