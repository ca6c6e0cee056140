//! The first tasks of lines, read a page at a time.

use super::Leasing;
use crate::load::{self, counters, moment, tier};
use crate::marks::Start;
use crate::place::Spot;
use crate::tx::Abort;
use orchestrator_core::order::Priority;
use orchestrator_core::{Counters, Json, Timestamp};
use orchestrator_store::packed::seq_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The first tasks of one line and tier.
pub(super) struct Cursor {
    pub(super) line: i32,
    pub(super) tier: u8,
    /// The first task, as it was seen without a lock, until the page is read.
    pub(super) first: Option<(i64, i64, Timestamp)>,
    pub(super) page: BTreeMap<(i64, i64), Candidate>,
    /// The last that was read.
    pub(super) read: (i64, i64),
    pub(super) more: bool,
    /// Whether the page was ever read.
    pub(super) opened: bool,
}

impl Cursor {
    /// How far it got: what it read before the first that is left is gone.
    pub(super) fn reached(&self) -> Option<((i32, u8), i64)> {
        let left = self.page.first_key_value().map(|((stamp, _), _)| *stamp);
        (self.opened && self.read.1 != i64::MIN)
            .then(|| ((self.line, self.tier), left.unwrap_or(self.read.0)))
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        match self.page.first_key_value() {
            Some((_, candidate)) => Some(candidate.spot.since),
            None => self.first.map(|(_, _, since)| since),
        }
    }
}

#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) task: i64,
    pub(super) lane: i32,
    pub(super) spot: Spot,
    pub(super) counters: Counters,
    pub(super) checkpoint: Option<Json>,
    /// The key that it is parked behind.
    pub(super) parked: Option<i32>,
    pub(super) created: Timestamp,
    pub(super) tenant: i32,
    pub(super) key: Option<Arc<str>>,
    pub(super) spec: Option<i32>,
    pub(super) flow: Option<i32>,
    pub(super) started: Option<bool>,
    pub(super) own: Option<Json>,
    pub(super) payload: Option<Json>,
}

/// The first task of each line and tier, from a stamp on.
pub(super) const FIRSTS: &str = "SELECT w.line, w.tier, r.stamp, r.task, r.since
    FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, tier, start)
    CROSS JOIN LATERAL (SELECT r.stamp, r.task, r.since FROM ready r
        WHERE r.line = w.line AND r.tier = w.tier AND r.stamp >= w.start ORDER BY r.stamp, r.task LIMIT 1) r";

/// The tasks of a page with what they need of their jobs. Jobs of queues have no head and no rows of tasks, so these are
/// not looked for.
pub(super) const OF_PAGE: &str =
    "SELECT r.task, r.lane, r.stamp, r.since, r.attempt, r.failures, r.crashes, r.checkpoint,
        j.created, j.tenant, j.key, j.spec, j.flow, h.started, t.payload,
        CASE WHEN t.payload IS NULL THEN j.payload END, r.place
    FROM page r JOIN jobs j ON j.seq = ANY (ARRAY[r.task >> 20])
        LEFT JOIN runs h ON h.seq = ANY (ARRAY[CASE WHEN j.flow IS NOT NULL THEN j.seq END])
        LEFT JOIN tasks t ON t.task = ANY (ARRAY[CASE WHEN j.flow IS NOT NULL THEN r.task END])";

impl Leasing<'_> {
    /// The first task of each line and tier, seen without a lock.
    pub(super) async fn cursors(&mut self, lines: &[i32], start: &mut Start) -> Result<Vec<Cursor>, Abort> {
        let starts = starts(lines, start);
        let rows = self.tx.query(FIRSTS, &[&starts.0, &starts.1, &starts.2]).await?;
        self.marks.looked(start, self.clock.now());
        Ok(firsts(lines, start, &rows))
    }

    pub(super) async fn read_page(&mut self, cursor: &mut Cursor, left: usize) -> Result<(), Abort> {
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
    pub(super) async fn learn(&mut self, candidates: &[Candidate]) -> Result<(), Abort> {
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

    /// Takes the heads of jobs that have not started, as far as nobody else holds them: whoever leases the first task of
    /// a job writes down that it has started.
    pub(super) async fn lock_heads(&mut self, candidates: &[Candidate]) -> Result<(), Abort> {
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
}

/// Lines, tiers, and the stamps from which they are read.
pub(super) fn starts(lines: &[i32], start: &Start) -> (Vec<i32>, Vec<i16>, Vec<i64>) {
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

pub(super) fn firsts(lines: &[i32], start: &Start, rows: &[tokio_postgres::Row]) -> Vec<Cursor> {
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

pub(super) fn candidate(row: &tokio_postgres::Row, parked: Option<i32>) -> Candidate {
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
