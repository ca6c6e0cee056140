//! What `bench flows` measures: jobs of many tasks, one scenario after the other, each on a fresh file.

mod check;
mod echo;
mod fan_out;
mod shape;

use super::place::Place;
use super::report::Report;
use super::turns::{Side, in_turn};
use super::{FlowsArgs, Scenario};
use crate::error::CliResult;
use crate::output::Output;
use orchestrator_core::Json;
use serde::Deserialize;
use shape::{Load, Shape};

/// How many jobs are sent alone to measure the latency at idle.
const ALONE: u32 = 2000;

/// Runs what was asked for.
pub async fn run(args: &FlowsArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    let wanted = |scenario| args.only.is_empty() || args.only.contains(&scenario);
    for (scenario, shape) in [(Scenario::Chain, Shape::Chain), (Scenario::Diamond, Shape::Diamond)] {
        if wanted(scenario) {
            cycle(args, load(args, shape), place, out, report).await?;
        }
    }
    if wanted(Scenario::FanOut) {
        fan_out::run(args, place, out, report).await?;
    }
    if wanted(Scenario::Idle) {
        idle(args, ALONE, place, out, report).await?;
    }
    Ok(())
}

fn load(args: &FlowsArgs, shape: Shape) -> Load {
    Load { shape, plain: args.plain, payload: args.send.payload }
}

/// Submits every job and runs all of them, in turn with the bare database, which gets as many rows as there are tasks.
async fn cycle(
    args: &FlowsArgs,
    load: Load,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    let (name, jobs) = (load.shape.name(), args.jobs);
    let tasks = jobs * load.shape.tasks();
    out.note(format!("{name}: {jobs} jobs, {tasks} tasks, through {} workers ...", args.workers));
    let bench = load.open(place, name).await?;
    let side = Side::Store(&bench, args.workers);
    let (took, raw) = if args.no_raw {
        (side.cycle(jobs, &args.send).await?, None)
    } else {
        let bare = place.bare(&format!("raw-{name}")).await?;
        let [raw, took] = in_turn([(Side::Bare(&bare), tasks), (side, jobs)], &args.send).await?;
        (took, Some(raw.tell(&format!("raw beside {name}s"), report)))
    };
    report.rate(format!("{name} submit"), jobs, took.submit);
    report.task_rate(format!("{name} process"), tasks, took.process);
    report.rate(format!("{name} whole, jobs"), jobs, took.whole());
    let rate = report.task_rate(format!("{name} whole, tasks"), tasks, took.whole());
    if let Some(raw) = raw {
        report.ratio(format!("{name} tasks / raw whole"), rate, raw);
    }
    report.memory(&format!("memory after the {name}s"));
    check::all_completed(&bench, jobs, |job| load.is_right(job)).await
}

/// One chain alone: submit, wait for its end, again.
async fn idle(
    args: &FlowsArgs,
    times: u32,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<()> {
    out.note(format!("chain: {times} jobs, one at a time ..."));
    let load = load(args, Shape::Chain);
    let bench = load.open(place, "idle").await?;
    report.latency("one chain, submit to end,", bench.one_by_one(times, args.workers).await?);
    check::all_completed(&bench, times.into(), |job| load.is_right(job)).await
}

/// The number in an input or an output of the benchmark.
fn number(json: &Json) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        n: u64,
    }
    json.read::<Numbered>().ok().map(|numbered| numbered.n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::SendArgs;
    use crate::output::{Color, Format};

    fn args(plain: bool) -> FlowsArgs {
        FlowsArgs {
            jobs: 120,
            send: SendArgs { payload: 200, batch: 50, dir: std::env::temp_dir() },
            workers: 8,
            items: vec![150, 300],
            plain,
            only: vec![],
            no_raw: true,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_scenario_does_its_work() {
        for plain in [false, true] {
            let args = args(plain);
            let place = Place::dir(&args.send.dir).unwrap();
            let out = Output::new(Format::Json, Color::Never, true);
            let mut report = Report::new("test");
            for shape in [Shape::Chain, Shape::Diamond] {
                cycle(&args, load(&args, shape), &place, &out, &mut report).await.unwrap();
            }
            fan_out::run(&args, &place, &out, &mut report).await.unwrap();
            idle(&args, 3, &place, &out, &mut report).await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_that_was_not_done_is_found() {
        let args = args(false);
        let place = Place::dir(&args.send.dir).unwrap();
        let load = load(&args, Shape::Chain);
        let bench = load.open(&place, "chain").await.unwrap();
        bench.submit(10, 5, |job| job).await.unwrap();
        assert!(check::all_completed(&bench, 10, |_| true).await.is_err(), "none has run");
        bench.process(10, 4).await.unwrap();
        check::all_completed(&bench, 10, |job| load.is_right(job)).await.unwrap();
        assert!(check::all_completed(&bench, 11, |_| true).await.is_err(), "one is missing");
        assert!(check::all_completed(&bench, 10, |_| false).await.is_err(), "the outputs are wrong");
    }
}
