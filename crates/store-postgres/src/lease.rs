//! Handing out tasks.
//!
//! A lease looks at the first task of each line and tier that is asked for, takes the best, and goes on until its slots
//! are filled. Rows are taken with SKIP LOCKED, so that replicas that lease at the same time take different tasks and
//! none waits. A task that is met while a limit of it is full is parked behind that limit.

use crate::flush;
use crate::limits::{Keys, Room};
use crate::load::{self, counters, moment, tier};
use crate::marks::{self, Marks, Start};
use crate::names::Names;
use crate::naming::Naming;
use crate::place::{At, Lease, Placed, Spot};
use crate::tx::{Abort, Tx, Write};
use crate::work::{Step, Work};
use orchestrator_core::order::{Priority, effective_tier};
use orchestrator_core::{Counters, JobState, Json, Millis, TaskState, Timestamp};
use orchestrator_store::packed::{index_of, seq_of};
use orchestrator_store::{Clock, LeaseAsk, LeaseGrant, Leased};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most tasks that one lease parks: the rest is met by the next.
const MAX_PARKED: usize = 5000;
/// The most tasks that fall due in one lease.
const DUE_PAGE: i64 = 1000;

/// Which lines were served when, so that they take turns.
#[derive(Debug, Default)]
pub struct Served(Mutex<(u64, FxHashMap<i32, u64>)>);

impl Served {
    fn inner(&self) -> MutexGuard<'_, (u64, FxHashMap<i32, u64>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a line was served last.
    fn last(&self, line: i32) -> u64 {
        self.inner().1.get(&line).copied().unwrap_or(0)
    }

    /// A line is served.
    fn note(&self, line: i32) {
        let mut inner = self.inner();
        inner.0 += 1;
        let turn = inner.0;
        inner.1.insert(line, turn);
    }
}

/// The first tasks of one line and tier.
struct Cursor {
    line: i32,
    tier: u8,
    /// The first task, as it was seen without a lock, until the page is read.
    first: Option<(i64, i64, Timestamp)>,
    page: BTreeMap<(i64, i64), Candidate>,
    /// The last that was read.
    read: (i64, i64),
    more: bool,
    /// Whether the page was ever read.
    opened: bool,
}

impl Cursor {
    /// How far it got: what it read before the first that is left is gone.
    fn reached(&self) -> Option<((i32, u8), i64)> {
        let left = self.page.first_key_value().map(|((stamp, _), _)| *stamp);
        (self.opened && self.read.1 != i64::MIN)
            .then(|| ((self.line, self.tier), left.unwrap_or(self.read.0)))
    }

    fn since(&self) -> Option<Timestamp> {
        match self.page.first_key_value() {
            Some((_, candidate)) => Some(candidate.spot.since),
            None => self.first.map(|(_, _, since)| since),
        }
    }
}

#[derive(Clone)]
struct Candidate {
    task: i64,
    lane: i32,
    spot: Spot,
    counters: Counters,
    checkpoint: Option<Json>,
    /// The key that it is parked behind.
    parked: Option<i32>,
    created: Timestamp,
    tenant: i32,
    key: Option<Arc<str>>,
    spec: Option<i32>,
    flow: Option<i32>,
    started: Option<bool>,
    own: Option<Json>,
    payload: Option<Json>,
}

/// Who waits for a moment, the soonest first.
const DUE: &str =
    "SELECT d.due, d.task, coalesce(l.line, l.id) FROM delayed d JOIN lanes l ON l.id = ANY (ARRAY[d.lane])
    ORDER BY d.due, d.task LIMIT $1";
/// Keys whose rate lets the next start.
const RATES: &str = "SELECT id FROM limit_keys WHERE wake_at <= $1";
/// The first task of each line and tier, from a stamp on.
const FIRSTS: &str = "SELECT w.line, w.tier, r.stamp, r.task, r.since
    FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, tier, start)
    CROSS JOIN LATERAL (SELECT r.stamp, r.task, r.since FROM ready r
        WHERE r.line = w.line AND r.tier = w.tier AND r.stamp >= w.start ORDER BY r.stamp, r.task LIMIT 1) r";

/// How far a lease got in lines and tiers.
pub type Reached = Vec<((i32, u8), i64)>;

/// One lease.
pub struct Leasing<'a> {
    pub tx: &'a mut Tx,
    pub work: &'a mut Work,
    pub names: &'a Names,
    pub naming: &'a Naming,
    pub served: &'a Served,
    pub marks: &'a Marks,
    pub clock: &'a dyn Clock,
    pub keys: Keys,
    pub parked: usize,
    /// How far it got in each line and tier.
    pub reached: Reached,
    /// What it left where it is, because the job was in other hands.
    pub skipped: Vec<((i32, u8), i64)>,
    /// The highest stamp that was leased in each line and tier.
    pub fronts: BTreeMap<(i32, u8), i64>,
}

/// The tasks of a page with what they need of their jobs. Jobs of queues have no head and no rows of tasks, so these are
/// not looked for.
const OF_PAGE: &str =
    "SELECT r.task, r.lane, r.stamp, r.since, r.attempt, r.failures, r.crashes, r.checkpoint,
        j.created, j.tenant, j.key, j.spec, j.flow, h.started, t.payload,
        CASE WHEN t.payload IS NULL THEN j.payload END, r.place
    FROM page r JOIN jobs j ON j.seq = ANY (ARRAY[r.task >> 20])
        LEFT JOIN runs h ON h.seq = ANY (ARRAY[CASE WHEN j.flow IS NOT NULL THEN j.seq END])
        LEFT JOIN tasks t ON t.task = ANY (ARRAY[CASE WHEN j.flow IS NOT NULL THEN r.task END])";

impl Leasing<'_> {
    /// Fills the ask. The writes that go with it are left in [`Work`] and in what is returned beside the grant.
    pub async fn run(&mut self, ask: &LeaseAsk, mut start: Start) -> Result<(LeaseGrant, Vec<Write>), Abort> {
        let lines = self.lines(ask).await?;
        let (waiting, mut cursors) = self.open(&lines, &mut start).await?;
        let mut grant = LeaseGrant::default();
        loop {
            self.fill(&mut cursors, ask, &mut grant).await?;
            let full = grant.tasks.len() == ask.slots as usize || self.parked >= MAX_PARKED;
            if full || start.is_front() || !self.marks.may_look(self.clock.now()) {
                break;
            }
            // Too little from the marks on: perhaps there is something in front of them.
            start = marks::front(self.clock.now());
            cursors = self.cursors(&lines, &mut start).await?;
        }
        self.reached.extend(cursors.iter().filter_map(Cursor::reached));
        for (lane, stamp) in &mut self.reached {
            let skipped = self.skipped.iter().filter(|(skipped, _)| skipped == lane).map(|(_, stamp)| *stamp);
            *stamp = skipped.min().map_or(*stamp, |skipped| skipped.min(*stamp));
        }
        if grant.tasks.len() < ask.slots as usize {
            grant.next_at = self.next_at(&lines, waiting).await?;
        }
        let writes = self.writes(&grant);
        Ok((grant, writes))
    }

    /// Takes the best tasks until the ask is filled or nothing is left.
    async fn fill(
        &mut self,
        cursors: &mut [Cursor],
        ask: &LeaseAsk,
        grant: &mut LeaseGrant,
    ) -> Result<(), Abort> {
        while grant.tasks.len() < ask.slots as usize && self.parked < MAX_PARKED {
            let left = ask.slots as usize - grant.tasks.len();
            let Some(best) = self.best(cursors) else { break };
            let cursor = &mut cursors[best];
            if !cursor.opened || cursor.page.is_empty() {
                self.read_page(cursor, left).await?;
                continue;
            }
            let Some((place, candidate)) = cursor.page.pop_first() else { continue };
            self.lock_keys(cursor, &candidate).await?;
            let lane = self.lane(candidate.lane)?;
            match self.keys.room(&lane, self.work.now) {
                Room::Yes => {
                    let Some(leased) = self.take(cursor.tier, candidate, ask).await? else {
                        self.skipped.push(((cursor.line, cursor.tier), place.0));
                        continue;
                    };
                    self.served.note(cursor.line);
                    grant.tasks.push(leased);
                }
                Room::No(key, at) => {
                    if let Some(at) = at {
                        self.keys.wake_at(key, at);
                    }
                    self.park(cursor.tier, key, candidate);
                    self.offer_others(cursor, &lane.keys, key, place).await?;
                }
            }
        }
        Ok(())
    }

    fn lane(&self, id: i32) -> Result<Arc<crate::names::Lane>, Abort> {
        self.work.known.lanes.get(&id).cloned().ok_or_else(|| load::unreadable("a lane"))
    }

    /// The lines that are asked for, as far as there are such.
    async fn lines(&mut self, ask: &LeaseAsk) -> Result<Vec<i32>, Abort> {
        let name = |queue: &Arc<str>, handler: &Arc<str>| {
            (queue.clone(), handler.clone(), orchestrator_core::Limits::none())
        };
        let all = || {
            ask.queues.iter().flat_map(|queue| ask.handlers.iter().map(move |handler| name(queue, handler)))
        };
        if all().any(|name| !self.work.known.lane_ids.contains_key(&name)) {
            self.naming.find_lines(self.names, &ask.queues, &ask.handlers).await?;
            self.work.known = self.names.known();
        }
        let ids: BTreeSet<i32> =
            all().filter_map(|name| self.work.known.lane_ids.get(&name).copied()).collect();
        Ok(ids.into_iter().collect())
    }

    /// Lets in whose time has come, and finds the first tasks of each line. Mostly nobody's time has come: then one way
    /// to the server and back does for all.
    async fn open(
        &mut self,
        lines: &[i32],
        start: &mut Start,
    ) -> Result<(Vec<(Timestamp, i32)>, Vec<Cursor>), Abort> {
        let now = self.work.now.as_millis();
        let starts = starts(lines, start);
        let rows = self
            .tx
            .query_all(&[(DUE, &[&DUE_PAGE]), (RATES, &[&now]), (FIRSTS, &[&starts.0, &starts.1, &starts.2])])
            .await?;
        let (due, rates) = (&rows[0], &rows[1]);
        let none_due = due.first().is_none_or(|row| moment(row, 0) > self.work.now);
        if none_due && rates.is_empty() {
            let waiting = due.iter().map(|row| (moment(row, 0), row.get(2))).take(64).collect();
            self.marks.looked(start, self.clock.now());
            return Ok((waiting, firsts(lines, start, &rows[2])));
        }
        let waiting = self.fall_due().await?;
        self.rates_allow(rates.iter().map(|row| row.get(0)).collect()).await?;
        Ok((waiting, self.cursors(lines, start).await?))
    }

    /// Puts those in line whose moment has come. Answers with what waits for a later one: the moments and lines of the
    /// soonest.
    async fn fall_due(&mut self) -> Result<Vec<(Timestamp, i32)>, Abort> {
        loop {
            let rows = self.tx.query(DUE, &[&DUE_PAGE]).await?;
            let due: Vec<i64> =
                rows.iter().filter(|row| moment(row, 0) <= self.work.now).map(|row| row.get(1)).collect();
            if due.is_empty() {
                return Ok(rows.iter().map(|row| (moment(row, 0), row.get(2))).take(64).collect());
            }
            loop {
                self.work
                    .needs
                    .tasks
                    .extend(due.iter().filter(|task| !self.work.base.tasks.contains_key(task)));
                let done = self.work.compute(&due, |work, task| work.come_due(*task))?;
                if done.is_some() {
                    break;
                }
                load::load(self.tx, self.names, self.naming, self.work).await?;
            }
            let events = std::mem::take(&mut self.work.staged.events);
            let writes = flush::writes(self.work);
            self.tx.write(&writes).await?;
            self.work.base = Default::default();
            self.work.staged = Default::default();
            self.work.staged.events = events;
            if (due.len() as i64) < DUE_PAGE {
                return Ok(rows
                    .iter()
                    .map(|row| (moment(row, 0), row.get(2)))
                    .filter(|(due, _)| *due > self.work.now)
                    .take(64)
                    .collect());
            }
        }
    }

    /// Lets those into line whose rate allows it by now.
    async fn rates_allow(&mut self, ids: Vec<i32>) -> Result<(), Abort> {
        if ids.is_empty() {
            return Ok(());
        }
        self.keys.lock(self.tx, ids.clone()).await?;
        let n: Vec<i64> =
            ids.iter().map(|id| i64::from(self.keys.let_in(*id, self.work.now, 1000))).collect();
        self.tx.query(flush::WAKE, &[&ids, &n]).await?;
        self.marks.forget();
        Ok(())
    }

    /// The first task of each line and tier, seen without a lock.
    async fn cursors(&mut self, lines: &[i32], start: &mut Start) -> Result<Vec<Cursor>, Abort> {
        let starts = starts(lines, start);
        let rows = self.tx.query(FIRSTS, &[&starts.0, &starts.1, &starts.2]).await?;
        self.marks.looked(start, self.clock.now());
        Ok(firsts(lines, start, &rows))
    }

    /// The cursor whose first task goes next: by tier, risen by waiting; then lines in turn; then the longest wait.
    fn best(&self, cursors: &[Cursor]) -> Option<usize> {
        let rank = |cursor: &Cursor| {
            let since = cursor.since().or_else(|| (cursor.opened && cursor.more).then_some(self.work.now))?;
            let turn = self.served.last(cursor.line);
            Some((effective_tier(cursor.tier, self.work.now.since(since)), turn, since))
        };
        let ranked = cursors.iter().enumerate().filter_map(|(n, cursor)| rank(cursor).map(|rank| (rank, n)));
        ranked.min().map(|(_, n)| n)
    }

    async fn read_page(&mut self, cursor: &mut Cursor, left: usize) -> Result<(), Abort> {
        cursor.opened = true;
        cursor.first = None;
        if !cursor.more {
            return Ok(());
        }
        let size = left.clamp(8, 2000);
        let sql = format!(
            "WITH page AS MATERIALIZED (
                SELECT ctid::text AS place, task, lane, stamp, since, attempt, failures, crashes, checkpoint
                FROM ready WHERE line = $1 AND tier = $2 AND (stamp, task) > ($3, $4)
                ORDER BY stamp, task LIMIT $5 FOR UPDATE SKIP LOCKED
            ) {OF_PAGE}"
        );
        let place = i16::from(cursor.tier);
        let rows = self
            .tx
            .query(&sql, &[&cursor.line, &place, &cursor.read.0, &cursor.read.1, &(size as i64)])
            .await?;
        cursor.more = rows.len() == size;
        let found: Vec<Candidate> = rows.iter().map(|row| candidate(row, None)).collect();
        self.learn(&found).await?;
        self.lock_heads(&found).await?;
        for (row, candidate) in rows.iter().zip(found) {
            let place = (candidate.spot.stamp, candidate.task);
            cursor.read = cursor.read.max(place);
            // Our own locks hide nothing from us: what was taken already is met again.
            if self.work.staged.tasks.contains_key(&candidate.task) {
                continue;
            }
            self.work.base.ready_rows.insert(candidate.task, row.get(16));
            cursor.page.insert(place, candidate);
        }
        Ok(())
    }

    /// Makes known what the candidates need.
    async fn learn(&mut self, candidates: &[Candidate]) -> Result<(), Abort> {
        let known = self.work.known.clone();
        let mut needs = crate::work::Needs::default();
        for candidate in candidates {
            if !known.lanes.contains_key(&candidate.lane) {
                needs.lane_ids.insert(candidate.lane);
            }
            if let Some(spec) = candidate.spec.filter(|spec| !known.specs.contains_key(spec)) {
                needs.spec_ids.insert(spec);
            }
            if !known.tenants.contains_key(&candidate.tenant) {
                needs.tenant_ids.insert(candidate.tenant);
            }
        }
        self.naming.learn(self.names, &needs).await?;
        let flows: BTreeSet<i32> =
            candidates.iter().filter_map(|c| c.flow).filter(|flow| !known.flows.contains_key(flow)).collect();
        if !flows.is_empty() {
            self.naming.learn_flows(self.names, self.tx, &flows.into_iter().collect::<Vec<_>>()).await?;
        }
        self.work.known = self.names.known();
        Ok(())
    }

    /// Locks the limit keys of a candidate, and of those that come after it, so that it is done once per page.
    async fn lock_keys(&mut self, cursor: &Cursor, candidate: &Candidate) -> Result<(), Abort> {
        let lane = self.lane(candidate.lane)?;
        if lane.keys.iter().all(|key| self.keys.knows(*key)) {
            return Ok(());
        }
        let mut ids = lane.keys.clone();
        for other in cursor.page.values() {
            ids.extend(self.lane(other.lane)?.keys.iter().copied());
        }
        self.keys.lock(self.tx, ids).await
    }

    /// Parks a task behind the key that has no room.
    fn park(&mut self, tier: u8, key: i32, candidate: Candidate) {
        self.parked += 1;
        let Candidate { task, lane, spot, counters, checkpoint, parked, .. } = candidate;
        let was = match parked {
            Some(before) => At::Parked(before, spot),
            None => At::Ready(spot),
        };
        let placed = |at| Some(Placed { lane, tier, counters, checkpoint: checkpoint.clone(), at });
        self.work.base.tasks.insert(task, placed(was));
        self.work.put(task, placed(At::Parked(key, spot)));
    }

    /// A task that is parked behind one key leaves its chance under its other keys to the next that wait there.
    async fn offer_others(
        &mut self,
        cursor: &mut Cursor,
        keys: &[i32],
        full: i32,
        after: (i64, i64),
    ) -> Result<(), Abort> {
        for key in keys.iter().filter(|key| **key != full) {
            if !self.keys.has_room(*key, self.work.now) {
                continue;
            }
            let sql = format!(
                "WITH page AS MATERIALIZED (
                    SELECT NULL AS place, task, lane, stamp, since, attempt, failures, crashes, checkpoint
                    FROM parked WHERE limit_key = $1 AND line = $2 AND tier = $3 AND NOT task = ANY($4)
                    ORDER BY stamp, task LIMIT 1 FOR UPDATE SKIP LOCKED
                ) {OF_PAGE}"
            );
            let mut known: Vec<i64> = cursor.page.values().map(|candidate| candidate.task).collect();
            known.extend(self.work.staged.tasks.keys());
            let rows = self.tx.query(&sql, &[key, &cursor.line, &i16::from(cursor.tier), &known]).await?;
            let found: Vec<Candidate> = rows.iter().map(|row| candidate(row, Some(*key))).collect();
            self.learn(&found).await?;
            self.lock_heads(&found).await?;
            for candidate in found {
                let place = (candidate.spot.stamp, candidate.task).max(after);
                cursor.page.insert(place, candidate);
            }
        }
        Ok(())
    }

    /// Leases a task. None if its job is in other hands at this moment.
    async fn take(
        &mut self,
        tier: u8,
        candidate: Candidate,
        ask: &LeaseAsk,
    ) -> Result<Option<Leased>, Abort> {
        let now = self.work.now;
        let seq = seq_of(candidate.task);
        if candidate.started == Some(false) && !self.start(seq) {
            return Ok(None);
        }
        let lane = self.lane(candidate.lane)?;
        let known = self.work.known.clone();
        let (name, flow, spec, payload) = match candidate.flow {
            None => {
                let spec = candidate.spec.ok_or_else(|| load::unreadable("a job"))?;
                let payload = candidate.payload.clone().ok_or_else(|| load::unreadable("a job"))?;
                ("main".into(), None, spec, payload)
            }
            Some(flow) => self.of_flow(flow, seq, &candidate).await?,
        };
        let rules = self.spec(spec).await?;
        self.keys.take(&lane, now);
        let counters = Counters { attempt: candidate.counters.attempt + 1, ..candidate.counters };
        let (expires, times_out) = (now + ask.ttl, rules.timeout.map(|timeout| now + timeout));
        let Candidate { task, spot, checkpoint, .. } = candidate.clone();
        let was = match candidate.parked {
            Some(key) => At::Parked(key, spot),
            None => At::Ready(spot),
        };
        let placed =
            |at, counters| Some(Placed { lane: lane.id, tier, counters, checkpoint: checkpoint.clone(), at });
        self.work.base.tasks.insert(task, placed(was, candidate.counters));
        let lease = Lease { spec, spot, started: now, expires, times_out, worker: ask.worker.clone().into() };
        self.work.put(task, placed(At::Leased(lease), counters));
        self.work.note(task, TaskState::Running, counters.attempt);
        let front = self.fronts.entry((lane.line, tier)).or_default();
        *front = spot.stamp.max(*front);
        Ok(Some(Leased {
            task: self.work.ids.task(candidate.created, task),
            name,
            flow,
            counters,
            spec: rules,
            tenant: known
                .tenants
                .get(&candidate.tenant)
                .cloned()
                .ok_or_else(|| load::unreadable("a tenant"))?,
            key: candidate.key,
            payload,
            checkpoint,
            limits: lane.limits.clone(),
            expires,
            times_out,
        }))
    }

    /// Takes the heads of jobs that have not started, as far as nobody else holds them: whoever leases the first task of
    /// a job writes down that it has started.
    async fn lock_heads(&mut self, candidates: &[Candidate]) -> Result<(), Abort> {
        let unstarted = candidates.iter().filter(|candidate| candidate.started == Some(false));
        let mut seqs: Vec<i64> = unstarted.map(|candidate| seq_of(candidate.task)).collect();
        seqs.retain(|seq| !self.work.base.heads.contains_key(seq));
        seqs.sort_unstable();
        seqs.dedup();
        if seqs.is_empty() {
            return Ok(());
        }
        let rows = self.tx.query(load::FREE_HEADS, &[&seqs]).await?;
        load::keep_heads(self.tx, self.names, self.naming, self.work, &rows).await
    }

    /// Notes that a job has started. False if somebody else holds its head: then its tasks are left for the next time.
    fn start(&mut self, seq: i64) -> bool {
        let Ok(mut head) = self.work.peek_head(seq) else { return false };
        if head.run.started.is_none() {
            let pending = head.run.state == JobState::Pending;
            head.run.start(self.work.now);
            if pending {
                self.work.note_job(seq, JobState::Running);
            }
            self.work.put_head(head);
        }
        true
    }

    /// What a task of a flow is called, how it is run, and what it gets.
    async fn of_flow(
        &mut self,
        flow: i32,
        seq: i64,
        candidate: &Candidate,
    ) -> Result<(Arc<str>, Option<Arc<str>>, i32, Json), Abort> {
        let plan = self.work.known.flows.get(&flow).cloned().ok_or_else(|| load::unreadable("a flow"))?;
        let index = index_of(candidate.task);
        let (task, item) = if (index as usize) < plan.tasks().len() {
            (index, None)
        } else {
            // Which item of which list it is, the head tells. It is only looked at.
            let run = self.look_at_head(seq).await?;
            let place = run.place(index).ok_or_else(|| load::unreadable("an item"))?;
            (place.task, place.item)
        };
        let rules = &plan.tasks()[task as usize];
        let name: Arc<str> = match item {
            Some(item) => format!("{}[{item}]", rules.name).into(),
            None => rules.name.clone(),
        };
        let spec = match self.work.known.spec_ids.get(&rules.spec) {
            Some(spec) => *spec,
            None => {
                let needs = crate::work::Needs { specs: vec![rules.spec.clone()], ..Default::default() };
                self.naming.learn(self.names, &needs).await?;
                self.work.known = self.names.known();
                *self.work.known.spec_ids.get(&rules.spec).ok_or_else(|| load::unreadable("a spec"))?
            }
        };
        let payload =
            candidate.own.clone().or_else(|| rules.literal.clone()).or_else(|| candidate.payload.clone());
        let payload = payload.ok_or_else(|| load::unreadable("what a task gets"))?;
        Ok((name, (!plan.is_implicit()).then(|| plan.name().clone()), spec, payload))
    }

    async fn look_at_head(&mut self, seq: i64) -> Result<orchestrator_core::flow::Run, Abort> {
        if let Ok(head) = self.work.peek_head(seq) {
            return Ok(head.run);
        }
        let rows = self.tx.query("SELECT body FROM runs WHERE seq = $1", &[&seq]).await?;
        let row = rows.first().ok_or_else(|| load::unreadable("the head of a job"))?;
        postcard::from_bytes(row.get(0)).map_err(|_| load::unreadable("the head of a job"))
    }

    async fn spec(&mut self, id: i32) -> Result<Arc<orchestrator_core::TaskSpec>, Abort> {
        self.work.known.specs.get(&id).cloned().ok_or_else(|| load::unreadable("a spec"))
    }

    /// When the passing of time alone may make another task ready for these lines.
    async fn next_at(
        &mut self,
        lines: &[i32],
        waiting: Vec<(Timestamp, i32)>,
    ) -> Result<Option<Timestamp>, Abort> {
        if self.parked >= MAX_PARKED {
            return Ok(Some(self.work.now + Millis(1)));
        }
        let last = waiting.get(63).map(|(due, _)| *due);
        let due = waiting.iter().find(|(_, line)| lines.contains(line)).map(|(due, _)| *due).or(last);
        // Of the keys whose rate lets the next start at a moment, only those count behind which somebody still waits.
        // Not EXISTS: that may be planned as a look at all that is parked.
        let sql = "SELECT k.id, k.wake_at FROM limit_keys k WHERE k.wake_at IS NOT NULL
            AND (SELECT true FROM parked p WHERE p.limit_key = k.id AND NOT p.task = ANY($1) LIMIT 1)";
        let moved: Vec<i64> = self.work.staged.tasks.keys().copied().collect();
        let rows = self.tx.query(sql, &[&moved]).await?;
        let parked = self.work.staged.tasks.values().flatten().filter_map(|placed| match placed.at {
            At::Parked(key, _) => Some((key, None)),
            _ => None,
        });
        let behind = rows.iter().map(|row| (row.get(0), Some(moment(row, 1)))).chain(parked);
        let rates = behind.filter_map(|(key, written)| self.keys.wakes_at(key).or(written));
        Ok(due.into_iter().chain(rates).filter(|at| *at > self.work.now).min())
    }

    /// What the lease writes beside what is staged: slots, buckets, and how far the lines have got.
    fn writes(&mut self, grant: &LeaseGrant) -> Vec<Write> {
        let mut writes = vec![];
        writes.extend(flush::writes(self.work));
        let (ids, running, tat, wake) = self.keys.changed();
        if !ids.is_empty() {
            let sql = "UPDATE limit_keys k SET running = w.running, tat = w.tat,
                    wake_at = CASE WHEN EXISTS (SELECT FROM parked p WHERE p.limit_key = k.id) THEN w.wake END
                FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) w(id, running, tat, wake) WHERE k.id = ANY (ARRAY[w.id])";
            writes
                .push(Write::new(sql, vec![Arc::new(ids), Arc::new(running), Arc::new(tat), Arc::new(wake)]));
        }
        if !grant.tasks.is_empty() {
            let rows = &self.fronts;
            let lines: Vec<i32> = rows.keys().map(|key| key.0).collect();
            let tiers: Vec<i16> = rows.keys().map(|key| i16::from(key.1)).collect();
            let next: Vec<i64> = rows.values().copied().collect();
            let make = "INSERT INTO fair (line, tier, tenant, next)
                SELECT w.line, w.tier, 0, w.next FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, tier, next)
                WHERE NOT EXISTS (SELECT FROM fair f WHERE f.line = ANY (ARRAY[w.line]) AND f.tier = ANY (ARRAY[w.tier]) AND f.tenant = 0)
                ON CONFLICT DO NOTHING";
            writes.push(Write::new(
                make,
                vec![Arc::new(lines.clone()), Arc::new(tiers.clone()), Arc::new(next.clone())],
            ));
            // Who finds the row in other hands leaves it: the other lease moves the front as well.
            let push = "UPDATE fair f SET next = w.next
                FROM (SELECT x.line, x.tier, w.next FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, tier, next)
                    JOIN fair x ON x.line = ANY (ARRAY[w.line]) AND x.tier = ANY (ARRAY[w.tier]) AND x.tenant = 0 AND x.next < w.next
                    FOR UPDATE OF x SKIP LOCKED) w
                WHERE f.line = ANY (ARRAY[w.line]) AND f.tier = ANY (ARRAY[w.tier]) AND f.tenant = 0";
            writes.push(Write::new(push, vec![Arc::new(lines), Arc::new(tiers), Arc::new(next)]));
        }
        writes
    }
}

impl Work {
    /// Puts a task in line whose moment has come.
    fn come_due(&mut self, task: i64) -> Step<()> {
        let Some(placed) = self.placed(task)? else { return Ok(()) };
        if !matches!(placed.at, At::Delayed(due) if due <= self.now) {
            return Ok(());
        }
        let seq = seq_of(task);
        let (tenant, goes_on) = match self.base.heads.get(&seq) {
            Some(Some(head)) => (head.tenant, head.run.continues()),
            _ => match self.job(seq)? {
                Some(job) => (job.tenant, false),
                None => return Ok(()),
            },
        };
        let line = self.lane(placed.lane)?.line;
        let spot = self.enter(line, placed.tier, tenant, goes_on);
        if placed.counters.failures > 0 {
            self.note(task, TaskState::Queued, placed.counters.attempt);
        }
        self.stand(task, placed.lane, placed.tier, spot, placed.counters, placed.checkpoint);
        Ok(())
    }
}

/// Lines, tiers, and the stamps from which they are read.
fn starts(lines: &[i32], start: &Start) -> (Vec<i32>, Vec<i16>, Vec<i64>) {
    let mut all = (vec![], vec![], vec![]);
    for line in lines {
        for priority in Priority::ALL {
            all.0.push(*line);
            all.1.push(i16::from(priority.tier()));
            all.2.push(start.of(*line, priority.tier()));
        }
    }
    all
}

fn firsts(lines: &[i32], start: &Start, rows: &[tokio_postgres::Row]) -> Vec<Cursor> {
    let mut cursors: Vec<Cursor> = vec![];
    for line in lines {
        for priority in Priority::ALL {
            let first = rows
                .iter()
                .find(|row| row.get::<_, i32>(0) == *line && tier(row, 1) == priority.tier())
                .map(|row| (row.get(2), row.get(3), moment(row, 4)));
            cursors.push(Cursor {
                line: *line,
                tier: priority.tier(),
                first,
                page: BTreeMap::new(),
                read: (start.of(*line, priority.tier()), i64::MIN),
                more: first.is_some(),
                opened: false,
            });
        }
    }
    cursors
}

fn candidate(row: &tokio_postgres::Row, parked: Option<i32>) -> Candidate {
    let json = |at: usize| row.get::<_, Option<&str>>(at).map(Json::trusted);
    Candidate {
        task: row.get(0),
        lane: row.get(1),
        spot: load::spot(row, 2),
        counters: counters(row, 4),
        checkpoint: json(7),
        parked,
        created: moment(row, 8),
        tenant: row.get(9),
        key: row.get::<_, Option<&str>>(10).map(Into::into),
        spec: row.get(11),
        flow: row.get(12),
        started: row.get(13),
        own: json(14),
        payload: json(15),
    }
}
