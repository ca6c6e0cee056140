//! A server of the real binary.

use super::http::{self, Answer};
use crate::support::{Place, Running, until};
use rustix::process::Signal;
use serde_json::Value;

/// A running server.
pub struct Server {
    pub running: Running,
    pub address: String,
}

impl Server {
    /// Starts `serve` with a configuration, on ports that are free.
    pub fn start(place: &Place, config: &str, args: &[&str]) -> Server {
        place.write("orchestrator.toml", config);
        let running = place.start_as("server", &[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let address = found(&running, "listening on http://");
        Server { running, address }
    }

    /// The address of the metrics.
    pub fn metrics(&self) -> String {
        found(&self.running, "metrics on http://").trim_end_matches("/metrics").to_owned()
    }

    pub fn get(&self, path: &str) -> Answer {
        http::get(&self.address, path)
    }

    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        http::post(&self.address, path, headers, body)
    }

    /// Takes a job in and waits for its end.
    pub fn run(&self, headers: &[(&str, &str)], job: &Value) -> Value {
        let answer = self.post("/jobs?wait=2m", headers, job);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Stops it in order.
    pub fn stop(&mut self) {
        self.running.signal(Signal::TERM);
        assert_eq!(self.running.end().code(), Some(0), "{}", self.running.log());
    }
}

/// The address behind some words of the log.
fn found(running: &Running, words: &str) -> String {
    let mut found = None;
    until(words, || {
        let log = running.log();
        found = log.lines().find_map(|line| {
            let rest = &line[line.find(words)? + words.len()..];
            // A line that is still being written is none.
            log.contains(&format!("{rest}\n")).then(|| rest.split('"').next().unwrap_or(rest).to_owned())
        });
        found.is_some()
    });
    found.unwrap()
}
