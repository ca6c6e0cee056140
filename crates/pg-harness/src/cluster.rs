//! One data directory and the server process on it.

use crate::{GUARDED_USER, Options};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Below the range from which systems take ports for outgoing connections, so that nobody takes
/// ours while the server is down.
const PORTS: std::ops::Range<u16> = 15_000..32_000;
const PATIENCE: Duration = Duration::from_secs(120);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// How a server ends.
#[derive(Clone, Copy)]
pub enum Manner {
    /// With a checkpoint, after ending all sessions.
    InOrder,
    /// Like a crash.
    AtOnce,
}

/// An unprivileged user: the server refuses to run as root.
#[derive(Clone, Copy)]
pub struct Owner {
    uid: u32,
    gid: u32,
}

/// Whom the server runs as, where that is not the user of this process.
pub fn owner() -> io::Result<Option<Owner>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| {
        let mut fields =
            users.lines().map(|line| line.split(':')).find(|line| line.clone().next() == Some(name))?;
        let uid = fields.nth(2)?.parse().ok()?;
        Some(Owner { uid, gid: fields.next()?.parse().ok()? })
    };
    find("postgres").or_else(|| find("nobody")).map(Some).ok_or_else(|| {
        io::Error::other("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
    })
}

/// A data directory, and its server if it runs.
pub struct Cluster {
    binaries: PathBuf,
    home: PathBuf,
    owner: Option<Owner>,
    port: u16,
    server: Option<Child>,
}

impl Cluster {
    /// Makes the data directory in `home`.
    pub fn make(
        binaries: PathBuf,
        home: PathBuf,
        owner: Option<Owner>,
        options: &Options,
    ) -> io::Result<Cluster> {
        let cluster = Cluster { binaries, home, owner, port: free_port()?, server: None };
        cluster.give(&cluster.home)?;
        let output = cluster
            .program("initdb")
            .args(["--no-sync", "--username=postgres", "--encoding=UTF8", "--no-locale"])
            .arg("--pgdata")
            .arg(cluster.data())
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!(
                "initdb: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )));
        }
        cluster.configure(options)?;
        Ok(cluster)
    }

    /// The TCP port, which stays the same for good.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server and waits until it answers.
    pub fn start(&mut self) -> io::Result<()> {
        if self.server.is_some() {
            return Err(io::Error::other("it is running"));
        }
        // Only a server that was killed leaves it. It is no longer there, so the file must not be taken for the
        // new one's.
        let _ = fs::remove_file(self.pid_file());
        let log = File::options().create(true).append(true).open(self.log())?;
        let server = self
            .program("postgres")
            .arg("-D")
            .arg(self.data())
            .stdout(log.try_clone()?)
            .stderr(log)
            // The signals of a terminal are not for it: the watchdog ends it.
            .process_group(0)
            .spawn()?;
        self.server = Some(server);
        self.wait_until_ready()
    }

    /// Stops the server, if it runs.
    pub fn stop(&mut self, manner: Manner) -> io::Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let signal = match manner {
            Manner::InOrder => Signal::INT,
            Manner::AtOnce => Signal::QUIT,
        };
        // A server that ended by itself and was not waited for yet can still be signalled.
        kill_process(Pid::from_child(&server), signal)?;
        server.wait().map(|_| ())
    }

    /// Whether the server has ended by itself; then it can be started again.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        let Some(server) = &mut self.server else { return Ok(false) };
        let ended = server.try_wait()?.is_some();
        if ended {
            self.server = None;
        }
        Ok(ended)
    }

    /// Makes the next start one of a standby.
    pub fn mark_standby(&self) -> io::Result<()> {
        self.write("standby.signal", "", 0o600)
    }

    /// Runs SQL as the superuser.
    pub fn sql(&self, database: &str, sql: &str) -> io::Result<String> {
        let output = self
            .program("psql")
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"])
            .args(["--username=postgres", "--dbname", database, "--port", &self.port.to_string(), "--host"])
            .arg(&self.home)
            .args(["--command", sql])
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        String::from_utf8(output.stdout).map_err(io::Error::other)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let began = Instant::now();
        loop {
            // The eighth line of this file says how far the server is.
            let status = fs::read_to_string(self.pid_file()).unwrap_or_default();
            if matches!(status.lines().nth(7).map(str::trim), Some("ready" | "standby")) {
                return Ok(());
            }
            let ended = match &mut self.server {
                Some(server) => server.try_wait()?.is_some(),
                None => true,
            };
            if ended || began.elapsed() > PATIENCE {
                self.stop(Manner::AtOnce)?;
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                return Err(io::Error::other(format!("the server did not come up; its log says:\n{log}")));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn configure(&self, options: &Options) -> io::Result<()> {
        let mut settings = String::new();
        let mut set = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(settings, "{name} = '{}'", value.replace('\'', "''"));
        };
        set("listen_addresses", "127.0.0.1");
        set("port", &self.port.to_string());
        set("unix_socket_directories", &self.home.to_string_lossy());
        set("max_connections", "200");
        let durable = if options.fsync { "on" } else { "off" };
        set("fsync", durable);
        set("full_page_writes", durable);
        if let Some(tls) = &options.tls {
            self.write("server.crt", &tls.certificate, 0o600)?;
            self.write("server.key", &tls.key, 0o600)?;
            set("ssl", "on");
        }
        for (name, value) in &options.settings {
            set(name, value);
        }
        self.write("postgresql.auto.conf", &settings, 0o600)?;
        let access = format!(
            "local all all trust\nhost all {GUARDED_USER} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        );
        self.write("pg_hba.conf", &access, 0o600)
    }

    /// A program of PostgreSQL as the owner, with nothing of our environment that could mislead it.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.binaries.join(name));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            // The owner may not be allowed to stand where we do.
            .current_dir(&self.home);
        if let Some(owner) = self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }

    /// Writes a file of the data directory for the owner.
    fn write(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let path = self.data().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        self.give(&path)
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        match self.owner {
            Some(owner) => chown(path, Some(owner.uid), Some(owner.gid)),
            None => Ok(()),
        }
    }

    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    fn log(&self) -> PathBuf {
        self.home.join("log")
    }

    fn pid_file(&self) -> PathBuf {
        self.data().join("postmaster.pid")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The watchdog tries again if this fails.
        let _ = self.stop(Manner::AtOnce);
    }
}

fn free_port() -> io::Result<u16> {
    let mut last = None;
    for _ in 0..100 {
        let port = fastrand::u16(PORTS);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("there is no free port")))
}
