//! `orchestrator migrate status`: looks, and changes nothing.

use crate::cli::Globals;
use crate::config::StoreConfig;
use crate::database;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::output::count;
use crate::session::Session;
use orchestrator_store::copy::Standing;
use orchestrator_store_postgres::connect::Connections;
use serde::Serialize;

#[derive(Serialize)]
struct Status {
    database: String,
    kind: &'static str,
    version: Option<i64>,
    known: i64,
    /// Versions that `migrate up` would bring.
    pending: Vec<i64>,
    /// Whether the database is of a later release.
    newer: bool,
    jobs: Option<u64>,
    moved_to: Option<String>,
    copied_from: Option<String>,
}

/// Shows how far the database is.
pub async fn run(globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let status = look(&session.config.store).await?;
    if session.out.is_table() {
        session.out.data(&status.text())?;
    } else {
        session.out.json(&status)?;
    }
    Ok(Exit::Ok)
}

async fn look(config: &StoreConfig) -> CliResult<Status> {
    let (kind, standing) = if database::is_url(&config.db) {
        let connections = Connections::new(&database::postgres(config)?)?;
        ("postgresql", orchestrator_store_postgres::copy::standing(&connections).await?)
    } else {
        let path = super::existing(&config.db)?;
        ("sqlite", orchestrator_store_sqlite::copy::standing(path, config.busy_timeout.into())?)
    };
    let Standing { version, known, jobs, moved_to, copied_from } = standing;
    Ok(Status {
        database: database::shown(&config.db),
        kind,
        version,
        known,
        pending: (version.unwrap_or(0) + 1..=known).collect(),
        newer: version.is_some_and(|version| version > known),
        jobs,
        moved_to,
        copied_from,
    })
}

impl Status {
    fn text(&self) -> String {
        let version = match self.version {
            None => "none yet".to_owned(),
            Some(version) => version.to_string(),
        };
        let pending = match (self.newer, self.pending.as_slice()) {
            (true, _) => "nothing; the database is of a newer orchestrator".to_owned(),
            (false, []) => "nothing".to_owned(),
            (false, pending) => {
                let all: Vec<String> = pending.iter().map(ToString::to_string).collect();
                format!("{} (`orchestrator migrate up`, or any command that opens it)", all.join(", "))
            }
        };
        let mut lines = vec![
            ("database", self.database.clone()),
            ("kind", self.kind.to_owned()),
            ("schema", version),
            ("known", format!("1 to {}", self.known)),
            ("pending", pending),
        ];
        lines.extend(self.jobs.map(|jobs| ("jobs", count(jobs))));
        lines.extend(self.moved_to.clone().map(|to| ("moved to", to)));
        lines.extend(self.copied_from.clone().map(|from| ("copied from", from)));
        lines.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
    }
}
