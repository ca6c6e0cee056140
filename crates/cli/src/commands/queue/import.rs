//! `orchestrator queue import FILE.jsonl`: many jobs, in bounded memory, several batches in flight.

use super::lines::{Chunk, Lines, Reject};
use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::intake::Intake;
use crate::log::BARS;
use crate::output::{Output, count};
use crate::session::{Missing, Session};
use crate::signals::Signals;
use clap::Args;
use futures_util::stream::{self, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use orchestrator_engine::{Engine, SubmitError};
use orchestrator_store::Submitted;
use serde::Serialize;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Instant;
use tokio::sync::mpsc;

/// So many batches wait for their commit at once.
const IN_FLIGHT: usize = 4;
/// So many rejects are also shown on stderr.
const SHOWN_REJECTS: u64 = 5;

/// Arguments of `queue import`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator queue import papers.jsonl
  grep unpaywall papers.jsonl | orchestrator queue import -",
    after_help = "A line holds one job; only artifact_id and handler are required:
  {\"artifact_id\": \"doi:10.1/x\", \"handler\": \"sleep\", \"payload\": {\"for\": \"1s\"}, \"queue\": \"default\",
   \"priority\": \"high\", \"run_at\": \"2026-11-15T06:00:00Z\", \"max_retries\": 3, \"timeout\": \"5m\",
   \"limits\": {\"resolver\": \"unpaywall\", \"host\": \"example.org\"}, \"tenant\": \"lab\", \"window\": \"24h\"}
Lines that cannot be taken in go to FILE.rejects with their number and the reason; the rest goes in, and
the exit code is 1. Importing a file again is safe: what is there already counts as a duplicate."
)]
pub struct ImportArgs {
    /// The file; - reads stdin
    file: PathBuf,
    /// Check only: take nothing in, write no file
    #[arg(long)]
    dry_run: bool,
    /// Where rejected lines go [default: FILE.rejects, import.rejects for stdin]
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Take handlers that this program does not have: another program serves them
    #[arg(long)]
    allow_unknown_handler: bool,
}

/// What came of an import.
#[derive(Debug, Default, Serialize)]
struct Summary {
    imported: u64,
    duplicate: u64,
    conflict: u64,
    invalid: u64,
    rejects: Option<String>,
    dry_run: bool,
    interrupted: bool,
    seconds: f64,
}

/// Imports the file.
pub async fn run(args: ImportArgs, globals: &Globals) -> CliResult {
    let started = Instant::now();
    let session = Session::start(globals, vec![])?;
    let (input, size) = open(&args.file)?;
    let intake = Intake::new(session.config.clone(), session.registry(), args.allow_unknown_handler);
    let mut import = Import {
        out: session.out,
        rejects: Rejects::new(&args),
        summary: Summary { dry_run: args.dry_run, ..Summary::default() },
        bar: bar(session.out, size),
    };
    let chunks = read_in_background(Lines::new(input, intake));
    let result = if args.dry_run {
        import.take_all(chunks, None, &args.file).await
    } else {
        let store = session.open(Missing::Create)?;
        let result = import.take_all(chunks, Some(session.engine(store.clone())), &args.file).await;
        store.close();
        result
    };
    import.bar.finish_and_clear();
    import.summary.rejects = import.rejects.finish()?;
    import.summary.seconds = started.elapsed().as_secs_f64();
    if let Err(error) = result {
        session.out.note(import.summary.text());
        return Err(error.and_hint("what is imported stays, and importing the file again is safe"));
    }
    import.tell()
}

fn open(path: &Path) -> CliResult<(Box<dyn BufRead + Send>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::new(std::io::stdin())), None));
    }
    let failed = |error: std::io::Error| CliError::io(path, &error);
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok((Box::new(BufReader::with_capacity(256 << 10, file)), Some(size)))
}

fn bar(out: Output, size: Option<u64>) -> ProgressBar {
    if !out.draws() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match size {
        Some(size) => (ProgressBar::new(size), "{bar:32} {bytes}/{total_bytes}  eta {eta}  {msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes}  {msg}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    BARS.add(bar.with_style(style))
}

type ChunkResult = std::io::Result<Chunk>;

/// Reads and checks lines on a thread of its own, a few chunks ahead of the store. It ends when
/// nobody takes its chunks any more.
fn read_in_background<R: BufRead + Send + 'static>(mut lines: Lines<R>) -> mpsc::Receiver<ChunkResult> {
    let (send, receive) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        while let Some(chunk) = lines.chunk().transpose() {
            let last = chunk.is_err();
            if send.blocking_send(chunk).is_err() || last {
                return;
            }
        }
    });
    receive
}

struct Import {
    out: Output,
    rejects: Rejects,
    summary: Summary,
    bar: ProgressBar,
}

impl Import {
    async fn take_all(
        &mut self,
        chunks: mpsc::Receiver<ChunkResult>,
        engine: Option<Engine>,
        file: &Path,
    ) -> CliResult<()> {
        let mut signals = Signals::listen()?;
        let chunks =
            stream::unfold(chunks, async |mut chunks| chunks.recv().await.map(|chunk| (chunk, chunks)));
        // In order, so that of two lines with one id the first is the one that counts.
        let mut done = pin!(chunks.map(|chunk| submit(engine.as_ref(), chunk)).buffered(IN_FLIGHT));
        let started = Instant::now();
        loop {
            tokio::select! {
                next = done.next() => match next {
                    None => return Ok(()),
                    Some(done) => self.note(done.map_err(|failed| failed.into_error(file))?)?,
                },
                _ = signals.next() => {
                    self.summary.interrupted = true;
                    return Ok(());
                }
            }
            let lines =
                self.summary.imported + self.summary.duplicate + self.summary.conflict + self.summary.invalid;
            self.bar.set_message(format!(
                "{} lines/s",
                count((lines as f64 / started.elapsed().as_secs_f64()) as u64)
            ));
        }
    }

    fn note(&mut self, (chunk, answers): (Chunk, Vec<Submitted>)) -> CliResult<()> {
        self.bar.inc(chunk.bytes);
        let mut rejects = chunk.rejects;
        self.summary.invalid += rejects.len() as u64;
        if answers.is_empty() {
            self.summary.imported += chunk.jobs.len() as u64;
        }
        for (answer, (line, text)) in answers.iter().zip(chunk.lines) {
            match answer {
                Submitted::Created { .. } => self.summary.imported += 1,
                Submitted::Existing { .. } => self.summary.duplicate += 1,
                Submitted::Conflict { id } => {
                    self.summary.conflict += 1;
                    let reason = format!("conflict: job {id} has this artifact_id and another payload");
                    rejects.push(Reject { line, reason, text });
                }
            }
        }
        rejects.sort_by_key(|reject| reject.line);
        for reject in &rejects {
            self.rejects.write(reject, self.out)?;
        }
        Ok(())
    }

    fn tell(self) -> CliResult {
        if self.out.is_table() {
            self.out.line(self.summary.text())?;
        } else {
            self.out.json(&self.summary)?;
        }
        Ok(match (self.summary.interrupted, self.summary.invalid + self.summary.conflict) {
            (true, _) => Exit::Interrupted,
            (false, 0) => Exit::Ok,
            (false, _) => Exit::Error,
        })
    }
}

enum Failed {
    Read(std::io::Error),
    Submit(SubmitError),
}

impl Failed {
    fn into_error(self, file: &Path) -> CliError {
        match self {
            Failed::Read(error) => CliError::io(file, &error),
            Failed::Submit(SubmitError::Store(error)) => error.into(),
            Failed::Submit(error) => CliError::new(Exit::Error, "invalid", error.to_string()),
        }
    }
}

/// Submits a chunk; without an engine it only passes it on.
async fn submit(engine: Option<&Engine>, chunk: ChunkResult) -> Result<(Chunk, Vec<Submitted>), Failed> {
    let mut chunk = chunk.map_err(Failed::Read)?;
    let answers = match engine {
        Some(engine) => engine.submit(std::mem::take(&mut chunk.jobs)).await.map_err(Failed::Submit)?,
        None => vec![],
    };
    Ok((chunk, answers))
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!(
            "{} {} · duplicate {}",
            if self.dry_run { "valid" } else { "imported" },
            count(self.imported),
            count(self.duplicate)
        );
        if self.conflict > 0 {
            text += &format!(" · conflict {}", count(self.conflict));
        }
        text += &format!(" · invalid {}", count(self.invalid));
        if let Some(path) = &self.rejects {
            text += &format!(" ({path})");
        }
        if self.interrupted {
            text += " · interrupted";
        }
        format!("{text}      {:.1}s", self.seconds)
    }
}

/// The rejects file, made with the first of them. That of an earlier import is taken away, lest it
/// be taken for this one's.
struct Rejects {
    path: PathBuf,
    input: String,
    dry_run: bool,
    file: Option<BufWriter<File>>,
    shown: u64,
}

impl Rejects {
    fn new(args: &ImportArgs) -> Self {
        let input = args.file.display().to_string();
        let stdin = input == "-";
        let path = args.rejects.clone().unwrap_or_else(|| {
            PathBuf::from(if stdin { "import.rejects".to_owned() } else { format!("{input}.rejects") })
        });
        let input = if stdin { "stdin".to_owned() } else { input };
        Rejects { path, input, dry_run: args.dry_run, file: None, shown: 0 }
    }

    fn write(&mut self, reject: &Reject, out: Output) -> CliResult<()> {
        self.shown += 1;
        if self.shown <= SHOWN_REJECTS {
            BARS.suspend(|| out.note(format!("  {}:{}  {}", self.input, reject.line, reject.reason)));
        }
        if self.dry_run {
            return Ok(());
        }
        let failed = |error: std::io::Error| CliError::io(&self.path, &error);
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(File::create(&self.path).map_err(failed)?)),
        };
        let line = serde_json::to_string(reject).map_err(|error| failed(error.into()))?;
        writeln!(file, "{line}").map_err(failed)
    }

    /// The file that was written, if any.
    fn finish(&mut self) -> CliResult<Option<String>> {
        match self.file.take() {
            Some(mut file) => {
                file.flush().map_err(|error| CliError::io(&self.path, &error))?;
                Ok(Some(self.path.display().to_string()))
            }
            None => {
                if !self.dry_run {
                    // Nothing to take away is the usual case.
                    let _ = std::fs::remove_file(&self.path);
                }
                Ok(None)
            }
        }
    }
}
