//! A private PostgreSQL server for tests and benchmarks: made in a temporary directory on a free
//! port, and gone with the process that started it.
//!
//! Everything here blocks, and what fails panics: a test that has no server cannot go on. Only
//! [`Server::launch`] answers with an error, for programs.

mod binaries;
mod cluster;
mod watchdog;

use cluster::Cluster;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use watchdog::Watchdog;

/// Who owns the databases of the tests; an ordinary role, as in production.
pub const USER: &str = "orchestrator";
/// A role that must show [`GUARDED_PASSWORD`]; the others are trusted.
pub const GUARDED_USER: &str = "guarded";
/// The password of [`GUARDED_USER`].
pub const GUARDED_PASSWORD: &str = "open-sesame";

/// How a server is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether commits reach the disk. Off, the data survive the end of the server but not of the machine.
    pub fsync: bool,
    /// Further settings of `postgresql.conf`. These win over our own.
    pub settings: Vec<(String, String)>,
    /// Serve TLS with this certificate.
    pub tls: Option<Tls>,
    /// Where the directory with all that it writes is made, if not where temporary files are.
    pub dir: Option<PathBuf>,
}

/// What a server shows to its clients.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, as PEM.
    pub certificate: String,
    /// Its private key, as PEM.
    pub key: String,
}

/// A server of our own. It ends when this is dropped, or when the process ends, however it does.
pub struct Server {
    // Declared first, so that the server ends before the directory goes.
    cluster: Mutex<Cluster>,
    port: u16,
    databases: AtomicU32,
    _watchdog: Watchdog,
}

impl Server {
    /// Starts a server with the default options: fast, without syncs.
    ///
    /// # Panics
    /// When there is no PostgreSQL and none can be installed, or it does not start.
    pub fn start() -> Server {
        Server::start_with(Options::default())
    }

    /// Starts a server with these options; panics as [`Server::start`] does.
    pub fn start_with(options: Options) -> Server {
        must("start a PostgreSQL server", Server::launch(options))
    }

    /// The server that all tests of this process share, started on the first call. Its options are the default
    /// ones. Who stops it stops it for all.
    pub fn shared() -> &'static Server {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(Server::start)
    }

    /// Starts a server, or says what to do.
    pub fn launch(options: Options) -> io::Result<Server> {
        let binaries = binaries::find_or_install()?;
        let owner = cluster::owner()?;
        let mut home = tempfile::Builder::new();
        home.prefix("pg-harness-");
        let home = match &options.dir {
            Some(dir) => home.tempdir_in(dir)?,
            None => home.tempdir()?,
        };
        let home = home.keep();
        let watchdog = Watchdog::start(&home)?;
        let mut cluster = Cluster::make(binaries, home, owner, &options)?;
        cluster.start()?;
        cluster.sql(
            "postgres",
            &format!(
                "CREATE ROLE {USER} LOGIN; CREATE ROLE {GUARDED_USER} LOGIN PASSWORD '{GUARDED_PASSWORD}'"
            ),
        )?;
        let port = cluster.port();
        Ok(Server { cluster: Mutex::new(cluster), port, databases: AtomicU32::new(0), _watchdog: watchdog })
    }

    /// The URL of a database for [`USER`].
    pub fn url(&self, database: &str) -> String {
        self.url_for(USER, database)
    }

    /// The URL of a database for somebody else: `user` or `user:password`.
    pub fn url_for(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes an empty database and gives its URL.
    pub fn database(&self) -> String {
        let name = format!("db_{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {USER}"));
        self.url(&name)
    }

    /// Runs SQL in a database as the superuser, and gives what it prints: rows on lines, columns parted by `|`.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        must("run SQL", self.try_sql(database, sql))
    }

    /// The same where it may fail.
    pub fn try_sql(&self, database: &str, sql: &str) -> io::Result<String> {
        self.cluster().sql(database, sql)
    }

    /// Ends all sessions of clients, as an operator or a failing network would. Gives how many there were.
    pub fn kill_backends(&self) -> usize {
        let killed = self.sql(
            "postgres",
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        must("count the sessions", killed.trim().parse().map_err(io::Error::other))
    }

    /// Stops the server at once, as a crash would: it recovers from its log when it starts again.
    pub fn stop(&self) {
        must("stop the server", self.cluster().stop(cluster::Manner::AtOnce));
    }

    /// Starts a stopped server, under the same URL.
    pub fn start_again(&self) {
        must("start the server again", self.cluster().start());
    }

    /// Starts the server again if it has ended by itself. Says whether it had.
    pub fn revive(&self) -> bool {
        let mut cluster = self.cluster();
        let ended = must("look whether the server runs", cluster.has_ended());
        if ended {
            must("start the server again", cluster.start());
        }
        ended
    }

    /// Stops the server in good order, which ends all sessions, and starts it again.
    pub fn restart(&self) {
        let mut cluster = self.cluster();
        must("stop the server", cluster.stop(cluster::Manner::InOrder));
        must("start the server again", cluster.start());
    }

    /// Restarts the server as a standby: it can be read, and writes are refused.
    pub fn become_standby(&self) {
        let mut cluster = self.cluster();
        must("stop the server", cluster.stop(cluster::Manner::InOrder));
        must("mark the server as a standby", cluster.mark_standby());
        must("start the server again", cluster.start());
    }

    /// Makes a standby take writes again, without ending sessions.
    pub fn promote(&self) {
        self.sql("postgres", "SELECT pg_promote()");
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        // A test that panicked while it held the server leaves it as it is; the others see it stopped at worst.
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn must<T>(what: &str, result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("cannot {what}: {error}"))
}
