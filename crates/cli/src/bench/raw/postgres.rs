//! Bare PostgreSQL: eight connections, one table, a transaction per batch, the planner's own choices.

use super::super::load::failed;
use super::super::queue::payload;
use super::super::{LoadArgs, SendArgs};
use crate::error::CliResult;
use futures_util::future::try_join_all;
use orchestrator_store_postgres::Options;
use orchestrator_store_postgres::connect::Connections;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};

/// So many at once were the fastest where this was measured.
const CONNECTIONS: usize = 8;
/// The most inserts that share a commit.
const SHARED: usize = 4096;
const SCHEMA: &str = "
CREATE TABLE jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue int NOT NULL, state smallint NOT NULL DEFAULT 0,
    priority int NOT NULL, run_at bigint NOT NULL, lease_until bigint, attempt int NOT NULL DEFAULT 0,
    payload text NOT NULL) WITH (fillfactor = 70);
CREATE INDEX jobs_ready ON jobs (queue, priority, run_at, id) WHERE state = 0;";
const INSERT: &str = "INSERT INTO jobs (queue, priority, run_at, payload)
    SELECT 1, p, r, x FROM unnest($1::int[], $2::bigint[], $3::text[]) t(p, r, x)";
const LEASE: &str = "WITH free AS MATERIALIZED (
        SELECT id FROM jobs WHERE state = 0 AND queue = 1 AND run_at <= $2
        ORDER BY priority, run_at LIMIT $3 FOR UPDATE SKIP LOCKED)
    UPDATE jobs j SET state = 1, lease_until = $1, attempt = attempt + 1 FROM free WHERE j.id = free.id
    RETURNING j.id, j.payload";
const ACK: &str = "UPDATE jobs SET state = 2, lease_until = NULL WHERE id = ANY($1) AND state = 1";
/// Our sessions bind the planner; this table is for the planner as it comes.
const UNBOUND: &str = "SET plan_cache_mode = auto; SET enable_hashjoin = on; SET enable_mergejoin = on;
    SET enable_seqscan = on; SET enable_bitmapscan = on; SET jit = on";

/// A connection that is driven by a task of its own.
struct Link {
    client: Client,
    driven: JoinHandle<Result<(), Error>>,
}

impl Link {
    async fn open(connections: &Connections) -> CliResult<Link> {
        let (client, wire) = connections.own().await?;
        let driven = tokio::spawn(wire);
        client.batch_execute(UNBOUND).await.map_err(failed)?;
        Ok(Link { client, driven })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driven.abort();
    }
}

/// A schema with one table.
pub struct Bare {
    links: Vec<Link>,
}

impl Bare {
    /// Makes it.
    pub async fn new(options: Options) -> CliResult<Bare> {
        let connections = Connections::new(&options)?;
        let links = try_join_all((0..CONNECTIONS).map(|_| Link::open(&connections))).await?;
        let schema = format!("CREATE SCHEMA {}; {SCHEMA}", connections.schema());
        links[0].client.batch_execute(&schema).await.map_err(failed)?;
        Ok(Bare { links })
    }

    /// Enqueue all, then lease and acknowledge all.
    pub async fn cycle(&self, jobs: u64, send: &SendArgs) -> CliResult<(Duration, Duration)> {
        let start = Instant::now();
        let left = AtomicU64::new(jobs);
        let all = self.links.iter().map(|link| enqueue(&link.client, &left, send));
        try_join_all(all).await.map_err(failed)?;
        let enqueued = start.elapsed();
        // A queue that is in use has fresh statistics.
        self.links[0].client.batch_execute("ANALYZE jobs").await.map_err(failed)?;
        let start = Instant::now();
        let all = self.links.iter().map(|link| process(&link.client, send));
        try_join_all(all).await.map_err(failed)?;
        Ok((enqueued, start.elapsed()))
    }

    /// One insert per call, gathered into commits.
    pub async fn inserts(&self, load: &LoadArgs) -> CliResult<Duration> {
        let (mailbox, inbox) = mpsc::unbounded_channel();
        let each = load.jobs / load.callers;
        let start = Instant::now();
        let callers = (0..load.callers).map(|_| {
            let (mailbox, text) = (mailbox.clone(), payload(load.send.payload));
            tokio::spawn(async move {
                for _ in 0..each {
                    let (reply, answer) = oneshot::channel();
                    if mailbox.send((text.clone(), reply)).is_err() || answer.await.is_err() {
                        break;
                    }
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        drop(mailbox);
        gather(&self.links[0].client, inbox).await.map_err(failed)?;
        for caller in callers {
            caller.await.map_err(failed)?;
        }
        Ok(start.elapsed())
    }
}

async fn enqueue(client: &Client, left: &AtomicU64, send: &SendArgs) -> Result<(), Error> {
    let insert = client.prepare(INSERT).await?;
    let text = payload(send.payload);
    let take = |left: u64| (left > 0).then(|| left.saturating_sub(send.batch));
    while let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
        let size = before.min(send.batch) as usize;
        client.execute(&insert, &[&vec![0; size], &vec![micros(); size], &vec![text.as_str(); size]]).await?;
    }
    Ok(())
}

async fn process(client: &Client, send: &SendArgs) -> Result<(), Error> {
    let (lease, ack) = (client.prepare(LEASE).await?, client.prepare(ACK).await?);
    loop {
        let now = micros();
        let rows = client.query(&lease, &[&(now + 30_000_000), &now, &(send.batch as i64)]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let seen = |row: &tokio_postgres::Row| {
            std::hint::black_box(row.get::<_, &str>(1));
            row.get(0)
        };
        let ids: Vec<i64> = rows.iter().map(seen).collect();
        client.execute(&ack, &[&ids]).await?;
    }
}

type Call = (String, oneshot::Sender<()>);

async fn gather(client: &Client, mut inbox: mpsc::UnboundedReceiver<Call>) -> Result<(), Error> {
    let insert = client.prepare(INSERT).await?;
    while let Some(first) = inbox.recv().await {
        let mut calls = vec![first];
        while calls.len() < SHARED
            && let Ok(call) = inbox.try_recv()
        {
            calls.push(call);
        }
        let texts: Vec<&str> = calls.iter().map(|call| call.0.as_str()).collect();
        let size = texts.len();
        client.execute(&insert, &[&vec![0; size], &vec![micros(); size], &texts]).await?;
        for (_, reply) in calls {
            // A caller that is gone needs no answer.
            let _ = reply.send(());
        }
    }
    Ok(())
}

/// A transaction that keeps its snapshot, as a slow report or a forgotten console does: nothing that is deleted
/// meanwhile can be cleared away.
pub struct HeldOpen {
    _link: Link,
    _connections: Arc<Connections>,
}

impl HeldOpen {
    /// Begins it.
    pub async fn begin(options: Options) -> CliResult<HeldOpen> {
        let connections = Arc::new(Connections::new(&options)?);
        let link = Link::open(&connections).await?;
        let begin = "SET idle_in_transaction_session_timeout = 0;
            BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()";
        link.client.batch_execute(begin).await.map_err(failed)?;
        Ok(HeldOpen { _link: link, _connections: connections })
    }
}

fn micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
