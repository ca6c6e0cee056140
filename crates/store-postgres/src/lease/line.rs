//! The first tasks of lines, read a page at a time.

use super::Leasing;
use crate::load::{self, counters, moment, tier};
use crate::marks::Start;
use crate::place::Spot;
use crate::tx::Abort;
use orchestrator_core::order::Priority;
use orchestrator_core::{Counters, Json, Meta, Timestamp};
use orchestrator_store::packed::seq_of;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio_postgres::Row;

/// The first tasks of one line and tier.
pub(super) struct Cursor {
    pub(super) line: i32,
    pub(super) queue: Arc<str>,
    pub(super) tier: u8,
    /// Since when the first task waits and in which lane, as it was seen without a lock, until the page is read.
    pub(super) first: Option<(Timestamp, i32)>,
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
            None => self.first.map(|(since, _)| since),
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
    /// Where its row of `ready` is.
    pub(super) row: Option<String>,
    pub(super) created: Timestamp,
    pub(super) tenant: i32,
    pub(super) key: Option<Arc<str>>,
    pub(super) spec: Option<i32>,
    pub(super) flow: Option<i32>,
    pub(super) started: Option<bool>,
    /// What the task gets, if it was made for it alone.
    pub(super) own: Option<Json>,
    /// The payload of its job.
    pub(super) payload: Json,
    /// What its job carries along.
    pub(super) meta: Arc<Meta>,
}

/// The first task of each line and tier, from a stamp on. A line whose queue is paused has none.
pub(super) const FIRSTS: &str = "SELECT w.line, w.tier, r.since, r.lane
    FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::text[]) w(line, tier, start, queue)
    CROSS JOIN LATERAL (SELECT r.since, r.lane FROM ready r
        WHERE r.line = w.line AND r.tier = w.tier AND r.stamp >= w.start ORDER BY r.stamp, r.task LIMIT 1) r
    WHERE (SELECT true FROM paused p WHERE p.queue = w.queue) IS NULL";

/// A page of tasks, and behind it all that they need of their jobs, as rows of other kinds. Jobs are looked up by all
/// their numbers at once, which takes half the time of a join, and are sent once however many of their tasks are in the
/// page. Jobs of queues have no head and no rows of tasks, so these are not looked for.
macro_rules! page {
    ($page:literal) => {
        concat!(
            "WITH page AS MATERIALIZED (",
            $page,
            "), job AS MATERIALIZED (
                SELECT seq, created, tenant, key, spec, flow, payload, meta FROM jobs
                WHERE seq = ANY (ARRAY(SELECT task >> 20 FROM page))
            ), own AS MATERIALIZED (
                SELECT task FROM page WHERE (SELECT true FROM job WHERE flow IS NOT NULL LIMIT 1)
            )
            SELECT 0, task, stamp, since, lane, attempt, failures, crashes, checkpoint, place, NULL::bool, NULL::text FROM page
            UNION ALL SELECT 1, seq, created, NULL, tenant, spec, flow, NULL, payload, key, NULL, meta FROM job
            UNION ALL SELECT 2, seq, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, started, NULL FROM runs
                WHERE seq = ANY (ARRAY(SELECT task >> 20 FROM own))
            UNION ALL SELECT 3, task, NULL, NULL, NULL, NULL, NULL, NULL, payload, NULL, NULL, NULL FROM tasks
                WHERE task = ANY (ARRAY(SELECT task FROM own)) AND payload IS NOT NULL"
        )
    };
}

/// The next tasks of a line and tier, unless its queue is paused: it is looked at together with the tasks, so whatever
/// came after the pause is not seen without it.
pub(super) const READY_PAGE: &str = page!(
    "SELECT ctid::text AS place, task, lane, stamp, since, attempt, failures, crashes, checkpoint
    FROM ready WHERE line = $1 AND tier = $2 AND (stamp, task) > ($3, $4)
        AND (SELECT true FROM paused WHERE queue = $6) IS NULL
    ORDER BY stamp, task LIMIT $5 FOR UPDATE SKIP LOCKED"
);

/// The first task of a line and tier that is parked behind a key.
pub(super) const PARKED_PAGE: &str = page!(
    "SELECT NULL AS place, task, lane, stamp, since, attempt, failures, crashes, checkpoint
    FROM parked WHERE limit_key = $1 AND line = $2 AND tier = $3 AND NOT task = ANY($4)
    ORDER BY stamp, task LIMIT 1 FOR UPDATE SKIP LOCKED"
);

/// How many tasks are read at once for so many slots.
pub(super) fn page_size(slots: usize) -> i64 {
    slots.clamp(8, 2000) as i64
}

/// What tasks need of their jobs.
struct OfJob {
    created: Timestamp,
    tenant: i32,
    spec: Option<i32>,
    flow: Option<i32>,
    payload: Json,
    key: Option<Arc<str>>,
    meta: Arc<Meta>,
}

impl Leasing<'_> {
    /// The first task of each line and tier, seen without a lock.
    pub(super) async fn cursors(&mut self, lines: &[Line], start: &mut Start) -> Result<Vec<Cursor>, Abort> {
        let starts = starts(lines, start);
        let rows = self.tx.query(FIRSTS, &[&starts.0, &starts.1, &starts.2, &starts.3]).await?;
        self.marks.looked(start, self.clock.now());
        Ok(firsts(lines, start, &rows))
    }

    pub(super) async fn read_page(&mut self, cursor: &mut Cursor, left: usize) -> Result<(), Abort> {
        let size = if cursor.more { page_size(left) } else { 0 };
        let rows = if size > 0 {
            let (line, tier, (stamp, task)) = (cursor.line, i16::from(cursor.tier), cursor.read);
            self.tx.query(READY_PAGE, &[&line, &tier, &stamp, &task, &size, &&*cursor.queue]).await?
        } else {
            vec![]
        };
        self.keep_page(cursor, &rows, size).await
    }

    /// Keeps the answer to [`READY_PAGE`].
    pub(super) async fn keep_page(
        &mut self,
        cursor: &mut Cursor,
        rows: &[Row],
        size: i64,
    ) -> Result<(), Abort> {
        cursor.opened = true;
        cursor.first = None;
        let found = self.candidates(rows, None).await?;
        cursor.more = size > 0 && found.len() as i64 == size;
        for candidate in found {
            let place = (candidate.spot.stamp, candidate.task);
            cursor.read = cursor.read.max(place);
            // Our own locks hide nothing from us: what was taken already is met again.
            if self.work.staged.tasks.contains_key(&candidate.task) {
                continue;
            }
            if let Some(row) = candidate.row.clone() {
                self.work.base.ready_rows.insert(candidate.task, row);
            }
            cursor.page.insert(place, candidate);
        }
        Ok(())
    }

    /// The tasks of a page, with all that is needed to hand them out.
    pub(super) async fn candidates(
        &mut self,
        rows: &[Row],
        parked: Option<i32>,
    ) -> Result<Vec<Candidate>, Abort> {
        let found = gathered(rows, parked)?;
        self.learn(&found).await?;
        self.lock_heads(&found).await?;
        Ok(found)
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
}

/// A line that is asked for, and its queue.
pub(super) type Line = (i32, Arc<str>);

/// Lines, tiers, the stamps from which they are read, and queues.
pub(super) type Starts<'a> = (Vec<i32>, Vec<i16>, Vec<i64>, Vec<&'a str>);

pub(super) fn starts<'a>(lines: &'a [Line], start: &Start) -> Starts<'a> {
    let mut all: Starts<'a> = (vec![], vec![], vec![], vec![]);
    for (line, queue) in lines {
        for priority in Priority::ALL {
            all.0.push(*line);
            all.1.push(i16::from(priority.tier()));
            all.2.push(start.of(*line, priority.tier()));
            all.3.push(queue);
        }
    }
    all
}

pub(super) fn firsts(lines: &[Line], start: &Start, rows: &[Row]) -> Vec<Cursor> {
    let mut cursors: Vec<Cursor> = vec![];
    for (line, queue) in lines {
        for priority in Priority::ALL {
            let first = rows
                .iter()
                .find(|row| row.get::<_, i32>(0) == *line && tier(row, 1) == priority.tier())
                .map(|row| (moment(row, 2), row.get(3)));
            cursors.push(Cursor {
                line: *line,
                queue: queue.clone(),
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

/// Brings the tasks of a page together with what was read of their jobs.
fn gathered(rows: &[Row], parked: Option<i32>) -> Result<Vec<Candidate>, Abort> {
    let json = |row: &Row| row.get::<_, Option<&str>>(8).map(Json::trusted);
    let mut jobs: FxHashMap<i64, OfJob> = FxHashMap::default();
    let mut started: FxHashMap<i64, bool> = FxHashMap::default();
    let mut own: FxHashMap<i64, Json> = FxHashMap::default();
    let no_meta: Arc<Meta> = Arc::default();
    for row in rows {
        let id: i64 = row.get(1);
        match row.get::<_, i32>(0) {
            1 => {
                let job = OfJob {
                    created: moment(row, 2),
                    tenant: row.get(4),
                    spec: row.get(5),
                    flow: row.get(6),
                    payload: json(row).ok_or_else(|| load::unreadable("the payload of a job"))?,
                    key: row.get::<_, Option<&str>>(9).map(Into::into),
                    meta: match row.get::<_, Option<&str>>(11) {
                        None => no_meta.clone(),
                        text => Meta::from_text(text).map(Arc::new).map_err(|_| load::unreadable("a job"))?,
                    },
                };
                jobs.insert(id, job);
            }
            2 => {
                started.insert(id, row.get(10));
            }
            3 => own.extend(json(row).map(|payload| (id, payload))),
            _ => {}
        }
    }
    let of_page = rows.iter().filter(|row| row.get::<_, i32>(0) == 0);
    let candidate = |row: &Row| {
        let task: i64 = row.get(1);
        let job = jobs.get(&seq_of(task)).ok_or_else(|| load::unreadable("the job of a task"))?;
        Ok(Candidate {
            task,
            lane: row.get(4),
            spot: load::spot(row, 2),
            counters: counters(row, 5),
            checkpoint: json(row),
            parked,
            row: row.get(9),
            created: job.created,
            tenant: job.tenant,
            key: job.key.clone(),
            spec: job.spec,
            flow: job.flow,
            started: started.get(&seq_of(task)).copied(),
            own: own.get(&task).cloned(),
            payload: job.payload.clone(),
            meta: job.meta.clone(),
        })
    };
    of_page.map(candidate).collect()
}
