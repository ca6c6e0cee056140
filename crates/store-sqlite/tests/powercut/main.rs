//! The power goes, and nothing that was acked is lost.
//!
//! A killed process leaves its writes behind in the kernel; a power cut does not. What counts then is
//! what was synced, and that no other test can see. So this one looks at the system calls:
//!
//! 1. `child`: a real process works on a real store and tells each answer in a line, under strace.
//!    It closes the file and opens it again in between, and ends in the middle of its work.
//! 2. `trace`, `story`: what strace wrote down becomes one ordered story of writes, syncs, files that
//!    come and go, and told lines. A call on the database's files that has no meaning in the story
//!    fails the test, as does memory that is shared with a file, apart from the index of the log.
//! 3. `disk`: at a moment of the story the power goes. All that was synced is there; of the rest any
//!    part, in any order, torn at sectors, with sizes and names that do not fit.
//! 4. `cuts`: the store opens what is left. SQLite must find nothing wrong with it, every line that
//!    the process had begun to tell must still be true, and the journal must agree with the tables.
//!    Every fifth time all the work that was left lying is also run to its end.
//!
//! The moments are random, with more of them right after an ack, within checkpoints, and while files
//! are made and removed. A sync counts when it has come back, an ack as soon as it leaves: the disk is
//! as mean as POSIX lets it be, and meaner than most.
//!
//! So an answer of the store means that the data has reached the disk, as far as the disk can be
//! believed. Not shown: disks that say "synced" and are not, that damage what they do not write, or
//! that forget what they had; and bugs of the kernel and its file systems, which are taken at their word.
//!
//! That the proof can fail is shown on the same story, told falsely: without the syncs of the log, of
//! the database, of the directory, or with acks that leave before their sync. Each lie must be noticed.
//!
//! `POWER_CUTS` sets the number of cuts. `ORCHESTRATOR_SKIP_STRACE=1` is for places where nothing can
//! be traced. Linux only.

mod child;
mod cuts;
mod disk;
mod story;
mod trace;

use child::DATABASE;
use std::sync::LazyLock;
use story::{Op, Story, is_log};

/// The number of cuts, unless `POWER_CUTS` says otherwise.
const CUTS: usize = 300;
/// Cuts for each lie.
const CUTS_PER_LIE: usize = 12;
const SEED: u64 = 1;

/// One process is watched for all tests. `None` if nothing is to be traced here.
static STORY: LazyLock<Option<Story>> = LazyLock::new(|| {
    let skipped = std::env::var_os("ORCHESTRATOR_SKIP_STRACE").is_some_and(|word| word == "1");
    if skipped {
        note("skipped: ORCHESTRATOR_SKIP_STRACE is set, so nothing is shown about power cuts");
        return None;
    }
    Some(child::watch(cuts::scratch().path()))
});

#[expect(clippy::print_stderr, reason = "a test must say how much it has shown, and when it was skipped")]
fn note(text: &str) {
    eprintln!("power cuts: {text}");
}

#[test]
fn nothing_acked_is_lost() {
    let Some(story) = &*STORY else { return };
    let count = std::env::var("POWER_CUTS").map_or(CUTS, |word| word.parse().expect("a number of cuts"));
    let (acks, syncs) = (story.told.len(), story.moments(|op| matches!(op, Op::Sync(_))).len());
    let (checkpoints, restarts) = (story.checkpoints(), story.restarts());
    let seen =
        format!("{acks} acks, {syncs} syncs, {checkpoints} checkpoints, {restarts} restarts of the log");
    let losses = cuts::losses(story, cuts::anywhere(story, count, SEED));
    note(&format!("{count} cuts in a story of {seen}: {} with a loss", losses.len()));
    if let Some((cut, wrong)) = losses.first() {
        let kept = cuts::keep(story, *cut);
        panic!(
            "{} of {count} cuts lost something. After {cut:?}: {wrong}\nThe files and what was told are in {}",
            losses.len(),
            kept.display()
        );
    }
    assert!(acks >= 1000 && syncs >= 100 && checkpoints >= 1 && restarts >= 1, "too little happened: {seen}");
}

#[test]
fn every_lie_is_noticed() {
    let Some(story) = &*STORY else { return };
    let lies = [
        ("nothing is synced", story.without(|op| matches!(op, Op::Sync(_) | Op::SyncNames))),
        ("the log is not synced", story.without(|op| matches!(op, Op::Sync(file) if is_log(file)))),
        ("the database is not synced", story.without(|op| matches!(op, Op::Sync(file) if file == DATABASE))),
        ("the directory is not synced", story.without(|op| matches!(op, Op::SyncNames))),
        ("acks leave before their sync", story.with_early_acks()),
    ];
    for (lie, story) in lies {
        let noticed = cuts::losses(&story, cuts::after_acks(&story, CUTS_PER_LIE, SEED)).len();
        note(&format!("{lie}: noticed after {noticed} of {CUTS_PER_LIE} cuts"));
        // By chance a disk may have kept all that matters, or the ack was of something known before.
        assert!(noticed * 2 > CUTS_PER_LIE, "{lie}: noticed after {noticed} of {CUTS_PER_LIE} cuts only");
    }
}
