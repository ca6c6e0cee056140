//! Where tasks were and where they are now, as rows that go and come.

use super::columns::{Column, column, columns, first, insert};
use super::{base_head, int, text};
use crate::place::{At, Placed};
use crate::tx::{Value, Write};
use crate::work::Work;
use orchestrator_store::packed::{index_of, seq_of, state_code};
use std::sync::{Arc, LazyLock};

columns!(Ready of "ready" {
    stamp: i64, task: i64, lane: i32, since: i64;
    line: i32, tier: i16, attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Parked of "parked" {
    limit_key: i32, stamp: i64, task: i64, lane: i32, since: i64;
    line: i32, tier: i16, attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Delayed of "delayed" {
    due: i64, task: i64, lane: i32, tier: i16,
    attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Held of "held" {
    task: i64, lane: i32, tier: i16, stamp: Option<i64>, since: Option<i64>, due: Option<i64>,
    attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Leases of "leases" {
    task: i64, spec: i32, lane: i32, stamp: i64, since: i64;
    tier: i16, attempt: i32, failures: i32, crashes: i32, started: i64, expires: i64, times_out: Option<i64>,
    worker: String, checkpoint: Option<String>,
});
columns!(Ended of "ended" {
    task: i64, lane: i32, output: Option<String>, started: Option<i64>;
    state: i16, at: i64, attempt: i32, failures: i32, crashes: i32, tier: i16,
});
columns!(Dead of "dead" { task: i64, at: i64, reason: String, line: i32 });
columns!(Rows of "tasks" {
    task: i64, lane: i32, entry: Option<i64>, payload: Option<String>;
    tier: i16, created: i64, list: Option<i32>, item: Option<i32>,
});

/// What leaves the tables.
#[derive(Default)]
struct Gone {
    /// Rows of `ready` whose place in the table is known.
    at: Vec<String>,
    line: Vec<i32>,
    tier: Vec<i16>,
    stamp: Vec<i64>,
    task: Vec<i64>,
    parked: Vec<i64>,
    due: Vec<i64>,
    delayed: Vec<i64>,
    held: Vec<i64>,
    leases: Vec<i64>,
    ended: Vec<i64>,
    dead: Vec<i64>,
}

/// All that comes and goes of tasks.
#[derive(Default)]
struct Moves {
    gone: Gone,
    ready: Ready,
    parked: Parked,
    delayed: Delayed,
    held: Held,
    leases: Leases,
    ended: Ended,
    dead: Dead,
    /// New stamps of tasks of flows, and of jobs of queues.
    task_entry: (Vec<i64>, Vec<i64>),
    job_entry: (Vec<i64>, Vec<i64>),
}

/// The stamp with which a task stands in line, or stood when it was leased or held.
fn stamp(placed: &Placed) -> Option<i64> {
    match &placed.at {
        At::Ready(spot) | At::Parked(_, spot) | At::Held(Some(spot), _) => Some(spot.stamp),
        At::Leased(lease) => Some(lease.spot.stamp),
        _ => None,
    }
}

impl Moves {
    fn leave(&mut self, task: i64, was: &Placed, line: i32, row: Option<&String>, taken: bool) {
        let gone = &mut self.gone;
        match &was.at {
            At::Ready(_) if row.is_some() => gone.at.extend(row.cloned()),
            At::Ready(spot) => {
                gone.line.push(line);
                gone.tier.push(i16::from(was.tier));
                gone.stamp.push(spot.stamp);
                gone.task.push(task);
            }
            At::Parked(..) => gone.parked.push(task),
            At::Delayed(due) => {
                gone.due.push(due.as_millis());
                gone.delayed.push(task);
            }
            At::Held(..) => gone.held.push(task),
            At::Leased(_) if taken => {}
            At::Leased(_) => gone.leases.push(task),
            At::Ended(end) => {
                gone.ended.push(task);
                if end.dead.is_some() {
                    gone.dead.push(task);
                }
            }
        }
    }

    /// `started` is the beginning of the attempt that a task had until now, for one that ends with it.
    fn come(&mut self, task: i64, now: &Placed, line: i32, started: Option<i64>) {
        let (lane, tier) = (now.lane, i16::from(now.tier));
        let (attempt, failures, crashes) =
            (int(now.counters.attempt), int(now.counters.failures), int(now.counters.crashes));
        let checkpoint = text(&now.checkpoint);
        macro_rules! push {
            ($table:expr; $($column:ident = $value:expr),* $(,)?) => {{ $($table.$column.push($value);)* }};
        }
        match &now.at {
            At::Ready(spot) => {
                push!(self.ready; line = line, tier = tier, stamp = spot.stamp, task = task, lane = lane,
                since = spot.since.as_millis(), attempt = attempt, failures = failures, crashes = crashes,
                checkpoint = checkpoint)
            }
            At::Parked(key, spot) => {
                push!(self.parked; limit_key = *key, line = line, tier = tier, stamp = spot.stamp,
                task = task, lane = lane, since = spot.since.as_millis(), attempt = attempt, failures = failures,
                crashes = crashes, checkpoint = checkpoint)
            }
            At::Delayed(due) => {
                push!(self.delayed; due = due.as_millis(), task = task, lane = lane, tier = tier,
                attempt = attempt, failures = failures, crashes = crashes, checkpoint = checkpoint)
            }
            At::Held(spot, due) => push!(self.held; task = task, lane = lane, tier = tier,
                stamp = spot.map(|spot| spot.stamp), since = spot.map(|spot| spot.since.as_millis()),
                due = due.map(|due| due.as_millis()), attempt = attempt, failures = failures, crashes = crashes,
                checkpoint = checkpoint),
            At::Leased(lease) => push!(self.leases; task = task, attempt = attempt, failures = failures,
                crashes = crashes, spec = lease.spec, lane = lane, tier = tier, stamp = lease.spot.stamp,
                since = lease.spot.since.as_millis(), started = lease.started.as_millis(),
                expires = lease.expires.as_millis(), times_out = lease.times_out.map(|at| at.as_millis()),
                worker = lease.worker.to_string(), checkpoint = checkpoint),
            At::Ended(end) => {
                push!(self.ended; task = task, state = i16::from(state_code(end.state)), at = end.at.as_millis(),
                    attempt = attempt, failures = failures, crashes = crashes, lane = lane, tier = tier,
                    output = text(&end.output), started = started);
                if let Some(reason) = end.dead {
                    push!(self.dead; task = task, at = end.at.as_millis(), reason = reason.as_str().to_owned(),
                        line = line);
                }
            }
        }
    }
}

pub(super) fn tasks(work: &Work, out: &mut Vec<Write>) {
    let mut moves = Moves::default();
    let mut all: Vec<_> = work.staged.tasks.iter().collect();
    all.sort_unstable_by_key(|(task, _)| **task);
    let line = |lane: i32| work.known.lanes.get(&lane).map_or(lane, |lane| lane.line);
    for (task, now) in all {
        let was = work.base.tasks.get(task).and_then(Option::as_ref);
        let taken = work.base.taken.contains(task);
        if was == now.as_ref() && !taken {
            continue;
        }
        if let Some(was) = was {
            moves.leave(*task, was, line(was.lane), work.base.ready_rows.get(task), taken);
        }
        let Some(now) = now else { continue };
        let started = was.and_then(Placed::lease).map(|lease| lease.started.as_millis());
        moves.come(*task, now, line(now.lane), started);
        // Where a task stands in line is looked up by its entry, so that follows every new stamp, also of one that is held.
        if let Some(stamped) = stamp(now)
            && was.and_then(stamp) != Some(stamped)
            && !work.staged.jobs.contains_key(&seq_of(*task))
        {
            let seq = seq_of(*task);
            let of_flow = work.staged.heads.contains_key(&seq) || base_head(&work.base, seq).is_some();
            if !of_flow {
                moves.job_entry.0.push(seq);
                moves.job_entry.1.push(stamped);
            } else if !matches!(work.staged.rows.get(task), Some(Some(_))) {
                moves.task_entry.0.push(*task);
                moves.task_entry.1.push(stamped);
            }
        }
    }
    // A lease that was taken away for nothing is put back.
    for task in work.base.taken.iter().filter(|task| !work.staged.tasks.contains_key(task)) {
        if let Some(Some(was)) = work.base.tasks.get(task) {
            moves.come(*task, was, line(was.lane), None);
        }
    }
    let Moves { gone, ready, parked, delayed, held, leases, ended, dead, task_entry, job_entry } = moves;
    leave(gone, out);
    task_rows(work, out);
    ready.insert(out);
    parked.insert(out);
    delayed.insert(out);
    held.insert(out);
    leases.insert(out);
    ended.insert(out);
    dead.insert(out);
    let mut update = |sql, (ids, entries): (Vec<i64>, Vec<i64>)| {
        if !ids.is_empty() {
            out.push(Write::new(sql, vec![Arc::new(ids), Arc::new(entries)]));
        }
    };
    update(
        "UPDATE tasks t SET entry = w.entry FROM unnest($1::bigint[], $2::bigint[]) w(task, entry) WHERE t.task = ANY (ARRAY[w.task])",
        task_entry,
    );
    update(
        "UPDATE jobs j SET entry = w.entry FROM unnest($1::bigint[], $2::bigint[]) w(seq, entry) WHERE j.seq = ANY (ARRAY[w.seq])",
        job_entry,
    );
}

/// Rows that come out of their tables were locked when they were read, so that they are there still. Only the end of a
/// task is read without a lock: there the count tells whether somebody else was faster.
fn leave(gone: Gone, out: &mut Vec<Write>) {
    let Gone { at, line, tier, stamp, task, parked, due, delayed, held, leases, ended, dead } = gone;
    if !at.is_empty() {
        out.push(Write::new("DELETE FROM ready WHERE ctid = ANY($1::text[]::tid[])", vec![Arc::new(at)]));
    }
    if !task.is_empty() {
        let sql = "DELETE FROM ready r USING unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[]) w(line, tier, stamp, task)
            WHERE r.line = ANY (ARRAY[w.line]) AND r.tier = ANY (ARRAY[w.tier]) AND r.stamp = ANY (ARRAY[w.stamp]) AND r.task = ANY (ARRAY[w.task])";
        let values: Vec<Value> = vec![Arc::new(line), Arc::new(tier), Arc::new(stamp), Arc::new(task)];
        out.push(Write::new(sql, values));
    }
    if !delayed.is_empty() {
        let sql = "DELETE FROM delayed d USING unnest($1::bigint[], $2::bigint[]) w(due, task)
            WHERE d.due = ANY (ARRAY[w.due]) AND d.task = ANY (ARRAY[w.task])";
        out.push(Write::new(sql, vec![Arc::new(due), Arc::new(delayed)]));
    }
    let mut delete = |sql, tasks: Vec<i64>| {
        if !tasks.is_empty() {
            out.push(Write::new(sql, vec![Arc::new(tasks)]));
        }
    };
    delete("DELETE FROM parked WHERE task = ANY($1)", parked);
    delete("DELETE FROM held WHERE task = ANY($1)", held);
    delete("DELETE FROM leases WHERE task = ANY($1)", leases);
    let mut delete_if_there = |sql, tasks: Vec<i64>| {
        if !tasks.is_empty() {
            let count = tasks.len();
            out.push(Write::new(sql, vec![Arc::new(tasks)]).touching(count));
        }
    };
    delete_if_there("DELETE FROM ended WHERE task = ANY($1)", ended);
    delete_if_there("DELETE FROM dead WHERE task = ANY($1)", dead);
}

fn task_rows(work: &Work, out: &mut Vec<Write>) {
    let mut gone = vec![];
    let mut new = Rows::default();
    let mut all: Vec<_> = work.staged.rows.iter().collect();
    all.sort_unstable_by_key(|(task, _)| **task);
    for (task, now) in all {
        let was = work.base.rows.get(task).and_then(Option::as_ref);
        // A row that nobody looked at may be there all the same, unless its job is new.
        let unseen = !work.base.rows.contains_key(task) && !work.staged.jobs.contains_key(&seq_of(*task));
        if was.is_some() || unseen {
            gone.push(*task);
        }
        if let Some(now) = now {
            let placed = work.staged.tasks.get(task).or_else(|| work.base.tasks.get(task));
            let placed = placed.and_then(Option::as_ref);
            new.task.push(*task);
            new.lane.push(now.lane);
            new.tier.push(i16::from(now.tier));
            new.entry.push(placed.and_then(stamp));
            new.payload.push(text(&now.payload));
            new.created.push(work.now.as_millis());
            let seq = seq_of(*task);
            let head = work.staged.heads.get(&seq).or_else(|| base_head(&work.base, seq));
            let place = head.and_then(|head| head.run.place(index_of(*task)));
            new.list.push(place.and_then(|place| place.item.map(|_| int(place.task))));
            new.item.push(place.and_then(|place| place.item.map(int)));
        }
    }
    if !gone.is_empty() {
        out.push(Write::new("DELETE FROM tasks WHERE task = ANY($1)", vec![Arc::new(gone)]));
    }
    new.insert(out);
}
