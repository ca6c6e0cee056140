//! What the writer keeps in memory: names behind ids, slots in use, heads of parked lanes.
//!
//! Everything here can be rebuilt from the tables, and is, whenever another process has committed
//! or a transaction was rolled back. It never holds anything that the tables do not.

use orchestrator_core::rate::Bucket;
use orchestrator_core::{LimitBook, LimitKey, LimitRule, Limits, TaskSpec, Timestamp};
use orchestrator_store::RuleOrigin;
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A queue, a handler and a set of limit keys.
#[derive(Debug)]
pub struct Lane {
    /// Its id.
    pub id: i64,
    /// The lane of the same queue and handler without keys.
    pub line: i64,
    /// The keys.
    pub limits: Limits,
    /// Where the keys stand in [`Cache::keys`].
    pub keys: Vec<usize>,
}

/// A limit key in use.
#[derive(Debug)]
pub struct KeyState {
    /// The key.
    pub key: LimitKey,
    /// The rule that applies to it.
    pub rule: LimitRule,
    /// How many leases hold a slot.
    pub running: u32,
    /// Its token bucket.
    pub bucket: Bucket,
    /// Whether the bucket must be written at the commit.
    pub bucket_moved: bool,
}

/// Whether a lane has room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// All keys have.
    Yes,
    /// A key is full until a lease ends.
    Full,
    /// A rate allows the next start at this moment.
    At(Timestamp),
}

/// The first task of a parked lane in one tier.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The lane.
    pub lane: i64,
    /// Since when it is in line.
    pub since: Timestamp,
}

/// A place in a tier: stamp, then task.
pub type Place = (i64, i64);

type LaneName = (Arc<str>, Arc<str>, Limits);

/// The cache.
#[derive(Debug, Default)]
pub struct Cache {
    /// The number of the newest job that there ever was.
    pub last_seq: i64,
    /// Spec to id.
    pub spec_ids: FxHashMap<Arc<TaskSpec>, i64>,
    /// Id to spec.
    pub specs: FxHashMap<i64, Arc<TaskSpec>>,
    /// Tenant to id.
    pub tenant_ids: FxHashMap<Arc<str>, i64>,
    /// Id to tenant.
    pub tenants: FxHashMap<i64, Arc<str>>,
    /// Lane to id.
    pub lane_ids: FxHashMap<LaneName, i64>,
    /// Id to lane.
    pub lanes: FxHashMap<i64, Arc<Lane>>,
    /// All rules.
    pub book: LimitBook,
    /// Who wrote them.
    pub origins: FxHashMap<LimitKey, RuleOrigin>,
    /// The queues that are paused.
    pub paused: FxHashSet<Arc<str>>,
    /// Every key that a lane has.
    pub keys: Vec<KeyState>,
    key_places: FxHashMap<LimitKey, usize>,
    /// The heads of parked lanes by (line, tier).
    pub heads: BTreeMap<(i64, u8), BTreeMap<Place, Head>>,
    /// The head of each parked (lane, tier).
    pub lane_heads: FxHashMap<(i64, u8), Place>,
    /// Jobs that others wait for; some of them may be waited for no more.
    pub awaited: FxHashSet<i64>,
    /// Fairness: (line, tier, tenant) to the tenant's next stamp; tenant 0 is the front.
    pub fair: FxHashMap<(i64, u8, i64), i64>,
}

impl Cache {
    /// Reads everything anew.
    pub fn load(conn: &Connection) -> rusqlite::Result<Cache> {
        // The newest job may have been removed, and its number must not be given out again.
        let newest = "SELECT max(ifnull((SELECT max(seq) FROM jobs), 0),
                                 ifnull((SELECT value FROM meta WHERE name = 'last_seq'), 0))";
        let last_seq = conn.query_row(newest, [], |row| row.get(0))?;
        let mut cache = Cache { last_seq, ..Cache::default() };
        each(conn, "SELECT id, body FROM specs", |row| {
            let (id, body): (i64, String) = (row.get(0)?, row.get(1)?);
            let spec: TaskSpec = serde_json::from_str(&body).map_err(broken)?;
            cache.learn_spec(id, Arc::new(spec));
            Ok(())
        })?;
        each(conn, "SELECT id, name FROM tenants", |row| {
            cache.learn_tenant(row.get(0)?, row.get::<_, String>(1)?.into());
            Ok(())
        })?;
        each(conn, "SELECT key, rule, operator FROM rules", |row| {
            let key: LimitKey = row.get::<_, String>(0)?.parse().map_err(broken)?;
            let rule = serde_json::from_str(&row.get::<_, String>(1)?).map_err(broken)?;
            let origin = if row.get(2)? { RuleOrigin::Operator } else { RuleOrigin::Config };
            cache.origins.insert(key.clone(), origin);
            cache.book.set(key, Some(rule));
            Ok(())
        })?;
        each(conn, "SELECT queue FROM paused", |row| {
            cache.paused.insert(row.get::<_, String>(0)?.into());
            Ok(())
        })?;
        each(conn, "SELECT id, line, queue, handler, keys FROM lanes", |row| {
            let limits: Limits = serde_json::from_str(&row.get::<_, String>(4)?).map_err(broken)?;
            let (queue, handler): (String, String) = (row.get(2)?, row.get(3)?);
            cache.learn_lane(row.get(0)?, row.get(1)?, (queue.into(), handler.into(), limits));
            Ok(())
        })?;
        each(conn, "SELECT key, tat FROM buckets", |row| {
            let key: LimitKey = row.get::<_, String>(0)?.parse().map_err(broken)?;
            let place = cache.key_place(&key);
            cache.keys[place].bucket = Bucket(row.get(1)?);
            Ok(())
        })?;
        each(conn, "SELECT DISTINCT job FROM waits", |row| {
            cache.awaited.insert(row.get(0)?);
            Ok(())
        })?;
        each(conn, "SELECT lane FROM leases", |row| {
            cache.occupy(row.get(0)?);
            Ok(())
        })?;
        each(conn, include_str!("../../sql/parked_heads.sql"), |row| {
            let (lane, tier): (i64, u8) = (row.get(0)?, row.get(1)?);
            let since = Timestamp::from_millis(row.get(4)?);
            cache.set_head(lane, tier, Some(((row.get(2)?, row.get(3)?), since)));
            Ok(())
        })?;
        Ok(cache)
    }

    /// Remembers a spec.
    pub fn learn_spec(&mut self, id: i64, spec: Arc<TaskSpec>) {
        self.specs.insert(id, spec.clone());
        self.spec_ids.insert(spec, id);
    }

    /// Remembers a tenant.
    pub fn learn_tenant(&mut self, id: i64, name: Arc<str>) {
        self.tenants.insert(id, name.clone());
        self.tenant_ids.insert(name, id);
    }

    /// Remembers a lane.
    pub fn learn_lane(&mut self, id: i64, line: i64, name: LaneName) {
        let keys = name.2.keys().iter().map(|key| self.key_place(key)).collect();
        self.lanes.insert(id, Arc::new(Lane { id, line, limits: name.2.clone(), keys }));
        self.lane_ids.insert(name, id);
    }

    fn key_place(&mut self, key: &LimitKey) -> usize {
        if let Some(place) = self.key_places.get(key) {
            return *place;
        }
        let rule = self.book.rule(key);
        self.keys.push(KeyState {
            key: key.clone(),
            rule,
            running: 0,
            bucket: Bucket::default(),
            bucket_moved: false,
        });
        self.key_places.insert(key.clone(), self.keys.len() - 1);
        self.keys.len() - 1
    }

    /// The lane of an id. Lanes are never removed, so an id in a table has one.
    pub fn lane(&self, id: i64) -> Arc<Lane> {
        self.lanes[&id].clone()
    }

    /// Looks every key's rule up again.
    pub fn refresh_rules(&mut self) {
        for key in &mut self.keys {
            key.rule = self.book.rule(&key.key);
        }
    }

    /// Whether a task of the lane may start now.
    pub fn room(&self, lane: &Lane, now: Timestamp) -> Room {
        let mut soonest = now;
        for place in &lane.keys {
            let key = &self.keys[*place];
            if key.rule.concurrency.is_some_and(|most| key.running >= most) {
                return Room::Full;
            }
            if let Some(rate) = &key.rule.rate {
                soonest = soonest.max(key.bucket.ready_at(rate));
            }
        }
        if soonest <= now { Room::Yes } else { Room::At(soonest) }
    }

    /// Takes a slot under each key of the lane, without asking for room.
    pub fn occupy(&mut self, lane: i64) {
        for place in self.lane(lane).keys.iter() {
            self.keys[*place].running += 1;
        }
    }

    /// Counts a start against the rates of the lane.
    pub fn start(&mut self, lane: &Lane, now: Timestamp) {
        for place in &lane.keys {
            let key = &mut self.keys[*place];
            if let Some(rate) = &key.rule.rate {
                key.bucket = key.bucket.after_start(rate, now);
                key.bucket_moved = true;
            }
        }
    }

    /// Gives the slots of a lane back.
    pub fn vacate(&mut self, lane: i64) {
        for place in self.lane(lane).keys.iter() {
            let running = &mut self.keys[*place].running;
            *running = running.saturating_sub(1);
        }
    }

    /// Sets the first parked task of a lane in a tier, or that there is none.
    pub fn set_head(&mut self, lane: i64, tier: u8, head: Option<(Place, Timestamp)>) {
        let group = self.heads.entry((self.lane(lane).line, tier)).or_default();
        if let Some(old) = self.lane_heads.remove(&(lane, tier)) {
            group.remove(&old);
        }
        if let Some((place, since)) = head {
            self.lane_heads.insert((lane, tier), place);
            group.insert(place, Head { lane, since });
        }
    }
}

fn each(
    conn: &Connection,
    sql: &str,
    mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

/// A text in the tables that does not read back: somebody else wrote into them.
fn broken(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}
