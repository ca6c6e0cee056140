//! Which jobs there are: pages of them, and ids by their beginnings.

use super::row::Columns;
use super::{Read, Reader, sql, unreadable};
use orchestrator_core::{JobId, JobState, Json, TaskState, Timestamp};
use orchestrator_store::packed::{job_state_code, state_code};
use orchestrator_store::{JobFilter, JobView, Page};
use std::sync::Arc;
use tokio_postgres::types::ToSql;

/// At most so many jobs are looked at by one statement.
const SCAN: usize = 10_000;
/// At most so many jobs are read whole at a time.
const WHOLE: usize = 500;
/// At least so many, where a filter may turn most of them down.
const FEW: usize = 16;

/// The jobs that a page is looked for among: those between two numbers, which are not among them.
#[derive(Clone, Copy)]
struct Range {
    after: i64,
    before: i64,
}

impl Reader<'_> {
    /// A page of jobs.
    pub async fn list(&self, filter: &JobFilter, page: Page) -> Read<Vec<JobView>> {
        let limit = page.limit as usize;
        let mut range = self.range(filter, page).await?;
        let mut found = vec![];
        if let Some(seqs) = self.few(filter, range).await? {
            self.take(filter, &seqs, limit, &mut found).await?;
            return Ok(found);
        }
        let mut scan = limit.min(SCAN);
        while found.len() < limit {
            let (seqs, last) = self.scan(filter, range, scan).await?;
            let Some(last) = last else { break };
            self.take(filter, &seqs, limit, &mut found).await?;
            if filter.newest_first {
                range.before = last;
            } else {
                range.after = last;
            }
            scan = (scan * 2).min(SCAN);
        }
        Ok(found)
    }

    /// The jobs behind the last page, as far as they can have come when the filter says.
    async fn range(&self, filter: &JobFilter, page: Page) -> Read<Range> {
        let mut range = Range { after: 0, before: i64::MAX };
        // Behind a job of another database there is nothing.
        match page.after.map(|id| self.ids.seq(id)) {
            None => {}
            Some(seq) if filter.newest_first => range.before = seq.unwrap_or(0),
            Some(seq) => range.after = seq.unwrap_or(i64::MAX),
        }
        if let Some(from) = filter.created_from {
            let first = self.first_after(from.as_millis().saturating_sub(MINGLED + 1)).await?;
            range.after = range.after.max(first - 1);
        }
        if let Some(before) = filter.created_before {
            let first = self.first_after(before.as_millis().saturating_add(MINGLED)).await?;
            range.before = range.before.min(first);
        }
        Ok(range)
    }

    /// Reads jobs whole and adds those that the filter takes, up to the limit.
    async fn take(
        &self,
        filter: &JobFilter,
        seqs: &[i64],
        limit: usize,
        found: &mut Vec<JobView>,
    ) -> Read<()> {
        let mut rest = seqs;
        while found.len() < limit && !rest.is_empty() {
            let (part, after) = rest.split_at((limit - found.len()).clamp(FEW, WHOLE).min(rest.len()));
            let mut jobs = self.jobs(part).await?;
            if filter.newest_first {
                jobs.reverse();
            }
            let views = self.views(&jobs).await?;
            let room = limit - found.len();
            found.extend(views.into_iter().filter(|view| filter.takes(view)).take(room));
            rest = after;
        }
        Ok(())
    }

    /// The numbers of all jobs after one that a filter may take, where an index knows them: among millions that are
    /// over, the few that are not.
    async fn few(&self, filter: &JobFilter, range: Range) -> Read<Option<Vec<i64>>> {
        use TaskState::{Queued, Retrying, Running};
        let all_live = !filter.states.is_empty() && filter.states.iter().all(|state| !state.is_terminal());
        let rows = if !filter.context.is_empty() {
            self.query(sql::CONTEXT, &[&held(&filter.context), &range.after, &range.before]).await?
        } else if all_live || matches!(filter.task, Some(Queued | Retrying | Running)) {
            let any = filter.states.is_empty();
            let waits = filter.task != Some(Running);
            let new = waits && (any || filter.states.contains(&JobState::Pending));
            let started = any || filter.states.contains(&JobState::Running);
            let runs = started && filter.task.is_none_or(|task| task == Running);
            self.query(sql::LIVE, &[&head_states(filter), &new, &(started && waits), &runs]).await?
        } else if filter.recoverable {
            self.query(sql::BAD, &[]).await?
        } else {
            return Ok(None);
        };
        let mut seqs = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        seqs.retain(|seq| range.after < *seq && *seq < range.before);
        seqs.sort_unstable();
        if filter.newest_first {
            seqs.reverse();
        }
        Ok(Some(seqs))
    }

    /// Looks at the next jobs. Answers with those that the filter may take, and the last one that was looked at.
    async fn scan(&self, filter: &JobFilter, range: Range, count: usize) -> Read<(Vec<i64>, Option<i64>)> {
        let Range { after, before } = range;
        let (sql, from, to) = if filter.newest_first {
            (sql::SCAN_NEWEST, before, after)
        } else {
            (sql::SCAN_OLDEST, after, before)
        };
        let moment = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        let (created_from, created_before) = (moment(filter.created_from), moment(filter.created_before));
        let (queue, handler) = (filter.line.queue.as_deref(), filter.line.handler.as_deref());
        let flow = filter.flow.as_deref();
        let heads = head_states(filter);
        let ends = TaskState::ALL.iter().filter(|state| state.is_terminal());
        let ends = ends.filter(|state| filter.states.contains(&JobState::of_only_task(**state, true)));
        let ends: Vec<i16> = ends.map(|state| i16::from(state_code(*state))).collect();
        let live = filter.states.iter().any(|state| !state.is_terminal());
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let values: [&(dyn ToSql + Sync); 11] = [
            &from,
            &count,
            &queue,
            &handler,
            &flow,
            &heads,
            &ends,
            &live,
            &to,
            &created_from,
            &created_before,
        ];
        let rows = self.query(sql, &values).await?;
        let row = rows.first().ok_or_else(|| unreadable("a count of jobs"))?;
        Ok((row.try_get("taken")?, row.try_get("last")?))
    }

    /// The ids of jobs that start with a prefix, newest first.
    pub async fn ids(&self, prefix: &str, limit: u32) -> Read<Vec<JobId>> {
        let prefix = prefix.to_ascii_lowercase();
        let Some((earliest, latest)) = span(&prefix) else { return Ok(vec![]) };
        let first = self.first_after(earliest.as_millis().saturating_sub(SET_BACK + 1)).await?;
        let end = self.first_after(latest.as_millis().saturating_add(SET_BACK)).await?;
        // What follows the moment in a prefix picks among the few jobs of one millisecond.
        let most = if earliest < latest { i64::from(limit) } else { i64::MAX };
        let (earliest, latest) = (earliest.as_millis(), latest.as_millis());
        let rows = self.query(sql::CREATED_BETWEEN, &[&first, &end, &earliest, &latest, &most]).await?;
        let mut found = vec![];
        for row in rows {
            let id = self.ids.job(row.moment("created")?, row.try_get("seq")?);
            found.extend(id.to_string().starts_with(&prefix).then_some(id));
        }
        found.truncate(limit as usize);
        Ok(found)
    }

    /// The number from which on jobs were created after a moment, by halving: there is no index by creation, but
    /// numbers follow it, up to what a clock may have been set back.
    async fn first_after(&self, moment: i64) -> Read<i64> {
        let last = self.query(sql::LAST_JOB, &[]).await?;
        let last = last.first().map_or(Ok(0), |row| row.try_get::<_, i64>("seq"))?;
        let (mut low, mut high) = (0, last + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let next = self.query(sql::NEXT_JOB, &[&middle]).await?;
            match next.first() {
                Some(row) if row.try_get::<_, i64>("created")? <= moment => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

/// What the index of contexts is asked for: an object of the fields. It compares numbers digit by digit, where views
/// compare them as they are read, so those that are not whole are left to the view.
fn held(facts: &[(Arc<str>, Json)]) -> String {
    let value = |(field, value): &(Arc<str>, Json)| (field.to_string(), value.value());
    let fields = facts.iter().map(value).filter(|(_, value)| is_exact(value));
    serde_json::Value::Object(fields.collect()).to_string()
}

fn is_exact(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => !number.is_f64(),
        serde_json::Value::Array(values) => values.iter().all(is_exact),
        serde_json::Value::Object(fields) => fields.values().all(is_exact),
        _ => true,
    }
}

/// The states of heads that a filter takes; none where it takes all.
fn head_states(filter: &JobFilter) -> Option<Vec<i16>> {
    let states = || filter.states.iter().map(|state| i16::from(job_state_code(*state)));
    (!filter.states.is_empty()).then(|| states().collect())
}

/// Jobs that came within so many milliseconds of each other may be numbered in the other order: their transactions went
/// on side by side, or a clock was corrected.
const MINGLED: i64 = 60 * 1000;

/// How many milliseconds a clock may have been set back between two jobs without one of them being missed by its prefix.
const SET_BACK: i64 = 60 * 60 * 1000;

/// The moments of creation of the earliest and the latest id that start with a prefix; none if no id does.
fn span(prefix: &str) -> Option<(Timestamp, Timestamp)> {
    let shown = prefix.len() <= 36 && prefix.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if !shown {
        return None;
    }
    let digits: String = prefix.chars().filter(|c| *c != '-').take(12).collect();
    let moment = |padded: String| i64::from_str_radix(&padded, 16).ok().map(Timestamp::from_millis);
    moment(format!("{digits:0<12}")).zip(moment(format!("{digits:f<12}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_spans_the_ids_that_start_with_it() {
        let at = |millis| Timestamp::from_millis(millis);
        assert_eq!(span(""), Some((at(0), at(0xFFFF_FFFF_FFFF))));
        assert_eq!(span("0198-"), Some((at(0x0198_0000_0000), at(0x0198_FFFF_FFFF))));
        assert_eq!(span("01980000-0001-7"), Some((at(0x0198_0000_0001), at(0x0198_0000_0001))));
        assert_eq!(span("job"), None);
        assert_eq!(span(&"0".repeat(37)), None);
    }
}
