//! `orchestrator migrate up`: the schema to the newest version that this program knows.

use crate::cli::Globals;
use crate::database;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::session::Session;
use orchestrator_store_postgres::connect::Connections;
use orchestrator_store_postgres::schema;
use serde_json::json;

/// Migrates.
pub async fn run(globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let config = &session.config.store;
    let (from, to) = if database::is_url(&config.db) {
        let connections = Connections::new(&database::postgres(config)?)?;
        let from = schema::version(&connections).await?.unwrap_or(0);
        schema::prepare(&connections).await?;
        (from, schema::VERSION)
    } else {
        let path = super::existing(&config.db)?;
        orchestrator_store_sqlite::copy::migrate(path, config.busy_timeout.into())?
    };
    let place = database::shown(&config.db);
    if session.out.is_table() {
        session.out.line(match from {
            0 => format!("{place}: made the tables of schema version {to}"),
            _ if from == to => format!("{place}: schema version {to}, nothing to do"),
            _ => format!("{place}: from schema version {from} to {to}"),
        })?;
    } else {
        session.out.json(&json!({ "database": place, "from": from, "to": to }))?;
    }
    Ok(Exit::Ok)
}
