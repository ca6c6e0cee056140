//! From an offset in a text to its line and column.

use orchestrator_core::flow::document::Span;

/// How far apart the noted character counts stand, in bytes.
const BLOCK: usize = 64;

/// Where the lines of a text start. A lookup costs the same on a line of a megabyte as on a short one:
/// it counts the characters of one block at most.
pub struct Lines<'t> {
    text: &'t [u8],
    /// The offset at which each line starts.
    starts: Vec<usize>,
    /// How many characters stand before each block.
    before: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn new(text: &'t str) -> Self {
        let text = text.as_bytes();
        let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let mut before = vec![0];
        for block in text.chunks(BLOCK) {
            before.push(before[before.len() - 1] + count(block));
        }
        Lines { text, starts, before }
    }

    /// The line and column of an offset in bytes.
    pub fn span(&self, offset: usize) -> Span {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let column = self.characters(offset) - self.characters(self.starts[line - 1]) + 1;
        Span { line: line as u32, column: column as u32 }
    }

    fn characters(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        self.before[block] + count(&self.text[block * BLOCK..offset])
    }
}

/// The characters that start in these bytes.
fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_is_what_counting_by_hand_gives(text in "[aé😀\\n]{0,40}", times in 1usize..80) {
            let text = text.repeat(times);
            let lines = Lines::new(&text);
            let (mut line, mut column) = (1, 1);
            for (offset, c) in text.char_indices() {
                prop_assert_eq!(lines.span(offset), Span { line, column });
                (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
            prop_assert_eq!(lines.span(text.len()), Span { line, column });
        }
    }
}
