//! What the calls of a trace mean for one directory, and what the process told of its work meanwhile.

use crate::child::{DATABASE, MARK};
use crate::trace::{self, Call, Moment, not_understood};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A change to the files of the directory, or the wish that it be kept. Files go by their names.
#[derive(Clone, Debug)]
pub enum Op {
    Create(String),
    Remove(String),
    Write(String, usize, Arc<[u8]>),
    Resize(String, usize),
    Sync(String),
    /// Keeps which files there are.
    SyncNames,
}

/// When something was done.
#[derive(Clone, Debug)]
pub struct Step {
    pub op: Op,
    pub begin: Moment,
    /// `None` if the process ended before the call came back.
    pub end: Option<Moment>,
}

/// All that happened, in order.
#[derive(Clone, Default)]
pub struct Story {
    pub steps: Vec<Step>,
    /// The lines that the process told.
    pub told: Vec<String>,
    /// When it began to tell each of them.
    pub told_at: Vec<Moment>,
}

impl Story {
    /// Reads the trace of a process that used `directory`, which was empty before.
    pub fn read(trace: &str, directory: &Path) -> Story {
        let mut reader = Reader { directory, names: BTreeSet::new(), story: Story::default() };
        for call in trace::calls(trace) {
            reader.call(&call);
        }
        reader.story
    }

    /// How many lines were told, or begun to be told, before a moment.
    pub fn told_before(&self, at: Moment) -> usize {
        self.told_at.partition_point(|told| *told < at)
    }

    /// When the calls began that `wanted` wants.
    pub fn moments(&self, wanted: impl Fn(&Op) -> bool) -> Vec<Moment> {
        self.steps.iter().filter(|step| wanted(&step.op)).map(|step| step.begin).collect()
    }

    /// How often the log was carried over into the database since the first line was told.
    pub fn checkpoints(&self) -> usize {
        let first = self.told_at.first().copied().unwrap_or(0);
        let syncs = self.moments(|op| matches!(op, Op::Sync(file) if file == DATABASE));
        syncs.iter().filter(|at| **at > first).count()
    }

    /// How often the log was begun anew over what it held before.
    pub fn restarts(&self) -> usize {
        let headers = self.moments(|op| matches!(op, Op::Write(file, 0, _) if is_log(file)));
        let made = self.moments(|op| matches!(op, Op::Create(file) if is_log(file)));
        headers.len().saturating_sub(made.len())
    }

    /// The last moment.
    pub fn end(&self) -> Moment {
        let last = self.steps.iter().filter_map(|step| step.end).max();
        last.max(self.told_at.last().copied()).unwrap_or(0) + 1
    }

    /// The story of a store that does not do what `skipped` says.
    pub fn without(&self, skipped: impl Fn(&Op) -> bool) -> Story {
        let steps = self.steps.iter().filter(|step| !skipped(&step.op)).cloned().collect();
        Story { steps, ..self.clone() }
    }

    /// The story of a store that tells of a commit when it begins to sync it.
    pub fn with_early_acks(&self) -> Story {
        let syncs = self.steps.iter().filter(|step| matches!(&step.op, Op::Sync(file) if is_log(file)));
        let syncs: Vec<&Step> = syncs.collect();
        let early = |told: &Moment| {
            let before = syncs.iter().rfind(|sync| sync.end.is_some_and(|end| end < *told));
            before.map_or(*told, |sync| sync.begin)
        };
        Story { told_at: self.told_at.iter().map(early).collect(), ..self.clone() }
    }
}

/// Whether a file is the write-ahead log.
pub fn is_log(file: &str) -> bool {
    file.strip_prefix(DATABASE) == Some("-wal")
}

/// The index of the log is shared memory that SQLite makes anew after a crash: nothing in it counts.
fn is_memory(file: &str) -> bool {
    file.strip_prefix(DATABASE) == Some("-shm")
}

struct Reader<'a> {
    directory: &'a Path,
    names: BTreeSet<String>,
    story: Story,
}

impl Reader<'_> {
    fn call(&mut self, call: &Call) {
        let args = call.args();
        match (&*call.name, &*args) {
            ("open" | "creat", _) => {
                assert!(self.name(&text(args[0])).is_none(), "SQLite opens with openat: {call:?}");
            }
            ("openat", [_, path, flags, ..]) => self.open(call, path, flags),
            ("unlink", [path]) => self.remove(call, path),
            ("unlinkat", [_, path, "0"]) => self.remove(call, path),
            ("write", [descriptor, data, _]) if descriptor.starts_with("1<") => self.tell(call, data),
            ("pwrite64", [descriptor, data, size, offset]) => {
                if let Some(file) = self.file(descriptor) {
                    let (data, size) = (trace::string(data), number(size));
                    assert_eq!(data.len(), size, "the trace does not hold all that was written");
                    expect(call, &size.to_string());
                    self.step(call, Op::Write(file, number(offset), data.into()));
                }
            }
            ("ftruncate", [descriptor, size]) => {
                if let Some(file) = self.file(descriptor) {
                    expect(call, "0");
                    self.step(call, Op::Resize(file, number(size)));
                }
            }
            ("fsync" | "fdatasync", [descriptor]) => {
                let is_directory = trace::path(descriptor).is_some_and(|path| self.is_directory(&path));
                let file = self.file(descriptor).map(Op::Sync);
                if let Some(op) = is_directory.then_some(Op::SyncNames).or(file) {
                    expect(call, "0");
                    self.step(call, op);
                }
            }
            ("mmap", [_, _, protection, flags, descriptor, _]) => {
                let file = self.file(descriptor);
                let writes = protection.contains("PROT_WRITE") && flags.contains("MAP_SHARED");
                assert!(
                    !writes || file.is_none_or(|file| is_memory(&file)),
                    "written in memory, where no trace sees it: {call:?}"
                );
            }
            // What they do to which file is not in their arguments.
            ("mmap" | "io_uring_setup" | "io_uring_enter" | "io_submit", _) => not_understood(&call.name),
            // Anything else may touch whatever it likes, but not the files whose story this is.
            _ => {
                let ours = args.iter().any(|arg| self.is_ours(arg));
                assert!(!ours, "not understood: {} {:.300}", call.name, call.args);
            }
        }
    }

    fn open(&mut self, call: &Call, path: &str, flags: &str) {
        let Some(file) = self.name(&text(path)) else { return };
        if call.failed() {
            return;
        }
        let opened = trace::path(&call.result).and_then(|path| self.name(&path));
        assert_eq!(opened.as_ref(), Some(&file), "opened something else: {call:?}");
        assert!(!flags.contains("O_TRUNC") && !flags.contains("O_DIRECT"), "not understood: {call:?}");
        if self.names.insert(file.clone()) {
            assert!(flags.contains("O_CREAT"), "it opens {file}, which nobody made");
            self.step(call, Op::Create(file));
        }
    }

    fn remove(&mut self, call: &Call, path: &str) {
        let Some(file) = self.name(&text(path)) else { return };
        if !call.failed() {
            assert!(self.names.remove(&file), "it removes {file}, which nobody made");
            self.step(call, Op::Remove(file));
        }
    }

    fn tell(&mut self, call: &Call, data: &str) {
        let text = text(data);
        // Each line leaves in one write; what the test harness says around them has no mark.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_prefix(MARK)) {
            let line = line.strip_suffix('\n').unwrap_or_else(|| panic!("half a line was told: {line}"));
            self.story.told.push(line.to_owned());
            self.story.told_at.push(call.begin);
        }
    }

    fn step(&mut self, call: &Call, op: Op) {
        let file = match &op {
            Op::Create(file) | Op::Remove(file) | Op::Write(file, ..) | Op::Resize(file, _) => Some(file),
            Op::Sync(file) => Some(file),
            Op::SyncNames => None,
        };
        if !file.is_some_and(|file| is_memory(file)) {
            self.story.steps.push(Step { op, begin: call.begin, end: call.end });
        }
    }

    /// The name of the file of ours that a descriptor stands for.
    fn file(&self, descriptor: &str) -> Option<String> {
        let file = self.name(&trace::path(descriptor)?)?;
        assert!(self.names.contains(&file), "it uses {file}, which is not there");
        Some(file)
    }

    /// The name of a path that is one of the directory's files.
    fn name(&self, path: &str) -> Option<String> {
        let path = Path::new(path).strip_prefix(self.directory).ok()?;
        path.to_str().filter(|name| !name.is_empty()).map(str::to_owned)
    }

    fn is_directory(&self, path: &str) -> bool {
        Path::new(path) == self.directory
    }

    /// Whether an argument names something in the directory.
    fn is_ours(&self, arg: &str) -> bool {
        let path = if arg.starts_with('"') { Some(text(arg)) } else { trace::path(arg) };
        path.is_some_and(|path| Path::new(&path).starts_with(self.directory))
    }
}

/// Nothing that is written or synced fails on a disk that is well.
fn expect(call: &Call, result: &str) {
    assert!(call.end.is_none() || call.result == result, "{} returned {}", call.name, call.result);
}

fn text(arg: &str) -> String {
    String::from_utf8_lossy(&trace::string(arg)).into_owned()
}

fn number(arg: &str) -> usize {
    arg.parse().unwrap_or_else(|_| not_understood(arg))
}
