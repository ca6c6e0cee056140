//! `orchestrator queue stats`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::output::{Paint, age, columns, count};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{Millis, Timestamp, human};
use orchestrator_store::{LineStats, Stats};
use serde::Serialize;
use std::io::IsTerminal;

/// Arguments of `queue stats`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator queue stats
  orchestrator queue stats --watch --by-line")]
pub struct StatsArgs {
    /// Show it again and again, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// The time between two looks
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = human::parse_span, requires = "watch")]
    interval: Millis,
    /// Count each queue and handler by itself
    #[arg(long)]
    by_line: bool,
}

/// Counts in the words of the queue: what others call ready, running, completed and failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    queued: u64,
    /// Those of the queued that wait for room under a limit.
    parked: u64,
    scheduled: u64,
    retrying: u64,
    in_progress: u64,
    done: u64,
    skipped: u64,
    error: u64,
    cancelled: u64,
    timed_out: u64,
    paused: u64,
    /// Ages in seconds.
    oldest_queued: Option<f64>,
    oldest_in_progress: Option<f64>,
    oldest_error: Option<f64>,
}

#[derive(Serialize)]
struct LineCounts<'a> {
    queue: &'a str,
    handler: &'a str,
    #[serde(flatten)]
    counts: Counts,
}

impl Counts {
    /// Adds lines up.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a LineStats>, now: Timestamp) -> Counts {
        let mut sum = Counts::default();
        let older = |sum: &mut Option<f64>, since: Option<Timestamp>| {
            let age = since.map(|since| now.since(since).0 as f64 / 1000.0);
            *sum = [*sum, age].into_iter().flatten().reduce(f64::max);
        };
        for line in lines {
            sum.queued += line.ready + line.parked;
            sum.parked += line.parked;
            sum.scheduled += line.scheduled;
            sum.retrying += line.retrying;
            sum.in_progress += line.running;
            sum.done += line.completed;
            sum.skipped += line.skipped;
            sum.error += line.failed;
            sum.cancelled += line.cancelled;
            sum.timed_out += line.timed_out;
            sum.paused += line.paused;
            older(&mut sum.oldest_queued, line.oldest_queued);
            older(&mut sum.oldest_in_progress, line.oldest_running);
            older(&mut sum.oldest_error, line.oldest_failed);
        }
        sum
    }
}

/// Shows the counts.
pub async fn run(args: StatsArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let redraw = args.watch && session.out.is_table() && std::io::stdout().is_terminal();
    loop {
        let (stats, now) = (store.stats().await?, store.now());
        if redraw {
            // Home, then clear to the end: no flicker.
            session.out.data("\x1b[H\x1b[2J")?;
        }
        show(&session, &stats, now, &args)?;
        if !args.watch {
            store.close().await;
            return Ok(Exit::Ok);
        }
        tokio::time::sleep(args.interval.into()).await;
    }
}

fn show(session: &Session, stats: &Stats, now: Timestamp, args: &StatsArgs) -> CliResult<()> {
    let out = session.out;
    let total = Counts::of(&stats.lines, now);
    let by_line = stats.lines.iter().map(|line| LineCounts {
        queue: &line.queue,
        handler: &line.handler,
        counts: Counts::of([line], now),
    });
    if out.is_table() {
        return out.data(&if args.by_line {
            line_table(by_line)
        } else {
            state_table(&total, |how, text| out.paint(how, text))
        });
    }
    let mut value = serde_json::json!(total);
    if args.by_line {
        value["lines"] = serde_json::json!(by_line.collect::<Vec<_>>());
    }
    if args.watch { out.event(&value) } else { out.json(&value) }
}

fn state_table(counts: &Counts, paint: impl Fn(Paint, &str) -> String) -> String {
    let shown =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| age(Millis((s * 1000.0) as u64)));
    let rows = [
        ("queued", counts.queued, shown(counts.oldest_queued), true, ""),
        ("  parked", counts.parked, shown(None), false, "→ orchestrator limits list"),
        ("scheduled", counts.scheduled, shown(None), false, ""),
        ("retrying", counts.retrying, shown(None), false, ""),
        ("paused", counts.paused, shown(None), false, "→ orchestrator jobs list --status paused"),
        ("in_progress", counts.in_progress, shown(counts.oldest_in_progress), true, ""),
        ("done", counts.done, shown(None), true, ""),
        ("skipped", counts.skipped, shown(None), true, ""),
        ("error", counts.error, shown(counts.oldest_error), true, "→ orchestrator queue retry-failed"),
        ("cancelled", counts.cancelled, shown(None), false, ""),
        ("timed_out", counts.timed_out, shown(None), false, ""),
    ];
    let rows = rows.into_iter().filter(|(_, n, _, always, _)| *always || *n > 0).map(
        |(state, n, oldest, _, hint)| {
            let hint = if n > 0 { hint } else { "" };
            vec![state.to_owned(), count(n), oldest, hint.to_owned()]
        },
    );
    let table = columns(&["STATE", "COUNT", "OLDEST", ""], &[1], rows.collect());
    // Colour comes last: it would upset the widths.
    table
        .lines()
        .map(|line| match line.split_whitespace().next() {
            Some("STATE") => paint(Paint::Bold, line),
            Some("error") if counts.error > 0 => paint(Paint::Red, line),
            Some("retrying" | "parked") => paint(Paint::Yellow, line),
            _ => line.to_owned(),
        } + "\n")
        .collect()
}

fn line_table<'a>(lines: impl Iterator<Item = LineCounts<'a>>) -> String {
    let rows = lines.map(|LineCounts { queue, handler, counts: c }| {
        let numbers =
            [c.queued, c.parked, c.scheduled, c.retrying, c.in_progress, c.done, c.skipped, c.error];
        [queue.to_owned(), handler.to_owned()].into_iter().chain(numbers.map(count)).collect()
    });
    let headings = [
        "QUEUE",
        "HANDLER",
        "QUEUED",
        "PARKED",
        "SCHEDULED",
        "RETRYING",
        "IN_PROGRESS",
        "DONE",
        "SKIPPED",
        "ERROR",
    ];
    columns(&headings, &[2, 3, 4, 5, 6, 7, 8, 9], rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_documented() {
        let counts = Counts {
            queued: 1204,
            in_progress: 8,
            done: 8761,
            error: 9,
            oldest_queued: Some(192.4),
            oldest_in_progress: Some(41.0),
            oldest_error: Some(720.0),
            ..Counts::default()
        };
        assert_eq!(
            state_table(&counts, |_, text| text.to_owned()),
            "STATE        COUNT  OLDEST\n\
             queued       1,204  3m12s\n\
             in_progress      8  41s\n\
             done         8,761  -\n\
             skipped          0  -\n\
             error            9  12m     → orchestrator queue retry-failed\n"
        );
    }
}
