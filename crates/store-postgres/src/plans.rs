//! How PostgreSQL goes about each statement: by conditions on an index, on large tables as well as on small ones whose
//! statistics are wrong. What reads more does so by name, and with a reason.
//!
//! No statement can be forgotten: the suite that every store passes is run, and the sessions are asked what was prepared
//! in them.

use crate::connect::Connections;
use crate::{Options, PostgresStore};
use async_trait::async_trait;
use deadpool_postgres::Client;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::{Clock, Store};
use pg_harness::Server;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_postgres::SimpleQueryMessage;

/// The tables that grow and shrink with what lives.
const LIVING: &[&str] = &["ready", "parked", "delayed", "held", "leases", "alive", "dead", "lanes"];

/// What may read a table from end to end: words of the statement, the table, and why.
const LEAVE: &[(&str, &[&str], &str)] = &[
    ("ORDER BY d.due, d.task LIMIT $1", &["delayed"], "the first in the order of the key"),
    (
        "WHERE least(expires, times_out) <= $1",
        &["leases"],
        "as many as slots; an index would be written by every heartbeat",
    ),
    ("FROM journal WHERE n IS NULL ORDER BY id LIMIT", &["journal"], "a partial index: all of it is new"),
    ("WHERE k.wake_at IS NOT NULL", &["limit_keys"], "a partial index: all of it waits for a moment"),
    ("split_part(key, ':', 1) = ANY($2)", &["limit_keys"], "an operator changes a rule"),
    (
        "WHERE line IS NULL AND queue = ANY($1)",
        &["lanes"],
        "once for each set of queues that a process serves",
    ),
    ("SELECT key, rule FROM rules", &["rules"], "the rules that somebody wrote"),
    ("WITH RECURSIVE behind(key)", &["parked"], "the first row, and from each key to the next"),
    (
        "UNION SELECT task >> 20 FROM leases WHERE $4",
        LIVING,
        "a list of what lives, when states are asked for",
    ),
    ("AS what, r.n, j.created AS oldest", LIVING, "the counts of all that lives"),
    (
        "SELECT id, queue, handler FROM lanes WHERE line IS NULL",
        &["lanes"],
        "one row per line, for the counts",
    ),
    ("FROM tally GROUP BY", &["tally"], "one row per line, state and slot, for the counts"),
    ("SELECT key, rule, operator FROM rules", &["rules"], "the rules that somebody wrote"),
    ("FROM limit_keys WHERE running > 0", &["limit_keys"], "an operator looks at the limits"),
    ("SELECT seq FROM bad", &["bad"], "a list of what may be recovered"),
    ("SELECT seq FROM jobs ORDER BY seq DESC LIMIT 1", &["jobs"], "the last in the order of the key"),
    ("SELECT day, 1 FROM daily ORDER BY day DESC LIMIT 1", &["daily"], "the last in the order of the key"),
    ("SELECT queue, since FROM paused", &["paused"], "the queues that somebody paused"),
    ("FROM workers WHERE last_seen", &["workers"], "a row per worker of the last day"),
    ("FROM leases GROUP BY worker", &["leases"], "as many as slots, when somebody looks at the workers"),
];

/// Statements that must go by one index, by words of them.
const BY: &[(&str, &str)] = &[
    ("DELETE FROM ready r USING unnest", "ready_pkey"),
    ("DELETE FROM leases l USING unnest", "leases_pkey"),
    ("DELETE FROM leases l WHERE l.task = ANY($1) AND l.attempt = $2", "leases_pkey"),
    ("FROM leases WHERE task = ANY($1) ORDER BY task FOR UPDATE", "leases_pkey"),
    ("ORDER BY d.due, d.task LIMIT $1", "delayed_pkey"),
    ("SELECT seq, body, output FROM runs WHERE seq = ANY($1) ORDER BY seq FOR UPDATE", "runs_pkey"),
    ("SELECT digest, job FROM keys WHERE digest = ANY($1)", "keys_pkey"),
    ("UPDATE limit_keys k SET running = k.running - w.n", "limit_keys_pkey"),
    ("DELETE FROM parked p USING (", "parked_pkey"),
    ("WHERE k.wake_at IS NOT NULL", "limit_keys_wake"),
    ("FROM ended e LEFT JOIN dead d ON d.task = ANY (ARRAY[e.task]) WHERE e.task = ANY($1)", "ended_pkey"),
    ("SELECT id, at FROM journal", "journal_pkey"),
    ("events FROM journal WHERE n >= $1 ORDER BY n LIMIT $2", "journal_n_key"),
    ("FROM journal WHERE n IS NOT NULL ORDER BY n DESC LIMIT 1", "journal_n_key"),
    ("ORDER BY stamp, task LIMIT $5 FOR UPDATE SKIP LOCKED", "ready_pkey"),
    ("ORDER BY stamp, task LIMIT $5 FOR UPDATE SKIP LOCKED", "paused_pkey"),
    ("WHERE (SELECT true FROM paused p WHERE p.queue = w.queue) IS NULL", "paused_pkey"),
    ("SELECT day, 1 FROM daily ORDER BY day DESC LIMIT 1", "daily_pkey"),
    ("SELECT seq FROM jobs ORDER BY seq DESC LIMIT 1", "jobs_pkey"),
];

/// The statements, each with the types of its parameters.
type Statements = BTreeMap<String, Vec<String>>;

/// Those of the sessions that write, and of those that read.
#[derive(Default)]
struct Heard {
    writing: Statements,
    reading: Statements,
}

/// Stores whose sessions are asked what was prepared in them.
#[derive(Default)]
struct Listening {
    now: Mutex<Option<(Arc<PostgresStore>, String)>>,
    heard: tokio::sync::Mutex<Heard>,
}

impl Listening {
    async fn open(&self, url: String, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let options = Options { clock: Some(clock), writers: 2, readers: 1, ..Options::new(&url) };
        let store = PostgresStore::open(options).await.unwrap();
        *self.now.lock().unwrap() = Some((store.clone(), url));
        store
    }

    /// Asks the sessions of the newest store.
    async fn listen(&self) -> Option<String> {
        let (store, url) = self.now.lock().unwrap().take()?;
        let mut heard = self.heard.lock().await;
        for connections in store.connections() {
            // Both of them, so both at once.
            let (a, b) = (connections.writer().await, connections.writer().await);
            for client in [a.unwrap(), b.unwrap()] {
                prepared(&client, &mut heard.writing).await;
            }
            prepared(&connections.reader().await.unwrap(), &mut heard.reading).await;
        }
        Some(url)
    }
}

async fn prepared(client: &Client, heard: &mut Statements) {
    let sql = "SELECT statement, parameter_types::text[] FROM pg_prepared_statements";
    for row in client.query(sql, &[]).await.unwrap() {
        heard.insert(row.get(0), row.get(1));
    }
    heard.remove(sql);
}

#[async_trait]
impl Fixture for Listening {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        self.listen().await;
        self.open(Server::shared().database(), clock).await
    }

    async fn reopen(&self, _: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        let url = self.listen().await?;
        Some(self.open(url, clock).await)
    }
}

/// What is wrong with a plan.
fn problems(sql: &str, node: &Value, under_limit: bool, found: &mut Vec<String>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let table = node["Relation Name"].as_str().unwrap_or_default();
    let left = LEAVE.iter().any(|(words, of, _)| sql.contains(words) && of.contains(&table));
    let index = node["Index Name"].as_str().unwrap_or_default();
    match kind {
        "Seq Scan" if !left => found.push(format!("it reads all of {table}")),
        "Index Scan" | "Index Only Scan" | "Bitmap Index Scan" if node["Index Cond"].is_null() && !left => {
            found.push(format!("it reads all of {index}"));
        }
        "Sort" if under_limit && !LEAVE.iter().any(|(words, ..)| sql.contains(words)) => {
            found.push("it sorts to take the first".to_owned())
        }
        _ => {}
    }
    // What is below a scan or a join is another question.
    let limited = kind == "Limit" || (under_limit && matches!(kind, "LockRows" | "Subquery Scan" | "Result"));
    for child in node["Plans"].as_array().into_iter().flatten() {
        problems(sql, child, limited, found);
    }
}

fn goes_by(node: &Value, index: &str) -> bool {
    let below = |children: &Vec<Value>| children.iter().any(|child| goes_by(child, index));
    node["Index Name"] == index || node["Plans"].as_array().is_some_and(below)
}

/// The plan of a statement in a session, with values or without.
async fn plan(client: &Client, types: &str, sql: &str, values: &str) -> Option<Value> {
    // BEGIN, SET and the like have no plan.
    client.batch_execute(&format!("PREPARE looked_at {types} AS {sql}")).await.ok()?;
    let ask = format!("EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE looked_at {values}");
    let said = client.simple_query(&ask).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    client.batch_execute("DEALLOCATE looked_at").await.unwrap();
    let text = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plan: Value = serde_json::from_str(text?).unwrap();
    Some(plan[0]["Plan"].clone())
}

/// How a context is looked for: inside of a function with settings of its own, which a plan does not show.
async fn look_for_a_context(client: &Client) -> Value {
    let sql =
        r#"SELECT seq FROM jobs WHERE left(meta, 11) = '{"context":' AND json_of(meta) -> 'context' @> $1"#;
    client
        .batch_execute("BEGIN; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_seqscan = off")
        .await
        .unwrap();
    let plan = plan(client, "(jsonb)", sql, "(NULL)").await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    plan
}

/// Explains all statements in a session like theirs, and tells what is wrong.
async fn explain(client: &Client, statements: &Statements) -> String {
    let list =
        |words: Vec<&str>| if words.is_empty() { String::new() } else { format!("({})", words.join(", ")) };
    let mut wrong = String::new();
    let mut look = |sql: &str, plan: Option<Value>| {
        let Some(plan) = plan else { return };
        let mut found = vec![];
        problems(sql, &plan, false, &mut found);
        let must = BY.iter().filter(|(words, index)| sql.contains(words) && !goes_by(&plan, index));
        found.extend(must.map(|(_, index)| format!("it does not go by {index}")));
        if !found.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(wrong, "{}\n    {sql}", found.join("; "));
        }
    };
    for (sql, types) in statements {
        // They are planned without the values.
        let values = list(vec!["NULL"; types.len()]);
        look(sql, plan(client, &list(types.iter().map(String::as_str).collect()), sql, &values).await);
    }
    wrong
}

/// Many rows in every table that can have many.
const FILL: &str = "
    INSERT INTO tenants (name) SELECT 't' || n FROM generate_series(1, 1000) n ON CONFLICT DO NOTHING;
    INSERT INTO lanes (digest, queue, handler, limits) SELECT md5(n::text)::uuid, 'q' || n % 7, 'h' || n, '[]' FROM generate_series(1, 2000) n ON CONFLICT DO NOTHING;
    INSERT INTO specs (digest, body) SELECT md5(n::text)::uuid, '{}' FROM generate_series(1, 2000) n ON CONFLICT DO NOTHING;
    INSERT INTO flows (implicit, name, hash, version, created, body) SELECT false, 'f' || n, n, 1, 1, '{}' FROM generate_series(1, 2000) n;
    INSERT INTO limit_keys (key, wake_at) SELECT 'host:' || n, CASE WHEN n % 100 = 0 THEN n END FROM generate_series(1, 20000) n ON CONFLICT DO NOTHING;
    INSERT INTO key_lines SELECT n, n % 100 FROM generate_series(1, 20000) n ON CONFLICT DO NOTHING;
    INSERT INTO jobs (seq, created, spec, lane, tier, tenant, entry, payload, meta)
        SELECT n, n, 1, 1, 2, 1, n, '{}', CASE WHEN n % 20 = 0 THEN '{\"context\":{\"n\":' || n || '}}' END FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO documents SELECT n, 'a', 'b', 1, 'c', '' FROM generate_series(1000000::bigint, 1100000) n;
    INSERT INTO daily SELECT n, 0, s, 1 FROM generate_series(1, 1000) n, generate_series(0, 63) s;
    INSERT INTO paused SELECT 'q' || n, n FROM generate_series(1, 100) n;
    INSERT INTO workers SELECT 'w' || n, '', n, n FROM generate_series(1, 1000) n;
    INSERT INTO keys SELECT md5(n::text)::uuid, n FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO former_keys SELECT md5(n::text)::uuid, n FROM generate_series(1000000::bigint, 1100000) n;
    INSERT INTO runs (seq, state, started, body) SELECT n, 1, true, '' FROM generate_series(1000000::bigint, 1100000) n;
    INSERT INTO alive SELECT n, n FROM generate_series(1000000::bigint, 1100000) n;
    INSERT INTO bad SELECT n FROM generate_series(1000000::bigint, 1050000) n;
    INSERT INTO tasks (task, lane, tier) SELECT n << 20, 1, 2 FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO ready SELECT n % 20, 2, n, n << 20, 1, 0, 0, 0, 0 FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO parked SELECT n % 1000, n % 20, 2, n, n << 20, 1, 0, 0, 0, 0 FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO delayed SELECT n, n << 20, 1, 2, 0, 0, 0 FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO held SELECT n << 20, 1, 2, 1, 1, NULL, 0, 0, 0 FROM generate_series(1000000::bigint, 1100000) n;
    INSERT INTO leases SELECT n << 20, 1, 0, 0, 1, 1, 2, 1, 1, 1, 1, 1, 'w' FROM generate_series(1000000::bigint, 1050000) n;
    INSERT INTO ended (task, state, at, attempt, failures, crashes, lane, tier) SELECT n << 20, 4, 1, 1, 0, 0, 1, 2 FROM generate_series(1000000::bigint, 1300000) n;
    INSERT INTO dead SELECT n << 20, 1, 'final', 1 FROM generate_series(1000000::bigint, 1050000) n;
    INSERT INTO attempts (task, attempt, at, how, message) SELECT n << 20, 1, 1, 'lost', '' FROM generate_series(1000000::bigint, 1200000) n;
    INSERT INTO waits SELECT n, n + 1 FROM generate_series(1000000::bigint, 1100000) n;
    INSERT INTO fair SELECT n % 20, 2, n, 1 FROM generate_series(1, 20000) n;
    INSERT INTO journal (n, at, events) SELECT n, n, '' FROM generate_series(1000000::bigint, 1200000) n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_goes_by_its_index() {
    let listening = Listening::default();
    conformance::random_sequences(&listening, 10, 60, 7).await;
    listening.listen().await;
    let Heard { writing, reading } = listening.heard.into_inner();
    let heard = (writing.len(), reading.len());
    assert!(heard.0 > 100 && heard.1 > 20, "only {heard:?} statements were heard of");

    let options =
        Options { statement_timeout: Duration::from_secs(300), ..Options::new(Server::shared().database()) };
    let connections = Connections::new(&options).unwrap();
    crate::schema::prepare(&connections).await.unwrap();
    let (client, reader) = (connections.writer().await.unwrap(), connections.reader().await.unwrap());
    // Statistics of empty tables, then right ones, then those of tables that are empty again.
    client.batch_execute("ANALYZE").await.unwrap();
    for (what, change) in [
        ("many rows, statistics of none", FILL),
        ("many rows", "ANALYZE"),
        (
            "no rows, statistics of many",
            "DELETE FROM ready; DELETE FROM parked; DELETE FROM delayed; DELETE FROM leases",
        ),
        // A plan that is made now stays, however many rows come: a session keeps it.
        (
            "nothing at all",
            "TRUNCATE ready, parked, delayed, leases, held, alive, bad, runs, tasks, dead, waits, limit_keys, key_lines, fair, keys, attempts, ended, documents, daily, paused, workers, jobs; ANALYZE",
        ),
    ] {
        client.batch_execute(change).await.unwrap();
        let wrong = explain(&client, &writing).await + &explain(&reader, &reading).await;
        assert!(wrong.is_empty(), "{what}:\n{wrong}");
        assert!(goes_by(&look_for_a_context(&reader).await, "jobs_context"), "{what}: contexts");
    }
    let known = |words: &str| writing.keys().chain(reading.keys()).any(|sql| sql.contains(words));
    for words in LEAVE.iter().map(|leave| leave.0).chain(BY.iter().map(|by| by.0)) {
        assert!(known(words), "no statement says {words:?} any more");
    }
}
