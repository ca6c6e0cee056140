//! The URL of a database. The driver knows most of its parameters; ours and those of TLS are taken out before.

use super::tls::{Files, Mode};
use orchestrator_store::{StoreError, StoreResult};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// The schema of our tables, unless the URL names one.
const SCHEMA: &str = "orchestrator";
const LONGEST_NAME: usize = 63;

/// What a URL says.
pub struct Target {
    /// What the driver needs.
    pub config: Config,
    /// The schema that holds our tables.
    pub schema: String,
    /// How much the connection is protected.
    pub mode: Mode,
    /// Certificates of the URL.
    pub files: Files,
    /// The URL without its password, for people.
    pub place: String,
}

impl Target {
    /// Reads a URL. The errors do not repeat it: it may hold a password at any place.
    pub fn parse(url: &str, password: Option<&str>) -> StoreResult<Target> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(wrong("it does not begin with postgres:// or postgresql://".to_owned()));
        }
        let (front, query) = split(url);
        let mut schema = SCHEMA.to_owned();
        let mut mode = Mode::Prefer;
        let mut files = Files::default();
        let mut theirs = vec![];
        let mut given = BTreeSet::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = percent_decode_str(value).decode_utf8();
            let value = decoded.map_err(|_| wrong(format!("its parameter {name} is not UTF-8")))?;
            match name {
                "schema" => schema = checked_schema(&value)?,
                "sslmode" => mode = Mode::parse(&value).ok_or_else(|| wrong(Mode::advice(&value)))?,
                "sslrootcert" if value == "system" => files.root = None,
                "sslrootcert" => files.root = Some(PathBuf::from(&*value)),
                "sslcert" => files.certificate = Some(PathBuf::from(&*value)),
                "sslkey" => files.key = Some(PathBuf::from(&*value)),
                _ => {
                    given.insert(name);
                    theirs.push(pair);
                }
            }
        }
        let parsed: Result<Config, _> = format!("{front}?{}", theirs.join("&")).parse();
        let mut config = parsed.map_err(|error| wrong(crate::error::text(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        set_defaults(&mut config, &given);
        let place = place(&config, &schema);
        Ok(Target { config, schema, mode, files, place })
    }
}

/// Parts the parameters off. Like the driver, takes all up to an `@` for the user and the password, which may hold a `?`.
fn split(url: &str) -> (&str, &str) {
    let host = url.find('@').unwrap_or(0);
    match url[host..].find('?') {
        Some(at) => (&url[..host + at], &url[host + at + 1..]),
        None => (url, ""),
    }
}

/// Only names that need no thought about case and quotes.
fn checked_schema(name: &str) -> StoreResult<String> {
    let plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    if plain && starts_well && name.len() <= LONGEST_NAME && !name.starts_with("pg_") {
        return Ok(name.to_owned());
    }
    Err(wrong(format!(
        "{name:?} is no name for a schema: up to {LONGEST_NAME} of a-z, 0-9 and _, beginning with a letter or _, and not with pg_"
    )))
}

/// A server that is gone without a word must be noticed in well under a minute; the URL may say otherwise.
fn set_defaults(config: &mut Config, given: &BTreeSet<&str>) {
    let absent = |name: &str| !given.contains(name);
    if absent("application_name") {
        config.application_name("orchestrator");
    }
    if absent("connect_timeout") {
        config.connect_timeout(Duration::from_secs(10));
    }
    if absent("tcp_user_timeout") {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    if absent("keepalives_idle") {
        config.keepalives_idle(Duration::from_secs(15));
    }
    if absent("keepalives_interval") {
        config.keepalives_interval(Duration::from_secs(5));
    }
    if absent("keepalives_retries") {
        config.keepalives_retries(3);
    }
    // Of several servers we want the one that leads.
    if absent("target_session_attrs") && config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

fn place(config: &Config, schema: &str) -> String {
    let ports = config.get_ports();
    let with_port = |(n, host): (usize, String)| match ports.get(n).or(ports.first()) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    };
    let named = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let mut hosts: Vec<String> = named.collect();
    if hosts.is_empty() {
        hosts.extend(addresses);
    }
    let hosts: Vec<_> = hosts.into_iter().enumerate().map(with_port).collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().unwrap_or_default();
    let schema = if schema == SCHEMA { String::new() } else { format!("?schema={schema}") };
    format!("postgres://{user}{}/{database}{schema}", hosts.join(","))
}

fn wrong(why: String) -> StoreError {
    StoreError::Open {
        place: "the database".to_owned(),
        advice: "write its URL as postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        source: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url, Some("from-elsewhere")).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn a_url_is_taken_apart() {
        let it = target(
            "postgresql://ann:se%3Fcret@db.example:5433/jobs?schema=blue&sslmode=verify-full&sslrootcert=%2Fca.pem&application_name=x",
        );
        assert_eq!(it.config.get_password(), Some(&b"se?cret"[..]));
        assert_eq!(it.config.get_application_name(), Some("x"));
        assert_eq!(it.config.get_dbname(), Some("jobs"));
        assert_eq!((it.schema.as_str(), it.mode), ("blue", Mode::VerifyFull));
        assert_eq!(it.files.root, Some(PathBuf::from("/ca.pem")));
        assert_eq!(it.place, "postgres://ann@db.example:5433/jobs?schema=blue");
    }

    #[test]
    fn what_a_url_leaves_out_has_a_default() {
        let it = target("postgres://ann@db/jobs");
        assert_eq!((it.schema.as_str(), it.mode), ("orchestrator", Mode::Prefer));
        assert_eq!(it.config.get_password(), Some(&b"from-elsewhere"[..]));
        assert_eq!(it.config.get_application_name(), Some("orchestrator"));
        assert_eq!(it.config.get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!(it.place, "postgres://ann@db:5432/jobs");
        let several = target("postgres://ann@[::1]:1,b:2/jobs");
        assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(several.place, "postgres://ann@[::1]:1,b:2/jobs");
        let socket = target("postgres://ann@%2Frun%2Fpg/jobs");
        assert_eq!(socket.place, "postgres://ann@/run/pg:5432/jobs");
    }

    #[test]
    fn a_raw_question_mark_belongs_to_the_password() {
        let it = target("postgres://ann:se?cret@db/jobs?schema=blue");
        assert_eq!(it.config.get_password(), Some(&b"se?cret"[..]));
        assert_eq!(it.schema, "blue");
    }

    #[test]
    fn no_error_repeats_the_password() {
        for url in [
            "mysql://ann:hunter2@db/jobs",
            "ann:hunter2@db/jobs",
            "postgres://ann:hunter2@db:port/jobs",
            "postgres://ann:hunter2@db:99999/jobs",
            "postgres://ann:hunter2@[::1/jobs",
            "postgres://ann:hunter2@",
            "postgres://ann:hunter2@/jobs",
            "postgres://ann:hunter2@db/jobs?colour=blue",
            "postgres://ann:hunter2@db/jobs?schema=Blue",
            "postgres://ann:hunter2@db/jobs?schema=pg_blue",
            "postgres://ann:hunter2@db/jobs?schema=",
            "postgres://ann:hunter2@db/jobs?sslmode=maybe",
            "postgres://ann:hunter2@db/jobs?application_name=%FF",
        ] {
            let Err(error) = Target::parse(url, None) else { panic!("{url} is taken") };
            assert!(matches!(error, StoreError::Open { .. }), "{url}: {error:?}");
            let told = format!("{error} {error:?}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
