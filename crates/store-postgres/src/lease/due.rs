//! Who is let in by the passing of time: tasks whose moment has come, and keys whose rate allows more.

use super::line::{Cursor, FIRSTS, Line, READY_PAGE, firsts, page_size, starts};
use super::{Leasing, MAX_PARKED};
use crate::flush;
use crate::load::{self, moment};
use crate::marks::Start;
use crate::place::At;
use crate::tx::{Abort, Query};
use crate::work::{Step, Work};
use orchestrator_core::{Millis, TaskState, Timestamp};
use orchestrator_store::packed::seq_of;

/// The most tasks that fall due in one lease.
const DUE_PAGE: i64 = 1000;

/// Who waits for a moment, the soonest first.
const DUE: &str =
    "SELECT d.due, d.task, coalesce(l.line, l.id) FROM delayed d JOIN lanes l ON l.id = ANY (ARRAY[d.lane])
    ORDER BY d.due, d.task LIMIT $1";

/// Keys whose rate lets the next start, and the first whose rate will.
const RATES: &str = "SELECT id, wake_at FROM limit_keys WHERE wake_at <= $1
    UNION ALL (SELECT id, wake_at FROM limit_keys WHERE wake_at > $1 ORDER BY wake_at LIMIT 1)";

impl Leasing<'_> {
    /// Lets in whose time has come, and finds the first tasks of each line. Mostly nobody's time has come and the tasks
    /// are where they were the last time: then one way to the server and back does for all.
    pub(super) async fn open(
        &mut self,
        lines: &[Line],
        start: &mut Start,
        slots: usize,
    ) -> Result<(Vec<(Timestamp, i32)>, Vec<Cursor>), Abort> {
        let now = self.work.now.as_millis();
        let starts = starts(lines, start);
        let asked = |line: i32| lines.iter().find(|(asked, _)| *asked == line).map(|(_, queue)| &**queue);
        let only = self.served.only().and_then(|(line, tier)| Some((line, tier, asked(line)?)));
        let (line, tier, queue) = only.unwrap_or_default();
        let (stamp, size) = (start.of(line, tier), page_size(slots));
        let asks: [Query<'_>; 4] = [
            (DUE, &[&DUE_PAGE]),
            (RATES, &[&now]),
            (FIRSTS, &[&starts.0, &starts.1, &starts.2, &starts.3]),
            (READY_PAGE, &[&line, &i16::from(tier), &stamp, &i64::MIN, &size, &queue]),
        ];
        let rows = self.tx.query_all(&asks[..if only.is_some() { 4 } else { 3 }]).await?;
        let due = &rows[0];
        let due_rates = rows[1].iter().filter(|row| moment(row, 1) <= self.work.now);
        let rates: Vec<i32> = due_rates.map(|row| row.get(0)).collect();
        self.rates_wait = !rows[1].is_empty();
        let none_due = due.first().is_none_or(|row| moment(row, 0) > self.work.now);
        if none_due && rates.is_empty() {
            let waiting = due.iter().map(|row| (moment(row, 0), row.get(2))).take(64).collect();
            self.marks.looked(start, self.clock.now());
            let mut cursors = firsts(lines, start, &rows[2]);
            let with_tasks = || cursors.iter().filter(|cursor| cursor.more);
            let first = with_tasks().next().map(|cursor| (cursor.line, cursor.tier));
            self.served.seen(with_tasks().count(), first);
            if let Some(rows) = rows.get(3)
                && let Some(cursor) =
                    cursors.iter_mut().find(|cursor| (cursor.line, cursor.tier) == (line, tier))
            {
                self.keep_page(cursor, rows, size).await?;
            }
            return Ok((waiting, cursors));
        }
        self.wrote = true;
        let waiting = self.fall_due().await?;
        self.rates_allow(rates).await?;
        Ok((waiting, self.cursors(lines, start).await?))
    }

    /// Puts those in line whose moment has come. Answers with what waits for a later one: the moments and lines of the
    /// soonest.
    async fn fall_due(&mut self) -> Result<Vec<(Timestamp, i32)>, Abort> {
        loop {
            let rows = self.tx.query(DUE, &[&DUE_PAGE]).await?;
            let due: Vec<i64> =
                rows.iter().filter(|row| moment(row, 0) <= self.work.now).map(|row| row.get(1)).collect();
            if due.is_empty() {
                return Ok(rows.iter().map(|row| (moment(row, 0), row.get(2))).take(64).collect());
            }
            loop {
                self.work
                    .needs
                    .tasks
                    .extend(due.iter().filter(|task| !self.work.base.tasks.contains_key(task)));
                let done = self.work.compute(&due, |work, task| work.come_due(*task))?;
                if done.is_some() {
                    load::promised_places(self.naming, self.work).await?;
                    break;
                }
                load::load(self.tx, self.names, self.naming, self.work).await?;
            }
            let events = std::mem::take(&mut self.work.staged.events);
            let writes = flush::writes(self.work);
            self.tx.write(&writes).await?;
            self.work.base = Default::default();
            self.work.staged = Default::default();
            self.work.staged.events = events;
            if (due.len() as i64) < DUE_PAGE {
                return Ok(rows
                    .iter()
                    .map(|row| (moment(row, 0), row.get(2)))
                    .filter(|(due, _)| *due > self.work.now)
                    .take(64)
                    .collect());
            }
        }
    }

    /// Lets those into line whose rate allows it by now.
    async fn rates_allow(&mut self, ids: Vec<i32>) -> Result<(), Abort> {
        if ids.is_empty() {
            return Ok(());
        }
        self.keys.lock(self.tx, ids.clone()).await?;
        let n: Vec<i64> =
            ids.iter().map(|id| i64::from(self.keys.let_in(*id, self.work.now, 1000))).collect();
        self.tx.query(flush::WAKE, &[&ids, &n]).await?;
        self.marks.forget();
        Ok(())
    }

    /// When the passing of time alone may make another task ready for these lines.
    pub(super) async fn next_at(
        &mut self,
        lines: &[Line],
        waiting: Vec<(Timestamp, i32)>,
    ) -> Result<Option<Timestamp>, Abort> {
        if self.parked >= MAX_PARKED {
            return Ok(Some(self.work.now + Millis(1)));
        }
        let last = waiting.get(63).map(|(due, _)| *due);
        let due = waiting
            .iter()
            .find(|(_, line)| lines.iter().any(|(asked, _)| asked == line))
            .map(|(due, _)| *due)
            .or(last);
        // Of the keys whose rate lets the next start at a moment, only those count behind which somebody still waits.
        // Not EXISTS: that may be planned as a look at all that is parked.
        let sql = "SELECT k.id, k.wake_at FROM limit_keys k WHERE k.wake_at IS NOT NULL
            AND (SELECT true FROM parked p WHERE p.limit_key = k.id AND NOT p.task = ANY($1) LIMIT 1)";
        let moved: Vec<i64> = self.work.staged.tasks.keys().copied().collect();
        // Mostly no rate holds anybody back, which was seen on the way in.
        let rows = if self.rates_wait { self.tx.query(sql, &[&moved]).await? } else { vec![] };
        let parked = self.work.staged.tasks.values().flatten().filter_map(|placed| match placed.at {
            At::Parked(key, _) => Some((key, None)),
            _ => None,
        });
        let behind = rows.iter().map(|row| (row.get(0), Some(moment(row, 1)))).chain(parked);
        let rates = behind.filter_map(|(key, written)| self.keys.wakes_at(key).or(written));
        Ok(due.into_iter().chain(rates).filter(|at| *at > self.work.now).min())
    }
}

impl Work {
    /// Puts a task in line whose moment has come.
    fn come_due(&mut self, task: i64) -> Step<()> {
        let Some(placed) = self.placed(task)? else { return Ok(()) };
        if !matches!(placed.at, At::Delayed(due) if due <= self.now) {
            return Ok(());
        }
        let seq = seq_of(task);
        let (tenant, goes_on) = match self.base.heads.get(&seq) {
            Some(Some(head)) => (head.tenant, head.run.continues()),
            _ => match self.job(seq)? {
                Some(job) => (job.tenant, false),
                None => return Ok(()),
            },
        };
        let line = self.lane(placed.lane)?.line;
        let spot = self.enter(line, placed.tier, tenant, goes_on);
        if placed.counters.failures > 0 {
            self.note(task, TaskState::Queued, placed.counters.attempt);
        }
        self.stand(task, placed.lane, placed.tier, spot, placed.counters, placed.checkpoint);
        Ok(())
    }
}
