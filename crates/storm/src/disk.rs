//! `storm disk`: the disk fills up under load, and has room again after a while.
//!
//! On PostgreSQL everything of the server is on that disk. Where a table cannot grow, statements fail; where the log
//! cannot grow, the server gives up and may not even recover before there is room. Every other round asks for more log, so
//! that both happen.

use crate::feed::{Feed, moments};
use crate::heal::{Before, Healed};
use crate::operator::Known;
use crate::postgres::Postgres;
use crate::report::Report;
use crate::tmpfs::SmallDisk;
use crate::tools::{Tools, Worker};
use crate::world::{Ending, Settings, World, ended_by_themselves};
use crate::{Failure, Options, load, out};
use orchestrator_history::{Finding, Kind, Rules};
use pg_harness::Server;
use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The disk stays full for so long.
const FULL: Duration = Duration::from_secs(3);
/// What frees itself meanwhile is taken too, so often.
const TOP_UP: Duration = Duration::from_millis(50);
const WHAT: &str = "the disk is full";
/// The sizes of the disk, in megabytes: for a file, and for all that a server needs.
const SIZE: u64 = 64;
const SIZE_FOR_A_SERVER: u64 = 192;

/// Runs it; `None` where no small disk can be had.
pub async fn run(
    options: &Options,
    rounds: u64,
    megabytes: Option<u64>,
    over: Duration,
) -> Result<Option<Report>, Failure> {
    if options.db.is_some() {
        return Err("storm disk puts a store on a small disk of its own: leave --db out".into());
    }
    let size = megabytes.unwrap_or(if options.postgres { SIZE_FOR_A_SERVER } else { SIZE });
    let Some(disk) = SmallDisk::mount(size)? else { return Ok(None) };
    let disk = Arc::new(disk);
    let server = if options.postgres { Some(launch(&disk).await?) } else { None };
    let db = match &server {
        Some(server) => server.with(Server::database).await?,
        None => disk.path("storm.db").display().to_string(),
    };
    let settings = Settings {
        name: "disk",
        // No lease may end only because heartbeats cannot be written for a while.
        lease_ttl: Duration::from_secs(20),
        grace: Duration::from_secs(5),
        db: Some(db),
    };
    let mut world = World::start(options, &settings).await?;
    let (progress, submitted) = watch::channel(0);
    let filler = Filler {
        disk: disk.clone(),
        server,
        fallen: 0,
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
    if filler.server.is_some() {
        filler.ending.notes.push(format!("the server gave up {} times", filler.fallen));
    }
    let report = world.finish(filler.workers, filler.ending).await?;
    if let Some(kept) = &report.kept {
        disk.save(kept)?;
    }
    Ok(Some(report))
}

/// A server that has everything on the disk, with little log in stock.
async fn launch(disk: &SmallDisk) -> Result<Postgres, Failure> {
    let settings = [("min_wal_size", "32MB"), ("max_wal_size", "48MB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    // Its owner is not root, and has to get there.
    std::fs::set_permissions(disk.root(), std::fs::Permissions::from_mode(0o755))?;
    let dir = Some(disk.root().to_owned());
    Postgres::launch_with(pg_harness::Options { settings, dir, ..pg_harness::Options::default() }).await
}

struct Filler {
    disk: Arc<SmallDisk>,
    server: Option<Postgres>,
    /// How often the server ended by itself.
    fallen: u64,
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
            self.round(self.moments.len().is_multiple_of(2)).await?;
        }
        Ok(self)
    }

    /// `log` asks a server for more log.
    async fn round(&mut self, log: bool) -> Result<(), Failure> {
        let room = self.disk.room()?;
        self.record.fault_began(WHAT);
        let end = Instant::now() + FULL;
        while Instant::now() < end {
            self.disk.fill()?;
            if let Some(server) = self.server.as_ref().filter(|_| log) {
                // It fails when the server does.
                let _ = server.with(|server| server.try_sql("postgres", "SELECT pg_switch_wal()")).await?;
            }
            tokio::time::sleep(TOP_UP).await;
        }
        self.ending.findings.extend(ended_by_themselves(&mut self.workers));
        let before = Before::look(&self.tools, &self.known).await?;
        self.disk.free()?;
        if let Some(server) = &self.server {
            // As whoever keeps servers running would.
            self.fallen += u64::from(server.with(Server::revive).await?);
        }
        let healed = Healed::wait(&self.tools, &self.known, before).await?;
        self.record.fault_ended(WHAT);
        let note = format!("filled {} MB; after there was room: {healed}", room >> 20);
        out::note(format!("  {note}"));
        self.ending.notes.push(note);
        self.ending.findings.extend(healed.findings("the disk had room again"));
        Ok(())
    }
}
