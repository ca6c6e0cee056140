//! The picture of a job on a terminal: a line per task, and a bar below.

use super::Seen;
use super::track::Track;
use crate::jobs::shown;
use crate::output::{Paint, age, took};
use orchestrator_core::{Millis, TaskState};
use orchestrator_store::TaskView;

/// The width of the bar.
const BAR: usize = 32;
/// Lines beside those of the tasks: a heading, the bar, what is left out.
const OTHER_LINES: usize = 4;

/// The size of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Lines.
    pub rows: usize,
    /// Characters on a line.
    pub columns: usize,
}

/// Draws a job. No line is wider than the terminal and all of them fit.
pub fn draw(seen: &Seen, track: &Track, size: Size, paint: impl Fn(Paint, &str) -> String) -> String {
    let job = &seen.job;
    let room = size.rows.saturating_sub(OTHER_LINES).max(3);
    let (chosen, left_out) = choose(&job.tasks, room);
    let names = chosen.iter().map(|task| task.name.chars().count()).max().unwrap_or(0).min(40);
    let mut lines = vec![];
    let runs = shown::job_took(job, seen.now).map(|span| format!(" · {}", took(span))).unwrap_or_default();
    let word = paint(shown::job_paint(job.state), job.state.as_str());
    lines.push(format!("{} · job {} · {word}{runs}", shown::work(job), job.id));
    for task in chosen {
        let head = format!("{} {:<9}", shown::icon(task.state), task.state);
        let head = shown::task_paint(task.state).map_or_else(|| head.clone(), |how| paint(how, &head));
        let span = track.took(task, seen.now).map(took).unwrap_or_default();
        let doing = shown::doing(task, seen.now);
        let doing = doing.lines().next().unwrap_or_default();
        lines.push(format!("  {head}  {:<names$}  {span:>6}  {doing}", task.name).trim_end().to_owned());
    }
    if left_out > 0 {
        lines.push(paint(Paint::Dim, &format!("  … and {left_out} more tasks")));
    }
    lines.push(format!("  {}", bar(seen.progress.progress, seen.progress.eta, &paint)));
    let cut = |line: String| console::truncate_str(&line, size.columns.saturating_sub(1), "…").into_owned();
    lines.into_iter().map(cut).collect::<Vec<_>>().join("\n")
}

fn bar(percent: u8, eta: Option<Millis>, paint: &impl Fn(Paint, &str) -> String) -> String {
    let full = (usize::from(percent) * BAR / 100).min(BAR);
    let eta = eta.map(|eta| if eta < Millis::secs(1) { "<1s".to_owned() } else { age(eta) });
    let eta = eta.map(|eta| format!("  eta {eta}")).unwrap_or_default();
    let done = paint(Paint::Green, &"━".repeat(full));
    format!("{done}{}  {percent:>3}%{eta}", paint(Paint::Dim, &"─".repeat(BAR - full)))
}

/// The tasks to show, in their order: what is alive or went wrong first, then the rest as far as
/// there is room.
fn choose(tasks: &[TaskView], room: usize) -> (Vec<&TaskView>, usize) {
    let dull = |task: &TaskView| {
        matches!(task.state, TaskState::Completed | TaskState::Skipped | TaskState::Pending)
    };
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|at| dull(&tasks[*at]));
    order.truncate(room);
    order.sort_unstable();
    let left_out = tasks.len() - order.len();
    (order.into_iter().map(|at| &tasks[at]).collect(), left_out)
}
