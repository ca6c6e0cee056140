//! Reads what a computation needs, and locks it: heads, then tasks wherever they are, in order of their numbers.
//!
//! Who moves a task takes the lock of its head first, save a lease, which takes tasks from `ready` and `parked` alone.
//! A task that moves while it is looked for is looked for again.

use crate::names::{Lane, LaneName, Names, digest};
use crate::place::{At, End, Lease, Placed, Spot};
use crate::tx::{Abort, Query, Tx};
use crate::work::{Head, JobRow, Needs, TaskRow, Work};
use orchestrator_core::flow::Plan;
use orchestrator_core::{Counters, DeadReason, Json, LimitKey, Limits, TaskSpec, Timestamp};
use orchestrator_store::packed::{pack, seq_of, state_of};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// Reads everything that is missing.
pub async fn load(
    tx: &mut Tx,
    names: &Names,
    naming: &crate::naming::Naming,
    work: &mut Work,
) -> Result<(), Abort> {
    let mut needs = std::mem::take(&mut work.needs);
    naming.learn(names, &needs).await?;
    work.known = names.known();
    // Versions are numbered in the order of the requests, which only shows when nothing else is missing. Just so it only
    // shows then how many places and numbers it takes.
    let flows = std::mem::take(&mut needs.flows);
    let settled = needs.is_settled();
    if settled && !flows.is_empty() {
        for plan in flows {
            // Every job of the batch asks for its flow, and mostly it is the same.
            if let Entry::Vacant(id) = work.base.flow_ids.entry((plan.is_implicit(), plan.hash().clone())) {
                id.insert(write_flow(tx, &plan, work.now).await?);
            }
        }
        return Ok(());
    }
    if settled {
        return reserve(naming, work, &needs).await;
    }
    if !needs.ending.is_empty() {
        return load_ending(tx, names, naming, work, needs).await;
    }
    load_holders(tx, work, &needs).await?;
    load_jobs(tx, work, &needs).await?;
    load_heads(tx, names, naming, work, &needs).await?;
    load_tasks(tx, work, &needs).await?;
    load_rest(tx, work, &needs).await
}

async fn reserve(naming: &crate::naming::Naming, work: &mut Work, needs: &Needs) -> Result<(), Abort> {
    let reserved = naming.reserve(&needs.places, needs.seqs).await?;
    for (key, stamps) in reserved.places {
        work.base.places.entry(key).or_default().extend(stamps);
    }
    work.base.seqs.extend(reserved.seqs);
    Ok(())
}

/// Reserves the places in line that a computation was promised, and puts them in.
pub async fn promised_places(naming: &crate::naming::Naming, work: &mut Work) -> Result<(), Abort> {
    if !work.needs.places.is_empty() {
        let needs = std::mem::take(&mut work.needs);
        reserve(naming, work, &needs).await?;
        work.take_promised_places();
    }
    Ok(())
}

/// All that ending attempts mostly needs, in one go: the heads, then the leases, which are taken away on the spot, and who
/// waits for the jobs. What is not held any more is looked for like any other task.
async fn load_ending(
    tx: &mut Tx,
    names: &Names,
    naming: &crate::naming::Naming,
    work: &mut Work,
    needs: Needs,
) -> Result<(), Abort> {
    let (tasks, attempts): (Vec<i64>, Vec<i32>) = needs.ending.into_iter().unzip();
    let mut seqs: Vec<i64> = tasks.iter().map(|task| seq_of(*task)).collect();
    seqs.dedup();
    // Mostly all of them are first attempts, and then their leases are found by their numbers alone.
    let attempt = attempts.first().filter(|first| attempts.iter().all(|attempt| attempt == *first));
    let take: Query<'_> = match &attempt {
        Some(attempt) => (TAKE, &[&tasks, *attempt]),
        None => (TAKE_EACH, &[&tasks, &attempts]),
    };
    let rows = tx.query_all(&[(HEADS, &[&seqs]), take, (AWAITED, &[&seqs])]).await?;
    work.base.heads.extend(seqs.iter().map(|seq| (*seq, None)));
    keep_heads(tx, names, naming, work, &rows[0]).await?;
    for row in &rows[1] {
        let task: i64 = row.get(0);
        check_head(work, task, row)?;
        work.base.taken.insert(task);
        work.base.tasks.insert(task, Some(placed(row, LEASES)?));
    }
    let awaited: FxHashSet<i64> = rows[2].iter().map(|row| row.get(0)).collect();
    for seq in seqs {
        let awaited = awaited.contains(&seq);
        work.base.awaited.insert(seq, awaited);
        if !awaited {
            work.base.waiters.insert(seq, vec![]);
        }
    }
    Ok(())
}

/// The number of a flow, which is written down if it is new.
pub async fn write_flow(tx: &mut Tx, plan: &Plan, now: Timestamp) -> Result<i32, Abort> {
    const FIND: &str = "SELECT id FROM flows WHERE implicit = $1 AND name = $2 AND hash = $3";
    let (implicit, name, hash) = (plan.is_implicit(), &**plan.name(), &**plan.hash());
    if let Some(row) = tx.query(FIND, &[&implicit, &name, &hash]).await?.first() {
        return Ok(row.get(0));
    }
    // Versions of one name are counted without gaps: one at a time.
    tx.query("SELECT pg_advisory_xact_lock(hashtext('flows:' || $1))", &[&name]).await?;
    if let Some(row) = tx.query(FIND, &[&implicit, &name, &hash]).await?.first() {
        return Ok(row.get(0));
    }
    let insert = "INSERT INTO flows (implicit, name, hash, version, created, body)
        SELECT $1, $2, $3, coalesce(max(version), 0) + 1, $4, $5 FROM flows WHERE implicit = $1 AND name = $2
        RETURNING id";
    let body = &**plan.text();
    let rows = tx.query(insert, &[&implicit, &name, &hash, &now.as_millis(), &body]).await?;
    rows.first().map(|row| row.get(0)).ok_or(Abort::Again("a flow was not written"))
}

async fn load_holders(tx: &mut Tx, work: &mut Work, needs: &Needs) -> Result<(), Abort> {
    if needs.holders.is_empty() {
        return Ok(());
    }
    let wanted: Vec<Uuid> = needs.holders.iter().copied().collect();
    work.base.holders.extend(wanted.iter().map(|digest| (*digest, None)));
    let sql = "SELECT digest, job FROM keys WHERE digest = ANY($1) ORDER BY digest FOR UPDATE";
    for row in tx.query(sql, &[&wanted]).await? {
        work.base.holders.insert(row.get(0), Some(row.get(1)));
    }
    Ok(())
}

async fn load_jobs(tx: &mut Tx, work: &mut Work, needs: &Needs) -> Result<(), Abort> {
    let wanted: Vec<i64> = needs.jobs.iter().copied().collect();
    if wanted.is_empty() {
        return Ok(());
    }
    work.base.jobs.extend(wanted.iter().map(|seq| (*seq, None)));
    let sql = "SELECT seq, created, spec, lane, flow, tier, tenant, entry, key, bucket, previous, payload,
            (SELECT d.sha256 FROM documents d WHERE d.seq = jobs.seq)
        FROM jobs WHERE seq = ANY($1)";
    for row in tx.query(sql, &[&wanted]).await? {
        work.base.jobs.insert(row.get(0), Some(job_row(&row)));
    }
    Ok(())
}

fn job_row(row: &Row) -> JobRow {
    JobRow {
        created: Timestamp::from_millis(row.get(1)),
        spec: row.get(2),
        lane: row.get(3),
        flow: row.get(4),
        tier: tier(row, 5),
        tenant: row.get(6),
        entry: row.get(7),
        key: row.get::<_, Option<&str>>(8).map(Into::into),
        bucket: row.get(9),
        previous: row.get(10),
        payload: Json::trusted(row.get::<_, &str>(11)),
        document: row.get::<_, Option<&str>>(12).map(Into::into),
    }
}

/// Heads are the locks of their jobs, so they come before anything of their tasks.
async fn load_heads(
    tx: &mut Tx,
    names: &Names,
    naming: &crate::naming::Naming,
    work: &mut Work,
    needs: &Needs,
) -> Result<(), Abort> {
    let mut wanted: Vec<i64> = needs.heads.iter().copied().collect();
    let of_tasks = needs.tasks.iter().map(|task| seq_of(*task)).chain(needs.live.iter().copied());
    wanted.extend(of_tasks.filter(|seq| !work.base.heads.contains_key(seq)));
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(());
    }
    work.base.heads.extend(wanted.iter().map(|seq| (*seq, None)));
    let rows = tx.query(HEADS, &[&wanted]).await?;
    keep_heads(tx, names, naming, work, &rows).await
}

/// Heads, which are locked, and behind them their jobs as rows without a body.
macro_rules! heads {
    ($lock:literal) => {
        concat!(
            "WITH head AS MATERIALIZED (
                SELECT seq, body, output FROM runs WHERE seq = ANY($1) ORDER BY seq ",
            $lock,
            ")
            SELECT seq, body, output, NULL::bigint, NULL::int, NULL::smallint, NULL::int, NULL::bigint FROM head
            UNION ALL SELECT seq, NULL, payload, created, flow, tier, tenant, entry FROM jobs
                WHERE seq = ANY (ARRAY(SELECT seq FROM head))"
        )
    };
}
const HEADS: &str = heads!("FOR UPDATE");
/// The same, but for heads that others hold.
pub const FREE_HEADS: &str = heads!("FOR UPDATE SKIP LOCKED");

/// Keeps heads that were read.
pub async fn keep_heads(
    tx: &mut Tx,
    names: &Names,
    naming: &crate::naming::Naming,
    work: &mut Work,
    rows: &[Row],
) -> Result<(), Abort> {
    let is_head = |row: &&Row| row.get::<_, Option<&[u8]>>(1).is_some();
    let jobs: FxHashMap<i64, &Row> =
        rows.iter().filter(|row| !is_head(row)).map(|row| (row.get(0), row)).collect();
    let flows = jobs.values().map(|row| row.get(4));
    let unknown: Vec<i32> = flows.filter(|flow| !work.known.flows.contains_key(flow)).collect();
    if !unknown.is_empty() {
        naming.learn_flows(names, tx, &unknown).await?;
        work.known = names.known();
    }
    for row in rows.iter().filter(is_head) {
        let seq: i64 = row.get(0);
        let job = *jobs.get(&seq).ok_or_else(|| unreadable("the job of a head"))?;
        let flow: i32 = job.get(4);
        let plan = work.known.flows.get(&flow).cloned();
        let head = Head {
            seq,
            flow,
            plan: plan.ok_or_else(|| unreadable("the flow of a job"))?,
            run: postcard::from_bytes(row.get(1)).map_err(|_| unreadable("the head of a job"))?,
            created: Timestamp::from_millis(job.get(3)),
            tenant: job.get(6),
            tier: tier(job, 5),
            run_at: job.get::<_, Option<i64>>(7).map(Timestamp::from_millis),
            payload: Json::trusted(job.get::<_, &str>(2)),
            output: row.get::<_, Option<&str>>(2).map(Json::trusted),
        };
        work.base.heads.insert(seq, Some(head));
    }
    Ok(())
}

async fn load_tasks(tx: &mut Tx, work: &mut Work, needs: &Needs) -> Result<(), Abort> {
    let mut wanted: Vec<i64> = needs.tasks.iter().copied().collect();
    if !needs.past.is_empty() {
        let past: Vec<i64> = needs.past.iter().copied().collect();
        for row in tx.query(ENDED, &[&past]).await? {
            work.base.tasks.insert(row.get(0), Some(placed(&row, ENDED)?));
        }
        wanted.extend(past.into_iter().filter(|task| !work.base.tasks.contains_key(task)));
    }
    for seq in &needs.live {
        let sql = "SELECT t.task, t.lane, t.tier, t.payload FROM tasks t
            WHERE t.task >= $1 AND t.task < $2 AND (SELECT e.task FROM ended e WHERE e.task = t.task) IS NULL";
        for row in tx.query(sql, &[&pack(*seq, 0), &pack(*seq + 1, 0)]).await? {
            let task: i64 = row.get(0);
            work.base.rows.insert(task, Some(task_row(&row)));
            if !work.base.tasks.contains_key(&task) {
                wanted.push(task);
            }
        }
        work.base.live.insert(*seq);
    }
    for seq in &needs.over {
        let sql = "SELECT task FROM ended WHERE task >= $1 AND task < $2";
        let rows = tx.query(sql, &[&pack(*seq, 0), &pack(*seq + 1, 0)]).await?;
        let ended = rows.iter().map(|row| row.get(0)).filter(|task| !work.base.tasks.contains_key(task));
        wanted.extend(ended);
        work.base.over.insert(*seq);
    }
    wanted.sort_unstable();
    wanted.dedup();
    find(tx, work, wanted).await
}

fn task_row(row: &Row) -> TaskRow {
    TaskRow {
        lane: row.get(1),
        tier: tier(row, 2),
        payload: row.get::<_, Option<&str>>(3).map(Json::trusted),
    }
}

const LEASES: &str =
    "SELECT task, lane, tier, attempt, failures, crashes, checkpoint, spec, stamp, since, started,
        expires, times_out, worker, headed
    FROM leases WHERE task = ANY($1) ORDER BY task FOR UPDATE";
/// What takes leases away tells of them: the columns of [`LEASES`].
macro_rules! take {
    ($from:literal) => {
        concat!(
            "DELETE FROM leases l ",
            $from,
            " RETURNING l.task, l.lane, l.tier, l.attempt, l.failures, l.crashes, l.checkpoint, l.spec, l.stamp, l.since,
                l.started, l.expires, l.times_out, l.worker, l.headed"
        )
    };
}
/// Takes the leases of attempts of one number away, one by one in order of the tasks.
const TAKE: &str = take!("WHERE l.task = ANY($1) AND l.attempt = $2");
/// The same for attempts of any number.
const TAKE_EACH: &str = take!(
    "USING unnest($1::bigint[], $2::int[]) w(task, attempt)
    WHERE l.task = ANY (ARRAY[w.task]) AND l.attempt = ANY (ARRAY[w.attempt])"
);
const AWAITED: &str = "SELECT DISTINCT job FROM waits WHERE job = ANY($1)";
const ENDED: &str =
    "SELECT e.task, e.lane, e.tier, e.attempt, e.failures, e.crashes, e.state, e.at, e.output, d.reason
    FROM ended e LEFT JOIN dead d ON d.task = ANY (ARRAY[e.task]) WHERE e.task = ANY($1)";
const READY: &str =
    "SELECT r.task, r.lane, r.tier, r.attempt, r.failures, r.crashes, r.checkpoint, r.stamp, r.since,
        t.task IS NOT NULL AS headed
    FROM unnest($1::bigint[]) w(task)
    LEFT JOIN tasks t ON t.task = ANY (ARRAY[w.task])
    LEFT JOIN jobs j ON j.seq = ANY (ARRAY[w.task >> 20])
    JOIN lanes l ON l.id = ANY (ARRAY[coalesce(t.lane, j.lane)])
    JOIN ready r ON r.line = ANY (ARRAY[coalesce(l.line, l.id)]) AND r.tier = ANY (ARRAY[coalesce(t.tier, j.tier)])
        AND r.stamp = ANY (ARRAY[CASE WHEN t.task IS NULL THEN j.entry ELSE t.entry END]) AND r.task = ANY (ARRAY[w.task])
    ORDER BY r.task FOR UPDATE OF r";
/// Not EXISTS: that may be planned as a hash of all tasks.
const PARKED: &str =
    "SELECT task, lane, tier, attempt, failures, crashes, checkpoint, stamp, since, limit_key,
        (SELECT true FROM tasks t WHERE t.task = parked.task) IS NOT NULL AS headed
    FROM parked WHERE task = ANY($1) ORDER BY task FOR UPDATE";
const DELAYED: &str = "SELECT task, lane, tier, attempt, failures, crashes, checkpoint, due,
        (SELECT true FROM tasks t WHERE t.task = delayed.task) IS NOT NULL AS headed
    FROM delayed WHERE task = ANY($1) ORDER BY task FOR UPDATE";
const HELD: &str = "SELECT task, lane, tier, attempt, failures, crashes, checkpoint, stamp, since, due,
        true AS headed
    FROM held WHERE task = ANY($1) ORDER BY task FOR UPDATE";

/// Which tasks stand somewhere, seen at one moment.
const SOMEWHERE: &str = "SELECT w.task FROM unnest($1::bigint[]) w(task)
    WHERE EXISTS (SELECT FROM leases x WHERE x.task = ANY (ARRAY[w.task]))
        OR EXISTS (SELECT FROM ended x WHERE x.task = ANY (ARRAY[w.task]))
        OR EXISTS (SELECT FROM parked x WHERE x.task = ANY (ARRAY[w.task]))
        OR EXISTS (SELECT FROM delayed x WHERE x.task = ANY (ARRAY[w.task]))
        OR EXISTS (SELECT FROM held x WHERE x.task = ANY (ARRAY[w.task]))
        OR EXISTS (SELECT FROM jobs j LEFT JOIN tasks t ON t.task = ANY (ARRAY[w.task])
            JOIN lanes l ON l.id = ANY (ARRAY[coalesce(t.lane, j.lane)])
            JOIN ready r ON r.line = ANY (ARRAY[coalesce(l.line, l.id)]) AND r.tier = ANY (ARRAY[coalesce(t.tier, j.tier)])
                AND r.stamp = ANY (ARRAY[CASE WHEN t.task IS NULL THEN j.entry ELSE t.entry END]) AND r.task = ANY (ARRAY[w.task])
            WHERE j.seq = ANY (ARRAY[w.task >> 20]))";
/// So often tasks are looked for that move on while they are.
const SEARCHES: usize = 20;

/// Finds tasks and locks them where they are. Most that are asked for are held by workers or over, so these places are
/// asked first. A task that moves meanwhile may be missed in every place, as one that is let into line from behind a
/// limit: only what stands nowhere at one and the same moment is nowhere.
async fn find(tx: &mut Tx, work: &mut Work, mut wanted: Vec<i64>) -> Result<(), Abort> {
    for _ in 0..SEARCHES {
        search(tx, work, &mut wanted).await?;
        if wanted.is_empty() {
            return Ok(());
        }
        let rows = tx.query(SOMEWHERE, &[&wanted]).await?;
        let somewhere: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        // What stands nowhere: an item that was not let in, a task that was reset, or one that does not exist.
        wanted.retain(|task| !somewhere.contains(task));
        work.base.tasks.extend(wanted.drain(..).map(|task| (task, None)));
        if somewhere.is_empty() {
            return Ok(());
        }
        wanted = somewhere;
    }
    Err(Abort::Again("a task moves on and on"))
}

/// Looks once into every place, and leaves in `wanted` what was not found.
async fn search(tx: &mut Tx, work: &mut Work, wanted: &mut Vec<i64>) -> Result<(), Abort> {
    for sql in [LEASES, ENDED, READY, PARKED, DELAYED, HELD] {
        if wanted.is_empty() {
            return Ok(());
        }
        for row in tx.query(sql, &[&*wanted]).await? {
            let task: i64 = row.get(0);
            if sql != ENDED {
                check_head(work, task, &row)?;
            }
            work.base.tasks.insert(task, Some(placed(&row, sql)?));
        }
        wanted.retain(|task| !work.base.tasks.contains_key(task));
    }
    Ok(())
}

/// A job of a queue gets a head when it is paused. Heads are read before tasks, so one may have come in between, and then
/// all that follows from there being none would be wrong.
fn check_head(work: &Work, task: i64, row: &Row) -> Result<(), Abort> {
    let headless = matches!(work.base.heads.get(&seq_of(task)), Some(None));
    if headless && row.get("headed") { Err(Abort::Again("a job got a head")) } else { Ok(()) }
}

fn placed(row: &Row, from: &str) -> Result<Placed, Abort> {
    let at = match from {
        ENDED => At::Ended(End {
            state: state_of(small(row, 6)).ok_or_else(|| unreadable("a state"))?,
            at: moment(row, 7),
            output: row.get::<_, Option<&str>>(8).map(Json::trusted),
            dead: row.get::<_, Option<&str>>(9).and_then(DeadReason::from_word),
        }),
        LEASES => At::Leased(lease(row, 7)),
        READY => At::Ready(spot(row, 7)),
        PARKED => At::Parked(row.get(9), spot(row, 7)),
        DELAYED => At::Delayed(moment(row, 7)),
        _ => {
            let place = row.get::<_, Option<i64>>(7).map(|_| spot(row, 7));
            At::Held(place, row.get::<_, Option<i64>>(9).map(Timestamp::from_millis))
        }
    };
    let checkpoint = if from == ENDED { None } else { row.get::<_, Option<&str>>(6).map(Json::trusted) };
    Ok(Placed { lane: row.get(1), tier: tier(row, 2), counters: counters(row, 3), checkpoint, at })
}

/// A lease from a row: spec, stamp, since, started, expires, times_out, worker.
fn lease(row: &Row, at: usize) -> Lease {
    Lease {
        spec: row.get(at),
        spot: spot(row, at + 1),
        started: moment(row, at + 3),
        expires: moment(row, at + 4),
        times_out: row.get::<_, Option<i64>>(at + 5).map(Timestamp::from_millis),
        worker: row.get::<_, &str>(at + 6).into(),
    }
}

async fn load_rest(tx: &mut Tx, work: &mut Work, needs: &Needs) -> Result<(), Abort> {
    let list = |set: &std::collections::BTreeSet<i64>| set.iter().copied().collect::<Vec<i64>>();
    if !needs.rows.is_empty() {
        let wanted = list(&needs.rows);
        work.base.rows.extend(wanted.iter().map(|task| (*task, None)));
        let sql = "SELECT task, lane, tier, payload FROM tasks WHERE task = ANY($1)";
        for row in tx.query(sql, &[&wanted]).await? {
            work.base.rows.insert(row.get(0), Some(task_row(&row)));
        }
    }
    if !needs.errors.is_empty() {
        let wanted = list(&needs.errors);
        work.base.errors.extend(wanted.iter().map(|task| (*task, None)));
        let sql = "SELECT DISTINCT ON (task) task, message FROM attempts
            WHERE task = ANY($1) AND how <> 'stale' ORDER BY task, n DESC";
        for row in tx.query(sql, &[&wanted]).await? {
            work.base.errors.insert(row.get(0), Some(row.get(1)));
        }
    }
    if !needs.waiters.is_empty() {
        let wanted = list(&needs.waiters);
        work.base.waiters.extend(wanted.iter().map(|seq| (*seq, vec![])));
        let sql = "SELECT job, waiter FROM waits WHERE job = ANY($1)";
        for row in tx.query(sql, &[&wanted]).await? {
            work.base.waiters.entry(row.get(0)).or_default().push(row.get(1));
        }
        for seq in &wanted {
            work.base.waiters.entry(*seq).or_default().sort_unstable();
        }
    }
    if !needs.awaited.is_empty() {
        let wanted = list(&needs.awaited);
        work.base.awaited.extend(wanted.iter().map(|seq| (*seq, false)));
        for row in tx.query(AWAITED, &[&wanted]).await? {
            work.base.awaited.insert(row.get(0), true);
        }
    }
    Ok(())
}

/// Attempt, failures and crashes, from a column on.
pub fn counters(row: &Row, at: usize) -> Counters {
    let count = |at| u32::try_from(row.get::<_, i32>(at)).unwrap_or(0);
    Counters { attempt: count(at), failures: count(at + 1), crashes: count(at + 2) }
}

/// A tier.
pub fn tier(row: &Row, at: usize) -> u8 {
    small(row, at)
}

fn small(row: &Row, at: usize) -> u8 {
    u8::try_from(row.get::<_, i16>(at)).unwrap_or(u8::MAX)
}

/// A moment.
pub fn moment(row: &Row, at: usize) -> Timestamp {
    Timestamp::from_millis(row.get(at))
}

/// A stamp and since when.
pub fn spot(row: &Row, at: usize) -> Spot {
    Spot { stamp: row.get(at), since: moment(row, at + 1) }
}

/// A value in the tables that this program would not have written.
pub fn unreadable(what: &str) -> Abort {
    Abort::Invalid(format!("{what} does not read back: the database was changed by another program"))
}

/// The digest of a spec's text.
pub fn spec_digest(spec: &TaskSpec) -> Result<(Uuid, String), Abort> {
    let body = serde_json::to_string(spec).map_err(|error| Abort::Invalid(error.to_string()))?;
    Ok((digest(&[body.as_bytes()]), body))
}

/// The digest of a lane's name.
pub fn lane_digest((queue, handler, limits): &LaneName) -> Uuid {
    let keys: Vec<&[u8]> = limits.keys().iter().map(|key| key.as_str().as_bytes()).collect();
    let mut parts: Vec<&[u8]> = vec![queue.as_bytes(), handler.as_bytes()];
    parts.extend(keys);
    digest(&parts)
}

/// A lane from its parts.
pub fn lane(
    id: i32,
    line: Option<i32>,
    name: &LaneName,
    key_id: impl Fn(&LimitKey) -> Option<i32>,
) -> Result<Arc<Lane>, Abort> {
    let limits: &Limits = &name.2;
    let keys = limits.keys().iter().map(|key| key_id(key).ok_or_else(|| unreadable("a limit key")));
    Ok(Arc::new(Lane {
        id,
        line: line.unwrap_or(id),
        limits: limits.clone(),
        keys: keys.collect::<Result<_, _>>()?,
    }))
}
