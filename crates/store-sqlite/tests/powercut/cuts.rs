//! Cuts the power at many moments of a story, and judges what is left each time.

use crate::child::DATABASE;
use crate::disk::{Disk, Files, Mood};
use crate::story::{Op, Story};
use crate::trace::Moment;
use fastrand::Rng;
use orchestrator_store::conformance::crash;
use orchestrator_store_sqlite::{Options, SqliteStore};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};

/// One end of the story.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub at: Moment,
    pub mood: Mood,
    /// Of the dice that say what is left.
    pub seed: u64,
    /// Whether all that was left lying is also run to its end.
    pub heals: bool,
}

const MOODS: [Mood; 6] =
    [Mood::Nothing, Mood::Nothing, Mood::Everything, Mood::Some(0.1), Mood::Some(0.5), Mood::Some(0.9)];

/// Moments anywhere, and more of them where it matters: when something was told, while the log is
/// carried over into the database, and while files come and go.
pub fn anywhere(story: &Story, count: usize, seed: u64) -> Vec<Cut> {
    let mut rng = Rng::with_seed(seed);
    let database = story.moments(|op| matches!(op, Op::Write(file, ..) | Op::Sync(file) if file == DATABASE));
    let names = story.moments(|op| matches!(op, Op::Create(_) | Op::Remove(_) | Op::SyncNames));
    let cut = |n: usize| {
        let at = match n % 8 {
            0..3 => rng.u64(0..=story.end()),
            3..5 => 1 + rng.choice(&story.told_at).expect("something was told"),
            5..7 => rng.choice(&database).expect("something was written") + rng.u64(0..20),
            _ => rng.choice(&names).expect("files were made") + rng.u64(0..20),
        };
        let mood = rng.choice(MOODS).expect("there are moods");
        Cut { at, mood, seed: rng.u64(..), heals: n.is_multiple_of(5) }
    };
    (0..count).map(cut).collect()
}

/// Moments in the last half, just when something was told, on a disk that loses what it may lose.
pub fn after_acks(story: &Story, count: usize, seed: u64) -> Vec<Cut> {
    let mut rng = Rng::with_seed(seed);
    let late = &story.told_at[story.told_at.len() / 2..];
    let cut = |n: usize| {
        let at = 1 + rng.choice(late).expect("something was told");
        let mood = if n.is_multiple_of(2) { Mood::Nothing } else { Mood::Some(0.5) };
        Cut { at, mood, seed: rng.u64(..), heals: false }
    };
    (0..count).map(cut).collect()
}

/// What is wrong after each of the cuts for which something is.
pub fn losses(story: &Story, mut cuts: Vec<Cut>) -> Vec<(Cut, String)> {
    cuts.sort_by_key(|cut| cut.at);
    let (hand_out, work) = mpsc::sync_channel::<(Cut, Files)>(1);
    let (work, found) = (Mutex::new(work), Mutex::new(vec![]));
    let judges = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..judges {
            scope.spawn(|| {
                let next = || work.lock().expect("nobody panics with it").recv();
                while let Ok((cut, files)) = next() {
                    let told = &story.told[..story.told_before(cut.at)];
                    if let Err(wrong) = judge(&files, cut, told) {
                        found.lock().expect("nobody panics with it").push((cut, wrong));
                    }
                }
            });
        }
        let mut disk = Disk::new(story);
        for cut in cuts {
            disk.advance(cut.at);
            let files = disk.after_cut(cut.mood, &mut Rng::with_seed(cut.seed));
            hand_out.send((cut, files)).expect("the judges wait for more");
        }
        drop(hand_out);
    });
    found.into_inner().expect("nobody panics with it")
}

/// Writes what is left after a cut, and what was told before it, to a place where it stays.
pub fn keep(story: &Story, cut: Cut) -> PathBuf {
    let place = tempfile::Builder::new().prefix("power-cut-").tempdir().unwrap().keep();
    let mut disk = Disk::new(story);
    disk.advance(cut.at);
    write(&disk.after_cut(cut.mood, &mut Rng::with_seed(cut.seed)), &place).unwrap();
    std::fs::write(place.join("told.txt"), story.told[..story.told_before(cut.at)].join("\n")).unwrap();
    place
}

fn write(files: &Files, place: &Path) -> std::io::Result<()> {
    files.iter().try_for_each(|(name, content)| std::fs::write(place.join(name), content))
}

/// Opens what is left as the next process would, and holds all that was told against it.
fn judge(files: &Files, cut: Cut, told: &[String]) -> Result<(), String> {
    let dir = scratch();
    write(files, dir.path()).map_err(|error| error.to_string())?;
    let path = dir.path().join(DATABASE);
    let mut rng = Rng::with_seed(cut.seed);
    if rng.bool() {
        // The index of the log may be anything.
        let rubbish: Vec<u8> = (0..rng.usize(0..40_000)).map(|_| rng.u8(..)).collect();
        std::fs::write(dir.path().join(format!("{DATABASE}-shm")), rubbish)
            .map_err(|error| error.to_string())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let checked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(check(&path, cut, told))));
    checked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    })
}

async fn check(path: &Path, cut: Cut, told: &[String]) -> Result<(), String> {
    let store = SqliteStore::open(path, Options::default()).map_err(|error| format!("open: {error:?}"))?;
    is_sound(path)?;
    crash::check(&*store, told).await;
    if cut.heals {
        crash::heal(&*store).await;
        crash::check(&*store, told).await;
        store.close();
        is_sound(path)?;
    }
    Ok(())
}

/// Whether SQLite finds nothing wrong with a file.
fn is_sound(path: &Path) -> Result<(), String> {
    let found = rusqlite::Connection::open(path)
        .and_then(|conn| conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)));
    match found {
        Ok(word) if word == "ok" => Ok(()),
        other => Err(format!("integrity: {other:?}")),
    }
}

/// A directory in memory where there is such a place: what a sync costs is not what is tested.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}
