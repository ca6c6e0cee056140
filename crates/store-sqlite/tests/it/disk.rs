//! Full and read-only disks. They are real: small ones in memory, mounted by a child process in a
//! mount namespace of its own, where also root cannot write what is read-only.

use crate::support::{Child, ask, assert_sound, completed, given, job, open, say, scratch};
use orchestrator_core::TaskState;
use orchestrator_store::{Catalog, JobFilter, Page, Store, StoreError, StoreResult};
use orchestrator_store_sqlite::{Options, SqliteStore};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a test of this binary where it may mount; `None` where nobody may.
fn in_a_namespace(test: &str, dir: &Path) -> Option<Vec<String>> {
    let may = |options: &[&str]| {
        let tried = Command::new("unshare").args(options).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let ways: [&[&str]; 2] = [&["--mount"], &["--map-root-user", "--mount"]];
    let way = ways.into_iter().find(|options| may(options))?;
    let mut command = Command::new("unshare");
    command.args(way).arg(std::env::current_exe().unwrap());
    Some(Child::start_under(command, test, dir, 0).end())
}

#[expect(clippy::print_stderr, reason = "a test that cannot run here must say so")]
fn run(test: &str) {
    let dir = scratch();
    match in_a_namespace(test, dir.path()) {
        Some(said) => assert_eq!(said, ["all is well"]),
        None => eprintln!("skipped {test}: `unshare --mount` is not permitted here"),
    }
}

fn mount(args: &[&str], target: &Path) {
    let status = Command::new("mount").args(args).arg(target).status().unwrap();
    assert!(status.success(), "mount {args:?} {}", target.display());
}

#[test]
fn a_full_disk_is_an_answer_and_never_a_false_ack() {
    run("disk::on_a_full_disk");
}

#[test]
fn a_read_only_disk_is_an_answer() {
    run("disk::on_a_read_only_disk");
}

/// Leases so many tasks and completes them.
async fn work_off(store: &SqliteStore, count: u32) -> StoreResult<usize> {
    let leased = store.lease(ask(count)).await?.tasks;
    assert_eq!(leased.len(), count as usize);
    let settled = store.settle(leased.iter().map(|task| completed(task.held())).collect()).await?;
    assert!(settled.iter().all(|answer| answer.state() == Some(TaskState::Completed)));
    Ok(leased.len())
}

#[tokio::test]
#[ignore = "needs a mount namespace of its own, in which the other tests run it"]
async fn on_a_full_disk() {
    let (dir, _) = given();
    mount(&["-t", "tmpfs", "-o", "size=12m", "tmpfs"], &dir);
    let ballast: Vec<_> = (0..8).map(|n| dir.join(format!("ballast{n}"))).collect();
    ballast.iter().for_each(|file| std::fs::write(file, vec![0; 1 << 20]).unwrap());
    let path = dir.join("full.db");
    let store = open(&path);
    let mut acked = BTreeSet::new();
    let mut ended = 0;
    for file in ballast {
        // Requests of many sizes, so that the disk is full at another point each time.
        for n in 1.. {
            assert!(n < 5000, "the disk holds far less than it has acked");
            let payload = format!("\"{}\"", "x".repeat(n * 37 % 3000));
            match store.submit(vec![job(&payload); 1 + n % 7]).await {
                Ok(answers) => acked.extend(answers.iter().map(|answer| answer.id())),
                Err(error) => {
                    assert!(
                        matches!(error, StoreError::NotWritable { .. }) && error.is_transient(),
                        "{error:?}"
                    );
                    break;
                }
            }
        }
        let error = store.submit(vec![job(&format!("\"{}\"", "x".repeat(200_000)))]).await.unwrap_err();
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
        // A small write may still fit into what a large one left; a few do not.
        let mut checks = 0;
        let error = loop {
            match store.check().await {
                Ok(()) => checks += 1,
                Err(error) => break error,
            }
            assert!(checks < 5000, "a full disk shows");
        };
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
        let line = store.stats().await.expect("reads go on").lines.remove(0);
        assert_eq!(line.ready + line.running + line.completed, acked.len() as u64);
        std::fs::remove_file(file).unwrap();
        // SQLite may use what was freed at once to empty its log; then the disk is as full as before.
        match work_off(&store, 3).await {
            Ok(n) => ended += n,
            Err(error) => assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}"),
        }
    }
    assert!(ended >= 6, "work went on {} times of 8", ended / 3);
    store.close();
    let store = open(&path);
    let known = store.list(JobFilter::default(), Page { after: None, limit: u32::MAX }).await.unwrap();
    assert_eq!(
        known.iter().map(|job| job.id).collect::<BTreeSet<_>>(),
        acked,
        "all that was acked and nothing else"
    );
    assert_eq!(known.iter().filter(|job| job.task().state == TaskState::Completed).count(), ended);
    store.close();
    assert_sound(&path);
    say("all is well");
}

#[tokio::test]
#[ignore = "needs a mount namespace of its own, in which the other tests run it"]
async fn on_a_read_only_disk() {
    let (dir, _) = given();
    mount(&["-t", "tmpfs", "-o", "size=6m", "tmpfs"], &dir);
    let path = dir.join("kept.db");
    let store = open(&path);
    store.submit(vec![job("1")]).await.unwrap();
    store.close();

    mount(&["-o", "remount,ro"], &dir);
    for name in ["kept.db", "new.db"] {
        let error = SqliteStore::open(&dir.join(name), Options::default()).err();
        assert!(matches!(error, Some(StoreError::Open { .. })), "{name}: {error:?}");
        assert!(error.is_some_and(|error| error.to_string().contains(name)));
    }
    mount(&["-o", "remount,rw"], &dir);

    // Only the file: there is room beside it, and it can be read.
    let file = path.to_str().unwrap();
    mount(&["--bind", file], &path);
    mount(&["-o", "remount,bind,ro"], &path);
    let store = open(&path);
    for _ in 0..2 {
        let error = store.submit(vec![job("2")]).await.unwrap_err();
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
        let error = store.check().await.unwrap_err();
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
    }
    assert_eq!(store.stats().await.unwrap().lines[0].ready, 1);
    store.close();
    say("all is well");
}
