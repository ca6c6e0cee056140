//! Which jobs there are: pages of them, and ids by their beginnings.

use super::jobs::{OLDEST, Reading, meta, view};
use orchestrator_core::{JobId, JobState, Millis, Timestamp};
use orchestrator_store::packed::{job_state_of, state_of};
use orchestrator_store::{JobFilter, JobView, Page};
use rusqlite::{Connection, OptionalExtension, Row};

const NEWEST: &str = include_str!("../../sql/view_jobs_newest.sql");

/// The jobs that a page is looked for among: those between two numbers, which are not among them.
#[derive(Clone, Copy)]
struct Range {
    after: i64,
    before: i64,
}

impl Range {
    /// The jobs behind the last page, as far as they can have come when the filter says.
    fn of(at: Reading<'_>, filter: &JobFilter, page: Page) -> rusqlite::Result<Range> {
        let mut range = Range { after: 0, before: i64::MAX };
        // Behind a job of another database there is nothing.
        match page.after.map(|id| at.ids.seq(id)) {
            None => {}
            Some(seq) if filter.newest_first => range.before = seq.unwrap_or(0),
            Some(seq) => range.after = seq.unwrap_or(i64::MAX),
        }
        if let Some(from) = filter.created_from {
            range.after = range.after.max(first_after(at.conn, from - MINGLED - Millis(1))? - 1);
        }
        if let Some(before) = filter.created_before {
            range.before = range.before.min(first_after(at.conn, before + MINGLED)?);
        }
        Ok(range)
    }

    fn has(&self, seq: i64) -> bool {
        self.after < seq && seq < self.before
    }
}

/// Jobs that came within so long of each other may be numbered in the other order: a clock may have been corrected.
const MINGLED: Millis = Millis::mins(1);

/// The number from which on jobs were created after a moment, by halving: there is no index by creation, but numbers
/// follow it.
fn first_after(conn: &Connection, moment: Timestamp) -> rusqlite::Result<i64> {
    let newest = "SELECT ifnull(max(seq), 0) FROM jobs";
    let newest: i64 = conn.prepare_cached(newest)?.query_row([], |row| row.get(0))?;
    let mut next = conn.prepare_cached(include_str!("../../sql/view_next_created.sql"))?;
    let (mut low, mut high) = (0, newest + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match next.query_row([middle], |row| row.get(0)).optional()? {
            Some(created) if Timestamp::from_millis(created) <= moment => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// A page of jobs.
pub fn list(at: Reading<'_>, filter: &JobFilter, page: Page) -> rusqlite::Result<Vec<JobView>> {
    let limit = page.limit as usize;
    let range = Range::of(at, filter, page)?;
    let mut found = vec![];
    if let Some(mut seqs) = few(at.conn, filter)? {
        seqs.retain(|seq| range.has(*seq));
        if filter.newest_first {
            seqs.reverse();
        }
        let mut seqs = seqs.into_iter();
        while found.len() < limit
            && let Some(seq) = seqs.next()
        {
            found.extend(taken(at, filter, seq)?);
        }
        return Ok(found);
    }
    if !filter.context.is_empty() {
        return by_context(at, filter, range, limit);
    }
    let (sql, from) = if filter.newest_first { (NEWEST, range.before) } else { (OLDEST, range.after) };
    let mut statement = at.conn.prepare_cached(sql)?;
    let mut rows = statement.query([from])?;
    while found.len() < limit
        && let Some(row) = rows.next()?
        && range.has(row.get("seq")?)
    {
        let created = Timestamp::from_millis(row.get("created")?);
        if filter.came_in_time(created) && may_be_in(&filter.states, row)? {
            let view = view(at, row)?;
            found.extend(filter.takes(&view).then_some(view));
        }
    }
    Ok(found)
}

/// A job by its number, if the filter takes it.
fn taken(at: Reading<'_>, filter: &JobFilter, seq: i64) -> rusqlite::Result<Option<JobView>> {
    let view = at.conn.prepare_cached(OLDEST)?.query_row([seq - 1], |row| view(at, row))?;
    Ok(filter.takes(&view).then_some(view))
}

/// Looks among the jobs that have a context.
fn by_context(
    at: Reading<'_>,
    filter: &JobFilter,
    range: Range,
    limit: usize,
) -> rusqlite::Result<Vec<JobView>> {
    let sql = if filter.newest_first {
        include_str!("../../sql/view_context_newest.sql")
    } else {
        include_str!("../../sql/view_context_oldest.sql")
    };
    let mut statement = at.conn.prepare_cached(sql)?;
    let mut rows = statement.query([range.after, range.before])?;
    let mut found = vec![];
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let meta = meta(row.get_ref(1)?)?;
        if filter.context.iter().all(|(field, value)| meta.has_context(field, value)) {
            found.extend(taken(at, filter, row.get(0)?)?);
        }
    }
    Ok(found)
}

/// The numbers of all jobs that a filter may take, where an index knows them: among millions that are over, the few
/// that are not.
fn few(conn: &Connection, filter: &JobFilter) -> rusqlite::Result<Option<Vec<i64>>> {
    let live = !filter.states.is_empty() && filter.states.iter().all(|state| !state.is_terminal());
    let sql = if live {
        include_str!("../../sql/view_live_jobs.sql")
    } else if filter.recoverable {
        include_str!("../../sql/view_bad_runs.sql")
    } else {
        return Ok(None);
    };
    let mut statement = conn.prepare_cached(sql)?;
    let seqs = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Some(seqs))
}

/// Whether a job may be in one of these states, by what its row tells at a glance.
fn may_be_in(states: &[JobState], row: &Row<'_>) -> rusqlite::Result<bool> {
    if states.is_empty() {
        return Ok(true);
    }
    if let Some(code) = row.get::<_, Option<u8>>("run_state")? {
        return Ok(job_state_of(code).is_some_and(|state| states.contains(&state)));
    }
    let ended = row.get::<_, Option<u8>>("ended_state")?.and_then(state_of);
    Ok(match ended {
        Some(state) => states.contains(&JobState::of_only_task(state, true)),
        None => states.iter().any(|state| !state.is_terminal()),
    })
}

/// The ids of jobs that start with a prefix, newest first.
pub fn ids(at: Reading<'_>, prefix: &str, limit: u32) -> rusqlite::Result<Vec<JobId>> {
    let prefix = prefix.to_ascii_lowercase();
    let Some(earliest) = earliest(&prefix) else { return Ok(vec![]) };
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_ids.sql"))?;
    let mut rows = statement.query([])?;
    let mut found = vec![];
    while found.len() < limit as usize
        && let Some(row) = rows.next()?
    {
        let created = Timestamp::from_millis(row.get(1)?);
        // Jobs are numbered in the order of their creation, up to what a clock may have been set back.
        if created + SET_BACK < earliest {
            break;
        }
        let id = at.ids.job(created, row.get(0)?);
        found.extend(id.to_string().starts_with(&prefix).then_some(id));
    }
    Ok(found)
}

/// How far back a clock may have been set between two jobs without one of them being missed by its prefix.
const SET_BACK: Millis = Millis::hours(1);

/// The earliest moment of creation of an id that starts with a prefix; none if no id does.
fn earliest(prefix: &str) -> Option<Timestamp> {
    let digits: String = prefix.chars().filter(|c| *c != '-').take(12).collect();
    let shown = prefix.len() <= 36 && prefix.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let padded = format!("{digits:0<12}");
    i64::from_str_radix(&padded, 16).ok().filter(|_| shown).map(Timestamp::from_millis)
}
