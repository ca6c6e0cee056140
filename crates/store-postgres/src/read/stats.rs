//! Counts by line, and limits in use.

use super::row::Columns;
use super::{Read, Reader, sql, unreadable};
use orchestrator_core::{LimitBook, LimitKey, LimitRule, TaskState, Timestamp};
use orchestrator_store::packed::state_of;
use orchestrator_store::{LimitView, LineStats, RuleOrigin, Stats};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tokio_postgres::Row;

impl Reader<'_> {
    /// Counts of every line.
    pub async fn stats(&self) -> Read<Stats> {
        let [names, counts, tally] =
            self.query_all([(sql::LINES, &[]), (sql::COUNTS, &[]), (sql::TALLY, &[])]).await?;
        let mut lines: FxHashMap<i32, LineStats> = FxHashMap::default();
        for row in names {
            lines.insert(row.try_get("id")?, LineStats::new(row.text("queue")?, row.text("handler")?));
        }
        for row in counts {
            if let Some(line) = lines.get_mut(&row.try_get("line")?) {
                count(line, &row)?;
            }
        }
        for row in tally {
            if let Some(line) = lines.get_mut(&row.try_get("line")?) {
                *ended(line, row.small("state")?)? = number(&row)?;
            }
        }
        let mut lines: Vec<_> = lines.into_values().collect();
        lines.sort_by(|a, b| (&a.queue, &a.handler).cmp(&(&b.queue, &b.handler)));
        Ok(Stats { lines })
    }

    /// Every rule, and every key that has a slot in use.
    pub async fn limits(&self) -> Read<Vec<LimitView>> {
        let [rules, used] = self.query_all([(sql::RULES, &[]), (sql::KEYS_IN_USE, &[])]).await?;
        let mut book = LimitBook::new();
        let mut origins: BTreeMap<LimitKey, RuleOrigin> = BTreeMap::new();
        for row in rules {
            let rule: &str = row.try_get("rule")?;
            let rule: LimitRule =
                serde_json::from_str(rule).map_err(|_| unreadable(format!("the rule {rule:?}")))?;
            let operator: bool = row.try_get("operator")?;
            let origin = if operator { RuleOrigin::Operator } else { RuleOrigin::Config };
            let key = key(&row)?;
            origins.insert(key.clone(), origin);
            book.set(key, Some(rule));
        }
        let mut running: BTreeMap<LimitKey, u32> = origins.keys().map(|key| (key.clone(), 0)).collect();
        for row in used {
            running.insert(key(&row)?, row.count("running")?);
        }
        let view = |(key, running): (LimitKey, u32)| LimitView {
            rule: book.rule(&key),
            origin: origins.get(&key).copied(),
            key,
            running,
        };
        Ok(running.into_iter().map(view).collect())
    }
}

/// Enters a count of live work.
fn count(line: &mut LineStats, row: &Row) -> Read<()> {
    let n = number(row)?;
    let oldest = row.maybe_moment("oldest")?;
    match row.try_get::<_, &str>("what")? {
        "ready" => (line.ready, line.oldest_queued) = (n, earliest(line.oldest_queued, oldest)),
        "parked" => (line.parked, line.oldest_queued) = (n, earliest(line.oldest_queued, oldest)),
        "scheduled" => line.scheduled = n,
        "retrying" => line.retrying = n,
        "running" => (line.running, line.oldest_running) = (n, oldest),
        "paused" => line.paused = n,
        "dead" => (line.dead, line.oldest_failed) = (n, oldest),
        other => return Err(unreadable(format!("the count {other:?}"))),
    }
    Ok(())
}

/// The number of those that ended in a state.
fn ended(line: &mut LineStats, state: u8) -> Read<&mut u64> {
    match state_of(state) {
        Some(TaskState::Completed) => Ok(&mut line.completed),
        Some(TaskState::Skipped) => Ok(&mut line.skipped),
        Some(TaskState::Failed) => Ok(&mut line.failed),
        Some(TaskState::Cancelled) => Ok(&mut line.cancelled),
        Some(TaskState::TimedOut) => Ok(&mut line.timed_out),
        _ => Err(unreadable("the state of ended tasks")),
    }
}

fn number(row: &Row) -> Read<u64> {
    Ok(u64::try_from(row.try_get::<_, i64>("n")?).unwrap_or(0))
}

fn key(row: &Row) -> Read<LimitKey> {
    let text: &str = row.try_get("key")?;
    text.parse().map_err(|_| unreadable(format!("the limit key {text:?}")))
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}
