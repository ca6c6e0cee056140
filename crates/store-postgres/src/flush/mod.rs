//! Turns what a computation staged into writes: one set-based statement per table and direction.

mod columns;
mod moves;

use crate::tx::{Value, Write};
use crate::work::{Base, Head, Work};
use columns::{Column, column, columns, first, insert, update};
use orchestrator_core::{JobState, Json};
use orchestrator_store::packed::{job_state_code, pack};
use std::sync::{Arc, LazyLock};

columns!(Jobs of "jobs" {
    seq: i64, entry: Option<i64>, key: Option<String>, payload: String;
    created: i64, spec: Option<i32>, lane: Option<i32>, flow: Option<i32>, tier: i16, tenant: i32, bucket: Option<i64>,
    previous: Option<i64>, meta: Option<String>,
});
columns!(Documents of "documents" {
    seq: i64, name: String, media_type: String, size: i64, sha256: String, content: Vec<u8>,
});
columns!(Runs of "runs" {
    seq: i64, state: i16, body: Vec<u8>, ended: Option<i64>;
    started: bool, output: Option<String>, changed: i64, reason: Option<String>,
});

impl Runs {
    /// Changes the rows, if there are any.
    fn update(self, out: &mut Vec<Write>) {
        static TEXTS: LazyLock<[String; 2]> = LazyLock::new(|| Runs::texts(update));
        self.write(&TEXTS, out);
    }
}

columns!(Records of "attempts" { task: i64, attempt: i32, at: i64, how: String, message: String });

fn text(json: &Option<Json>) -> Option<String> {
    json.as_ref().map(|json| json.as_str().to_owned())
}

/// Text in PostgreSQL cannot hold the character zero.
fn storable(message: &str) -> String {
    message.replace('\0', "\u{FFFD}")
}

fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The writes of a transaction.
pub fn writes(work: &Work) -> Vec<Write> {
    let mut out = vec![];
    jobs(work, &mut out);
    heads(work, &mut out);
    moves::tasks(work, &mut out);
    rest(work, &mut out);
    out
}

fn jobs(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    let mut columns = Jobs::default();
    for (seq, job) in &staged.jobs {
        columns.seq.push(*seq);
        columns.created.push(job.created.as_millis());
        columns.spec.push(job.spec);
        columns.lane.push(job.lane);
        columns.flow.push(job.flow);
        columns.tier.push(i16::from(job.tier));
        columns.tenant.push(job.tenant);
        columns.entry.push(job.entry);
        columns.key.push(job.key.as_ref().map(|key| key.to_string()));
        columns.bucket.push(job.bucket);
        columns.previous.push(job.previous);
        columns.payload.push(job.payload.as_str().to_owned());
        columns.meta.push(staged.metas.get(seq).cloned());
    }
    columns.insert(out);
    let mut columns = Documents::default();
    for (seq, document) in &staged.documents {
        columns.seq.push(*seq);
        columns.name.push(storable(document.name()));
        columns.media_type.push(storable(document.media_type()));
        columns.size.push(i64::try_from(document.content().len()).unwrap_or(i64::MAX));
        columns.sha256.push(document.sha256().to_string());
        columns.content.push(document.content().to_vec());
    }
    columns.insert(out);
    if !staged.upgraded.is_empty() {
        let (seqs, flows): (Vec<i64>, Vec<i32>) = staged.upgraded.iter().unzip();
        let sql = "UPDATE jobs j SET flow = w.flow, entry = NULL
            FROM unnest($1::bigint[], $2::int[]) w(seq, flow) WHERE j.seq = ANY (ARRAY[w.seq])";
        let tasks: Vec<i64> = seqs.iter().map(|seq| pack(*seq, 0)).collect();
        out.push(Write::new(sql, vec![Arc::new(seqs), Arc::new(flows)]));
        let tell = "UPDATE leases SET headed = true WHERE task = ANY($1)";
        out.push(Write::new(tell, vec![Arc::new(tasks)]));
    }
    let (mut new, mut moved) = ((vec![], vec![]), (vec![], vec![]));
    let mut holders: Vec<_> = staged.holders.iter().collect();
    holders.sort_unstable();
    for (digest, seq) in holders {
        let list = if matches!(work.base.holders.get(digest), Some(Some(_))) { &mut moved } else { &mut new };
        list.0.push(*digest);
        list.1.push(*seq);
    }
    if !new.0.is_empty() {
        let sql = "INSERT INTO keys (digest, job) SELECT * FROM unnest($1::uuid[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(new.0), Arc::new(new.1)]));
    }
    if !moved.0.is_empty() {
        let sql = "UPDATE keys k SET job = w.job FROM unnest($1::uuid[], $2::bigint[]) w(digest, job)
            WHERE k.digest = ANY (ARRAY[w.digest])";
        out.push(Write::new(sql, vec![Arc::new(moved.0), Arc::new(moved.1)]));
    }
    if !staged.former.is_empty() {
        let (digests, seqs): (Vec<_>, Vec<_>) = staged.former.iter().copied().unzip();
        let sql = "INSERT INTO former_keys (digest, job) SELECT * FROM unnest($1::uuid[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(digests), Arc::new(seqs)]));
    }
}

fn base_head(base: &Base, seq: i64) -> Option<&Head> {
    base.heads.get(&seq).and_then(Option::as_ref)
}

fn heads(work: &Work, out: &mut Vec<Write>) {
    let (mut new, mut changed) = (Runs::default(), Runs::default());
    let (mut dies, mut lives) = ((vec![], vec![]), (vec![], vec![]));
    let (mut bad, mut good) = (vec![], vec![]);
    let mut all: Vec<&Head> = work.staged.heads.values().collect();
    all.sort_unstable_by_key(|head| head.seq);
    for head in all {
        let before = base_head(&work.base, head.seq);
        let columns = if before.is_some() { &mut changed } else { &mut new };
        columns.seq.push(head.seq);
        columns.state.push(i16::from(job_state_code(head.run.state)));
        columns.started.push(head.run.started.is_some());
        // A run holds numbers and words only, which always have a form.
        columns.body.push(postcard::to_stdvec(&head.run).unwrap_or_default());
        columns.output.push(text(&head.output));
        columns.changed.push(work.now.as_millis());
        columns.ended.push(head.run.ended.map(|at| at.as_millis()));
        columns.reason.push(head.run.reason.as_deref().map(storable));
        let (was, is) = (before.and_then(Head::alive), head.alive());
        if was != is {
            if let Some(deadline) = was {
                dies.0.push(deadline);
                dies.1.push(head.seq);
            }
            if let Some(deadline) = is {
                lives.0.push(deadline);
                lives.1.push(head.seq);
            }
        }
        let ended_badly = |head: &Head| matches!(head.run.state, JobState::Failed | JobState::TimedOut);
        match (before.is_some_and(ended_badly), ended_badly(head)) {
            (false, true) => bad.push(head.seq),
            (true, false) => good.push(head.seq),
            _ => {}
        }
    }
    new.insert(out);
    changed.update(out);
    if !dies.0.is_empty() {
        let sql = "DELETE FROM alive a USING unnest($1::bigint[], $2::bigint[]) w(deadline, seq)
            WHERE a.deadline = ANY (ARRAY[w.deadline]) AND a.seq = ANY (ARRAY[w.seq])";
        out.push(Write::new(sql, vec![Arc::new(dies.0), Arc::new(dies.1)]));
    }
    if !lives.0.is_empty() {
        let sql = "INSERT INTO alive (deadline, seq) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(lives.0), Arc::new(lives.1)]));
    }
    if !bad.is_empty() {
        out.push(Write::new("INSERT INTO bad (seq) SELECT * FROM unnest($1::bigint[])", vec![Arc::new(bad)]));
    }
    if !good.is_empty() {
        out.push(Write::new("DELETE FROM bad WHERE seq = ANY($1)", vec![Arc::new(good)]));
    }
}

fn rest(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    for (first, last) in &staged.forgotten {
        let sql = "DELETE FROM attempts WHERE task >= $1 AND task < $2";
        out.push(Write::new(sql, vec![Arc::new(*first), Arc::new(*last)]));
    }
    let mut columns = Records::default();
    for record in &staged.records {
        columns.task.push(record.task);
        columns.attempt.push(int(record.attempt));
        columns.at.push(work.now.as_millis());
        columns.how.push(record.how.clone());
        columns.message.push(storable(&record.message));
    }
    columns.insert(out);
    if !staged.told.is_empty() {
        let told: Vec<i64> = staged.told.iter().copied().filter(|seq| awaited(work, *seq)).collect();
        if !told.is_empty() {
            out.push(Write::new("DELETE FROM waits WHERE job = ANY($1)", vec![Arc::new(told)]));
        }
    }
    if !staged.wait_no_more.is_empty() {
        let waiters: Vec<i64> = staged.wait_no_more.iter().copied().collect();
        out.push(Write::new("DELETE FROM waits WHERE waiter = ANY($1)", vec![Arc::new(waiters)]));
    }
    if !staged.waits.is_empty() {
        let (jobs, waiters): (Vec<i64>, Vec<i64>) = staged.waits.iter().copied().unzip();
        let sql = "INSERT INTO waits (job, waiter) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(jobs), Arc::new(waiters)]));
    }
    counts(work, out);
    slots(work, out);
    if !staged.events.is_empty() {
        let events = postcard::to_stdvec(&staged.events).unwrap_or_default();
        let sql = "INSERT INTO journal (at, events) VALUES ($1, $2)";
        out.push(Write::new(sql, vec![Arc::new(work.now.as_millis()), Arc::new(events)]));
    }
}

fn awaited(work: &Work, seq: i64) -> bool {
    work.base.waiters.get(&seq).is_some_and(|waiters| !waiters.is_empty())
}

/// Adds to the counts of ended tasks.
pub const TALLY: &str = "INSERT INTO tally AS t (line, state, slot, n)
    SELECT line, state, pg_backend_pid() % 64, n FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, state, n)
    ON CONFLICT (line, state, slot) DO UPDATE SET n = t.n + excluded.n";

/// Adds to the counts by day.
const DAILY: &str = "INSERT INTO daily AS t (day, what, slot, n)
    SELECT day, what, pg_backend_pid() % 64, n FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(day, what, n)
    ON CONFLICT (day, what, slot) DO UPDATE SET n = t.n + excluded.n";

/// Counts go to the slot of the connection, so that transactions do not wait for each other.
fn counts(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    if !staged.tallies.is_empty() {
        let lines: Vec<i32> = staged.tallies.keys().map(|key| key.0).collect();
        let states: Vec<i16> = staged.tallies.keys().map(|key| i16::from(key.1)).collect();
        let by: Vec<i64> = staged.tallies.values().copied().collect();
        out.push(Write::new(TALLY, vec![Arc::new(lines), Arc::new(states), Arc::new(by)]));
    }
    if !staged.daily.is_empty() {
        let days: Vec<i32> = staged.daily.keys().map(|key| key.0).collect();
        let what: Vec<i16> = staged.daily.keys().map(|key| i16::from(key.1)).collect();
        let by: Vec<i64> = staged.daily.values().copied().collect();
        out.push(Write::new(DAILY, vec![Arc::new(days), Arc::new(what), Arc::new(by)]));
    }
    if !staged.timings.is_empty() {
        let flows: Vec<i32> = staged.timings.keys().map(|key| key.0).collect();
        let tasks: Vec<i32> = staged.timings.keys().map(|key| int(key.1)).collect();
        let n: Vec<i64> = staged.timings.values().map(|value| value.0).collect();
        let total: Vec<i64> = staged.timings.values().map(|value| value.1).collect();
        let sql = "INSERT INTO timings AS t (flow, task, slot, n, total)
            SELECT flow, task, pg_backend_pid() % 64, n, total
            FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) w(flow, task, n, total)
            ON CONFLICT (flow, task, slot) DO UPDATE SET n = t.n + excluded.n, total = t.total + excluded.total";
        out.push(Write::new(sql, vec![Arc::new(flows), Arc::new(tasks), Arc::new(n), Arc::new(total)]));
    }
}

/// Lets those into line that may start now: for each place that came free under a key, the first of each line and tier
/// that is parked behind it. Mostly nobody is, which one look tells.
pub const WAKE: &str = "WITH wanted AS MATERIALIZED (
        SELECT w.key, w.n FROM unnest($1::int[], $2::bigint[]) w(key, n)
        WHERE (SELECT true FROM parked p WHERE p.limit_key = w.key LIMIT 1)
    ), moved AS (
        DELETE FROM parked p USING (
            SELECT x.limit_key, x.line, x.tier, x.stamp, x.task
            FROM wanted w
            JOIN key_lines k ON k.limit_key = ANY (ARRAY[w.key])
            CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) t(tier)
            CROSS JOIN LATERAL (
                SELECT q.limit_key, q.line, q.tier, q.stamp, q.task FROM parked q
                WHERE q.limit_key = w.key AND q.line = k.line AND q.tier = t.tier
                ORDER BY q.stamp, q.task LIMIT w.n FOR UPDATE SKIP LOCKED
            ) x
        ) d
        WHERE p.limit_key = ANY (ARRAY[d.limit_key]) AND p.line = ANY (ARRAY[d.line]) AND p.tier = ANY (ARRAY[d.tier])
            AND p.stamp = ANY (ARRAY[d.stamp]) AND p.task = ANY (ARRAY[d.task])
        RETURNING p.line, p.tier, p.stamp, p.task, p.lane, p.since, p.attempt, p.failures, p.crashes, p.checkpoint
    )
    INSERT INTO ready (line, tier, stamp, task, lane, since, attempt, failures, crashes, checkpoint) SELECT * FROM moved";

fn slots(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    if !staged.freed.is_empty() {
        let keys: Vec<i32> = staged.freed.keys().copied().collect();
        let by: Vec<i32> = staged.freed.values().copied().collect();
        // Row by row in the order of the array, which is that of their numbers, as everybody locks them.
        let sql = "UPDATE limit_keys k SET running = k.running - w.n FROM unnest($1::int[], $2::int[]) w(id, n) WHERE k.id = ANY (ARRAY[w.id])";
        out.push(Write::new(sql, vec![Arc::new(keys), Arc::new(by)]));
    }
    let mut wake = staged.unused.clone();
    for (key, n) in &staged.freed {
        *wake.entry(*key).or_default() += u32::try_from(*n).unwrap_or(0);
    }
    if !wake.is_empty() {
        let keys: Vec<i32> = wake.keys().copied().collect();
        let n: Vec<i64> = wake.values().map(|n| i64::from(*n)).collect();
        out.push(Write::new(WAKE, vec![Arc::new(keys), Arc::new(n)]));
    }
}
