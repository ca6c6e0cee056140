//! Several processes on one file: nothing is handed out twice, limits and keys hold across all of
//! them, and none shuts out another.
//!
//! To SQLite two stores in one process are two processes: connection, writer thread and turn file
//! are each store's own. What matters is also tried with real ones.

use crate::support::{Child, ask, assert_sound, completed, given, job, open, say, scratch};
use orchestrator_core::{Event, JobId, Key, LimitKey, LimitRule, Limits, NewJob, TaskId, TaskState};
use orchestrator_store::{
    Beat, Catalog, EventId, JobFilter, LimitChange, Page, RuleOrigin, Settled, Store, Submitted, SweepAsk,
};
use orchestrator_store_sqlite::SqliteStore;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};

const KEY: &str = "host:a";
const CAP: u32 = 2;
const JOBS: u64 = 150;
/// How often a worker asks in vain while nobody gets on: far more than it takes.
const PATIENCE: u32 = 20_000;
const WORKER: &str = "processes::a_worker_process";
/// Keys that two stores submit at once.
const KEYS: u32 = 1000;

async fn set_cap(store: &SqliteStore, cap: Option<u32>) {
    let key: LimitKey = KEY.parse().unwrap();
    let rule = cap.map(LimitRule::at_most);
    store.set_limits(vec![LimitChange { key, rule, origin: RuleOrigin::Operator }]).await.unwrap();
}

fn limited() -> NewJob {
    job("1").limits(Limits::new([KEY.parse().unwrap()]).unwrap())
}

async fn count(store: &SqliteStore, what: fn(&orchestrator_store::LineStats) -> u64) -> u64 {
    store.stats().await.unwrap().lines.iter().map(what).sum()
}

/// Replays the journal of jobs that all run under one key: each attempt once, one at a time, and
/// never more at once than the cap. Says how many completed.
async fn replay(store: &SqliteStore) -> u64 {
    let mut states: BTreeMap<TaskId, (TaskState, u32)> = BTreeMap::new();
    let mut running = 0;
    let mut completed = 0;
    for told in store.journal(EventId::START, u32::MAX).await.unwrap().events {
        let Event::Task(event) = told.event else {
            panic!("a job of a queue tells nothing of its own: {told:?}")
        };
        let (from, attempt) =
            states.insert(event.task, (event.state, event.attempt)).unwrap_or((TaskState::Pending, 0));
        assert!(from.can_become(event.state), "from {from} to {event:?}");
        let starts = event.state == TaskState::Running;
        assert_eq!(event.attempt, attempt + u32::from(starts));
        running += u32::from(starts);
        running -= u32::from(from == TaskState::Running);
        assert!(running <= CAP, "{running} at once after {event:?}");
        completed += u64::from(event.state == TaskState::Completed);
    }
    completed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_across_stores_and_no_task_is_held_twice() {
    let dir = scratch();
    let stores = [0; 2].map(|_| open(&dir.path().join("two.db")));
    set_cap(&stores[0], Some(CAP)).await;
    stores[1].submit(vec![limited(); JOBS as usize]).await.unwrap();
    let running = Arc::new(AtomicU32::new(0));
    let done = Arc::new(Mutex::new(BTreeSet::new()));
    let workers: Vec<_> = (0..6)
        .map(|n| {
            let (store, running, done) = (stores[n % 2].clone(), running.clone(), done.clone());
            tokio::spawn(async move {
                let mut in_vain = 0;
                while done.lock().unwrap().len() < JOBS as usize {
                    let leased = store.lease(ask(4)).await.unwrap().tasks;
                    in_vain = if leased.is_empty() { in_vain + 1 } else { 0 };
                    assert!(in_vain < PATIENCE, "nothing is handed out any more");
                    for task in leased {
                        let now = running.fetch_add(1, SeqCst) + 1;
                        assert!(now <= CAP, "{now} at once");
                        tokio::task::yield_now().await;
                        // Struck from the count before the store hears of it: afterwards the slot may rightly be taken.
                        running.fetch_sub(1, SeqCst);
                        let settled = store.settle(vec![completed(task.held())]).await.unwrap();
                        assert_eq!(settled[0].state(), Some(TaskState::Completed));
                        assert!(done.lock().unwrap().insert(task.task), "{} was held twice", task.task);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(replay(&stores[0]).await, JOBS);
}

#[tokio::test]
#[ignore = "a process that the other tests start"]
async fn a_worker_process() {
    let (path, n) = given();
    let store = open(&path);
    let own = store.submit(vec![limited(), limited().key(Key::new("same"))]).await.unwrap();
    say(&format!("same {}", own[1].id()));
    while count(&store, |line| line.ready + line.parked + line.running).await > 0 {
        for task in store.lease(ask(3)).await.unwrap().tasks {
            say(&format!("held {} {} by {n}", task.task, task.counters.attempt));
            let settled = store.settle(vec![completed(task.held())]).await.unwrap();
            assert_eq!(settled[0].state(), Some(TaskState::Completed));
        }
    }
}

#[tokio::test]
async fn limits_hold_across_processes_and_no_task_is_held_twice() {
    const WORKERS: u64 = 3;
    let dir = scratch();
    let path = dir.path().join("many.db");
    let store = open(&path);
    set_cap(&store, Some(CAP)).await;
    store.submit(vec![limited(); JOBS as usize]).await.unwrap();
    let workers: Vec<_> = (0..WORKERS).map(|n| Child::start(WORKER, &path, n)).collect();
    let said: Vec<String> = workers.into_iter().flat_map(Child::end).collect();
    let same: BTreeSet<_> = said.iter().filter(|line| line.starts_with("same ")).collect();
    assert_eq!(same.len(), 1, "one key, one job: {same:?}");
    let held: Vec<_> = said.iter().filter(|line| line.starts_with("held ")).collect();
    let tasks: BTreeSet<_> = held.iter().map(|line| line.split(' ').nth(1)).collect();
    let jobs = JOBS + WORKERS + 1;
    assert_eq!((tasks.len() as u64, held.len() as u64), (jobs, jobs), "each task is held once");
    assert_eq!(replay(&store).await, jobs);
    assert_eq!(count(&store, |line| line.completed).await, jobs);
    store.close();
    assert_sound(&path);
}

#[tokio::test]
async fn what_one_writes_the_other_obeys() {
    let dir = scratch();
    let path = dir.path().join("two.db");
    let (a, b) = (open(&path), open(&path));
    a.submit(vec![limited(); 6]).await.unwrap();
    set_cap(&a, Some(1)).await;
    let first = b.lease(ask(9)).await.unwrap().tasks;
    assert_eq!(first.len(), 1, "a rule holds for who did not write it");
    assert_eq!(a.lease(ask(9)).await.unwrap().tasks, [], "and so do the slots that the other has handed out");
    assert!(matches!(a.extend(vec![first[0].held()], ask(1).ttl).await.unwrap()[0], Beat::Until(_)));
    set_cap(&b, Some(2)).await;
    let second = a.lease(ask(9)).await.unwrap().tasks;
    assert_eq!(second.len(), 1, "one more under the raised cap");
    assert_eq!(
        a.settle(vec![completed(first[0].held())]).await.unwrap()[0].state(),
        Some(TaskState::Completed)
    );
    assert_eq!(
        b.settle(vec![completed(first[0].held())]).await.unwrap(),
        [Settled::Stale],
        "the fence holds too"
    );
    assert_eq!(b.lease(ask(9)).await.unwrap().tasks.len(), 1, "the slot that was given back elsewhere");
    set_cap(&a, Some(0)).await;
    b.settle(vec![completed(second[0].held())]).await.unwrap();
    assert_eq!(b.lease(ask(9)).await.unwrap().tasks, []);
    set_cap(&b, None).await;
    assert_eq!(a.lease(ask(9)).await.unwrap().tasks.len(), 3);
    assert_eq!(b.expired(SweepAsk { limit: 9, jitter: 0.0 }).await.unwrap().ended, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_one_job_whoever_submits_it() {
    let dir = scratch();
    let path = dir.path().join("keys.db");
    let submitters: Vec<_> = (0..2)
        .map(|seed| tokio::spawn(submit_every_key(open(&path), fastrand::Rng::with_seed(seed))))
        .collect();
    let mut created = 0;
    let mut keyed: BTreeMap<u32, BTreeSet<JobId>> = BTreeMap::new();
    let mut unkeyed = vec![];
    for submitter in submitters {
        for (key, answer) in submitter.await.unwrap() {
            match key {
                Some(n) => {
                    assert!(!matches!(answer, Submitted::Conflict { .. }), "key {n}: {answer:?}");
                    created += u32::from(matches!(answer, Submitted::Created { .. }));
                    keyed.entry(n).or_default().insert(answer.id());
                }
                None => unkeyed.push(answer.id()),
            }
        }
    }
    assert_eq!(created, KEYS, "each key was new once");
    assert!(keyed.values().all(|ids| ids.len() == 1), "every ack names the same job");
    let ids: BTreeSet<_> = keyed.into_values().flatten().chain(unkeyed.iter().copied()).collect();
    assert_eq!(ids.len(), KEYS as usize + unkeyed.len(), "no two jobs have one id");
    let listed = open(&path).list(JobFilter::default(), Page { after: None, limit: u32::MAX }).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.id).collect::<BTreeSet<_>>(), ids);
}

/// Submits every key once, in any order and in batches of any size, each beside a job without a key.
async fn submit_every_key(store: Arc<SqliteStore>, mut rng: fastrand::Rng) -> Vec<(Option<u32>, Submitted)> {
    let mut keys: Vec<u32> = (0..KEYS).collect();
    rng.shuffle(&mut keys);
    let mut answers = vec![];
    while !keys.is_empty() {
        let size = rng.usize(1..=keys.len().min(40));
        let batch: Vec<Option<u32>> = keys.drain(..size).map(Some).chain([None]).collect();
        let new = |n: &Option<u32>| n.map_or(job("null"), |n| job("1").key(Key::new(n.to_string())));
        let submitted = store.submit(batch.iter().map(new).collect()).await.unwrap();
        answers.extend(batch.into_iter().zip(submitted));
    }
    answers
}

/// The number of the newest journal entry: how often was committed.
fn commits(conn: &rusqlite::Connection) -> i64 {
    conn.query_row("SELECT ifnull(max(n), 0) FROM journal", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_commits_without_pause_does_not_shut_out_another() {
    let dir = scratch();
    let path = dir.path().join("hog.db");
    let (hog, guest) = (open(&path), open(&path));
    let stop = Arc::new(AtomicBool::new(false));
    // Several callers, so that the hog's mailbox is never empty.
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (hog, stop) = (hog.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(SeqCst) {
                    hog.submit(vec![job("1"); 50]).await.unwrap();
                }
            })
        })
        .collect();
    let conn = rusqlite::Connection::open(&path).unwrap();
    let mut waits = vec![];
    for _ in 0..40 {
        // The hog has just committed, and has more to do.
        let seen = commits(&conn);
        while commits(&conn) == seen {}
        let before = commits(&conn);
        guest.submit(vec![job("2")]).await.unwrap();
        waits.push(commits(&conn) - before - 1);
    }
    stop.store(true, SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(waits.iter().all(|wait| *wait <= 50), "commits of the hog that the guest waited for: {waits:?}");
}

fn open_at_once(path: &Path, count: usize) -> Vec<Arc<SqliteStore>> {
    let start = Barrier::new(count);
    std::thread::scope(|scope| {
        let open = || {
            start.wait();
            open(path)
        };
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[tokio::test]
async fn stores_that_open_a_new_file_together_make_one_schema() {
    let dir = scratch();
    for round in 0..10 {
        let path = dir.path().join(format!("{round}.db"));
        let stores = open_at_once(&path, 6);
        let mut ids = BTreeSet::new();
        for store in &stores {
            ids.insert(store.submit(vec![job("1").key(Key::new("k"))]).await.unwrap()[0].id());
        }
        assert_eq!(ids.len(), 1, "one salt, one job: {ids:?}");
    }
}
