//! The journal of a model.

use super::Model;
use crate::journal::{EventId, JournalEvent, JournalPage, JournalRange, Pager};
use orchestrator_core::{Event, Timestamp};

/// One commit.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number.
    pub n: i64,
    /// When it was committed.
    pub at: Timestamp,
    /// All that changed.
    pub events: Vec<Event>,
}

impl Model {
    /// How many entries the journal has.
    pub fn journal_len(&self) -> usize {
        self.journal.len()
    }

    /// The journal from after an event.
    pub fn journal(&self, after: EventId, limit: u32) -> JournalPage {
        let mut pager = Pager::new(after, limit);
        for entry in self.journal.iter().filter(|entry| entry.n >= after.entry) {
            if pager.is_full() {
                break;
            }
            for index in pager.take(entry.n, entry.events.len()) {
                if let Some(event) = self.told_of(entry, index) {
                    pager.push(event);
                }
            }
        }
        pager.done()
    }

    /// What is told of an event; nothing where its job was removed.
    fn told_of(&self, entry: &Entry, index: usize) -> Option<JournalEvent> {
        let event = entry.events[index];
        let job = self.at(self.seq(event.job())?);
        let name = match event {
            Event::Task(event) if job.run.place(event.task.index).is_some() => {
                Some(job.name(event.task.index))
            }
            Event::Task(event) => Some(event.task.index.to_string().into()),
            Event::Job(_) => None,
        };
        Some(JournalEvent {
            id: EventId { entry: entry.n, index: index as u32 },
            at: entry.at,
            event,
            name,
            tenant: job.tenant.clone(),
            flow: job.flow(),
        })
    }

    /// What is kept of the journal.
    pub fn journal_range(&self) -> JournalRange {
        let (Some(oldest), Some(newest)) = (self.journal.first(), self.journal.last()) else {
            return JournalRange::default();
        };
        let index = newest.events.len() as u32 - 1;
        JournalRange { oldest: oldest.n, newest: EventId { entry: newest.n, index } }
    }

    /// Removes old entries.
    pub fn forget_journal(&mut self, before: Timestamp, limit: u32) -> u32 {
        let newest = self.journal.last().map(|entry| entry.n);
        let oldest = self.journal.iter().take(limit as usize);
        let old = oldest.take_while(|entry| entry.at < before && Some(entry.n) != newest).count();
        for entry in self.journal.drain(..old) {
            // Whether its moves are legal was looked at before.
            let _ = self.told.read(&entry);
        }
        old as u32
    }
}
