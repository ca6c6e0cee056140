//! `orchestrator migrate copy`: everything from a SQLite file to PostgreSQL.
//!
//! The same jobs must never run in both places, whenever this process dies. So the file is held alone all the time, and
//! it is marked as moved *before* the server commits the copy: a crash in between leaves a file that is not opened, and
//! running the command again looks whether the server has the copy, and makes it where it has not.

use super::{existing, in_use};
use crate::cli::Globals;
use crate::config::StoreConfig;
use crate::database;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::log::BARS;
use crate::output::{Output, columns, count, took};
use crate::session::Session;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use orchestrator_core::Millis;
use orchestrator_store::StoreError;
use orchestrator_store::copy::{Batch, Table};
use orchestrator_store_postgres::connect::Connections;
use orchestrator_store_postgres::copy::{self, Begun, Contents, Incoming};
use orchestrator_store_postgres::schema;
use orchestrator_store_sqlite::copy::Outgoing;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use tokio::sync::mpsc;

/// So many batches are read ahead of the server.
const AHEAD: usize = 4;

/// Arguments of `migrate copy`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator migrate copy --from orchestrator.db --to postgres://me@host/jobs --dry-run
  orchestrator migrate copy --from orchestrator.db --to postgres://me@host/jobs",
    after_help = "Stop everything that works on the file first. All of it goes over in one transaction, or nothing; ids
of jobs, keys, the journal and the numbers of attempts stay the same. Afterwards the file is marked as moved
and not opened any more. Running the command again after a crash is safe."
)]
pub struct CopyArgs {
    /// The SQLite file
    #[arg(long, value_name = "FILE")]
    from: String,
    /// The PostgreSQL database; it must hold no jobs
    #[arg(long, value_name = "URL")]
    to: String,
    /// Count and check both ends; write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Summary {
    from: String,
    to: String,
    dry_run: bool,
    /// Whether an earlier run had moved it already.
    already_moved: bool,
    /// Rows by table, as they were read.
    tables: BTreeMap<&'static str, u64>,
    rows: u64,
    seconds: f64,
}

/// Moves.
pub async fn run(args: &CopyArgs, globals: &Globals) -> CliResult {
    let started = Instant::now();
    let session = Session::start(globals, vec![])?;
    let connections = target(args, &session.config.store)?;
    let mut from = source(&args.from, &session.config.store)?;
    let there = copy::contents(&connections).await?;
    let mut summary = Summary {
        from: args.from.clone(),
        to: connections.place().to_owned(),
        dry_run: args.dry_run,
        already_moved: already_moved(&mut from, &there, &connections, args)?,
        tables: BTreeMap::new(),
        rows: 0,
        seconds: 0.0,
    };
    if !summary.already_moved {
        if !args.dry_run {
            from.prepare()?;
        }
        for table in Table::ALL {
            summary.tables.insert(table.name(), from.count(*table)?);
        }
        summary.rows = summary.tables.values().sum();
        if !args.dry_run {
            let bar = bar(session.out, summary.rows);
            let moved = move_over(from, &connections, &bar, args).await;
            bar.finish_and_clear();
            moved?;
        }
    }
    summary.seconds = started.elapsed().as_secs_f64();
    summary.tell(session.out)
}

/// The server, if the ends are what can be moved between.
fn target(args: &CopyArgs, config: &StoreConfig) -> CliResult<Connections> {
    if database::is_url(&args.from) || !database::is_url(&args.to) {
        return Err(CliError::usage("only from a SQLite file to PostgreSQL can be copied")
            .at(format!("from {} to {}", database::shown(&args.from), database::shown(&args.to)))
            .hint("--from FILE --to postgres://USER@HOST/DATABASE"));
    }
    existing(&args.from)?;
    let config = StoreConfig { db: args.to.clone(), ..config.clone() };
    Ok(Connections::new(&database::postgres(&config)?)?)
}

/// The file, with nobody else in it.
fn source(path: &str, config: &StoreConfig) -> CliResult<Outgoing> {
    Outgoing::open(Path::new(path), config.busy_timeout.into()).map_err(|error| match error {
        StoreError::Busy { .. } => in_use(path),
        other => other.into(),
    })
}

/// Whether the server has this very copy. An error where it has something else, or the file is somewhere else.
fn already_moved(
    from: &mut Outgoing,
    there: &Contents,
    connections: &Connections,
    args: &CopyArgs,
) -> CliResult<bool> {
    let place = connections.place();
    let marked = from.standing()?.moved_to;
    let copied = there.copy_of.is_some() && there.copy_of == Some(from.salt()?);
    match (marked, copied) {
        (Some(_), true) => Ok(true),
        (Some(to), false) if to != place => Err(StoreError::Moved { place: args.from.clone(), to }.into()),
        // Reopened since, or put back from a backup: which of the two is right, no program can tell.
        (None, true) => Err(CliError::new(
            Exit::Conflict,
            "not_empty",
            "the destination holds an earlier copy of this file, and both may have changed since",
        )
        .at(place)
        .hint(EMPTY_IT)),
        _ if !there.is_empty() => Err(not_empty(place, there)),
        _ => Ok(false),
    }
}

const EMPTY_IT: &str = "name another database or another ?schema=NAME in the URL; or, if what it holds may go, \
    DROP SCHEMA orchestrator CASCADE (or the one you named)";

fn not_empty(place: &str, there: &Contents) -> CliError {
    let Contents { jobs, flows, rules, .. } = there;
    let what = format!(
        "the destination is not empty: {} jobs, {} versions of flows, {} limits of operators",
        count(*jobs),
        count(*flows),
        count(*rules)
    );
    CliError::new(Exit::Conflict, "not_empty", what).at(place).hint(EMPTY_IT)
}

async fn move_over(
    from: Outgoing,
    connections: &Connections,
    bar: &ProgressBar,
    args: &CopyArgs,
) -> CliResult<()> {
    let place = connections.place();
    schema::prepare(connections).await?;
    let incoming = match copy::begin(connections).await? {
        Begun::Copying(incoming) => *incoming,
        Begun::Holds(there) => return Err(not_empty(place, &there)),
        Begun::InUse => {
            let what = "another process works on the destination";
            return Err(CliError::new(Exit::Conflict, "in_use", what).at(place).hint("stop it first"));
        }
    };
    let (mut from, mut incoming) = pour(from, incoming, bar).await?;
    let path = std::path::absolute(&args.from).map_or(args.from.clone(), |path| path.display().to_string());
    bar.set_message("finishing");
    incoming.finish(from.salt()?, from.last_seq()?, &path).await?;
    from.mark(place)?;
    match incoming.commit().await {
        Ok(()) => Ok(()),
        Err(error @ StoreError::Unknown { .. }) => Err(CliError::from(error)
            .hint("run the command again: it looks whether the copy is there, and makes it if it is not")),
        // Nothing is there, so the file goes on as before.
        Err(error) => {
            from.unmark()?;
            Err(error.into())
        }
    }
}

/// Reads on a thread of its own, a few batches ahead of the server.
async fn pour(from: Outgoing, mut incoming: Incoming, bar: &ProgressBar) -> CliResult<(Outgoing, Incoming)> {
    let (send, mut receive) = mpsc::channel::<Batch>(AHEAD);
    let reading = tokio::task::spawn_blocking(move || {
        for table in Table::ALL {
            from.read(*table, |batch| send.blocking_send(batch).is_ok())?;
        }
        Ok::<_, StoreError>(from)
    });
    while let Some(batch) = receive.recv().await {
        bar.set_message(batch.table.name());
        let rows = batch.rows.len() as u64;
        incoming.write(batch).await?;
        bar.inc(rows);
    }
    let read = reading.await.map_err(|_| CliError::new(Exit::Error, "io", "the reading thread broke"))?;
    Ok((read?, incoming))
}

fn bar(out: Output, rows: u64) -> ProgressBar {
    if !out.draws() {
        return ProgressBar::hidden();
    }
    let template = "{bar:32} {human_pos}/{human_len} rows  eta {eta}  {msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    BARS.add(ProgressBar::new(rows).with_style(style))
}

impl Summary {
    fn tell(&self, out: Output) -> CliResult {
        if !out.is_table() {
            out.json(self)?;
            return Ok(Exit::Ok);
        }
        if self.already_moved {
            out.line(format!("{} was moved to {} already; nothing to do", self.from, self.to))?;
            return Ok(Exit::Ok);
        }
        let full = Table::ALL.iter().map(|table| (table.name(), self.tables[table.name()]));
        let rows = full.filter(|(_, rows)| *rows > 0).map(|(name, rows)| vec![name.to_owned(), count(rows)]);
        out.data(&columns(&["TABLE", "ROWS"], &[1], rows.collect()))?;
        let jobs = count(self.tables[Table::Jobs.name()]);
        let took = took(Millis::from(std::time::Duration::from_secs_f64(self.seconds)));
        out.line(if self.dry_run {
            format!("{jobs} jobs can be moved to {}; nothing was written", self.to)
        } else {
            format!("moved {jobs} jobs to {} in {took}; from now on use --db with that", self.to)
        })?;
        Ok(Exit::Ok)
    }
}
