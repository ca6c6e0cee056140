//! Counts by line, and limits in use.

use super::jobs::unreadable;
use orchestrator_core::{LimitBook, LimitKey, LimitRule, Limits, TaskState, Timestamp};
use orchestrator_store::packed::state_of;
use orchestrator_store::{LimitView, LineStats, RuleOrigin, Stats};
use rusqlite::Connection;
use std::collections::BTreeMap;

/// Counts of every line.
pub fn stats(conn: &Connection) -> rusqlite::Result<Stats> {
    let mut lines: BTreeMap<i64, LineStats> = BTreeMap::new();
    let mut statement = conn.prepare_cached("SELECT id, queue, handler FROM lanes WHERE id = line")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (queue, handler): (String, String) = (row.get(1)?, row.get(2)?);
        lines.insert(row.get(0)?, LineStats::new(queue.into(), handler.into()));
    }
    let mut statement = conn.prepare_cached(include_str!("../../sql/view_counts.sql"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (line, what, n): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let oldest = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
        let Some(stats) = lines.get_mut(&line) else { continue };
        let n = u64::try_from(n).unwrap_or(0);
        match what.as_str() {
            "ready" => (stats.ready, stats.oldest_queued) = (n, earliest(stats.oldest_queued, oldest)),
            "parked" => (stats.parked, stats.oldest_queued) = (n, earliest(stats.oldest_queued, oldest)),
            "scheduled" => stats.scheduled = n,
            "retrying" => stats.retrying = n,
            "running" => (stats.running, stats.oldest_running) = (n, oldest),
            "paused" => stats.paused = n,
            "dead" => (stats.dead, stats.oldest_failed) = (n, oldest),
            other => return Err(unreadable(1, other)),
        }
    }
    let mut statement = conn.prepare_cached("SELECT line, state, n FROM tally")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(stats) = lines.get_mut(&row.get::<_, i64>(0)?) else { continue };
        let n = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
        match state_of(row.get(1)?) {
            Some(TaskState::Completed) => stats.completed = n,
            Some(TaskState::Skipped) => stats.skipped = n,
            Some(TaskState::Failed) => stats.failed = n,
            Some(TaskState::Cancelled) => stats.cancelled = n,
            Some(TaskState::TimedOut) => stats.timed_out = n,
            _ => return Err(unreadable(1, "an ended state")),
        }
    }
    let mut lines: Vec<_> = lines.into_values().collect();
    lines.sort_by(|a, b| (&a.queue, &a.handler).cmp(&(&b.queue, &b.handler)));
    Ok(Stats { lines })
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// Every rule, and every key that has a slot in use.
pub fn limits(conn: &Connection) -> rusqlite::Result<Vec<LimitView>> {
    let mut book = LimitBook::new();
    let mut origins: BTreeMap<LimitKey, RuleOrigin> = BTreeMap::new();
    let mut statement = conn.prepare_cached("SELECT key, rule, operator FROM rules")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, rule): (String, String) = (row.get(0)?, row.get(1)?);
        let key: LimitKey = key.parse().map_err(|_| unreadable(0, &key))?;
        let rule: LimitRule = serde_json::from_str(&rule).map_err(|_| unreadable(1, &rule))?;
        let origin = if row.get(2)? { RuleOrigin::Operator } else { RuleOrigin::Config };
        origins.insert(key.clone(), origin);
        book.set(key, Some(rule));
    }
    let mut running: BTreeMap<LimitKey, u32> = origins.keys().map(|key| (key.clone(), 0)).collect();
    let sql = "SELECT l.keys, count(*) FROM leases h JOIN lanes l ON l.id = h.lane GROUP BY h.lane";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        let keys: Limits = serde_json::from_str(&text).map_err(|_| unreadable(0, &text))?;
        for key in keys.keys() {
            *running.entry(key.clone()).or_default() += row.get::<_, u32>(1)?;
        }
    }
    Ok(running
        .into_iter()
        .map(|(key, running)| LimitView {
            rule: book.rule(&key),
            origin: origins.get(&key).copied(),
            key,
            running,
        })
        .collect())
}
