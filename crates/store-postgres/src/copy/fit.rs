//! What the rows of another store become here: digests in place of long texts, heads that say whether they started, a
//! count per limit key, and every parked task behind one key.

use super::Datum;
use crate::load::{lane_digest, spec_digest};
use crate::names::LaneName;
use crate::naming::read_plan;
use crate::work::key_digest;
use orchestrator_core::flow::Run;
use orchestrator_core::flow::run::Group;
use orchestrator_core::rate::Bucket;
use orchestrator_core::{LimitBook, LimitKey, Limits, TaskSpec, Timestamp};
use orchestrator_store::copy::{Batch, Cell, Row, Table};
use orchestrator_store::packed::{index_of, seq_of};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use uuid::Uuid;

/// Rows for one table of ours.
pub struct Load {
    pub table: &'static str,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Datum>>,
}

/// What comes of a batch.
#[derive(Default)]
pub struct Fitted {
    pub loads: Vec<Load>,
    /// Digests of idempotency keys, and the jobs that have them.
    pub keys: Vec<(Uuid, i64)>,
}

/// A limit key.
#[derive(Debug)]
struct Key {
    key: LimitKey,
    running: u32,
    bucket: Bucket,
    wake_at: Option<Timestamp>,
}

/// Where a lane stands, and its keys by their places in [`Fitting::keys`].
#[derive(Debug)]
struct Lane {
    line: i64,
    keys: Vec<usize>,
}

/// What was met so far, as far as later rows need it.
#[derive(Debug, Default)]
pub struct Fitting {
    handlers: FxHashMap<i64, Arc<str>>,
    tenants: FxHashMap<i64, String>,
    scopes: FxHashMap<i64, Arc<str>>,
    lanes: FxHashMap<i64, Lane>,
    keys: Vec<Key>,
    places: FxHashMap<LimitKey, usize>,
    book: LimitBook,
    /// What the lists of jobs were expanded into.
    lists: FxHashMap<i64, Vec<Group>>,
}

type Fit<T> = Result<T, String>;

impl Fitting {
    /// Turns a batch into rows of ours.
    pub fn fit(&mut self, batch: Batch) -> Fit<Fitted> {
        let mut fitted = Fitted::default();
        for row in &batch.rows {
            self.learn(&Named { table: batch.table, row }, &mut fitted)?;
        }
        fitted.loads = match batch.table {
            Table::Buckets => vec![],
            Table::Specs => vec![with(batch, &["digest"], |row| {
                let spec: TaskSpec = parse(row.text("body")?, "a spec")?;
                Ok(vec![Datum::Digest(spec_digest(&spec).map_err(|_| unreadable("a spec"))?.0)])
            })?],
            Table::Lanes => {
                vec![with(batch, &["digest"], |row| Ok(vec![Datum::Digest(lane_digest(&lane_name(row)?))]))?]
            }
            Table::Runs => vec![with(batch, &["started", "ended", "reason"], |row| {
                let run = head(row)?;
                let ended = run.ended.map_or(Datum::Null, |at| Datum::Int(at.as_millis()));
                let reason =
                    run.reason.map_or(Datum::Null, |reason| Datum::Text(reason.replace('\0', "\u{FFFD}")));
                Ok(vec![Datum::Int(run.started.is_some().into()), ended, reason])
            })?],
            Table::Tasks => vec![with(batch, &["list", "item"], |row| {
                let item = self.item(row.int("task")?);
                let number = |number: u32| Datum::Int(number.into());
                Ok(item
                    .map_or([Datum::Null, Datum::Null], |(list, item)| [number(list), number(item)])
                    .into())
            })?],
            Table::Timings | Table::Tally | Table::Daily => {
                vec![with(batch, &["slot"], |_| Ok(vec![Datum::Int(0)]))?]
            }
            // Entries that were written get their numbers at once: others may have read them already.
            Table::Journal => vec![with(batch, &["id"], |row| Ok(vec![Datum::Int(row.int("n")?)]))?],
            Table::Parked => self.park(batch)?,
            _ => vec![with(batch, &[], |_| Ok(vec![]))?],
        };
        Ok(fitted)
    }

    fn learn(&mut self, row: &Named<'_>, fitted: &mut Fitted) -> Fit<()> {
        match row.table {
            Table::Specs => {
                let spec: TaskSpec = parse(row.text("body")?, "a spec")?;
                self.handlers.insert(row.int("id")?, spec.handler);
            }
            Table::Tenants => drop(self.tenants.insert(row.int("id")?, row.text("name")?.to_owned())),
            Table::Flows => {
                let plan = read_plan(row.int("implicit")? != 0, row.text("body")?)?;
                self.scopes.insert(row.int("id")?, plan.key_scope());
            }
            Table::Lanes => {
                let keys = lane_name(row)?.2.keys().iter().map(|key| self.place(key)).collect();
                let id = row.int("id")?;
                let line = row.maybe_int("line").unwrap_or(id);
                self.lanes.insert(id, Lane { line, keys });
            }
            Table::Rules => {
                let key = row.text("key")?.parse().map_err(|_| unreadable("a limit rule"))?;
                self.book.set(key, Some(parse(row.text("rule")?, "a limit rule")?));
            }
            Table::Buckets => {
                let key: LimitKey = row.text("key")?.parse().map_err(|_| unreadable("a limit key"))?;
                let place = self.place(&key);
                self.keys[place].bucket = Bucket(row.int("tat")?);
            }
            Table::Leases => {
                let lane = self.lanes.get(&row.int("lane")?).ok_or_else(|| unreadable("a lane"))?;
                lane.keys.iter().for_each(|place| self.keys[*place].running += 1);
            }
            Table::Jobs => fitted.keys.extend(self.holder(row)?),
            Table::Runs => {
                let groups = head(row)?.groups;
                if !groups.is_empty() {
                    self.lists.insert(row.int("seq")?, groups);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Of which list a task is an item, and which.
    fn item(&self, task: i64) -> Option<(u32, u32)> {
        let index = index_of(task);
        let group = self.lists.get(&seq_of(task))?.iter().find(|group| group.has(index))?;
        Some((group.task, index - group.first))
    }

    fn place(&mut self, key: &LimitKey) -> usize {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        let place = self.keys.len();
        self.keys.push(Key { key: key.clone(), running: 0, bucket: Bucket::default(), wake_at: None });
        self.places.insert(key.clone(), place);
        place
    }

    /// The digest of a job's key.
    fn holder(&self, row: &Named<'_>) -> Fit<Option<(Uuid, i64)>> {
        let (Some(key), Some(bucket)) = (row.maybe_text("key"), row.maybe_int("bucket")) else {
            return Ok(None);
        };
        let tenant = self.tenants.get(&row.int("tenant")?).ok_or_else(|| unreadable("a tenant"))?;
        let scope = match (row.maybe_int("flow"), row.maybe_int("spec")) {
            (Some(flow), _) => self.scopes.get(&flow),
            (None, Some(spec)) => self.handlers.get(&spec),
            (None, None) => None,
        };
        let scope = scope.ok_or_else(|| unreadable("the flow or the handler of a job"))?;
        Ok(Some((key_digest(tenant, scope, key, bucket), row.int("seq")?)))
    }

    /// Puts parked tasks behind a key that has no room now. Where all of a task's keys have some it goes into line, with
    /// the place that it has: the next lease meets it there.
    fn park(&mut self, batch: Batch) -> Fit<Vec<Load>> {
        let (mut ready, mut parked) = (vec![], vec![]);
        for row in batch.rows {
            let lane = Named { table: Table::Parked, row: &row }.int("lane")?;
            match self.full_key(lane)? {
                None => ready.push(data(row)),
                Some(place) => {
                    let mut row = data(row);
                    row.push(Datum::Int(number(place)));
                    parked.push(row);
                }
            }
        }
        let columns = Table::Parked.columns().to_vec();
        let behind: Vec<_> = columns.iter().copied().chain(["limit_key"]).collect();
        Ok(vec![
            Load { table: "ready", columns, rows: ready },
            Load { table: "parked", columns: behind, rows: parked },
        ])
    }

    /// The key of a lane behind which its tasks wait: one without a slot, else the one whose rate lets the next start last,
    /// which then is to wake them.
    fn full_key(&mut self, lane: i64) -> Fit<Option<usize>> {
        let lane = self.lanes.get(&lane).ok_or_else(|| unreadable("a lane"))?;
        let mut latest: Option<(Timestamp, usize)> = None;
        for place in &lane.keys {
            let key = &self.keys[*place];
            let rule = self.book.rule(&key.key);
            if rule.concurrency.is_some_and(|most| key.running >= most) {
                return Ok(Some(*place));
            }
            if let Some(rate) = &rule.rate {
                latest = latest.max(Some((key.bucket.ready_at(rate), *place)));
            }
        }
        let Some((at, place)) = latest else { return Ok(None) };
        let wake_at = &mut self.keys[place].wake_at;
        *wake_at = Some(wake_at.map_or(at, |before| before.min(at)));
        Ok(Some(place))
    }

    /// The limit keys, and in which lines they are met.
    pub fn limit_keys(&self) -> Vec<Load> {
        let row = |(place, key): (usize, &Key)| {
            vec![
                Datum::Int(number(place)),
                Datum::Text(key.key.as_str().to_owned()),
                Datum::Int(key.running.into()),
                Datum::Int(key.bucket.0),
                key.wake_at.map_or(Datum::Null, |at| Datum::Int(at.as_millis())),
            ]
        };
        let met: FxHashSet<(i64, i64)> = self
            .lanes
            .values()
            .flat_map(|lane| lane.keys.iter().map(|place| (number(*place), lane.line)))
            .collect();
        let met = met.into_iter().map(|(key, line)| vec![Datum::Int(key), Datum::Int(line)]);
        vec![
            Load {
                table: "limit_keys",
                columns: vec!["id", "key", "running", "tat", "wake_at"],
                rows: self.keys.iter().enumerate().map(row).collect(),
            },
            Load { table: "key_lines", columns: vec!["limit_key", "line"], rows: met.collect() },
        ]
    }
}

/// The number of a limit key.
fn number(place: usize) -> i64 {
    place as i64 + 1
}

/// The rows of a batch as they are, with more columns behind.
fn with(batch: Batch, more: &[&'static str], values: impl Fn(&Named<'_>) -> Fit<Vec<Datum>>) -> Fit<Load> {
    let table = batch.table;
    let mut rows = Vec::with_capacity(batch.rows.len());
    for row in batch.rows {
        let extra = values(&Named { table, row: &row })?;
        let mut row = data(row);
        row.extend(extra);
        rows.push(row);
    }
    Ok(Load { table: table.name(), columns: [table.columns(), more].concat(), rows })
}

fn data(row: Row) -> Vec<Datum> {
    row.into_iter().map(Datum::from).collect()
}

/// A row whose values are asked for by the names of their columns.
struct Named<'a> {
    table: Table,
    row: &'a Row,
}

impl Named<'_> {
    fn cell(&self, column: &str) -> &Cell {
        &self.row[self.table.at(column)]
    }

    fn maybe_int(&self, column: &str) -> Option<i64> {
        match self.cell(column) {
            Cell::Int(n) => Some(*n),
            _ => None,
        }
    }

    fn int(&self, column: &str) -> Fit<i64> {
        self.maybe_int(column).ok_or_else(|| unreadable(column))
    }

    fn maybe_text(&self, column: &str) -> Option<&str> {
        match self.cell(column) {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    fn text(&self, column: &str) -> Fit<&str> {
        self.maybe_text(column).ok_or_else(|| unreadable(column))
    }

    fn bytes(&self, column: &str) -> Fit<&[u8]> {
        match self.cell(column) {
            Cell::Bytes(bytes) => Ok(bytes),
            _ => Err(unreadable(column)),
        }
    }
}

fn head(row: &Named<'_>) -> Fit<Run> {
    postcard::from_bytes(row.bytes("body")?).map_err(|_| unreadable("a head"))
}

fn lane_name(row: &Named<'_>) -> Fit<LaneName> {
    let limits: Limits = parse(row.text("limits")?, "a lane")?;
    Ok((row.text("queue")?.into(), row.text("handler")?.into(), limits))
}

fn parse<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Fit<T> {
    serde_json::from_str(text).map_err(|_| unreadable(what))
}

fn unreadable(what: &str) -> String {
    format!("{what} does not read back: the database that is copied was changed by another program")
}
