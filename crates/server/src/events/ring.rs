//! The newest events, as many as fit: from here all who keep up are served.

use super::chunk::Chunk;
use orchestrator_store::EventId;
use std::collections::VecDeque;
use std::sync::Arc;

/// Events that follow each other without a gap, up to the newest that was read.
#[derive(Debug)]
pub struct Ring {
    /// It holds what comes after this.
    from: EventId,
    chunks: VecDeque<Arc<Chunk>>,
    bytes: usize,
    most: usize,
}

/// What comes next for a listener.
#[derive(Debug)]
pub enum Next {
    /// This.
    Chunk(Arc<Chunk>),
    /// Nothing yet.
    Nothing,
    /// What the ring does not hold any more.
    Behind,
}

impl Ring {
    /// A ring that begins after an event and holds about so many bytes.
    pub fn new(from: EventId, most: usize) -> Self {
        Ring { from, chunks: VecDeque::new(), bytes: 0, most }
    }

    /// The last event that it knows of.
    pub fn tip(&self) -> EventId {
        self.chunks.back().map_or(self.from, |chunk| chunk.upto)
    }

    /// Adds what comes after the tip. The oldest make room.
    pub fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.size();
        self.chunks.push_back(Arc::new(chunk));
        while self.bytes > self.most
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.bytes -= oldest.size();
            self.from = oldest.upto;
        }
    }

    /// What comes after an event.
    pub fn after(&self, after: EventId) -> Next {
        if after < self.from {
            return Next::Behind;
        }
        let next = self.chunks.partition_point(|chunk| chunk.upto <= after);
        self.chunks.get(next).map_or(Next::Nothing, |chunk| Next::Chunk(chunk.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::tests::{id, told};
    use super::*;
    use orchestrator_store::JournalPage;

    fn chunk(text: &str) -> Chunk {
        Chunk::of(JournalPage { events: vec![told(text, 0, None)], next: id(text), missed: false })
    }

    fn next(ring: &Ring, after: &str) -> Option<EventId> {
        match ring.after(id(after)) {
            Next::Chunk(chunk) => Some(chunk.upto),
            Next::Nothing => None,
            Next::Behind => panic!("behind {after}: {ring:?}"),
        }
    }

    #[test]
    fn who_keeps_up_is_served_in_order() {
        let mut ring = Ring::new(id("4.1"), 1 << 20);
        assert_eq!(next(&ring, "4.1"), None);
        ["5.0", "5.3", "6.0"].iter().for_each(|text| ring.push(chunk(text)));
        assert_eq!(next(&ring, "4.1"), Some(id("5.0")));
        assert_eq!(next(&ring, "5.0"), Some(id("5.3")));
        assert_eq!(next(&ring, "5.1"), Some(id("5.3")));
        assert_eq!(next(&ring, "6.0"), None);
        assert!(matches!(ring.after(id("4.0")), Next::Behind));
        assert_eq!(ring.tip(), id("6.0"));
    }

    #[test]
    fn the_oldest_make_room() {
        let size = chunk("1.0").size();
        let mut ring = Ring::new(EventId::START, size * 2);
        ["1.0", "2.0", "3.0"].iter().for_each(|text| ring.push(chunk(text)));
        assert!(matches!(ring.after(EventId::START), Next::Behind));
        assert_eq!((next(&ring, "1.0"), ring.tip()), (Some(id("2.0")), id("3.0")));
        let mut tiny = Ring::new(EventId::START, 1);
        tiny.push(chunk("1.0"));
        assert_eq!(
            (next(&tiny, "1.0"), tiny.tip(), tiny.bytes),
            (None, id("1.0"), 0),
            "it is bounded whatever comes"
        );
    }
}
