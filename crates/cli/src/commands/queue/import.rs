//! `orchestrator queue import FILE.jsonl`: many jobs, in bounded memory, several batches in flight.

use super::lines::{Chunk, Lines, Reject, Trouble, Wait};
use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::flow::current::Current;
use crate::intake::Intake;
use crate::log::BARS;
use crate::output::{Format, Output, count};
use crate::session::{Missing, Session};
use crate::signals::Signals;
use clap::Args;
use futures_util::stream::{self, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use orchestrator_core::JobId;
use orchestrator_engine::{Engine, SubmitError};
use orchestrator_store::Submitted;
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Instant;
use tokio::sync::mpsc;

/// So many batches wait for their commit at once.
const IN_FLIGHT: usize = 4;
/// So many rejects are also shown on stderr.
const SHOWN_REJECTS: u64 = 5;
/// So much is read at once.
const BUFFER: usize = 256 << 10;

/// Arguments of `queue import`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator queue import papers.jsonl
  grep unpaywall papers.jsonl | orchestrator queue import -",
    after_help = "A line holds one job; only artifact_id and handler or flow are required:
  {\"artifact_id\": \"doi:10.1/x\", \"handler\": \"sleep\", \"payload\": {\"for\": \"1s\"}, \"queue\": \"default\",
   \"priority\": \"high\", \"run_at\": \"2026-11-15T06:00:00Z\", \"max_retries\": 3, \"timeout\": \"5m\",
   \"limits\": {\"resolver\": \"unpaywall\", \"host\": \"example.org\"}, \"tenant\": \"lab\", \"window\": \"24h\"}
  {\"artifact_id\": \"set-7\", \"flow\": \"dataset-build\", \"input\": {\"images\": 24}}
Lines that cannot be taken in go to FILE.rejects with their number and the reason; the rest goes in, and
the exit code is 1. Importing a file again is safe: what is there already counts as a duplicate.
With -o jsonl each line is answered as soon as it is durable, before more is read where stdin has no more yet:
  {\"line\": 1, \"artifact_id\": \"doi:10.1/x\", \"id\": \"019a8f00-...\", \"outcome\": \"created\"}
The outcome is created, duplicate, conflict or invalid; the counts come last."
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

/// What came of a line, for programs.
#[derive(Serialize)]
struct Answer<'a> {
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<JobId>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
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
    let (input, wait, size) = open(&args.file)?;
    let store = match session.open(if args.dry_run { Missing::Fail } else { Missing::Create }).await {
        Err(error) if args.dry_run && error.exit == Exit::NotFound => None,
        store => Some(store?),
    };
    let engine = store.clone().map(|store| session.engine(store));
    let intake = Intake::new(&session.config, session.registry(), args.allow_unknown_handler)
        .with_flows(engine.clone().map(Current::new));
    let mut import = Import {
        out: session.out,
        rejects: Rejects::new(&args),
        summary: Summary { dry_run: args.dry_run, ..Summary::default() },
        bar: bar(session.out, size),
    };
    let chunks = read_in_background(Lines::new(input, intake).wait(wait));
    let result = import.take_all(chunks, engine.filter(|_| !args.dry_run), &args.file).await;
    if let Some(store) = store {
        store.close().await;
    }
    import.bar.finish_and_clear();
    import.summary.rejects = import.rejects.finish()?;
    import.summary.seconds = started.elapsed().as_secs_f64();
    if let Err(error) = result {
        session.out.note(import.summary.text());
        return Err(error.and_hint("what is imported stays, and importing the file again is safe"));
    }
    import.tell()
}

type Input = BufReader<Box<dyn Read + Send>>;

fn open(path: &Path) -> CliResult<(Input, Wait, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((BufReader::with_capacity(BUFFER, Box::new(std::io::stdin())), Wait::Never, None));
    }
    let failed = |error: std::io::Error| CliError::io(path, &error);
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok((BufReader::with_capacity(BUFFER, Box::new(file)), Wait::ForLines, Some(size)))
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

type ChunkResult = Result<Chunk, Trouble>;

/// Reads and checks lines on a thread of its own, a few chunks ahead of the store. It ends when
/// nobody takes its chunks any more.
fn read_in_background<R: Read + Send + 'static>(mut lines: Lines<R>) -> mpsc::Receiver<ChunkResult> {
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

    fn note(&mut self, (mut chunk, answers): (Chunk, Vec<Submitted>)) -> CliResult<()> {
        self.bar.inc(chunk.bytes);
        let mut rejects = std::mem::take(&mut chunk.rejects);
        self.summary.invalid += rejects.len() as u64;
        if answers.is_empty() {
            self.summary.imported += chunk.jobs.len() as u64;
        }
        self.answer(&chunk, &answers, &rejects)?;
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

    /// Tells a program what came of each line of a batch, in one write.
    fn answer(&self, chunk: &Chunk, answers: &[Submitted], rejects: &[Reject]) -> CliResult<()> {
        if self.out.format != Format::Jsonl || self.summary.dry_run {
            return Ok(());
        }
        let lines = chunk.lines.iter().zip(&chunk.artifact_ids);
        let taken = lines.zip(answers).map(|(((line, _), artifact_id), answer)| Answer {
            line: *line,
            artifact_id: Some(&**artifact_id),
            id: Some(answer.id()),
            outcome: match answer {
                Submitted::Created { .. } => "created",
                Submitted::Existing { .. } => "duplicate",
                Submitted::Conflict { .. } => "conflict",
            },
            reason: None,
        });
        let invalid = rejects.iter().map(|reject| Answer {
            line: reject.line,
            artifact_id: None,
            id: None,
            outcome: "invalid",
            reason: Some(&reject.reason),
        });
        let mut all: Vec<_> = taken.chain(invalid).collect();
        all.sort_by_key(|answer| answer.line);
        let mut text = String::new();
        for answer in &all {
            text += &serde_json::to_string(answer).map_err(|error| CliError::stdout(&error.into()))?;
            text.push('\n');
        }
        self.out.data(&text)
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
    Lines(Trouble),
    Submit(SubmitError),
}

impl Failed {
    fn into_error(self, file: &Path) -> CliError {
        match self {
            Failed::Lines(Trouble::Read(error)) => CliError::io(file, &error),
            Failed::Lines(Trouble::Store(error)) | Failed::Submit(SubmitError::Store(error)) => error.into(),
            Failed::Submit(error) => CliError::new(Exit::Error, "invalid", error.to_string()),
        }
    }
}

/// Submits a chunk; without an engine it only passes it on.
async fn submit(engine: Option<&Engine>, chunk: ChunkResult) -> Result<(Chunk, Vec<Submitted>), Failed> {
    let mut chunk = chunk.map_err(Failed::Lines)?;
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
