//! The database that a command works on: a file, or a PostgreSQL server where `--db` is a URL.

use crate::config::StoreConfig;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use orchestrator_store::Store;
use orchestrator_store_postgres::PostgresStore;
use orchestrator_store_sqlite::SqliteStore;
use std::path::Path;
use std::sync::Arc;

/// What to do where there is no database yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Make it.
    Create,
    /// Say so.
    Fail,
}

/// Opens the store.
pub async fn open(config: &StoreConfig, missing: Missing) -> CliResult<Arc<dyn Store>> {
    if is_url(&config.db) {
        return Ok(PostgresStore::open(postgres(config)?).await?);
    }
    let path = Path::new(&config.db);
    if missing == Missing::Fail && !path.exists() {
        return Err(CliError::new(Exit::NotFound, "not_found", "there is no database yet")
            .at(path.display().to_string())
            .hint("`orchestrator run FLOW`, `queue enqueue` or `queue import` makes it; --db PATH names another"));
    }
    Ok(SqliteStore::open(path, sqlite(config))?)
}

/// Whether a database is named by a URL. Any scheme counts, so that a wrong one is not taken for the name of a file.
pub fn is_url(db: &str) -> bool {
    db.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty() && !scheme.contains('/'))
}

/// The options for a file.
pub fn sqlite(config: &StoreConfig) -> orchestrator_store_sqlite::Options {
    orchestrator_store_sqlite::Options { busy_timeout: config.busy_timeout.into(), ..Default::default() }
}

/// The options for a server.
pub fn postgres(config: &StoreConfig) -> CliResult<orchestrator_store_postgres::Options> {
    let writers = config.connections as usize;
    Ok(orchestrator_store_postgres::Options {
        password: password(config)?,
        statement_timeout: config.statement_timeout.into(),
        writers,
        readers: (writers / 2).max(1),
        ..orchestrator_store_postgres::Options::new(config.db.clone())
    })
}

/// The password from outside of the URL, so that it need not stand on a command line.
fn password(config: &StoreConfig) -> CliResult<Option<String>> {
    let file = &config.password_file;
    if file.is_empty() {
        return Ok(std::env::var("PGPASSWORD").ok());
    }
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) => {
            Err(CliError::new(Exit::Error, "password_file", format!("cannot read the password: {error}"))
                .at(file.clone())
                .hint("store.password_file names the file"))
        }
    }
}

/// The database as people may see it: a password in its URL is left out.
pub fn shown(db: &str) -> String {
    let Some((scheme, rest)) = db.split_once("://").filter(|_| is_url(db)) else {
        return db.to_owned();
    };
    // A password may hold nearly anything, so all before the last `@` but the name of the user may belong to it.
    let (who, rest) = rest.rsplit_once('@').map_or((None, rest), |(who, rest)| (Some(who), rest));
    let who = who.map_or_else(String::new, |who| match who.split_once(':') {
        Some((user, _)) => format!("{user}:***@"),
        None => format!("{who}@"),
    });
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let front = format!("{who}{place}");
    let hidden = |pair: &str| match pair.split_once('=') {
        Some(("password", _)) => "password=***".to_owned(),
        _ => pair.to_owned(),
    };
    let query: Vec<String> = query.split('&').filter(|pair| !pair.is_empty()).map(hidden).collect();
    if query.is_empty() {
        return format!("{scheme}://{front}");
    }
    format!("{scheme}://{front}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scheme_makes_a_url() {
        assert!(is_url("postgres://localhost/x") && is_url("mysql://x"));
        assert!(!is_url("orchestrator.db") && !is_url("./a://b") && !is_url("://x"));
    }

    #[test]
    fn a_password_is_not_shown() {
        let all = [
            ("a/b.db", "a/b.db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("postgres://me:secret@host:1/db?schema=x", "postgres://me:***@host:1/db?schema=x"),
            ("postgres://me:se@cret@host/db", "postgres://me:***@host/db"),
            ("postgres://me:se?cret@host/db", "postgres://me:***@host/db"),
            ("postgres://host/db?password=secret&user=me", "postgres://host/db?password=***&user=me"),
        ];
        for (db, expected) in all {
            assert_eq!(shown(db), expected);
        }
    }
}
