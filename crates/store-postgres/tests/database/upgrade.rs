//! From one version of the schema to the next, while programs of the version before it work.

use crate::{ask, connections};
use orchestrator_core::{Json, Millis, NewJob, Outcome, WorkerId};
use orchestrator_store::{Catalog, LeaseAsk, Settlement, Store, StoreError};
use orchestrator_store_postgres::schema::{self, MIGRATIONS, VERSION};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a program of the next version might bring: something for every table that work goes through.
const NEXT: &str = "
    ALTER TABLE jobs ADD COLUMN colour text;
    ALTER TABLE runs ADD COLUMN colour text;
    ALTER TABLE leases ADD COLUMN colour text NOT NULL DEFAULT 'blue';
    ALTER TABLE ready ADD COLUMN colour text;
    ALTER TABLE ended ADD COLUMN colour text;
    CREATE TABLE colours (name text PRIMARY KEY);
    CREATE VIEW colourful AS SELECT seq, colour FROM jobs";

/// The columns of all tables, as of a version: `table.column` and what stands behind it.
fn columns(database: &str) -> Vec<(String, String)> {
    let sql = "SELECT c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'orchestrator' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped";
    let said = Server::shared().sql(database, sql);
    said.lines()
        .map(|line| line.split_once('|').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect()
}

/// What a table refuses: its constraints, unique indexes and triggers.
fn refusals(database: &str) -> Vec<String> {
    let sql = "SELECT i.indrelid::regclass || ' ' || pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'orchestrator' AND i.indisunique
        UNION SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'orchestrator'::regnamespace
        UNION SELECT tgrelid::regclass || ' ' || tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'orchestrator' AND NOT t.tgisinternal";
    Server::shared().sql(database, sql).lines().map(str::to_owned).collect()
}

fn table(name: &str) -> &str {
    name.split(['.', ' ']).next().unwrap_or_default()
}

/// Programs of a version go on when the next one comes, so a migration may not take away or demand anything.
#[tokio::test]
async fn migrations_only_add() {
    let url = Server::shared().database();
    let name = url.rsplit('/').next().unwrap();
    let connections = connections(&url);
    schema::upgrade(&connections, &MIGRATIONS[..1]).await.unwrap();
    for version in 2..=MIGRATIONS.len() {
        let (before, refused) = (columns(name), refusals(name));
        schema::upgrade(&connections, &MIGRATIONS[..version]).await.unwrap();
        let after = columns(name);
        for column in &before {
            assert!(after.contains(column), "version {version} changes or drops {column:?}");
        }
        let old: Vec<&str> = before.iter().map(|column| table(&column.0)).collect();
        for column in after.iter().filter(|column| !before.contains(column)) {
            let demanded = column.1.ends_with("|t") && old.contains(&table(&column.0));
            assert!(!demanded, "version {version} demands {column:?}, which programs before it do not write");
        }
        for new in refusals(name).iter().filter(|new| !refused.contains(new)) {
            let on = table(new).trim_start_matches("orchestrator.");
            assert!(!old.contains(&on), "version {version} refuses what was written before: {new}");
        }
    }
}

/// Rows that a program of version 1 wrote are shown by the views of version 2.
#[tokio::test]
async fn what_was_there_before_an_upgrade_is_in_the_history() {
    let url = Server::shared().database();
    let name = url.rsplit('/').next().unwrap();
    let connections = connections(&url);
    schema::upgrade(&connections, &MIGRATIONS[..1]).await.unwrap();
    assert_eq!(schema::version(&connections).await.unwrap(), Some(1));
    let salt = schema::salt(&connections).await.unwrap();
    let client = connections.writer().await.unwrap();
    client
        .batch_execute(
            r#"INSERT INTO tenants (name) VALUES ('ann');
               INSERT INTO lanes (digest, queue, handler, limits) VALUES (md5('a')::uuid, 'default', 'work', '[]');
               INSERT INTO flows (implicit, name, hash, version, created, body)
                   VALUES (false, 'f', 'h', 1, 5, '{"flow":"f","tasks":{"b":{"handler":"work"},"a":{"handler":"work","needs":["b"]}}}');
               INSERT INTO jobs (seq, created, flow, tier, tenant, payload) VALUES (1, 1000, 1, 2, 1, '{}');
               INSERT INTO runs (seq, state, started, body) VALUES (1, 5, true, '');
               INSERT INTO tasks (task, lane, tier) VALUES (1 << 20, 1, 2), (1 << 20 | 1, 1, 2);
               INSERT INTO ended (task, state, at, attempt, failures, crashes, lane, tier, output)
                   VALUES (1 << 20, 4, 2000, 1, 0, 0, 1, 2, '1'), (1 << 20 | 1, 4, 3000, 1, 0, 0, 1, 2, '2')"#,
        )
        .await
        .unwrap();
    schema::prepare(&connections).await.unwrap();
    assert_eq!(schema::version(&connections).await.unwrap(), Some(VERSION));
    assert_eq!(schema::salt(&connections).await.unwrap(), salt, "the ids stay");
    let runs = "SELECT flow_id, status, output_data, extract(epoch FROM completed_at)::int FROM orchestrator.flow_run_history";
    assert_eq!(Server::shared().sql(name, runs).trim(), "f|completed|2|3");
    let tasks = "SELECT string_agg(task_id || ' ' || status, ', ' ORDER BY id) FROM orchestrator.task_execution_history";
    assert_eq!(ask(&client, tasks).await, "b completed, a completed");
}

async fn work(store: &PostgresStore, worker: &str) -> usize {
    let ask = LeaseAsk {
        worker: WorkerId::new(worker),
        queues: vec!["default".into()],
        handlers: vec!["work".into()],
        slots: 20,
        ttl: Millis::mins(10),
        hold: Millis(0),
    };
    let tasks = store.lease(ask).await.unwrap().tasks;
    let end = |leased: &orchestrator_store::Leased| Settlement {
        held: leased.held(),
        outcome: Outcome::Completed(Json::null()),
        jitter: 0.0,
    };
    store.settle(tasks.iter().map(end).collect()).await.unwrap();
    tasks.len()
}

/// Replicas of this program run when one of the next version starts and migrates: they go on without an error, those
/// that start after it are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_go_on_while_a_newer_program_migrates() {
    let url = Server::shared().database();
    let next: Vec<&str> = MIGRATIONS.iter().copied().chain([NEXT]).collect();
    let over = Arc::new(AtomicBool::new(false));
    let (submitted, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut replicas = vec![];
    for n in 0..2 {
        let store = PostgresStore::open(Options::new(&url)).await.unwrap();
        let (over, submitted, done) = (over.clone(), submitted.clone(), done.clone());
        replicas.push(tokio::spawn(async move {
            let worker = format!("w{n}");
            while !over.load(Ordering::SeqCst) {
                let jobs = vec![NewJob::new("work").payload(Json::null()); 10];
                submitted.fetch_add(store.submit(jobs).await.unwrap().len(), Ordering::SeqCst);
                done.fetch_add(work(&store, &worker).await, Ordering::SeqCst);
            }
            store
        }));
    }
    let passed = |more: usize| {
        let (from, done) = (done.load(Ordering::SeqCst), done.clone());
        async move {
            while done.load(Ordering::SeqCst) < from + more {
                tokio::task::yield_now().await;
            }
        }
    };
    passed(100).await;
    // Several of the new ones start together: one migrates, the others find it done.
    let newer: Vec<_> = (0..3)
        .map(|_| {
            let (url, next) = (url.clone(), next.clone());
            tokio::spawn(async move { schema::upgrade(&connections(&url), &next).await })
        })
        .collect();
    for upgraded in newer {
        upgraded.await.unwrap().unwrap();
    }
    passed(100).await;
    over.store(true, Ordering::SeqCst);
    let mut stores = vec![];
    for replica in replicas {
        stores.push(replica.await.unwrap());
    }
    while done.load(Ordering::SeqCst) < submitted.load(Ordering::SeqCst) {
        done.fetch_add(work(&stores[0], "last").await, Ordering::SeqCst);
    }
    let stats = stores[1].stats().await.unwrap();
    assert_eq!(stats.lines[0].completed as usize, submitted.load(Ordering::SeqCst));
    let refused = PostgresStore::open(Options::new(&url)).await.map(|_| ()).unwrap_err();
    assert!(
        matches!(refused, StoreError::NewerSchema { found, known, .. } if found == VERSION + 1 && known == VERSION),
        "{refused:?}"
    );
}

/// A report that reads for long does not make the migration stand in everybody's way: it gives way, and comes through
/// when the report is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_lets_others_pass_while_it_cannot_have_a_table() {
    let url = Server::shared().database();
    let store = PostgresStore::open(Options::new(&url)).await.unwrap();
    let reports = connections(&url);
    let report = reports.writer().await.unwrap();
    report
        .batch_execute("SET idle_in_transaction_session_timeout = 0; BEGIN; SELECT count(*) FROM ended")
        .await
        .unwrap();
    let next: Vec<&str> = MIGRATIONS.iter().copied().chain([NEXT]).collect();
    let migrates = {
        let url = url.clone();
        let next: Vec<&'static str> = next.clone();
        tokio::spawn(async move { schema::upgrade(&connections(&url), &next).await })
    };
    let waits =
        "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'orchestrator.ended'::regclass";
    let name = url.rsplit('/').next().unwrap();
    while Server::shared().sql(name, waits).trim() != "t" {
        tokio::task::yield_now().await;
    }
    // It holds no table for longer than a second, and a write waits for up to ten.
    for _ in 0..3 {
        store.submit(vec![NewJob::new("work").payload(Json::null())]).await.unwrap();
        assert_eq!(work(&store, "w").await, 1);
    }
    assert!(!migrates.is_finished());
    report.batch_execute("COMMIT").await.unwrap();
    migrates.await.unwrap().unwrap();
}
