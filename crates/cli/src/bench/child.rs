//! A server in a process of its own, so that its time and its memory are its own.

use super::place::Place;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::Output;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// What comes before the address in the line that tells it.
const LISTENING: &str = "listening on http://";
/// A server that is to start has started long before.
const START: Duration = Duration::from_secs(60);

/// A server process; it is killed with the benchmark.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts `serve` on a new store.
    pub async fn serve(place: &Place, name: &str) -> CliResult<Server> {
        let db = place.db(name)?;
        Server::start(["serve", "--listen", "127.0.0.1:0", "--db", &db]).await
    }

    /// Starts this very program with arguments, and waits until it tells its address.
    pub async fn start(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> CliResult<Server> {
        let me = std::env::current_exe().map_err(io)?;
        let mut command = Command::new(me);
        command.args(args).env_remove("ORCHESTRATOR_SERVER").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(io)?;
        let stderr = child.stderr.take().ok_or_else(|| failed("the server has no stderr"))?;
        let mut lines = BufReader::new(stderr).lines();
        let told = timeout(START, async {
            let mut said = vec![];
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(address) = line.split(LISTENING).nth(1).and_then(|text| text.trim().parse().ok())
                {
                    return Ok(address);
                }
                said.push(line);
            }
            Err(failed(format!("the server did not start: {}", said.join("; "))))
        });
        let address = told.await.map_err(|_| failed("the server did not start in time"))??;
        // Whoever is not read stands still when the pipe is full.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Server { child, address })
    }

    /// The process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends it, and waits until it is gone.
    pub async fn end(mut self) -> CliResult<()> {
        self.child.kill().await.map_err(io)
    }
}

/// Tells who started this process where it listens.
pub fn tell_address(out: &Output, address: SocketAddr) {
    out.note(format!("{LISTENING}{address}"));
}

fn failed(message: impl Into<String>) -> CliError {
    CliError::new(Exit::Error, "bench", message.into())
}

fn io(error: std::io::Error) -> CliError {
    failed(error.to_string())
}
