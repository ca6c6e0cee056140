//! What a disk may hold when the power goes: all that was synced, and of the rest whatever it likes.
//!
//! A sync covers what had been written when it was called, and only once it has come back. Before
//! that a write may be there, or not, or in part, sector by sector, and later ones may be there
//! without earlier ones. A file may have its new size and rubbish in place of the data. Which files
//! there are is a matter of its own: a new file may be missing, a removed one may be back, until the
//! directory was synced.

use crate::story::{Op, Step, Story};
use crate::trace::Moment;
use fastrand::Rng;
use std::collections::BTreeMap;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// How much of what was not synced is there after the cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mood {
    Nothing,
    Everything,
    /// Each piece with this probability.
    Some(f64),
}

/// Files by their names.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The disk in the course of a story.
pub struct Disk<'a> {
    /// What begins and what ends, and when: the end of a call is `true`.
    timeline: std::iter::Peekable<std::vec::IntoIter<(Moment, bool, &'a Step)>>,
    files: Vec<File<'a>>,
    /// The files as the process sees them.
    seen: BTreeMap<&'a str, usize>,
    /// The files as the synced directory has them.
    kept: BTreeMap<&'a str, usize>,
    /// Changes of names since then. `None` stands for a removal.
    renamed: Vec<(&'a Step, &'a str, Option<usize>)>,
}

#[derive(Default)]
struct File<'a> {
    synced: Vec<u8>,
    /// What was begun to be written since.
    loose: Vec<&'a Step>,
}

impl<'a> Disk<'a> {
    /// An empty disk, before the story begins.
    pub fn new(story: &'a Story) -> Disk<'a> {
        let begins = story.steps.iter().map(|step| (step.begin, false, step));
        let ends = story.steps.iter().filter_map(|step| Some((step.end?, true, step)));
        let mut timeline: Vec<_> = begins.chain(ends).collect();
        timeline.sort_by_key(|(at, ..)| *at);
        let timeline = timeline.into_iter().peekable();
        Disk { timeline, files: vec![], seen: BTreeMap::new(), kept: BTreeMap::new(), renamed: vec![] }
    }

    /// Goes on in the story until just before a moment. It never goes back.
    pub fn advance(&mut self, until: Moment) {
        while let Some((_, ends, step)) = self.timeline.next_if(|(at, ..)| *at < until) {
            if ends { self.end(step) } else { self.begin(step) }
        }
    }

    fn begin(&mut self, step: &'a Step) {
        match &step.op {
            Op::Create(name) => {
                self.seen.insert(name, self.files.len());
                self.renamed.push((step, name, Some(self.files.len())));
                self.files.push(File::default());
            }
            Op::Remove(name) => {
                self.seen.remove(&**name);
                self.renamed.push((step, name, None));
            }
            Op::Write(name, ..) | Op::Resize(name, _) => self.files[self.seen[&**name]].loose.push(step),
            Op::Sync(_) | Op::SyncNames => {}
        }
    }

    fn end(&mut self, sync: &'a Step) {
        let covered = |step: &Step| step.end.is_some_and(|end| end < sync.begin);
        match &sync.op {
            Op::Sync(name) => {
                let File { synced, loose } = &mut self.files[self.seen[&**name]];
                for step in loose.extract_if(.., |step| covered(step)) {
                    whole(step).apply(synced);
                }
            }
            Op::SyncNames => {
                for (_, name, file) in self.renamed.extract_if(.., |(step, ..)| covered(step)) {
                    rename(&mut self.kept, name, file);
                }
            }
            _ => {}
        }
    }

    /// What is found when the power is back. Another seed of the dice is another disk.
    pub fn after_cut(&self, mood: Mood, rng: &mut Rng) -> Files {
        let mut names = self.kept.clone();
        for (_, name, file) in &self.renamed {
            if survives(mood, rng) {
                rename(&mut names, name, *file);
            }
        }
        let content = |file: usize| self.files[file].after_cut(mood, rng);
        let ids: Vec<usize> = names.values().copied().collect();
        names.into_keys().map(str::to_owned).zip(ids.into_iter().map(content)).collect()
    }
}

fn rename<'a>(names: &mut BTreeMap<&'a str, usize>, name: &'a str, file: Option<usize>) {
    match file {
        Some(file) => names.insert(name, file),
        None => names.remove(name),
    };
}

fn survives(mood: Mood, rng: &mut Rng) -> bool {
    match mood {
        Mood::Nothing => false,
        Mood::Everything => true,
        Mood::Some(probability) => rng.f64() < probability,
    }
}

impl File<'_> {
    fn after_cut(&self, mood: Mood, rng: &mut Rng) -> Vec<u8> {
        let mut content = self.synced.clone();
        let mut pieces: Vec<Piece<'_>> = self.loose.iter().map(|step| whole(step)).collect();
        if let Mood::Some(_) = mood {
            if rng.bool() {
                pieces = pieces.into_iter().flat_map(Piece::sectors).collect();
            }
            rng.shuffle(&mut pieces);
            // The size may be there before the data.
            if rng.bool() {
                let rubbish = rng.bool();
                let size = pieces.iter().map(Piece::end).max().unwrap_or(0);
                let more = size.saturating_sub(content.len());
                content.extend((0..more).map(|_| if rubbish { rng.u8(..) } else { 0 }));
            }
        }
        for piece in pieces {
            if survives(mood, rng) {
                piece.apply(&mut content);
            }
        }
        content
    }
}

/// What reaches the disk whole or not at all.
enum Piece<'a> {
    Data(usize, &'a [u8]),
    Size(usize),
}

/// All that a step does to a file, as one piece.
fn whole(step: &Step) -> Piece<'_> {
    match &step.op {
        Op::Write(_, offset, data) => Piece::Data(*offset, data),
        Op::Resize(_, size) => Piece::Size(*size),
        other => unreachable!("it changes no file: {other:?}"),
    }
}

impl<'a> Piece<'a> {
    fn sectors(self) -> Vec<Piece<'a>> {
        let Piece::Data(mut offset, mut data) = self else { return vec![self] };
        let mut pieces = vec![];
        while !data.is_empty() {
            let (sector, rest) = data.split_at(data.len().min(SECTOR - offset % SECTOR));
            pieces.push(Piece::Data(offset, sector));
            offset += sector.len();
            data = rest;
        }
        pieces
    }

    fn end(&self) -> usize {
        match self {
            Piece::Data(offset, data) => offset + data.len(),
            Piece::Size(size) => *size,
        }
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match *self {
            Piece::Data(offset, data) => {
                let end = offset + data.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[offset..end].copy_from_slice(data);
            }
            Piece::Size(size) => content.resize(size, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A story of calls that follow one another, each with the moments `4n` and `4n + 2`.
    fn story(ops: Vec<Op>) -> Story {
        let step = |(op, at)| Step { op, begin: at, end: Some(at + 2) };
        Story { steps: ops.into_iter().zip((0..).step_by(4)).map(step).collect(), ..Story::default() }
    }

    fn write(name: &str, offset: usize, data: &[u8]) -> Op {
        Op::Write(name.to_owned(), offset, data.into())
    }

    fn cut(story: &Story, at: Moment, mood: Mood) -> Files {
        let mut disk = Disk::new(story);
        disk.advance(at);
        disk.after_cut(mood, &mut Rng::with_seed(at))
    }

    fn files(content: &[(&str, &[u8])]) -> Files {
        content.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
    }

    #[test]
    fn only_a_sync_that_came_back_keeps_what_was_written_before_it() {
        let (create, sync) = (Op::Create("a".to_owned()), Op::Sync("a".to_owned()));
        let story = story(vec![create, write("a", 0, b"old"), Op::SyncNames, sync, write("a", 1, b"NEW")]);
        let (empty, old) = (files(&[("a", b"")]), files(&[("a", b"old")]));
        for (at, left) in [(0, &files(&[])), (10, &files(&[])), (11, &empty), (14, &empty), (15, &old)] {
            assert_eq!(&cut(&story, at, Mood::Nothing), left, "at {at}");
        }
        assert_eq!(cut(&story, 1, Mood::Everything), files(&[("a", b"")]));
        assert_eq!(cut(&story, 99, Mood::Nothing), files(&[("a", b"old")]));
        assert_eq!(cut(&story, 99, Mood::Everything), files(&[("a", b"oNEW")]));
    }

    #[test]
    fn a_write_beside_the_sync_is_not_covered() {
        let mut story = story(vec![
            Op::Create("a".to_owned()),
            Op::SyncNames,
            write("a", 0, b"x"),
            Op::Sync("a".to_owned()),
        ]);
        story.steps[2].end = Some(story.steps[3].begin + 1);
        assert_eq!(cut(&story, 99, Mood::Nothing), files(&[("a", b"")]));
    }

    #[test]
    fn a_removed_file_may_be_back() {
        let (create, sync) = (Op::Create("a".to_owned()), Op::Sync("a".to_owned()));
        let remove = Op::Remove("a".to_owned());
        let story = story(vec![create, write("a", 0, b"x"), sync, Op::SyncNames, remove, Op::SyncNames]);
        assert_eq!(cut(&story, 22, Mood::Nothing), files(&[("a", b"x")]));
        assert_eq!(cut(&story, 22, Mood::Everything), files(&[]));
        assert_eq!(cut(&story, 23, Mood::Nothing), files(&[]));
    }

    #[test]
    fn a_write_is_torn_at_sectors() {
        let data = [7; 3 * SECTOR];
        let story = story(vec![Op::Create("a".to_owned()), Op::SyncNames, write("a", 100, &data)]);
        let mut disk = Disk::new(&story);
        disk.advance(99);
        let mut torn = 0;
        for seed in 0..100 {
            let mut left = disk.after_cut(Mood::Some(0.5), &mut Rng::with_seed(seed)).remove("a").unwrap();
            left.resize(100 + data.len(), 0);
            let whole = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 7);
            let kept: Vec<bool> =
                [100..512, 512..1024, 1024..1536, 1536..1636].map(|at| whole(&left[at])).into();
            torn += usize::from(kept.contains(&true) && kept.contains(&false));
        }
        assert!((20..80).contains(&torn), "{torn} of 100 were torn");
    }
}
