//! A job under watch: a picture that is drawn again and again on a terminal, a line per event
//! elsewhere, and the report at its end.

mod end;
mod frame;
#[cfg(test)]
mod tests;
mod track;

pub use end::report;

use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::find;
use crate::log::BARS;
use crate::output::{Output, took};
use indicatif::{ProgressBar, ProgressStyle};
use orchestrator_core::{JobId, Millis, Timestamp};
use orchestrator_engine::{Engine, Progress, WaitError, Waited};
use orchestrator_store::{JobView, TaskView};
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;
use track::Track;

/// The time between two looks at the job.
const TICK: Duration = Duration::from_millis(100);
/// Items of a `for_each` are told one by one up to so many; of more, only their number.
const TOLD_ITEMS: u32 = 20;

/// A job at one moment.
pub struct Seen {
    /// The job.
    pub job: JobView,
    /// The items of those of its tasks that have few.
    pub items: Vec<TaskView>,
    /// How far it is.
    pub progress: Progress,
    /// The moment.
    pub now: Timestamp,
}

impl Seen {
    /// Looks at a job.
    pub async fn look(engine: &Engine, id: JobId) -> CliResult<Seen> {
        let store = engine.store();
        let progress = engine.handle(id).progress().await?;
        let Some(job) = store.job(id).await? else {
            return Err(CliError::new(Exit::NotFound, "not_found", format!("there is no job {id}")));
        };
        let mut items = vec![];
        for task in job.tasks.iter().filter(|task| task.items.is_some_and(|items| items.count <= TOLD_ITEMS))
        {
            items.extend(find::items(&**store, id, task).await?);
        }
        Ok(Seen { job, items, progress, now: store.now() })
    }
}

/// How a job is shown.
enum Mode {
    /// Drawn on a terminal.
    Drawn(ProgressBar),
    /// A line per event.
    Lines,
    /// Not at all.
    Silent,
}

/// A job that is shown.
pub struct Live {
    out: Output,
    mode: Mode,
    track: Track,
    /// The moment of the first look: times are told from here.
    first: Option<Timestamp>,
}

impl Live {
    /// Starts to show. `silent` shows nothing but notes.
    pub fn start(out: Output, silent: bool) -> Live {
        let mode = if silent || out.quiet {
            Mode::Silent
        } else if out.draws() {
            let style =
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            Mode::Drawn(BARS.add(ProgressBar::new(100).with_style(style)))
        } else {
            Mode::Lines
        };
        Live { out, mode, track: Track::default(), first: None }
    }

    /// Takes what has happened so far as told.
    pub fn know(&mut self, seen: &Seen) {
        self.track.events(&seen.job, &seen.items, seen.now);
    }

    /// Tells people something beside the picture.
    pub fn note(&self, text: &str) {
        BARS.suspend(|| self.out.note(text));
    }

    /// Shows the job as it is now.
    pub fn show(&mut self, seen: &Seen) {
        let events = self.track.events(&seen.job, &seen.items, seen.now);
        let first = *self.first.get_or_insert(seen.now);
        let line = |event: &track::Event| {
            format!("{:>7}  {}", took(event.at.since(first)), event.text(self.out, seen.now))
        };
        match &self.mode {
            Mode::Drawn(bar) => {
                events.iter().filter(|event| event.is_failure()).for_each(|event| self.note(&line(event)));
                let term = console::Term::stderr();
                let (rows, columns) = term.size_checked().unwrap_or((24, 80));
                let size = frame::Size { rows: rows.into(), columns: columns.into() };
                bar.set_message(frame::draw(seen, &self.track, size, |how, text| {
                    self.out.paint_err(how, text)
                }));
            }
            Mode::Lines => events.iter().for_each(|event| self.out.note(line(event))),
            Mode::Silent => {}
        }
    }

    /// Leaves the last picture as plain text, where nothing that is drawn later can touch it.
    pub fn finish(&mut self) {
        if let Mode::Drawn(bar) = &self.mode {
            let picture = bar.message();
            bar.finish_and_clear();
            if !picture.is_empty() {
                self.out.note(picture);
            }
        }
        self.mode = Mode::Silent;
    }

    /// Shows a job until it has ended, or for so long.
    pub async fn until_ended(
        &mut self,
        engine: &Engine,
        id: JobId,
        limit: Option<Millis>,
    ) -> CliResult<Waited> {
        let mut ended = pin!(engine.wait(id, limit.map(Into::into)));
        loop {
            self.look(engine, id).await?;
            tokio::select! {
                waited = &mut ended => {
                    let waited = waited.map_err(|error| match error {
                        WaitError::NotFound(id) => {
                            CliError::new(Exit::NotFound, "not_found", format!("there is no job {id}"))
                        }
                        WaitError::Store(error) => error.into(),
                    })?;
                    self.look(engine, id).await?;
                    return Ok(waited);
                }
                () = sleep(TICK) => {}
            }
        }
    }

    async fn look(&mut self, engine: &Engine, id: JobId) -> CliResult<()> {
        if !matches!(self.mode, Mode::Silent) {
            let seen = Seen::look(engine, id).await?;
            self.show(&seen);
        }
        Ok(())
    }
}
