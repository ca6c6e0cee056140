//! Turns what a computation staged into writes: one set-based statement per table and direction.

use crate::place::{At, Placed};
use crate::tx::{Value, Write};
use crate::work::{Base, Head, Work};
use orchestrator_core::{JobState, Json};
use orchestrator_store::packed::{index_of, job_state_code, pack, seq_of, state_code};
use std::sync::Arc;

/// Columns of one table that fill up row by row.
macro_rules! columns {
    ($name:ident { $($column:ident: $kind:ty),* $(,)? }) => {
        #[derive(Default)]
        struct $name { $($column: Vec<$kind>),* }

        impl $name {
            fn values(self) -> Vec<Value> {
                vec![$(Arc::new(self.$column) as Value),*]
            }
        }
    };
}

columns!(Ready {
    line: i32, tier: i16, stamp: i64, task: i64, lane: i32, since: i64,
    attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Parked {
    key: i32, line: i32, tier: i16, stamp: i64, task: i64, lane: i32, since: i64,
    attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Delayed {
    due: i64, task: i64, lane: i32, tier: i16,
    attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Held {
    task: i64, lane: i32, tier: i16, stamp: Option<i64>, since: Option<i64>, due: Option<i64>,
    attempt: i32, failures: i32, crashes: i32, checkpoint: Option<String>,
});
columns!(Leases {
    task: i64, attempt: i32, failures: i32, crashes: i32, spec: i32, lane: i32, tier: i16, stamp: i64,
    since: i64, started: i64, expires: i64, times_out: Option<i64>, worker: String, checkpoint: Option<String>,
});
columns!(Ended {
    task: i64, state: i16, at: i64, attempt: i32, failures: i32, crashes: i32, lane: i32, tier: i16,
    output: Option<String>, started: Option<i64>,
});
columns!(Dead { task: i64, at: i64, reason: String, line: i32 });
columns!(Jobs {
    seq: i64, created: i64, spec: Option<i32>, lane: Option<i32>, flow: Option<i32>, tier: i16, tenant: i32,
    entry: Option<i64>, key: Option<String>, bucket: Option<i64>, previous: Option<i64>, payload: String,
});
columns!(Rows {
    task: i64, lane: i32, tier: i16, entry: Option<i64>, payload: Option<String>,
    created: i64, list: Option<i32>, item: Option<i32>,
});
columns!(Runs {
    seq: i64, state: i16, started: bool, body: Vec<u8>, output: Option<String>,
    changed: i64, ended: Option<i64>, reason: Option<String>,
});
columns!(Records { task: i64, attempt: i32, at: i64, how: String, message: String });

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

fn text(json: &Option<Json>) -> Option<String> {
    json.as_ref().map(|json| json.as_str().to_owned())
}

/// Text in PostgreSQL cannot hold the character zero.
fn storable(message: &str) -> String {
    message.replace('\0', "\u{FFFD}")
}

fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
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
                push!(self.parked; key = *key, line = line, tier = tier, stamp = spot.stamp,
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

/// The writes of a transaction.
pub fn writes(work: &Work) -> Vec<Write> {
    let mut out = vec![];
    jobs(work, &mut out);
    heads(work, &mut out);
    tasks(work, &mut out);
    rest(work, &mut out);
    out
}

fn jobs(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    let mut columns = Jobs::default();
    for (seq, job) in &staged.jobs {
        columns.seq.push(*seq);
        columns.created.push(job.created.as_millis());
        columns.spec.push(job.spec);
        columns.lane.push(job.lane);
        columns.flow.push(job.flow);
        columns.tier.push(i16::from(job.tier));
        columns.tenant.push(job.tenant);
        columns.entry.push(job.entry);
        columns.key.push(job.key.as_ref().map(|key| key.to_string()));
        columns.bucket.push(job.bucket);
        columns.previous.push(job.previous);
        columns.payload.push(job.payload.as_str().to_owned());
    }
    if !columns.seq.is_empty() {
        let sql = "INSERT INTO jobs (seq, created, spec, lane, flow, tier, tenant, entry, key, bucket, previous, payload)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::int[], $6::smallint[], $7::int[],
                $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::text[])";
        out.push(Write::new(sql, columns.values()));
    }
    if !staged.upgraded.is_empty() {
        let (seqs, flows): (Vec<i64>, Vec<i32>) = staged.upgraded.iter().unzip();
        let sql = "UPDATE jobs j SET flow = w.flow, entry = NULL
            FROM unnest($1::bigint[], $2::int[]) w(seq, flow) WHERE j.seq = ANY (ARRAY[w.seq])";
        let tasks: Vec<i64> = seqs.iter().map(|seq| pack(*seq, 0)).collect();
        out.push(Write::new(sql, vec![Arc::new(seqs), Arc::new(flows)]));
        let tell = "UPDATE leases SET headed = true WHERE task = ANY($1)";
        out.push(Write::new(tell, vec![Arc::new(tasks)]));
    }
    let (mut new, mut moved) = ((vec![], vec![]), (vec![], vec![]));
    let mut holders: Vec<_> = staged.holders.iter().collect();
    holders.sort_unstable();
    for (digest, seq) in holders {
        let list = if matches!(work.base.holders.get(digest), Some(Some(_))) { &mut moved } else { &mut new };
        list.0.push(*digest);
        list.1.push(*seq);
    }
    if !new.0.is_empty() {
        let sql = "INSERT INTO keys (digest, job) SELECT * FROM unnest($1::uuid[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(new.0), Arc::new(new.1)]));
    }
    if !moved.0.is_empty() {
        let sql = "UPDATE keys k SET job = w.job FROM unnest($1::uuid[], $2::bigint[]) w(digest, job)
            WHERE k.digest = ANY (ARRAY[w.digest])";
        out.push(Write::new(sql, vec![Arc::new(moved.0), Arc::new(moved.1)]));
    }
    if !staged.former.is_empty() {
        let (digests, seqs): (Vec<_>, Vec<_>) = staged.former.iter().copied().unzip();
        let sql = "INSERT INTO former_keys (digest, job) SELECT * FROM unnest($1::uuid[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(digests), Arc::new(seqs)]));
    }
}

fn base_head(base: &Base, seq: i64) -> Option<&Head> {
    base.heads.get(&seq).and_then(Option::as_ref)
}

fn heads(work: &Work, out: &mut Vec<Write>) {
    let (mut new, mut changed) = (Runs::default(), Runs::default());
    let (mut dies, mut lives) = ((vec![], vec![]), (vec![], vec![]));
    let (mut bad, mut good) = (vec![], vec![]);
    let mut all: Vec<&Head> = work.staged.heads.values().collect();
    all.sort_unstable_by_key(|head| head.seq);
    for head in all {
        let before = base_head(&work.base, head.seq);
        let columns = if before.is_some() { &mut changed } else { &mut new };
        columns.seq.push(head.seq);
        columns.state.push(i16::from(job_state_code(head.run.state)));
        columns.started.push(head.run.started.is_some());
        // A run holds numbers and words only, which always have a form.
        columns.body.push(postcard::to_stdvec(&head.run).unwrap_or_default());
        columns.output.push(text(&head.output));
        columns.changed.push(work.now.as_millis());
        columns.ended.push(head.run.ended.map(|at| at.as_millis()));
        columns.reason.push(head.run.reason.as_deref().map(storable));
        let (was, is) = (before.and_then(Head::alive), head.alive());
        if was != is {
            if let Some(deadline) = was {
                dies.0.push(deadline);
                dies.1.push(head.seq);
            }
            if let Some(deadline) = is {
                lives.0.push(deadline);
                lives.1.push(head.seq);
            }
        }
        let ended_badly = |head: &Head| matches!(head.run.state, JobState::Failed | JobState::TimedOut);
        match (before.is_some_and(ended_badly), ended_badly(head)) {
            (false, true) => bad.push(head.seq),
            (true, false) => good.push(head.seq),
            _ => {}
        }
    }
    if !new.seq.is_empty() {
        let sql = "INSERT INTO runs (seq, state, started, body, output, changed, ended, reason)
            SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bool[], $4::bytea[], $5::text[], $6::bigint[],
                $7::bigint[], $8::text[])";
        out.push(Write::new(sql, new.values()));
    }
    if !changed.seq.is_empty() {
        let sql = "UPDATE runs r SET state = w.state, started = w.started, body = w.body, output = w.output,
                changed = w.changed, ended = w.ended, reason = w.reason
            FROM unnest($1::bigint[], $2::smallint[], $3::bool[], $4::bytea[], $5::text[], $6::bigint[], $7::bigint[],
                $8::text[]) w(seq, state, started, body, output, changed, ended, reason)
            WHERE r.seq = ANY (ARRAY[w.seq])";
        out.push(Write::new(sql, changed.values()));
    }
    if !dies.0.is_empty() {
        let sql = "DELETE FROM alive a USING unnest($1::bigint[], $2::bigint[]) w(deadline, seq)
            WHERE a.deadline = ANY (ARRAY[w.deadline]) AND a.seq = ANY (ARRAY[w.seq])";
        out.push(Write::new(sql, vec![Arc::new(dies.0), Arc::new(dies.1)]));
    }
    if !lives.0.is_empty() {
        let sql = "INSERT INTO alive (deadline, seq) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(lives.0), Arc::new(lives.1)]));
    }
    if !bad.is_empty() {
        out.push(Write::new("INSERT INTO bad (seq) SELECT * FROM unnest($1::bigint[])", vec![Arc::new(bad)]));
    }
    if !good.is_empty() {
        out.push(Write::new("DELETE FROM bad WHERE seq = ANY($1)", vec![Arc::new(good)]));
    }
}

fn tasks(work: &Work, out: &mut Vec<Write>) {
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
        if let At::Ready(spot) = &now.at
            && was.and_then(stamp) != Some(spot.stamp)
            && !work.staged.jobs.contains_key(&seq_of(*task))
        {
            let seq = seq_of(*task);
            let of_flow = work.staged.heads.contains_key(&seq) || base_head(&work.base, seq).is_some();
            if !of_flow {
                moves.job_entry.0.push(seq);
                moves.job_entry.1.push(spot.stamp);
            } else if !matches!(work.staged.rows.get(task), Some(Some(_))) {
                moves.task_entry.0.push(*task);
                moves.task_entry.1.push(spot.stamp);
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
    let mut insert = |sql, some: bool, values: Vec<Value>| {
        if some {
            out.push(Write::new(sql, values));
        }
    };
    insert(
        "INSERT INTO ready (line, tier, stamp, task, lane, since, attempt, failures, crashes, checkpoint)
            SELECT * FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[],
                $7::int[], $8::int[], $9::int[], $10::text[])",
        !ready.task.is_empty(),
        ready.values(),
    );
    insert(
        "INSERT INTO parked (limit_key, line, tier, stamp, task, lane, since, attempt, failures, crashes, checkpoint)
            SELECT * FROM unnest($1::int[], $2::int[], $3::smallint[], $4::bigint[], $5::bigint[], $6::int[],
                $7::bigint[], $8::int[], $9::int[], $10::int[], $11::text[])",
        !parked.task.is_empty(),
        parked.values(),
    );
    insert(
        "INSERT INTO delayed (due, task, lane, tier, attempt, failures, crashes, checkpoint)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::smallint[], $5::int[], $6::int[],
                $7::int[], $8::text[])",
        !delayed.task.is_empty(),
        delayed.values(),
    );
    insert(
        "INSERT INTO held (task, lane, tier, stamp, since, due, attempt, failures, crashes, checkpoint)
            SELECT * FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[],
                $7::int[], $8::int[], $9::int[], $10::text[])",
        !held.task.is_empty(),
        held.values(),
    );
    insert(
        "INSERT INTO leases (task, attempt, failures, crashes, spec, lane, tier, stamp, since, started, expires,
                times_out, worker, checkpoint)
            SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::smallint[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[])",
        !leases.task.is_empty(),
        leases.values(),
    );
    insert(
        "INSERT INTO ended (task, state, at, attempt, failures, crashes, lane, tier, output, started)
            SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::int[], $5::int[], $6::int[], $7::int[],
                $8::smallint[], $9::text[], $10::bigint[])",
        !ended.task.is_empty(),
        ended.values(),
    );
    insert(
        "INSERT INTO dead (task, at, reason, line)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[])",
        !dead.task.is_empty(),
        dead.values(),
    );
    insert(
        "UPDATE tasks t SET entry = w.entry FROM unnest($1::bigint[], $2::bigint[]) w(task, entry) WHERE t.task = ANY (ARRAY[w.task])",
        !task_entry.0.is_empty(),
        vec![Arc::new(task_entry.0), Arc::new(task_entry.1)],
    );
    insert(
        "UPDATE jobs j SET entry = w.entry FROM unnest($1::bigint[], $2::bigint[]) w(seq, entry) WHERE j.seq = ANY (ARRAY[w.seq])",
        !job_entry.0.is_empty(),
        vec![Arc::new(job_entry.0), Arc::new(job_entry.1)],
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
    if !new.task.is_empty() {
        let sql = "INSERT INTO tasks (task, lane, tier, entry, payload, created, list, item)
            SELECT * FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::text[], $6::bigint[],
                $7::int[], $8::int[])";
        out.push(Write::new(sql, new.values()));
    }
}

fn rest(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    for (first, last) in &staged.forgotten {
        let sql = "DELETE FROM attempts WHERE task >= $1 AND task < $2";
        out.push(Write::new(sql, vec![Arc::new(*first), Arc::new(*last)]));
    }
    if !staged.records.is_empty() {
        let mut columns = Records::default();
        for record in &staged.records {
            columns.task.push(record.task);
            columns.attempt.push(int(record.attempt));
            columns.at.push(work.now.as_millis());
            columns.how.push(record.how.clone());
            columns.message.push(storable(&record.message));
        }
        let sql = "INSERT INTO attempts (task, attempt, at, how, message)
            SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::text[], $5::text[])";
        out.push(Write::new(sql, columns.values()));
    }
    if !staged.told.is_empty() {
        let told: Vec<i64> = staged.told.iter().copied().filter(|seq| awaited(work, *seq)).collect();
        if !told.is_empty() {
            out.push(Write::new("DELETE FROM waits WHERE job = ANY($1)", vec![Arc::new(told)]));
        }
    }
    if !staged.wait_no_more.is_empty() {
        let waiters: Vec<i64> = staged.wait_no_more.iter().copied().collect();
        out.push(Write::new("DELETE FROM waits WHERE waiter = ANY($1)", vec![Arc::new(waiters)]));
    }
    if !staged.waits.is_empty() {
        let (jobs, waiters): (Vec<i64>, Vec<i64>) = staged.waits.iter().copied().unzip();
        let sql = "INSERT INTO waits (job, waiter) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
        out.push(Write::new(sql, vec![Arc::new(jobs), Arc::new(waiters)]));
    }
    counts(work, out);
    slots(work, out);
    if !staged.events.is_empty() {
        let events = postcard::to_stdvec(&staged.events).unwrap_or_default();
        let sql = "INSERT INTO journal (at, events) VALUES ($1, $2)";
        out.push(Write::new(sql, vec![Arc::new(work.now.as_millis()), Arc::new(events)]));
    }
}

fn awaited(work: &Work, seq: i64) -> bool {
    work.base.waiters.get(&seq).is_some_and(|waiters| !waiters.is_empty())
}

/// Adds to the counts of ended tasks.
pub const TALLY: &str = "INSERT INTO tally AS t (line, state, slot, n)
    SELECT line, state, pg_backend_pid() % 64, n FROM unnest($1::int[], $2::smallint[], $3::bigint[]) w(line, state, n)
    ON CONFLICT (line, state, slot) DO UPDATE SET n = t.n + excluded.n";

/// Counts go to the slot of the connection, so that transactions do not wait for each other.
fn counts(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    if !staged.tallies.is_empty() {
        let lines: Vec<i32> = staged.tallies.keys().map(|key| key.0).collect();
        let states: Vec<i16> = staged.tallies.keys().map(|key| i16::from(key.1)).collect();
        let by: Vec<i64> = staged.tallies.values().copied().collect();
        out.push(Write::new(TALLY, vec![Arc::new(lines), Arc::new(states), Arc::new(by)]));
    }
    if !staged.timings.is_empty() {
        let flows: Vec<i32> = staged.timings.keys().map(|key| key.0).collect();
        let tasks: Vec<i32> = staged.timings.keys().map(|key| int(key.1)).collect();
        let n: Vec<i64> = staged.timings.values().map(|value| value.0).collect();
        let total: Vec<i64> = staged.timings.values().map(|value| value.1).collect();
        let sql = "INSERT INTO timings AS t (flow, task, slot, n, total)
            SELECT flow, task, pg_backend_pid() % 64, n, total
            FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) w(flow, task, n, total)
            ON CONFLICT (flow, task, slot) DO UPDATE SET n = t.n + excluded.n, total = t.total + excluded.total";
        out.push(Write::new(sql, vec![Arc::new(flows), Arc::new(tasks), Arc::new(n), Arc::new(total)]));
    }
}

/// Lets those into line that may start now: for each place that came free under a key, the first of each line and tier
/// that is parked behind it.
pub const WAKE: &str = "WITH moved AS (
        DELETE FROM parked p USING (
            SELECT x.limit_key, x.line, x.tier, x.stamp, x.task
            FROM unnest($1::int[], $2::bigint[]) w(key, n)
            JOIN key_lines k ON k.limit_key = ANY (ARRAY[w.key])
            CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) t(tier)
            CROSS JOIN LATERAL (
                SELECT q.limit_key, q.line, q.tier, q.stamp, q.task FROM parked q
                WHERE q.limit_key = w.key AND q.line = k.line AND q.tier = t.tier
                ORDER BY q.stamp, q.task LIMIT w.n FOR UPDATE SKIP LOCKED
            ) x
        ) d
        WHERE p.limit_key = ANY (ARRAY[d.limit_key]) AND p.line = ANY (ARRAY[d.line]) AND p.tier = ANY (ARRAY[d.tier])
            AND p.stamp = ANY (ARRAY[d.stamp]) AND p.task = ANY (ARRAY[d.task])
        RETURNING p.line, p.tier, p.stamp, p.task, p.lane, p.since, p.attempt, p.failures, p.crashes, p.checkpoint
    )
    INSERT INTO ready (line, tier, stamp, task, lane, since, attempt, failures, crashes, checkpoint) SELECT * FROM moved";

fn slots(work: &Work, out: &mut Vec<Write>) {
    let staged = &work.staged;
    if !staged.freed.is_empty() {
        let keys: Vec<i32> = staged.freed.keys().copied().collect();
        let by: Vec<i32> = staged.freed.values().copied().collect();
        // One by one in order of their numbers, as everybody does.
        let lock = "SELECT id FROM limit_keys WHERE id = ANY($1) ORDER BY id FOR UPDATE";
        out.push(Write::new(lock, vec![Arc::new(keys.clone())]));
        let sql = "UPDATE limit_keys k SET running = k.running - w.n FROM unnest($1::int[], $2::int[]) w(id, n) WHERE k.id = ANY (ARRAY[w.id])";
        out.push(Write::new(sql, vec![Arc::new(keys), Arc::new(by)]));
    }
    let mut wake = staged.unused.clone();
    for (key, n) in &staged.freed {
        *wake.entry(*key).or_default() += u32::try_from(*n).unwrap_or(0);
    }
    if !wake.is_empty() {
        let keys: Vec<i32> = wake.keys().copied().collect();
        let n: Vec<i64> = wake.values().map(|n| i64::from(*n)).collect();
        out.push(Write::new(WAKE, vec![Arc::new(keys), Arc::new(n)]));
    }
}
