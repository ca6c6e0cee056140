//! Limit keys as a lease sees them: their rules, slots and token buckets.
//!
//! Mostly there is room, and then a lease only looks at the keys and counts its tasks under them at its end, on the
//! condition that they still fit: so it holds the locks, for which those wait who give slots back, for the commit alone.
//! Where there is no room, or a rate has to be kept, it locks the keys before it decides.

use crate::names::Lane;
use crate::tx::{Abort, Tx, Write};
use orchestrator_core::rate::Bucket;
use orchestrator_core::{LimitBook, LimitKey, LimitRule, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// Whether a lane has room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// All keys have.
    Yes,
    /// This key has none, until a lease ends or until the moment.
    No(i32, Option<Timestamp>),
}

/// A key.
#[derive(Clone, Debug)]
pub struct KeyState {
    rule: LimitRule,
    running: i32,
    /// How many of them this lease took while the key was not locked.
    unlocked: i32,
    bucket: Bucket,
    wake_at: Option<Timestamp>,
    locked: bool,
    changed: bool,
}

/// The keys that are known.
#[derive(Debug, Default)]
pub struct Keys(BTreeMap<i32, KeyState>);

/// Keys as they are, and all rules. The rules are read after the locks are there: a change of a rule holds them too.
const LOOK: &str = "SELECT id, key, running, tat, wake_at FROM limit_keys WHERE id = ANY($1)";
const LOCK: &str =
    "SELECT id, key, running, tat, wake_at FROM limit_keys WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const RULES: &str = "SELECT key, rule FROM rules";

/// Every rule there is.
pub async fn book(tx: &mut Tx) -> Result<LimitBook, Abort> {
    read_book(&tx.query(RULES, &[]).await?)
}

fn read_book(rows: &[Row]) -> Result<LimitBook, Abort> {
    let mut book = LimitBook::default();
    for row in rows {
        let key: LimitKey =
            row.get::<_, &str>(0).parse().map_err(|_| crate::load::unreadable("a limit rule"))?;
        let rule = serde_json::from_str(row.get(1)).map_err(|_| crate::load::unreadable("a limit rule"))?;
        book.set(key, Some(rule));
    }
    Ok(book)
}

impl Keys {
    /// Looks at keys that are not known yet, without a lock.
    pub async fn look(&mut self, tx: &mut Tx, mut ids: Vec<i32>) -> Result<(), Abort> {
        ids.retain(|id| !self.knows(*id));
        self.read(tx, ids, false).await
    }

    /// Locks keys that are not locked yet, in order of their numbers.
    pub async fn lock(&mut self, tx: &mut Tx, mut ids: Vec<i32>) -> Result<(), Abort> {
        ids.retain(|id| !self.0.get(id).is_some_and(|key| key.locked));
        self.read(tx, ids, true).await
    }

    async fn read(&mut self, tx: &mut Tx, mut ids: Vec<i32>, lock: bool) -> Result<(), Abort> {
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let keys = if lock { LOCK } else { LOOK };
        let rows = tx.query_all(&[(keys, &[&ids]), (RULES, &[])]).await?;
        let book = read_book(&rows[1])?;
        for row in &rows[0] {
            let (id, key): (i32, &str) = (row.get(0), row.get(1));
            let key: LimitKey = key.parse().map_err(|_| crate::load::unreadable("a limit key"))?;
            // What was taken before the lock counts from now on as if it were taken after it, if it still fits.
            let taken = self.0.get(&id).map_or(0, |key| key.unlocked);
            let state = KeyState {
                rule: book.rule(&key),
                running: row.get::<_, i32>(2) + taken,
                unlocked: 0,
                bucket: Bucket(row.get(3)),
                wake_at: row.get::<_, Option<i64>>(4).map(Timestamp::from_millis),
                locked: lock,
                changed: taken > 0,
            };
            if taken > 0 && (state.is_over() || state.rule.rate.is_some()) {
                return Err(Abort::Again("slots that were free were taken by somebody else"));
            }
            self.0.insert(id, state);
        }
        Ok(())
    }

    /// Whether all keys of a lane are locked.
    pub fn has_locked(&self, lane: &Lane) -> bool {
        lane.keys.iter().all(|id| self.0.get(id).is_none_or(|key| key.locked))
    }

    /// All that were read.
    pub fn known(&self) -> impl Iterator<Item = i32> + '_ {
        self.0.keys().copied()
    }

    /// Whether a lane has a rate to keep.
    pub fn has_rate(&self, lane: &Lane) -> bool {
        lane.keys.iter().any(|id| self.0.get(id).is_some_and(|key| key.rule.rate.is_some()))
    }

    /// Whether a key was looked at.
    pub fn knows(&self, id: i32) -> bool {
        self.0.contains_key(&id)
    }

    /// Whether a task of the lane may start now. A key without a slot comes before one whose rate is used up.
    pub fn room(&self, lane: &Lane, now: Timestamp) -> Room {
        let mut latest: Option<(Timestamp, i32)> = None;
        for id in &lane.keys {
            let Some(key) = self.0.get(id) else { continue };
            if key.rule.concurrency.is_some_and(|most| i64::from(key.running) >= i64::from(most)) {
                return Room::No(*id, None);
            }
            if let Some(rate) = &key.rule.rate {
                let at = key.bucket.ready_at(rate);
                if at > now {
                    latest = latest.max(Some((at, *id)));
                }
            }
        }
        latest.map_or(Room::Yes, |(at, id)| Room::No(id, Some(at)))
    }

    /// Whether one more could start under this key alone.
    pub fn has_room(&self, id: i32, now: Timestamp) -> bool {
        self.0.get(&id).is_some_and(|key| key.startable(now, 1) > 0)
    }

    /// Takes a slot of each key of the lane and counts a start against the rates.
    pub fn take(&mut self, lane: &Lane, now: Timestamp) {
        for id in &lane.keys {
            let Some(key) = self.0.get_mut(id) else { continue };
            key.running += 1;
            key.unlocked += i32::from(!key.locked);
            key.changed = true;
            if let Some(rate) = &key.rule.rate {
                key.bucket = key.bucket.after_start(rate, now);
            }
        }
    }

    /// Notes that somebody waits behind a key until a moment.
    pub fn wake_at(&mut self, id: i32, at: Timestamp) {
        if let Some(key) = self.0.get_mut(&id)
            && key.wake_at.is_none_or(|before| before > at)
        {
            key.wake_at = Some(at);
            key.changed = true;
        }
    }

    /// When the rate of a key lets the next start, if it was looked at.
    pub fn wakes_at(&self, id: i32) -> Option<Timestamp> {
        self.0.get(&id).and_then(|key| key.wake_at)
    }

    /// How many of those that wait behind a key may come into line now, at most `most`; and notes when the next may.
    pub fn let_in(&mut self, id: i32, now: Timestamp, most: u32) -> u32 {
        let Some(key) = self.0.get_mut(&id) else { return 0 };
        let n = key.startable(now, most);
        key.changed = true;
        key.wake_at = key.rule.rate.map(|rate| {
            let mut bucket = key.bucket;
            (0..n).for_each(|_| bucket = bucket.after_start(&rate, now));
            bucket.ready_at(&rate).max(now + orchestrator_core::Millis(1))
        });
        n
    }

    /// Writes what changed.
    pub fn write(&self) -> Write {
        let (ids, running, tat, wake) = self.changed();
        let sql = "UPDATE limit_keys k SET running = w.running, tat = w.tat, wake_at = w.wake
            FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) w(id, running, tat, wake) WHERE k.id = ANY (ARRAY[w.id])";
        Write::new(sql, vec![Arc::new(ids), Arc::new(running), Arc::new(tat), Arc::new(wake)])
    }

    /// Counts what was taken without locks, if it still fits.
    pub fn count_unlocked(&self) -> Option<Write> {
        let sql = "UPDATE limit_keys k SET running = k.running + w.n
            FROM unnest($1::int[], $2::int[], $3::int[]) w(id, n, most)
            WHERE k.id = ANY (ARRAY[w.id]) AND (w.most IS NULL OR k.running + w.n <= w.most)";
        let (mut ids, mut n, mut most) = (vec![], vec![], vec![]);
        for (id, key) in self.0.iter().filter(|(_, key)| key.unlocked > 0) {
            ids.push(*id);
            n.push(key.unlocked);
            most.push(key.rule.concurrency.map(|most| i32::try_from(most).unwrap_or(i32::MAX)));
        }
        let rows = ids.len();
        (rows > 0).then(|| Write::new(sql, vec![Arc::new(ids), Arc::new(n), Arc::new(most)]).touching(rows))
    }

    /// The rows that changed under a lock: number, slots in use, bucket, when to wake the next.
    pub fn changed(&self) -> (Vec<i32>, Vec<i32>, Vec<i64>, Vec<Option<i64>>) {
        let mut columns = (vec![], vec![], vec![], vec![]);
        for (id, key) in self.0.iter().filter(|(_, key)| key.changed && key.locked) {
            columns.0.push(*id);
            columns.1.push(key.running);
            columns.2.push(key.bucket.0);
            columns.3.push(key.wake_at.map(Timestamp::as_millis));
        }
        columns
    }
}

impl KeyState {
    /// Whether more run than may.
    fn is_over(&self) -> bool {
        self.rule.concurrency.is_some_and(|most| i64::from(self.running) > i64::from(most))
    }

    /// How many could start now, as far as this key goes; at most `most`.
    fn startable(&self, now: Timestamp, most: u32) -> u32 {
        let by_slots = match self.rule.concurrency {
            Some(cap) => u32::try_from(i64::from(cap) - i64::from(self.running)).unwrap_or(0),
            None => u32::MAX,
        };
        let mut n = most.min(by_slots);
        if let Some(rate) = &self.rule.rate {
            let mut bucket = self.bucket;
            let mut allowed = 0;
            while allowed < n && bucket.ready_at(rate) <= now {
                bucket = bucket.after_start(rate, now);
                allowed += 1;
            }
            n = allowed;
        }
        n
    }
}
