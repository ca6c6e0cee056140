//! What `bench queue` measures, one scenario after the other.

use super::load::failed;
use super::place::Place;
use super::queue;
use super::raw;
use super::report::Report;
use super::turns::{Side, in_turn, nothing_stays};
use super::{Keys, QueueArgs};
use crate::error::CliResult;
use crate::output::Output;
use orchestrator_core::{LimitKey, LimitRule, Limits, Millis, NewJob, Outcome, WorkerId};
use orchestrator_store::{LeaseAsk, LimitChange, RuleOrigin, Settlement};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many jobs are sent alone to measure the latency at idle.
const ALONE: u32 = 1000;
/// The key behind which jobs are parked.
const FULL_KEY: &str = "host:full.example";

/// Runs what was asked for.
pub async fn run(args: &QueueArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    if !args.only_extra {
        basics(args, place, out, report).await?;
    }
    if let Some(jobs) = args.queued {
        queued(args, jobs, place, out, report).await?;
    }
    if let Some(jobs) = args.parked {
        parked(args, jobs, place, out, report).await?;
    }
    if let Some(hosts) = args.hosts {
        limited(args, hosts, place, out, report).await?;
    }
    if let Some(jobs) = args.history {
        history(args, jobs, place, out, report).await?;
    }
    if args.retention {
        retention(args, place, out, report).await?;
    }
    if let Some(seconds) = args.soak {
        soak(args, Duration::from_secs(seconds), place, out, report).await?;
    }
    if let Some(seconds) = args.held_open {
        held_open(args, Duration::from_secs(seconds), place, out, report).await?;
    }
    Ok(())
}

/// Single jobs, the cycle, and many callers. The single ones come first: what a load leaves to the database to clean up
/// is not theirs.
async fn basics(args: &QueueArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    idle(args, place, out, report).await?;
    let bench = queue::open(place, "cycle", args.load.send.payload, args.keys).await?;
    out.note(format!("queue: {} jobs through {} workers ...", args.load.jobs, args.workers));
    if args.no_raw {
        Side::Store(&bench, args.workers).cycle(args.load.jobs, &args.load.send).await?.tell("queue", report);
    } else {
        let bare = place.bare("raw-cycle").await?;
        let sides = [("raw", Side::Bare(&bare)), ("queue", Side::Store(&bench, args.workers))];
        let [raw, own] = compared(args, sides, report).await?;
        report.ratio("queue whole / raw whole", own, raw);
    }
    report.memory("memory after the cycle");
    drop(bench);
    let raw_calls =
        if args.no_raw { None } else { Some(raw::inserts(&args.load, place, out, report).await?) };
    let calls = calls(args, place, out, report).await?;
    if let Some(raw) = raw_calls {
        report.ratio("callers / raw callers", calls, raw);
    }
    Ok(())
}

/// Runs the load on two sides in turn. Answers with jobs per second of both.
async fn compared(
    args: &QueueArgs,
    [(name, one), (other_name, other)]: [(&str, Side<'_>); 2],
    report: &mut Report,
) -> CliResult<[f64; 2]> {
    let jobs = args.load.jobs;
    let [one, other] = in_turn([(one, jobs), (other, jobs)], &args.load.send).await?;
    Ok([one.tell(name, report), other.tell(other_name, report)])
}

/// Cycles over and over in one store, beside the bare database.
async fn soak(
    args: &QueueArgs,
    time: Duration,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    let raw = if args.no_raw { None } else { Some(raw::soak(&args.load, time, place, out, report).await?) };
    let rate = cycles(args, time, place, "soak", out, report).await?;
    if let Some(raw) = raw {
        report.ratio("soak / raw soak", rate, raw);
    }
    Ok(())
}

/// Cycles over and over while somebody keeps a transaction open, beside as many without.
async fn held_open(
    args: &QueueArgs,
    time: Duration,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    let base = cycles(args, time, place, "nothing held", out, report).await?;
    let Some(held) = place.hold_open().await? else {
        out.note("a file has no transactions that are held open by others: nothing to measure");
        return Ok(());
    };
    let rate = cycles(args, time, place, "transaction held open", out, report).await?;
    drop(held);
    report.ratio("held open / nothing held", rate, base);
    Ok(())
}

/// Submits everything and runs everything, again and again for so long. Answers with jobs per second.
async fn cycles(
    args: &QueueArgs,
    time: Duration,
    place: &Place,
    name: &str,
    out: &Output,
    report: &mut Report,
) -> CliResult<f64> {
    out.note(format!("{name}: the cycle over and over for {} s ...", time.as_secs()));
    let bench = queue::open(place, &name.replace(' ', "-"), args.load.send.payload, args.keys).await?;
    let start = Instant::now();
    let mut jobs = 0;
    while start.elapsed() < time {
        bench.cycle(args.load.jobs, args.load.send.batch, args.workers).await?;
        jobs += args.load.jobs;
    }
    Ok(report.rate(format!("{name}, {} s", time.as_secs()), jobs, start.elapsed()))
}

/// The same load without and with two limit keys per job: one of many hosts, and one of ten resolvers.
async fn limited(
    args: &QueueArgs,
    hosts: u64,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    out.note(format!("queue: without and with two limit keys per job over {hosts} hosts ..."));
    let keyless = queue::open(place, "keyless", args.load.send.payload, args.keys).await?;
    let bench = queue::open_limited(place, "limited", args.load.send.payload, hosts).await?;
    for (key, cap) in [("host:*", 4), ("resolver:*", 1000)] {
        let key: LimitKey = key.parse().map_err(failed)?;
        let rule = LimitChange { key, rule: Some(LimitRule::at_most(cap)), origin: RuleOrigin::Operator };
        bench.engine.store().set_limits(vec![rule]).await.map_err(failed)?;
    }
    let name = format!("two keys over {hosts} hosts");
    let sides =
        [("without keys", Side::Store(&keyless, args.workers)), (&*name, Side::Store(&bench, args.workers))];
    let [without, with] = compared(args, sides, report).await?;
    report.ratio("two keys / without keys", with, without);
    Ok(())
}

/// One job per call from many callers.
async fn calls(args: &QueueArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<f64> {
    let callers = args.load.callers;
    out.note(format!("queue: one job per call from {callers} callers ..."));
    let bench = Arc::new(queue::open(place, "calls", args.load.send.payload, args.keys).await?);
    let each = args.load.jobs / callers;
    let took = bench.submit_by_callers(callers, each).await?;
    Ok(report.rate(format!("queue {callers} callers"), each * callers, took))
}

/// One job alone: submit, wait for its end, again.
async fn idle(args: &QueueArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    out.note(format!("queue: {ALONE} jobs, one at a time ..."));
    let bench = queue::open(place, "idle", args.load.send.payload, Keys::None).await?;
    report.latency("one job, submit to end,", bench.one_by_one(ALONE, args.workers).await?);
    Ok(())
}

/// Leases while very many jobs are queued.
async fn queued(
    args: &QueueArgs,
    jobs: u64,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    out.note(format!("queue: leases beside {jobs} queued jobs ..."));
    let bench = queue::open(place, "queued", args.load.send.payload, args.keys).await?;
    bench.submit(jobs, args.load.send.batch, |job| job).await?;
    let store = bench.engine.store();
    let ask = LeaseAsk {
        worker: WorkerId::new("bench"),
        queues: vec!["default".into()],
        handlers: vec!["noop".into()],
        slots: args.workers as u32,
        ttl: Millis::secs(600),
        hold: Millis(0),
    };
    let mut samples = vec![];
    for _ in 0..1000 {
        let start = Instant::now();
        let grant = store.lease(ask.clone()).await.map_err(failed)?;
        samples.push(start.elapsed());
        let ended = grant.tasks.iter().map(|task| Settlement {
            held: task.held(),
            outcome: Outcome::Completed(orchestrator_core::Json::null()),
            jitter: 0.0,
        });
        store.settle(ended.collect()).await.map_err(failed)?;
    }
    report.latency(&format!("lease of {} beside {jobs} queued,", args.workers), samples);
    report.memory(&format!("memory with {jobs} queued"));
    Ok(())
}

/// The same load without and with very many jobs behind one full key.
async fn parked(
    args: &QueueArgs,
    jobs: u64,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    out.note(format!("queue: without and beside {jobs} jobs behind a full key ..."));
    let free = queue::open(place, "free", args.load.send.payload, args.keys).await?;
    let bench = queue::open(place, "parked", args.load.send.payload, args.keys).await?;
    let key: LimitKey = FULL_KEY.parse().map_err(failed)?;
    let stop = LimitChange { key, rule: Some(LimitRule::at_most(0)), origin: RuleOrigin::Operator };
    bench.engine.store().set_limits(vec![stop]).await.map_err(failed)?;
    bench.submit(jobs, args.load.send.batch, behind_full_key).await?;
    let name = format!("beside {jobs} parked");
    let sides =
        [("beside nothing", Side::Store(&free, args.workers)), (&*name, Side::Store(&bench, args.workers))];
    let [free, beside] = compared(args, sides, report).await?;
    report.ratio("beside parked / beside nothing", beside, free);
    Ok(())
}

fn behind_full_key(job: NewJob) -> NewJob {
    match FULL_KEY.parse().map(|key| Limits::new([key])) {
        Ok(Ok(limits)) => job.limits(limits),
        _ => job,
    }
}

/// The same load in an empty file and in one where very many jobs have ended.
async fn history(
    args: &QueueArgs,
    jobs: u64,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    let bench = queue::open(place, "history", args.load.send.payload, args.keys).await?;
    out.note(format!("queue: {jobs} jobs to their end, to make a history ..."));
    let mut ended = 0;
    while ended < jobs {
        let part = args.load.jobs.min(jobs - ended);
        bench.cycle(part, args.load.send.batch, args.workers).await?;
        ended += part;
    }
    out.note(format!("queue: after {jobs} ended jobs, and without ..."));
    let empty = queue::open(place, "empty", args.load.send.payload, args.keys).await?;
    let name = format!("after {jobs} ended");
    let sides = [
        ("in an empty store", Side::Store(&empty, args.workers)),
        (&*name, Side::Store(&bench, args.workers)),
    ];
    let [empty, after] = compared(args, sides, report).await?;
    report.ratio("after history / in an empty store", after, empty);
    Ok(())
}

/// The same load in a store where everything stays, and in one where jobs are removed as soon as they have ended, as fast
/// as retention goes.
async fn retention(args: &QueueArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    out.note("queue: without and with retention at work ...");
    let (send, jobs) = (&args.load.send, args.load.jobs);
    let keeps = queue::open(place, "keeps", send.payload, args.keys).await?;
    let forgets = queue::open(place, "forgets", send.payload, args.keys).await?;
    // So that there is something to remove from the start.
    forgets.cycle(jobs, send.batch, args.workers).await?;
    let sides = [
        ("without retention", Side::Store(&keeps, args.workers)),
        ("with retention", Side::Forgetting(&forgets, args.workers)),
    ];
    let [without, with] = compared(args, sides, report).await?;
    report.ratio("with retention / without", with, without);
    let left = forgets.engine.prunable(&nothing_stays()).await?.jobs;
    report.count("jobs removed meanwhile", 2 * jobs - left);
    Ok(())
}
