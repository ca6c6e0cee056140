//! Reads a file of lines in bounded memory and gathers their jobs into chunks.

use crate::intake::Intake;
use orchestrator_core::NewJob;
use orchestrator_store::StoreError;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// A chunk is closed at so many lines ...
const CHUNK_LINES: usize = 1000;
/// ... or so many bytes.
const CHUNK_BYTES: u64 = 4 << 20;
/// So much is shown of a line that was too long to be kept.
const SHOWN: usize = 1000;

/// A line that is not taken in, as it stands in the rejects file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reject {
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
    /// The line itself; only its beginning where it is too long.
    pub text: String,
}

/// Why there are no more chunks though there are more lines.
#[derive(Debug)]
pub enum Trouble {
    /// They cannot be read.
    Read(io::Error),
    /// The store cannot be asked for the flow of a job.
    Store(StoreError),
}

/// When a chunk is closed before it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At the end only: the next lines are there.
    ForLines,
    /// As soon as the next line is not there yet: who writes them may wait for answers first.
    Never,
}

/// Some lines: their jobs, and those that have none.
#[derive(Default)]
pub struct Chunk {
    /// The jobs.
    pub jobs: Vec<NewJob>,
    /// The line of each job, to name it where the store refuses it.
    pub lines: Vec<(u64, String)>,
    /// The key of each job, to tell what came of it.
    pub artifact_ids: Vec<Arc<str>>,
    /// Lines that hold no valid job.
    pub rejects: Vec<Reject>,
    /// How much was read.
    pub bytes: u64,
}

/// Reads chunks one after the other.
pub struct Lines<R> {
    input: BufReader<R>,
    wait: Wait,
    intake: Intake,
    line: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Reads from the start, in chunks as full as they can be.
    pub fn new(input: BufReader<R>, intake: Intake) -> Self {
        Lines { input, wait: Wait::ForLines, intake, line: 0, buffer: vec![] }
    }

    /// With another rule for chunks that are not full.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// The next chunk; `None` at the end.
    pub fn chunk(&mut self) -> Result<Option<Chunk>, Trouble> {
        let mut chunk = Chunk::default();
        self.intake.begin_batch();
        while chunk.jobs.len() + chunk.rejects.len() < CHUNK_LINES && chunk.bytes < CHUNK_BYTES {
            let empty = chunk.jobs.is_empty() && chunk.rejects.is_empty();
            if self.wait == Wait::Never && !empty && !self.input.buffer().contains(&b'\n') {
                break;
            }
            let max = self.intake.max_line();
            let line = read_line(&mut self.input, &mut self.buffer, max).map_err(Trouble::Read)?;
            let Some((read, whole)) = line else {
                return Ok((chunk.bytes > 0).then_some(chunk));
            };
            self.line += 1;
            chunk.bytes += read;
            let mut text = self.buffer.as_slice();
            if self.line == 1 {
                text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
            }
            let text = text.trim_ascii();
            if !text.is_empty() {
                take(&mut chunk, &mut self.intake, self.line, text, (!whole).then_some(max));
            }
            if let Some(error) = self.intake.trouble() {
                return Err(Trouble::Store(error));
            }
        }
        Ok(Some(chunk))
    }
}

fn take(chunk: &mut Chunk, intake: &mut Intake, line: u64, bytes: &[u8], over: Option<usize>) {
    let mut reject = |reason: String, text: String| chunk.rejects.push(Reject { line, reason, text });
    if let Some(max) = over {
        let shown = &bytes[..bytes.len().min(SHOWN)];
        return reject(
            format!("the line is longer than {max} bytes"),
            String::from_utf8_lossy(shown).into_owned(),
        );
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return reject("the line is not UTF-8".to_owned(), String::from_utf8_lossy(bytes).into_owned());
    };
    match intake.line(text) {
        Ok(job) => {
            let artifact_id = job.key.as_ref().map(|key| key.text.clone()).unwrap_or_default();
            chunk.jobs.push(job);
            chunk.lines.push((line, text.to_owned()));
            chunk.artifact_ids.push(artifact_id);
        }
        Err(problems) => {
            let reason = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            reject(reason, text.to_owned());
        }
    }
}

/// Reads one line into `buffer`, of which no more than `max` bytes are kept. Answers how much was
/// read and whether all of it was kept; `None` at the end.
fn read_line(input: &mut impl BufRead, buffer: &mut Vec<u8>, max: usize) -> io::Result<Option<(u64, bool)>> {
    buffer.clear();
    let (mut read, mut whole) = (0u64, true);
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok((read > 0).then_some((read, whole)));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let content = &available[..end.unwrap_or(available.len())];
        let room = max - buffer.len();
        whole &= content.len() <= room;
        buffer.extend_from_slice(&content[..content.len().min(room)]);
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        read += used as u64;
        if end.is_some() {
            return Ok(Some((read, whole)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};
    use orchestrator_worker::builtin::{BuiltinConfig, registry};

    fn read_all(text: &[u8]) -> Chunk {
        let sources = Sources {
            env: vec![("ORCHESTRATOR_MAX_PAYLOAD".to_owned(), "1KB".to_owned())],
            ..Sources::default()
        };
        let intake = Intake::new(&load(&sources).unwrap().config, registry(BuiltinConfig::default()), false);
        // A tiny buffer, so that lines come in many pieces.
        let mut lines = Lines::new(BufReader::with_capacity(7, text), intake);
        let mut all = Chunk::default();
        while let Some(chunk) = lines.chunk().unwrap() {
            all.jobs.extend(chunk.jobs);
            all.lines.extend(chunk.lines);
            all.rejects.extend(chunk.rejects);
            all.bytes += chunk.bytes;
        }
        all
    }

    #[test]
    fn lines_are_numbered_and_blank_ones_passed() {
        let text = b"\xef\xbb\xbf{\"artifact_id\":\"a\",\"handler\":\"noop\"}\r\n\n  \nnonsense\n{\"artifact_id\":\"b\",\"handler\":\"noop\"}";
        let all = read_all(text);
        assert_eq!(all.lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(all.rejects.len(), 1);
        assert_eq!((all.rejects[0].line, all.rejects[0].text.as_str()), (4, "nonsense"));
        assert_eq!(all.bytes, text.len() as u64);
    }

    #[test]
    fn a_line_without_end_costs_no_memory() {
        let mut text = vec![b'x'; 300_000];
        text.extend(b"\n{\"artifact_id\":\"b\",\"handler\":\"noop\"}\n\xff\xfe\n");
        let all = read_all(&text);
        assert_eq!(all.jobs.len(), 1);
        assert!(all.rejects[0].reason.starts_with("the line is longer than"), "{:?}", all.rejects[0].reason);
        assert_eq!(all.rejects[0].text.len(), SHOWN);
        assert_eq!(all.rejects[1].reason, "the line is not UTF-8");
    }

    #[test]
    fn chunks_are_bounded() {
        let text: String =
            (0..2500).map(|n| format!("{{\"artifact_id\":\"{n}\",\"handler\":\"noop\"}}\n")).collect();
        let config = load(&Sources::default()).unwrap().config;
        let intake = Intake::new(&config, registry(BuiltinConfig::default()), false);
        let mut lines = Lines::new(BufReader::new(text.as_bytes()), intake);
        let mut sizes = vec![];
        while let Some(chunk) = lines.chunk().unwrap() {
            sizes.push(chunk.jobs.len());
        }
        assert_eq!(sizes, [1000, 1000, 500]);
    }
}
