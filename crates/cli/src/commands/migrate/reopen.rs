//! `orchestrator migrate reopen`: takes the mark off a file that was moved.

use crate::cli::Globals;
use crate::database;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::session::Session;
use clap::Args;
use orchestrator_store::StoreError;
use orchestrator_store_sqlite::copy::Outgoing;
use serde_json::json;

/// Arguments of `migrate reopen`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator migrate reopen --db orchestrator.db
  orchestrator migrate reopen --db orchestrator.db --yes",
    after_help = "A file that was moved is not opened any more, lest its jobs run in both places. Reopen it only
when the copy is gone, or nobody will ever work on it: what the two hold is never put together again."
)]
pub struct ReopenArgs {
    /// The copy is gone, or nobody works on it
    #[arg(long)]
    yes: bool,
}

/// Takes the mark off.
pub fn run(args: &ReopenArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let db = &session.config.store.db;
    if database::is_url(db) {
        return Err(CliError::usage("only a file can be reopened").at(database::shown(db)));
    }
    let path = super::existing(db)?;
    let file =
        Outgoing::open(path, session.config.store.busy_timeout.into()).map_err(|error| match error {
            StoreError::Busy { .. } => super::in_use(db),
            other => other.into(),
        })?;
    let moved_to = file.standing()?.moved_to;
    if let (Some(to), false) = (&moved_to, args.yes) {
        return Err(CliError::new(Exit::Conflict, "moved", format!("the jobs of this file are at {to}"))
            .at(db)
            .hint("--yes reopens it all the same: only if that copy is gone, or nobody works on it"));
    }
    file.unmark()?;
    if session.out.is_table() {
        session.out.line(match &moved_to {
            Some(to) => format!("{db}: open again; it was moved to {to}"),
            None => format!("{db}: was not moved, nothing to do"),
        })?;
    } else {
        session.out.json(&json!({ "database": db, "was_moved_to": moved_to }))?;
    }
    Ok(Exit::Ok)
}
