//! What came of a storm, for people.

use crate::record::Figures;
use crate::{Failure, out};
use orchestrator_history::{History, LastWord, Verdict};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So many findings are shown; the file has all.
const SHOWN: usize = 20;

/// What came of a storm.
pub struct Report {
    /// Its name.
    pub name: &'static str,
    /// What the checker says.
    pub verdict: Verdict,
    /// What was seen.
    pub figures: Figures,
    /// What was broken, and how often.
    pub faults: Vec<(&'static str, u64)>,
    /// What else is worth a line.
    pub notes: Vec<String>,
    /// Writes by those who had lost their lease, all refused.
    pub stale_writes: usize,
    /// Whether everything came to an end.
    pub drained: bool,
    /// How long it took, without the last look.
    pub stormed: Duration,
    /// The directory, where it is kept.
    pub kept: Option<PathBuf>,
}

impl Report {
    /// Whether all is well.
    pub fn is_clean(&self) -> bool {
        self.verdict.is_clean() && self.drained
    }

    /// Tells it.
    pub fn tell(&self, word: &LastWord) {
        let tasks: usize = word.jobs.iter().map(|job| job.tasks.len()).sum();
        let all = || word.jobs.iter().flat_map(|job| &job.tasks);
        let attempts: u64 = all().map(|task| u64::from(task.attempt)).sum();
        let crashes: u64 = all().map(|task| u64::from(task.crashes)).sum();
        let faults: String = self.faults.iter().map(|(what, number)| format!(", {number} {what}")).collect();
        out::tell(format!("storm {}: {}", self.name, self.verdict));
        out::tell(format!(
            "  {} jobs, {tasks} tasks, {attempts} attempts ({crashes} lost, {} stale writes refused){faults}, {} calls, {} handler starts ({} cut off), {:.1} s",
            word.jobs.len(),
            self.stale_writes,
            self.figures.calls,
            self.figures.starts,
            self.figures.aborts,
            self.stormed.as_secs_f64()
        ));
        for note in &self.notes {
            out::tell(format!("  {note}"));
        }
        if !self.drained {
            out::tell("  nothing moved any more though work was left");
        }
        for finding in self.verdict.findings.iter().take(SHOWN) {
            out::tell(format!("  {finding}"));
        }
        if self.verdict.findings.len() > SHOWN {
            out::tell(format!("  ... and {} more", self.verdict.findings.len() - SHOWN));
        }
    }

    /// Writes history, last word and findings beside the rest, a JSON document per line.
    pub fn keep(&self, dir: &Path, history: &History, word: &LastWord) -> Result<(), Failure> {
        write(&dir.join("history.jsonl"), &history.events)?;
        write(&dir.join("last.jsonl"), &word.jobs)?;
        write(&dir.join("findings.jsonl"), &self.verdict.findings)
    }
}

fn write<T: serde::Serialize>(path: &Path, values: &[T]) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    for value in values {
        serde_json::to_writer(&mut file, value)?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}
