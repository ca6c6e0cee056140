//! One job of very many tasks and one that joins them, beside as many jobs of one task.

use super::super::FlowsArgs;
use super::super::load::Bench;
use super::super::place::Place;
use super::super::report::Report;
use super::check;
use super::echo::{self, Sum};
use super::shape::{compiled, fill, input};
use crate::error::CliResult;
use crate::output::Output;
use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{Json, NewJob, TaskSpec};
use orchestrator_store::JobView;
use serde_json::json;
use std::sync::Arc;

/// Small loads are over in a moment, so they are repeated until so many tasks have run ...
const ENOUGH: u64 = 50_000;
/// ... but no more often than this; the middle one counts.
const MOST_ROUNDS: u64 = 5;

/// Measures fan-outs of each size: the first beside independent jobs, in turn with them, the others
/// beside the first.
pub async fn run(args: &FlowsArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    let Some((&first, others)) = args.items.split_first() else { return Ok(()) };
    let rounds = rounds(first);
    out.note(format!("fan-out: {first} items beside {first} independent jobs, {rounds} times ..."));
    let (mut alone, mut fanned) = (vec![], vec![]);
    for round in 0..rounds {
        alone.push(independent(args, first, place, &format!("independent-{round}")).await?);
        fanned.push(fan_out(args, first, place, &format!("fan-out-{first}-{round}")).await?);
    }
    let (alone, base) = (middle(alone), middle(fanned));
    report.per_task(format!("{first} independent jobs"), alone);
    report.per_task(format!("fan-out of {first}"), base);
    report.ratio(format!("fan-out of {first} / independent"), base, alone);
    for &items in others {
        out.note(format!("fan-out: {items} items ..."));
        let mut fanned = vec![];
        for round in 0..self::rounds(items) {
            fanned.push(fan_out(args, items, place, &format!("fan-out-{items}-{round}")).await?);
        }
        let micros = middle(fanned);
        report.per_task(format!("fan-out of {items}"), micros);
        report.ratio(format!("fan-out of {items} / of {first}"), micros, base);
    }
    report.memory("memory after the fan-outs");
    Ok(())
}

fn rounds(items: u64) -> u64 {
    (ENOUGH / items).clamp(1, MOST_ROUNDS)
}

fn middle(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Jobs of one task that does what an item does. Answers with the microseconds of each.
pub(super) async fn independent(args: &FlowsArgs, jobs: u64, place: &Place, name: &str) -> CliResult<f64> {
    let spec = Arc::new(TaskSpec::new("number"));
    let size = args.send.payload;
    let make = move |n| NewJob::with_spec(spec.clone()).payload(input(n, size));
    let bench = Bench::open(place, name, echo::handlers(), Box::new(make)).await?;
    let micros = measured(&bench, args, jobs, jobs).await?;
    check::all_completed(&bench, jobs, |job| job.output.is_some()).await?;
    Ok(micros)
}

/// One job that lists items, runs a task for each and joins them. Answers with the microseconds of each
/// of its tasks.
pub(super) async fn fan_out(args: &FlowsArgs, items: u64, place: &Place, name: &str) -> CliResult<f64> {
    let flow = Flow::new("fan-out")
        .task(Task::new("list", "list"))
        .task(
            Task::new("each", "number")
                .needs(["list"])
                .for_each("{{ tasks.list.output }}")
                .with(json!({ "n": "{{ item }}", "data": fill(args.send.payload) })),
        )
        .task(Task::new("join", "sum").needs(["each"]).with(json!({ "seen": "{{ tasks.each.output }}" })));
    let plan = compiled(flow)?;
    let wanted = Json::from(json!({ "count": items }));
    let make = move |_| NewJob::of_flow(plan.clone()).payload(wanted.clone());
    let bench = Bench::open(place, name, echo::handlers(), Box::new(make)).await?;
    let micros = measured(&bench, args, 1, items + 2).await?;
    check::all_completed(&bench, 1, |job| saw_all(job, items)).await?;
    Ok(micros)
}

/// Submits and runs a load; the microseconds per task over both.
async fn measured(bench: &Bench, args: &FlowsArgs, jobs: u64, tasks: u64) -> CliResult<f64> {
    let submit = bench.submit(jobs, args.send.batch, |job| job).await?;
    let process = bench.process(jobs, args.workers).await?;
    Ok((submit + process).as_secs_f64() * 1e6 / tasks as f64)
}

/// Whether every item ran, and the join got what each of them gave.
fn saw_all(job: &JobView, items: u64) -> bool {
    let ran = job.tasks.iter().filter_map(|task| task.items);
    let ran: u64 = ran.map(|group| u64::from(group.ended - group.failed)).sum();
    let sum = job.output.as_ref().and_then(|output| output.read::<Sum>().ok());
    ran == items && sum == Some(Sum { count: items, sum: items * (items - 1) / 2 })
}
