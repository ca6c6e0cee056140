//! The command line on a server, and the server as a process.

mod dev;
mod faults;
mod normal;
mod parity;
mod serve;

use crate::support::{Place, Running, until};
use rustix::process::Signal;

/// A server at work in a place, on a file there.
pub struct Server {
    running: Running,
    url: String,
}

impl Server {
    /// Starts one on any port that is free.
    pub fn start(place: &Place, more: &[&str]) -> Server {
        Server::start_at(place, "127.0.0.1:0", more)
    }

    /// Starts one on an address.
    pub fn start_at(place: &Place, address: &str, more: &[&str]) -> Server {
        let args = ["serve", "--listen", address, "--db", "server.db"];
        let running = place.start_as("serve", &[&args, more].concat());
        let url = url(&running);
        Server { running, url }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) {
        self.running.signal(Signal::KILL);
        self.running.end();
    }

    /// Its address, as `127.0.0.1:8000`.
    pub fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }
}

/// The address that a server says it listens on.
fn url(running: &Running) -> String {
    let told = || {
        let log = running.log();
        let line = log.lines().find_map(|line| line.strip_prefix("listening on "))?;
        log.contains('\n').then(|| line.to_owned())
    };
    until("the server to listen", || told().is_some());
    told().unwrap()
}
