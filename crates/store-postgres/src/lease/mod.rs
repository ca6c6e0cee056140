//! Handing out tasks.
//!
//! A lease looks at the first task of each line and tier that is asked for, takes the best, and goes on until its slots
//! are filled. Rows are taken with SKIP LOCKED, so that replicas that lease at the same time take different tasks and
//! none waits. A task that is met while a limit of it is full is parked behind that limit.

mod due;
mod line;
mod take;

use crate::flush;
use crate::limits::{Keys, Room};
use crate::load;
use crate::marks::{self, Marks, Start};
use crate::names::{Lane, LaneName, Names};
use crate::naming::Naming;
use crate::place::{At, Placed};
use crate::tx::{Abort, Tx, Value, Write};
use crate::work::Work;
use line::{Candidate, Cursor, Line, PARKED_PAGE};
use orchestrator_core::Millis;
use orchestrator_core::order::effective_tier;
use orchestrator_store::{Clock, LeaseAsk, LeaseGrant};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most tasks that one lease parks: the rest is met by the next.
const MAX_PARKED: usize = 5000;
/// What was left because its job was in other hands is worth another ask after so long.
const SKIPPED_AGAIN: Millis = Millis(10);

/// Which lines were served when, so that they take turns.
#[derive(Debug, Default)]
pub struct Served(Mutex<Turns>);

#[derive(Debug, Default)]
struct Turns {
    now: u64,
    last: FxHashMap<i32, u64>,
    only: Option<(i32, u8)>,
    /// Lines and tiers whose front is written down.
    fronts: FxHashSet<(i32, u8)>,
}

impl Served {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a line was served last.
    fn last(&self, line: i32) -> u64 {
        self.turns().last.get(&line).copied().unwrap_or(0)
    }

    /// A line is served.
    fn note(&self, line: i32) {
        let mut turns = self.turns();
        turns.now += 1;
        let now = turns.now;
        turns.last.insert(line, now);
    }

    /// The fronts of these lines and tiers are written down.
    pub fn has_fronts<'k>(&self, keys: impl Iterator<Item = &'k (i32, u8)>) {
        self.turns().fronts.extend(keys);
    }

    /// The line and tier that alone had tasks when somebody looked last and found any.
    fn only(&self) -> Option<(i32, u8)> {
        self.turns().only
    }

    /// So many lines and tiers have tasks; this is one of them.
    fn seen(&self, lines: usize, first: Option<(i32, u8)>) {
        if lines > 0 {
            self.turns().only = first.filter(|_| lines == 1);
        }
    }
}

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
    /// Whether limit keys are locked from the start.
    pub careful: bool,
    pub parked: usize,
    /// Whether a rate holds anybody back.
    pub rates_wait: bool,
    /// Whether something was written already.
    pub wrote: bool,
    /// How far it got in each line and tier.
    pub reached: Reached,
    /// What it left where it is, because the job was in other hands.
    pub skipped: Vec<((i32, u8), i64)>,
    /// The highest stamp that was leased in each line and tier.
    pub fronts: BTreeMap<(i32, u8), i64>,
}

impl Leasing<'_> {
    /// Fills the ask. The writes that go with it are left in [`Work`] and in what is returned beside the grant.
    pub async fn run(&mut self, ask: &LeaseAsk, mut start: Start) -> Result<(LeaseGrant, Vec<Write>), Abort> {
        let lines = self.lines(ask).await?;
        let (waiting, mut cursors) = self.open(&lines, &mut start, ask.slots as usize).await?;
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
            if !self.skipped.is_empty() {
                // There was more; those who hold it are through soon.
                let soon = self.work.now + SKIPPED_AGAIN;
                grant.next_at = Some(grant.next_at.map_or(soon, |at| at.min(soon)));
            }
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
        while grant.tasks.len() < ask.slots as usize {
            let left = ask.slots as usize - grant.tasks.len();
            for cursor in cursors.iter_mut() {
                self.clear_front(cursor, left).await?;
            }
            let best = if self.parked < MAX_PARKED { self.best(cursors) } else { None };
            let Some(cursor) = best.map(|best| &mut cursors[best]) else { break };
            if !cursor.opened {
                self.read_page(cursor, left).await?;
                continue;
            }
            // Locks that another line needed may have shown that there is less room than when this one was looked at.
            if let Some((_, first)) = cursor.page.first_key_value()
                && self.keys.room(&*self.lane(first.lane)?, self.work.now) != Room::Yes
            {
                continue;
            }
            let Some((place, candidate)) = cursor.page.pop_first() else { continue };
            let Some(leased) = self.take(cursor.tier, candidate, ask).await? else {
                self.skipped.push(((cursor.line, cursor.tier), place.0));
                continue;
            };
            self.served.note(cursor.line);
            grant.tasks.push(leased);
        }
        Ok(())
    }

    /// Parks what stands in front and has no room, so that the first task of a line and tier is one that may start. How
    /// urgent a line is depends on that one alone, and it may have waited longer than those before it. Where the first has
    /// no limits, nothing has to be read for it.
    async fn clear_front(&mut self, cursor: &mut Cursor, left: usize) -> Result<(), Abort> {
        while self.parked < MAX_PARKED {
            if !cursor.opened {
                match cursor.first {
                    Some((_, lane)) if !self.is_free(lane) => self.read_page(cursor, left).await?,
                    _ => return Ok(()),
                }
                continue;
            }
            let Some(first) = cursor.page.first_entry() else {
                if !cursor.more {
                    return Ok(());
                }
                self.read_page(cursor, left).await?;
                continue;
            };
            let (place, lane) = (*first.key(), self.lane(first.get().lane)?);
            let Room::No(key, at) = self.room(cursor, &lane).await? else { return Ok(()) };
            if let Some(at) = at {
                self.keys.wake_at(key, at);
            }
            let Some(candidate) = cursor.page.remove(&place) else { continue };
            self.park(cursor.tier, key, candidate);
            self.offer_others(cursor, &lane.keys, key, place).await?;
        }
        Ok(())
    }

    /// Whether a lane is known to have no limits.
    fn is_free(&self, lane: i32) -> bool {
        self.work.known.lanes.get(&lane).is_some_and(|lane| lane.keys.is_empty())
    }

    fn lane(&self, id: i32) -> Result<Arc<Lane>, Abort> {
        self.work.known.lanes.get(&id).cloned().ok_or_else(|| load::unreadable("a lane"))
    }

    /// The lines that are asked for, as far as there are such.
    async fn lines(&mut self, ask: &LeaseAsk) -> Result<Vec<Line>, Abort> {
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
        let line = |name: LaneName| Some((*self.work.known.lane_ids.get(&name)?, name.0));
        let lines: BTreeMap<i32, Arc<str>> = all().filter_map(line).collect();
        Ok(lines.into_iter().collect())
    }

    /// The cursor whose first task goes next: by tier, risen by waiting; then lines in turn; then the longest wait.
    fn best(&self, cursors: &[Cursor]) -> Option<usize> {
        let rank = |cursor: &Cursor| {
            let since = cursor.since()?;
            let turn = self.served.last(cursor.line);
            Some((effective_tier(cursor.tier, self.work.now.since(since)), turn, since))
        };
        let ranked = cursors.iter().enumerate().filter_map(|(n, cursor)| rank(cursor).map(|rank| (rank, n)));
        ranked.min().map(|(_, n)| n)
    }

    /// Whether a task of a lane may start now. The limit keys of those that come after it are read too, so that it is done
    /// once per page.
    async fn room(&mut self, cursor: &Cursor, lane: &Lane) -> Result<Room, Abort> {
        if !self.knows(lane) {
            let ids = self.keys_of_page(cursor, lane)?;
            if self.careful {
                self.keys.lock(self.tx, ids).await?;
            } else {
                self.keys.look(self.tx, ids).await?;
            }
        }
        let room = self.keys.room(lane, self.work.now);
        if self.keys.has_locked(lane) || (room == Room::Yes && !self.keys.has_rate(lane)) {
            return Ok(room);
        }
        // From here on with locks: of all keys at once, so that they are locked in order.
        self.careful = true;
        let mut ids = self.keys_of_page(cursor, lane)?;
        ids.extend(self.keys.known());
        self.keys.lock(self.tx, ids).await?;
        Ok(self.keys.room(lane, self.work.now))
    }

    fn keys_of_page(&self, cursor: &Cursor, lane: &Lane) -> Result<Vec<i32>, Abort> {
        let mut ids = lane.keys.clone();
        for other in cursor.page.values() {
            ids.extend(self.lane(other.lane)?.keys.iter().copied());
        }
        Ok(ids)
    }

    fn knows(&self, lane: &Lane) -> bool {
        lane.keys.iter().all(|key| self.keys.knows(*key))
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
            let mut known: Vec<i64> = cursor.page.values().map(|candidate| candidate.task).collect();
            known.extend(self.work.staged.tasks.keys());
            let (line, tier) = (cursor.line, i16::from(cursor.tier));
            let rows = self.tx.query(PARKED_PAGE, &[key, &line, &tier, &known]).await?;
            let found = self.candidates(&rows, Some(*key)).await?;
            for candidate in found {
                let place = (candidate.spot.stamp, candidate.task).max(after);
                cursor.page.insert(place, candidate);
            }
        }
        Ok(())
    }

    /// What the lease writes beside what is staged: slots, buckets, and how far the lines have got.
    fn writes(&mut self, grant: &LeaseGrant) -> Vec<Write> {
        let mut writes = vec![];
        writes.extend(flush::writes(self.work));
        let (ids, running, tat, wake) = self.keys.changed();
        if !ids.is_empty() {
            let sql = "UPDATE limit_keys k SET running = w.running, tat = w.tat,
                    wake_at = CASE WHEN w.wake IS NOT NULL AND (SELECT true FROM parked p WHERE p.limit_key = k.id LIMIT 1)
                        THEN w.wake END
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
            if !rows.keys().all(|front| self.served.turns().fronts.contains(front)) {
                let values: Vec<Value> =
                    vec![Arc::new(lines.clone()), Arc::new(tiers.clone()), Arc::new(next.clone())];
                writes.push(Write::new(make, values));
            }
            // Who finds the row in other hands leaves it: the other lease moves the front as well.
            let push = "UPDATE fair f SET next = w.next
                FROM (SELECT x.line, x.tier, w.next FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, tier, next)
                    JOIN fair x ON x.line = ANY (ARRAY[w.line]) AND x.tier = ANY (ARRAY[w.tier]) AND x.tenant = 0 AND x.next < w.next
                    FOR UPDATE OF x SKIP LOCKED) w
                WHERE f.line = ANY (ARRAY[w.line]) AND f.tier = ANY (ARRAY[w.tier]) AND f.tenant = 0";
            writes.push(Write::new(push, vec![Arc::new(lines), Arc::new(tiers), Arc::new(next)]));
        }
        // At the very end, since others wait for these rows until the commit.
        writes.extend(self.keys.count_unlocked());
        writes
    }
}
