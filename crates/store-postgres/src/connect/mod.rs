//! Connections to the database: two pools, one for writers and one for readers, whose sessions are set up alike
//! wherever the server's own defaults would matter.

mod tls;
mod url;

use crate::error;
use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts,
};
use orchestrator_store::{Clock, StoreError, StoreResult};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Target;

/// How long a statement waits for a lock that another session holds.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a caller waits for a connection while all are in use.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// After so long inside a transaction without a word from us the server takes it back: a process that hangs must not
/// hold up the others.
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long making or checking a connection may take.
const CREATE_TIMEOUT: Duration = Duration::from_secs(15);
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was last given out longer ago is tried out before it is used: the server may have restarted, or a
/// firewall may have forgotten it. Under load none is, so the way to the server and back is not paid then.
const TRUSTED_FOR: Duration = Duration::from_millis(100);

/// How a database is opened.
#[derive(Clone)]
pub struct Options {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq's parameters behind a `?` and one of ours, `schema`.
    pub url: String,
    /// The password, where the URL holds none: it need not stand on a command line then.
    pub password: Option<String>,
    /// The store's clock; without one, the database's, which is one for all processes.
    pub clock: Option<Arc<dyn Clock>>,
    /// After so long a statement is given up.
    pub statement_timeout: Duration,
    /// How many connections write at the same time.
    pub writers: usize,
    /// How many connections read at the same time.
    pub readers: usize,
}

impl Options {
    /// The database at a URL, with defaults for the rest.
    pub fn new(url: impl Into<String>) -> Self {
        Options {
            url: url.into(),
            password: None,
            clock: None,
            statement_timeout: Duration::from_secs(30),
            writers: 8,
            readers: 4,
        }
    }
}

/// A connection on its own, which its owner has to drive.
pub type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The connections to one database. Nothing is opened before it is needed.
#[derive(Clone)]
pub struct Connections {
    writers: Pool,
    readers: Pool,
    session: Config,
    tls: MakeRustlsConnect,
    place: Arc<str>,
    schema: Arc<str>,
}

impl Connections {
    /// Reads the options. An error means that they are wrong; nothing was tried yet.
    pub fn new(options: &Options) -> StoreResult<Connections> {
        let target = Target::parse(&options.url, options.password.as_deref())?;
        let tls = tls::connector(&target)?;
        let shared = shared_settings(&target, options);
        let with = |more: &[(&'static str, &str)]| {
            let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
            shared.iter().cloned().chain(more).collect::<Vec<_>>()
        };
        let reader = session(&target, &with(&PLANS));
        let writer = session(&target, &with(&[&PLANS[..], &IN_ORDER].concat()));
        let pool = |config: &Config, size: usize, hook: Option<Hook>| {
            let manager = Manager::from_config(
                config.clone(),
                tls.clone(),
                ManagerConfig { recycling_method: RecyclingMethod::Fast },
            );
            let builder = Pool::builder(manager)
                .max_size(size.max(1))
                .runtime(Runtime::Tokio1)
                .timeouts(Timeouts {
                    wait: Some(WAIT_TIMEOUT),
                    create: Some(CREATE_TIMEOUT),
                    recycle: Some(CHECK_TIMEOUT),
                })
                .pre_recycle(check_if_idle());
            let builder = match hook {
                Some(hook) => builder.post_create(hook),
                None => builder,
            };
            builder.build().map_err(|error| StoreError::Invalid(error.to_string()))
        };
        Ok(Connections {
            writers: pool(&writer, options.writers, None)?,
            readers: pool(&reader, options.readers, Some(make_read_only()))?,
            session: writer,
            tls,
            place: target.place.into(),
            schema: target.schema.into(),
        })
    }

    /// A connection to write with.
    pub async fn writer(&self) -> StoreResult<Client> {
        self.writers.get().await.map_err(|error| error::at_pool(&self.place, &error))
    }

    /// A connection to read with; it cannot write.
    pub async fn reader(&self) -> StoreResult<Client> {
        self.readers.get().await.map_err(|error| error::at_pool(&self.place, &error))
    }

    /// A connection outside the pools, for one who listens or holds a lock of the session.
    pub async fn own(&self) -> StoreResult<(tokio_postgres::Client, Wire)> {
        let connected = self.session.connect(self.tls.clone()).await;
        connected.map_err(|error| error::at_open(&self.place, &error))
    }

    /// The database as people may see it: its URL without the password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The schema that holds our tables.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Lets all connections go. Who waits for one, or asks later, is told that the store is closed.
    pub fn close(&self) {
        self.writers.close();
        self.readers.close();
    }
}

/// What every session needs. `synchronous_commit` is not ours to set: whether an ack outlives a crash of the server is
/// the operator's decision, and PostgreSQL's default is that it does.
fn shared_settings(target: &Target, options: &Options) -> Vec<(&'static str, String)> {
    vec![
        ("search_path", format!("\"{}\"", target.schema)),
        ("statement_timeout", in_millis(options.statement_timeout)),
        ("lock_timeout", in_millis(LOCK_TIMEOUT)),
        ("idle_in_transaction_session_timeout", in_millis(IDLE_IN_TRANSACTION_TIMEOUT)),
        // The statements are written for this level; a database may have another default.
        ("default_transaction_isolation", "read committed".to_owned()),
    ]
}

/// What keeps plans right: tables change size by the second, so statistics mislead the planner. Every hot statement is
/// meant to walk an index, once per row of its arrays, and is planned once. A plan that is made while a table is empty has
/// to be right when it is full; therefore statements compare with `= ANY (ARRAY[x])` where they join, which can only be
/// looked up, and never merged with all of an index.
const PLANS: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

/// What writers need besides: rows are met in the order of an index, so that all lock them in one order.
const IN_ORDER: [(&str, &str); 2] = [("enable_hashjoin", "off"), ("enable_mergejoin", "off")];

/// A session with these settings as its defaults, given with the first message. Ours come after those of the URL and
/// win: the store relies on them.
fn session(target: &Target, settings: &[(&str, String)]) -> Config {
    let mut options = target.config.get_options().unwrap_or_default().to_owned();
    for (name, value) in settings {
        let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
        // Writing to a string cannot fail.
        let _ = write!(options, " -c {name}={value}");
    }
    let mut config = target.config.clone();
    config.options(options.trim_start());
    config
}

fn in_millis(span: Duration) -> String {
    span.as_millis().to_string()
}

fn check_if_idle() -> Hook {
    Hook::async_fn(|client, metrics| {
        let idle = metrics.last_used() > TRUSTED_FOR;
        Box::pin(async move {
            if idle {
                client.simple_query("").await.map_err(HookError::Backend)?;
            }
            Ok(())
        })
    })
}

/// Not among the settings of the first message: `target_session_attrs=read-write` of the URL would then refuse every
/// server.
fn make_read_only() -> Hook {
    Hook::async_fn(|client, _| {
        Box::pin(async move {
            client.batch_execute("SET default_transaction_read_only = on").await.map_err(HookError::Backend)
        })
    })
}
