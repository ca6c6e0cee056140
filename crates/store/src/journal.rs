//! The journal as it is read: what changed, in the order in which it was committed, page by page.

use orchestrator_core::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The id of an event: the number of its entry (one commit), and its place in it. Ids follow the order in which events
/// became visible, and stay for ever the same.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The number of the entry. Entries are numbered from 1, without gaps.
    pub entry: i64,
    /// The place of the event among all that the commit changed, from 0.
    pub index: u32,
}

impl EventId {
    /// Before all events.
    pub const START: EventId = EventId { entry: 0, index: 0 };

    /// The place right before an entry: after all events of the one before it, however many those were.
    pub fn before(entry: i64) -> EventId {
        if entry <= 1 { EventId::START } else { EventId { entry: entry - 1, index: u32::MAX } }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.entry, self.index)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no id of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of an event (expected two numbers with a dot between them, such as 7.0)")]
pub struct BadEventId(String);

impl FromStr for EventId {
    type Err = BadEventId;
    fn from_str(text: &str) -> Result<Self, BadEventId> {
        let bad = || BadEventId(text.chars().take(60).collect());
        let (entry, index) = text.split_once('.').ok_or_else(bad)?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(entry) || !digits(index) {
            return Err(bad());
        }
        Ok(EventId { entry: entry.parse().map_err(|_| bad())?, index: index.parse().map_err(|_| bad())? })
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(input)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One event, with what its listeners choose by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEvent {
    /// Its id.
    pub id: EventId,
    /// When it was committed.
    pub at: Timestamp,
    /// What changed.
    pub event: Event,
    /// The name of the task, as in [`crate::TaskView::name`]; none where the event is the job's own. Of an item that a
    /// recovery has replaced since, its index.
    pub name: Option<Arc<str>>,
    /// Whose job it is.
    pub tenant: Arc<str>,
    /// The flow that the job runs.
    pub flow: Option<Arc<str>>,
}

/// A page of the journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JournalPage {
    /// The events, in order.
    pub events: Vec<JournalEvent>,
    /// The last event that was looked at: the next page comes after it. The same that was asked for where nothing comes
    /// after that.
    pub next: EventId,
    /// Whether events that came after the one asked for may be missing, because its entry was removed. Who starts at the
    /// beginning misses nothing.
    pub missed: bool,
}

/// What is kept of the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRange {
    /// The number of the oldest entry; 0 where there is none.
    pub oldest: i64,
    /// The last event of the newest entry: what comes after it is yet to happen. [`EventId::START`] where there is none.
    pub newest: EventId,
}

/// Chooses the events of a page from entries that are given to it in order. All stores count pages by it.
#[derive(Debug)]
pub struct Pager {
    after: EventId,
    left: u32,
    page: JournalPage,
    first: bool,
}

impl Pager {
    /// A page of at most `limit` events from after one.
    pub fn new(after: EventId, limit: u32) -> Self {
        let page = JournalPage { next: after, ..JournalPage::default() };
        Pager { after, left: limit, page, first: true }
    }

    /// Whether the page is full.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Looks at an entry of so many events: which of them belong into the page.
    pub fn take(&mut self, entry: i64, events: usize) -> std::ops::Range<usize> {
        if std::mem::take(&mut self.first) {
            let begins = self.after == EventId::START || self.after == EventId::before(entry);
            self.page.missed = entry > self.after.entry && !begins;
        }
        let from = if entry == self.after.entry { (self.after.index as usize).saturating_add(1) } else { 0 };
        let upto = events.min(from.saturating_add(self.left as usize));
        if from >= upto {
            return 0..0;
        }
        self.left -= (upto - from) as u32;
        self.page.next = EventId { entry, index: upto as u32 - 1 };
        from..upto
    }

    /// Puts an event into the page.
    pub fn push(&mut self, event: JournalEvent) {
        self.page.events.push(event);
    }

    /// The page.
    pub fn done(self) -> JournalPage {
        self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_and_stand_in_order() {
        let ids: Vec<EventId> = ["0.0", "7.0", "7.12", "8.3"].map(|text| text.parse().unwrap()).into();
        assert!(ids.is_sorted());
        assert_eq!(ids.iter().map(EventId::to_string).collect::<Vec<_>>(), ["0.0", "7.0", "7.12", "8.3"]);
        for text in
            ["", "7", "7.", ".7", "-1.0", "+1.0", "7.0.0", "7.x", "99999999999999999999.0", "1.4294967296"]
        {
            assert_eq!(text.parse::<EventId>(), Err(BadEventId(text.to_owned())));
        }
    }

    #[test]
    fn a_page_goes_on_inside_an_entry() {
        let mut pager = Pager::new(EventId { entry: 3, index: 1 }, 5);
        assert_eq!(pager.take(3, 4), 2..4);
        assert_eq!(pager.take(4, 2), 0..2);
        assert!(!pager.is_full());
        assert_eq!(pager.take(5, 9), 0..1);
        assert!(pager.is_full());
        let page = pager.done();
        assert_eq!((page.next, page.missed), (EventId { entry: 5, index: 0 }, false));
    }

    #[test]
    fn an_entry_that_is_gone_is_missed() {
        let missed = |after: &str, first: i64| {
            let mut pager = Pager::new(after.parse().unwrap(), 5);
            pager.take(first, 1);
            pager.done().missed
        };
        assert!(missed("3.0", 4) && missed("3.0", 9));
        assert!(!missed("3.0", 3) && !missed("0.0", 9));
        let before = EventId::before(4).to_string();
        assert!(!missed(&before, 4) && missed(&before, 5));
    }
}
