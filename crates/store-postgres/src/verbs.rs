//! The verbs as transactions: read, compute, write, and once more where somebody else was faster.

use crate::connect::Connections;
use crate::error;
use crate::flush;
use crate::lease::{Leasing, Reached, Served};
use crate::limits::Keys;
use crate::load;
use crate::marks::{Marks, Start};
use crate::names::{LaneName, Names};
use crate::naming::Naming;
use crate::place::At;
use crate::tx::{Abort, Tx, Write};
use crate::unwoken;
use crate::wake::Wakes;
use crate::work::{Step, Work};
use orchestrator_core::{Millis, NewJob, Outcome, Timestamp};
use orchestrator_store::packed::{Ids, seq_of};
use orchestrator_store::{
    Beat, Clock, Controlled, FlowChange, FlowChanged, Held, LeaseAsk, LeaseGrant, Leased, LimitChange,
    RuleOrigin, Settled, Settlement, Submitted, SweepAsk, Swept, Wish,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_postgres::error::DbError;

/// So often a transaction is tried while others are faster.
const TRIES: u32 = 20;
/// When to try to give back what a lost answer may have left: a server that restarts is back within seconds.
const GIVE_BACK_AFTER: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(5),
];
/// So many slots are worth a transaction of their own.
const WORTH_A_HALF: u32 = 128;
/// A computation that asks for more this often does not know what it wants.
const ROUNDS: usize = 1000;

/// Runs one transaction until it comes through: the attempt reads and computes, and gives an answer with what is to be
/// written. Gives the answer, and the work. (A function could not take the attempt: the compiler does not see that the
/// future of a closure over references may be sent.)
macro_rules! until_through {
    ($verbs:expr, |$tx:ident, $work:ident| $attempt:expr) => {{
        let mut tries = 0;
        loop {
            let (mut tx, mut work) = $verbs.begin().await?;
            let done = async {
                let ($tx, $work): (&mut Tx, &mut Work) = (&mut tx, &mut work);
                let _ = (&$tx, &$work);
                Ok::<_, Abort>($attempt)
            };
            let done: Result<_, Abort> = match done.await {
                Ok((answer, writes)) => tx.commit(writes).await.map(|()| answer),
                Err(abort) => {
                    tx.roll_back().await;
                    Err(abort)
                }
            };
            match done {
                Ok(answer) => break (answer, work),
                Err(abort) => $crate::verbs::again(abort, &mut tries).await?,
            }
        }
    }};
}
pub(crate) use until_through;

/// What every verb needs.
pub struct Verbs {
    pub connections: Connections,
    pub naming: Naming,
    pub names: Names,
    pub ids: Ids,
    pub clock: Arc<dyn Clock>,
    pub changes: watch::Sender<u64>,
    pub marks: Marks,
    pub served: Served,
    /// Leases of a process begin one after the other.
    pub leasing: tokio::sync::Mutex<()>,
    pub wakes: Wakes,
}

impl Verbs {
    /// A transaction that has done nothing yet.
    pub(crate) async fn begin(&self) -> Result<(Tx, Work), Abort> {
        let tx = Tx::new(self.connections.writer().await.map_err(Abort::Away)?);
        Ok((tx, Work::new(self.clock.now(), self.ids, self.names.known())))
    }

    /// Computes requests, reading what they need.
    async fn compute<Q, A>(
        &self,
        tx: &mut Tx,
        work: &mut Work,
        requests: &[Q],
        one: &(impl Fn(&mut Work, &Q) -> Step<A> + Sync),
    ) -> Result<Vec<A>, Abort> {
        for _ in 0..ROUNDS {
            if !work.needs.is_empty() {
                load::load(tx, &self.names, &self.naming, work).await?;
            }
            if let Some(answers) = work.compute(requests, one)? {
                load::promised_places(&self.naming, work).await?;
                return Ok(answers);
            }
        }
        Err(Abort::Invalid("a request asks for more and more".to_owned()))
    }

    /// Computes requests and writes what comes of them.
    async fn transact<Q: Sync, A: Send>(
        &self,
        requests: &[Q],
        prefetch: impl Fn(&mut Work, &[Q]),
        one: impl Fn(&mut Work, &Q) -> Step<A> + Sync,
    ) -> Result<Vec<A>, Abort> {
        let (answers, work) = until_through!(self, |tx, work| {
            prefetch(work, requests);
            let answers = self.compute(tx, work, requests, &one).await?;
            (answers, flush::writes(work))
        });
        self.committed(&work);
        Ok(answers)
    }

    /// Tells who waits for work, and remembers the flows that are written down now.
    fn committed(&self, work: &Work) {
        if !work.base.flow_ids.is_empty() {
            self.names.learn(|known| known.flow_ids.extend(work.base.flow_ids.clone()));
        }
        // Whoever was let in by a place that came free stands anywhere.
        if work.staged.anywhere || !work.staged.freed.is_empty() || !work.staged.unused.is_empty() {
            self.marks.forget();
        }
        self.marks.lower(work.staged.tasks.values().flatten().filter_map(|placed| match placed.at {
            At::Ready(spot) => {
                let line = work.known.lanes.get(&placed.lane).map_or(placed.lane, |lane| lane.line);
                Some(((line, placed.tier), spot.stamp))
            }
            _ => None,
        }));
        if work.staged.wake {
            self.wake();
        }
    }

    /// Tells everybody, here and elsewhere, that there may be work.
    pub(crate) fn wake(&self) {
        self.changes.send_modify(|n| *n += 1);
        self.wakes.tell();
    }

    /// Takes jobs in.
    pub async fn submit(&self, jobs: &[NewJob]) -> Result<Vec<Submitted>, Abort> {
        self.transact(jobs, |_, _| {}, Work::submit).await
    }

    /// Ends attempts.
    pub async fn settle(&self, batch: &[Settlement]) -> Result<Vec<Settled>, Abort> {
        let prefetch = |work: &mut Work, batch: &[Settlement]| {
            let ending = |settlement: &Settlement| {
                Some((work.ids.packed(settlement.held.task)?, i32::try_from(settlement.held.attempt).ok()?))
            };
            let mut ending: Vec<(i64, i32)> = batch.iter().filter_map(ending).collect();
            ending.sort_unstable();
            ending.dedup();
            work.needs.ending = ending;
        };
        self.transact(batch, prefetch, Work::settle).await
    }

    /// Carries out what an operator asks.
    pub async fn control(&self, wishes: &[Wish]) -> Result<Vec<Controlled>, Abort> {
        let prefetch = |work: &mut Work, wishes: &[Wish]| {
            work.needs.jobs = wishes.iter().filter_map(|wish| work.ids.seq(wish.command.job())).collect();
        };
        self.transact(wishes, prefetch, Work::control).await
    }

    /// Hands out tasks. A large ask is filled by two transactions side by side, which skip what the other one took:
    /// one alone would leave the server idle while the worker reads, and the other way round.
    pub async fn lease(&self, ask: &LeaseAsk) -> Result<LeaseGrant, Abort> {
        let _turn = self.leasing.lock().await;
        let start = self.marks.start(self.clock.now());
        let first = ask.slots / 2;
        let parts = if first >= WORTH_A_HALF && self.is_free(ask) {
            let half = |slots| LeaseAsk { slots, ..ask.clone() };
            let (one, other) = (half(first), half(ask.slots - first));
            let (one, other) =
                tokio::join!(self.lease_part(&one, start.clone()), self.lease_part(&other, start));
            vec![one, other]
        } else {
            vec![self.lease_part(ask, start).await]
        };
        let mut grant = LeaseGrant::default();
        let mut reached: FxHashMap<(i32, u8), i64> = FxHashMap::default();
        let mut failed = None;
        for part in parts {
            match part {
                Ok((part, got)) => {
                    grant.tasks.extend(part.tasks);
                    grant.next_at = grant.next_at.into_iter().chain(part.next_at).min();
                    for (line, stamp) in got {
                        let known = reached.entry(line).or_insert(stamp);
                        *known = stamp.min(*known);
                    }
                }
                Err(abort) => failed = Some(abort),
            }
        }
        match failed {
            // What one of them leased is to be worked on, whatever came of the other.
            Some(abort) if grant.tasks.is_empty() => return Err(abort),
            Some(abort) => tracing::debug!(?abort, "half of a lease came to nothing"),
            // Only what both left behind is gone for good.
            None => self.marks.raise(&reached.into_iter().collect::<Vec<_>>()),
        }
        Ok(grant)
    }

    /// Whether nothing that is asked for has limits, as far as is known. Two transactions that count the same limits
    /// would wait for each other.
    fn is_free(&self, ask: &LeaseAsk) -> bool {
        let known = self.names.known();
        let asked = |name: &LaneName| ask.queues.contains(&name.0) && ask.handlers.contains(&name.1);
        known.lane_ids.keys().filter(|name| asked(name)).all(|name| name.2.keys().is_empty())
    }

    /// One transaction. Answers also with how far it got in each line and tier.
    async fn lease_part(&self, ask: &LeaseAsk, start: Start) -> Result<(LeaseGrant, Reached), Abort> {
        let mut tries = 0;
        loop {
            let (mut tx, mut work) = self.begin().await?;
            let mut leasing = Leasing {
                tx: &mut tx,
                work: &mut work,
                names: &self.names,
                naming: &self.naming,
                served: &self.served,
                marks: &self.marks,
                clock: &*self.clock,
                keys: Keys::default(),
                careful: tries > 0,
                parked: 0,
                rates_wait: false,
                wrote: false,
                reached: vec![],
                skipped: vec![],
                fronts: Default::default(),
            };
            let done = match leasing.run(ask, start.clone()).await {
                Ok((grant, writes)) if writes.is_empty() && !leasing.wrote => {
                    let reached = leasing.reached;
                    tx.leave();
                    Ok((grant, reached))
                }
                Ok((grant, writes)) => {
                    let (reached, fronts) = (leasing.reached, leasing.fronts);
                    let done = tx.commit(writes).await;
                    if let Err(Abort::Unknown(_)) = done {
                        self.give_back(ask, &grant, work.now).await;
                    }
                    done.map(|()| {
                        self.served.has_fronts(fronts.keys());
                        (grant, reached)
                    })
                }
                Err(abort) => {
                    tx.roll_back().await;
                    Err(abort)
                }
            };
            match done {
                Ok(done) => return Ok(done),
                Err(abort) => again(abort, &mut tries).await?,
            }
        }
    }

    /// Gives back what a lease may have taken whose answer was lost. Else nobody would work on it until it runs out, and
    /// that would count as a crash. If the commit did not take effect, somebody else may hold the same attempt by now: what
    /// is ours has our name and our moment.
    async fn give_back(&self, ask: &LeaseAsk, grant: &LeaseGrant, started: Timestamp) {
        const OURS: &str =
            "SELECT task FROM leases WHERE task = ANY($1) AND worker = $2 AND started = $3 ORDER BY task";
        let packed = |leased: &Leased| Some((self.ids.packed(leased.task)?, leased.held()));
        let taken: BTreeMap<i64, Held> = grant.tasks.iter().filter_map(packed).collect();
        let tasks: Vec<i64> = taken.keys().copied().collect();
        if tasks.is_empty() {
            return;
        }
        for wait in GIVE_BACK_AFTER {
            tokio::time::sleep(wait).await;
            let Ok((mut tx, _)) = self.begin().await else { continue };
            let asked = tx.query(OURS, &[&tasks, &ask.worker.as_str(), &started.as_millis()]).await;
            tx.roll_back().await;
            let Ok(rows) = asked else { continue };
            let ours = rows.iter().filter_map(|row| taken.get(&row.get::<_, i64>(0)));
            let released = |held: &Held| Settlement { held: *held, outcome: Outcome::Released, jitter: 0.0 };
            let batch: Vec<Settlement> = ours.map(released).collect();
            if batch.is_empty() || self.settle(&batch).await.is_ok() {
                return;
            }
        }
        tracing::warn!(
            tasks = tasks.len(),
            "leases whose answer was lost could not be given back; they will run out"
        );
    }

    /// Prolongs leases.
    pub async fn extend(&self, held: &[Held], ttl: Millis) -> Result<Vec<Beat>, Abort> {
        let until = self.clock.now() + ttl;
        let packed: Vec<Option<i64>> = held.iter().map(|held| self.ids.packed(held.task)).collect();
        let (tasks, attempts): (Vec<i64>, Vec<i32>) = packed
            .iter()
            .zip(held)
            .filter_map(|(task, held)| Some(((*task)?, i32::try_from(held.attempt).ok()?)))
            .unzip();
        let sql = "WITH mine AS (
                SELECT l.task FROM unnest($1::bigint[], $2::int[]) w(task, attempt)
                JOIN leases l ON l.task = ANY (ARRAY[w.task]) AND l.attempt = ANY (ARRAY[w.attempt]) ORDER BY w.task FOR UPDATE OF l
            )
            UPDATE leases l SET expires = $3 FROM mine WHERE l.task = ANY (ARRAY[mine.task]) RETURNING l.task, l.attempt";
        let (rows, _) = until_through!(self, |tx, work| {
            (tx.query(sql, &[&tasks, &attempts, &until.as_millis()]).await?, vec![])
        });
        let mine: FxHashSet<(i64, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let holds = |task: Option<i64>, held: &Held| {
            task.zip(i32::try_from(held.attempt).ok()).is_some_and(|lease| mine.contains(&lease))
        };
        let beat = |(task, held): (&Option<i64>, &Held)| {
            if holds(*task, held) { Beat::Until(until) } else { Beat::Lost }
        };
        Ok(packed.iter().zip(held).map(beat).collect())
    }

    /// Ends what is overdue.
    pub async fn expired(&self, ask: &SweepAsk) -> Result<Swept, Abort> {
        let (swept, work) = until_through!(self, |tx, work| {
            let swept = self.sweep(tx, work, ask).await?;
            (swept, flush::writes(work))
        });
        self.committed(&work);
        Ok(swept)
    }

    async fn sweep(&self, tx: &mut Tx, work: &mut Work, ask: &SweepAsk) -> Result<Swept, Abort> {
        let mut swept = Swept::default();
        let now = work.now.as_millis();
        let limit = ask.limit as usize;
        let late = "SELECT seq FROM alive WHERE deadline <= $1 ORDER BY deadline, seq LIMIT $2";
        let rows = tx.query(late, &[&now, &(limit as i64 + 1)]).await?;
        let seqs: Vec<i64> = rows.iter().map(|row| row.get(0)).take(limit).collect();
        swept.more = rows.len() > limit;
        let mut wake = false;
        if !seqs.is_empty() {
            work.needs.heads.extend(seqs.iter());
            work.needs.live.extend(seqs.iter());
            let ended =
                self.compute(tx, work, &seqs, &|work: &mut Work, seq: &i64| work.end_late(*seq)).await?;
            for (seq, ended) in seqs.iter().zip(ended) {
                let head = work.peek_head(*seq).map_err(|()| load::unreadable("the head of a job"))?;
                swept.timed_out.extend(ended.then(|| work.ids.job(head.created, *seq)));
            }
            // What this ended is not overdue any more.
            let events = std::mem::take(&mut work.staged.events);
            tx.write(&flush::writes(work)).await?;
            wake = true;
            work.base = Default::default();
            work.staged = Default::default();
            work.staged.events = events;
        }
        let left = limit - seqs.len();
        let overdue = "SELECT task FROM leases WHERE least(expires, times_out) <= $1
            ORDER BY least(expires, times_out), task LIMIT $2";
        let rows = tx.query(overdue, &[&now, &(left as i64 + 1)]).await?;
        swept.more |= rows.len() > left;
        let tasks: Vec<(usize, i64)> = rows.iter().map(|row| row.get(0)).take(left).enumerate().collect();
        if !tasks.is_empty() {
            let events = std::mem::take(&mut work.staged.events);
            work.needs.tasks = tasks.iter().map(|(_, task)| *task).collect();
            work.needs.jobs = tasks.iter().map(|(_, task)| seq_of(*task)).collect();
            let end = |work: &mut Work, (n, task): &(usize, i64)| work.end_overdue(*task, ask.jitter_of(*n));
            let ended = self.compute(tx, work, &tasks, &end).await?;
            swept.ended = ended.into_iter().flatten().collect();
            work.staged.events.splice(0..0, events);
        }
        wake |= unwoken::wake(tx, work.now).await?;
        work.staged.wake |= wake;
        work.staged.anywhere |= wake;
        Ok(swept)
    }

    /// Changes the registry of flows.
    pub async fn change_flows(&self, changes: &[FlowChange]) -> Result<Vec<FlowChanged>, Abort> {
        Ok(until_through!(self, |tx, work| (change_flows(tx, work, changes).await?, vec![])).0)
    }

    /// Writes or strikes limit rules, and lets in who may start by the new ones.
    pub async fn set_limits(&self, changes: &[LimitChange]) -> Result<(), Abort> {
        until_through!(self, |tx, work| ((), set_limits(tx, work, changes).await?));
        self.marks.forget();
        self.wake();
        Ok(())
    }
}

/// Waits a moment before the next try, where that makes sense.
pub(crate) async fn again(abort: Abort, tries: &mut u32) -> Result<(), Abort> {
    *tries += 1;
    let passes = match &abort {
        Abort::Again(_) => true,
        Abort::Sql(error) => {
            // Two that submit the same key at once: the second finds the first one's job the next time.
            let key = error.as_db_error().and_then(DbError::constraint) == Some("keys_pkey");
            key || error::is_retryable(error) || (error::is_lost(error) && *tries <= 3)
        }
        _ => false,
    };
    if !passes || *tries >= TRIES {
        return Err(abort);
    }
    tracing::debug!(?abort, tries, "a transaction is tried again");
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..5 * u64::from(*tries)))).await;
    Ok(())
}

async fn change_flows(tx: &mut Tx, work: &Work, changes: &[FlowChange]) -> Result<Vec<FlowChanged>, Abort> {
    let mut answers = vec![];
    for change in changes {
        answers.push(match change {
            FlowChange::Apply(plan) => {
                let (name, hash) = (&**plan.name(), &**plan.hash());
                tx.query("SELECT pg_advisory_xact_lock(hashtext('flows:' || $1))", &[&name]).await?;
                let find = "SELECT id FROM flows WHERE NOT implicit AND name = $1 AND hash = $2";
                let known = !tx.query(find, &[&name, &hash]).await?.is_empty();
                let id = load::write_flow(tx, plan, work.now).await?;
                let standing = "SELECT version, applied IS NOT NULL AND applied =
                        (SELECT max(applied) FROM flows o WHERE NOT o.implicit AND o.name = f.name)
                    FROM flows f WHERE id = $1";
                let rows = tx.query(standing, &[&id]).await?;
                let row = rows.first().ok_or_else(|| load::unreadable("a flow"))?;
                let version = u32::try_from(row.get::<_, i32>(0)).unwrap_or(0);
                if row.get::<_, bool>(1) {
                    FlowChanged::Unchanged(version)
                } else {
                    tx.query("UPDATE flows SET applied = nextval('applied') WHERE id = $1", &[&id]).await?;
                    if known { FlowChanged::Restored(version) } else { FlowChanged::Created(version) }
                }
            }
            FlowChange::Retire(name) => {
                let sql = "UPDATE flows SET applied = NULL WHERE NOT implicit AND name = $1 AND applied IS NOT NULL RETURNING id";
                let retired = tx.query(sql, &[&&**name]).await?;
                if retired.is_empty() { FlowChanged::NotFound } else { FlowChanged::Retired }
            }
        });
    }
    Ok(answers)
}

async fn set_limits(tx: &mut Tx, work: &Work, changes: &[LimitChange]) -> Result<Vec<Write>, Abort> {
    let mut keys: Vec<String> = vec![];
    let mut kinds: Vec<String> = vec![];
    for change in changes {
        let key = change.key.as_str();
        let by_operator = change.origin == RuleOrigin::Operator;
        match &change.rule {
            Some(rule) => {
                let body = serde_json::to_string(rule).map_err(|error| Abort::Invalid(error.to_string()))?;
                let sql = "INSERT INTO rules AS r (key, rule, operator) VALUES ($1, $2, $3)
                    ON CONFLICT (key) DO UPDATE SET rule = excluded.rule, operator = excluded.operator
                    WHERE excluded.operator OR NOT r.operator";
                tx.query(sql, &[&key, &body, &by_operator]).await?;
            }
            None => {
                tx.query("DELETE FROM rules WHERE key = $1 AND ($2 OR NOT operator)", &[&key, &by_operator])
                    .await?;
            }
        }
        if change.key.is_default() {
            kinds.push(change.key.kind().to_owned());
        } else {
            keys.push(key.to_owned());
        }
    }
    let sql =
        "SELECT id FROM limit_keys WHERE key = ANY($1) OR split_part(key, ':', 1) = ANY($2) ORDER BY id";
    let ids: Vec<i32> = tx.query(sql, &[&keys, &kinds]).await?.iter().map(|row| row.get(0)).collect();
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let mut states = Keys::default();
    states.lock(tx, ids.clone()).await?;
    let n: Vec<i64> = ids.iter().map(|id| i64::from(states.let_in(*id, work.now, 1_000_000))).collect();
    Ok(vec![Write::new(flush::WAKE, vec![Arc::new(ids), Arc::new(n)]), states.write()])
}
