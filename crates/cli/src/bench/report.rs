//! Figures, for people and as JSON.

use crate::error::CliResult;
use crate::output::{Output, columns, count};
use serde::Serialize;
use std::time::Duration;

/// All figures of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    version: &'static str,
    cores: usize,
    /// Which database was measured, and what its answers mean.
    database: String,
    figures: Vec<Figure>,
}

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

impl Report {
    /// An empty report on a database.
    pub fn new(database: impl Into<String>) -> Self {
        Report {
            version: env!("CARGO_PKG_VERSION"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            database: database.into(),
            figures: vec![],
        }
    }

    /// Adds a rate.
    pub fn rate(&mut self, name: impl Into<String>, jobs: u64, took: Duration) -> f64 {
        let value = jobs as f64 / took.as_secs_f64();
        self.add(name, value.round(), "jobs/s");
        value
    }

    /// Adds a rate of tasks.
    pub fn task_rate(&mut self, name: impl Into<String>, tasks: u64, took: Duration) -> f64 {
        let value = tasks as f64 / took.as_secs_f64();
        self.add(name, value.round(), "tasks/s");
        value
    }

    /// Adds the time that one of many tasks took.
    pub fn per_task(&mut self, name: impl Into<String>, micros: f64) {
        self.add(name, (micros * 100.0).round() / 100.0, "µs/task");
    }

    /// Adds percentiles of latencies.
    pub fn latency(&mut self, name: &str, mut samples: Vec<Duration>) {
        samples.sort();
        for (label, part) in [("p50", 0.50), ("p99", 0.99), ("max", 1.0)] {
            let at = ((samples.len() - 1) as f64 * part) as usize;
            let ms = samples[at].as_secs_f64() * 1000.0;
            self.add(format!("{name} {label}"), (ms * 1000.0).round() / 1000.0, "ms");
        }
    }

    /// Adds the ratio of two figures of this run.
    pub fn ratio(&mut self, name: impl Into<String>, part: f64, whole: f64) {
        self.add(name, (part / whole * 1000.0).round() / 1000.0, "");
    }

    /// Adds a number of jobs.
    pub fn count(&mut self, name: impl Into<String>, jobs: u64) {
        self.add(name, jobs as f64, "jobs");
    }

    /// Adds what the process holds in memory now.
    pub fn memory(&mut self, name: &str) {
        self.memory_of(name, Some(std::process::id()));
    }

    /// Adds what a process holds in memory now.
    pub fn memory_of(&mut self, name: &str, process: Option<u32>) {
        if let Some(bytes) = process.and_then(resident) {
            self.add(name, (bytes as f64 / 1e5).round() / 10.0, "MB");
        }
    }

    fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { name: name.into(), value, unit });
    }

    /// Shows everything.
    pub fn show(&self, out: &Output) -> CliResult<()> {
        if !out.is_table() {
            return out.json(self);
        }
        let rows = self.figures.iter().map(|figure| {
            let value = match figure.unit {
                "jobs" | "jobs/s" | "tasks/s" => count(figure.value as u64),
                _ => figure.value.to_string(),
            };
            vec![figure.name.clone(), value, figure.unit.to_owned()]
        });
        out.data(&columns(&["FIGURE", "VALUE", ""], &[1], rows.collect()))?;
        out.line(format!("\n{} cores, {}", self.cores, self.database))
    }
}

/// The resident memory of a process, where the system tells.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
