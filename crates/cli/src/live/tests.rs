//! What is drawn and told of jobs at given moments.

use super::Seen;
use super::frame::{self, Size};
use super::track::Track;
use crate::output::{Color, Format, Output};
use orchestrator_core::{
    Counters, ErrorClass, JobId, JobState, Json, Millis, Priority, TaskSpec, TaskState, Timestamp,
};
use orchestrator_engine::Progress;
use orchestrator_store::{AttemptEnd, AttemptRecord, FlowRef, ItemsView, JobView, TaskView};
use std::sync::Arc;

const START: Timestamp = Timestamp::from_millis(1_000_000);

fn task(index: u32, name: &str, state: TaskState) -> TaskView {
    TaskView { state, ..TaskView::pending(index, name.into(), Arc::new(TaskSpec::new("command"))) }
}

fn running(index: u32, name: &str) -> TaskView {
    let counters = Counters { attempt: 1, ..Counters::default() };
    TaskView { started: Some(START), counters, ..task(index, name, TaskState::Running) }
}

fn retrying(index: u32, name: &str) -> TaskView {
    let how = AttemptEnd::Failed(ErrorClass::Transient);
    let record = AttemptRecord { attempt: 1, at: START + Millis(300), how, message: "busy".to_owned() };
    TaskView {
        counters: Counters { attempt: 1, failures: 1, crashes: 0 },
        due: Some(START + Millis(800)),
        history: vec![record],
        ..task(index, name, TaskState::Retrying)
    }
}

fn seen(tasks: Vec<TaskView>, after: u64) -> Seen {
    let job = JobView {
        id: JobId::from_parts(START, 1),
        state: JobState::Running,
        flow: Some(FlowRef { name: "demo".into(), version: 2, hash: "".into() }),
        tenant: "default".into(),
        key: None,
        created: START,
        started: Some(START),
        ended: None,
        deadline: None,
        priority: Priority::Normal,
        previous: None,
        waits_for: vec![],
        recoveries: 0,
        max_recoveries: 3,
        reason: None,
        payload: Json::null(),
        meta: Default::default(),
        document: None,
        output: None,
        tasks,
    };
    let now = START + Millis(after);
    Seen { progress: Progress::of(&job, None, now), items: vec![], job, now }
}

fn told(track: &mut Track, seen: &Seen) -> Vec<String> {
    let out = Output::new(Format::Table, Color::Never, false);
    let events = track.events(&seen.job, &seen.items, seen.now);
    events.iter().map(|event| event.text(out, seen.now)).collect()
}

#[test]
fn a_job_is_a_line_per_task_and_a_bar() {
    let items = ItemsView { first: 9, count: 40, ended: 12, failed: 1, running: 4 };
    let tasks = vec![
        TaskView { ended: Some(START), ..task(0, "fetch", TaskState::Completed) },
        retrying(1, "ask"),
        TaskView { items: Some(items), ..task(2, "label", TaskState::Running) },
        task(3, "store", TaskState::Pending),
    ];
    let seen = seen(tasks, 500);
    let text =
        frame::draw(&seen, &Track::default(), Size { rows: 24, columns: 80 }, |_, text| text.to_owned());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(lines[0].starts_with("demo@2 · job ") && lines[0].ends_with("· running · 500ms"), "{text}");
    assert!(lines[1].starts_with("  ✔ completed  fetch"), "{text}");
    assert!(
        lines[2].starts_with("  ↻ retrying   ask") && lines[2].contains("failed, again in 300ms: busy"),
        "{text}"
    );
    assert!(lines[3].ends_with("12/40 ended, 4 running, 1 failed"), "{text}");
    assert!(lines[5].starts_with("  ━") && lines[5].ends_with('%'), "{text}");
}

#[test]
fn a_large_job_fits_a_small_terminal() {
    let mut tasks: Vec<TaskView> = (0..50).map(|n| task(n, &format!("t{n}"), TaskState::Pending)).collect();
    tasks[40] = running(40, &"long".repeat(50));
    let seen = seen(tasks, 100);
    let size = Size { rows: 10, columns: 40 };
    let text = frame::draw(&seen, &Track::default(), size, |_, text| text.to_owned());
    assert!(text.lines().count() <= 10 && text.lines().all(|line| line.chars().count() < 40), "{text}");
    assert!(text.contains("▶ running") && text.contains("and 44 more tasks"), "{text}");
}

#[test]
fn each_thing_is_told_once() {
    let mut track = Track::default();
    let first = seen(vec![running(0, "ask"), task(1, "then", TaskState::Pending)], 100);
    assert_eq!(told(&mut track, &first), ["▶ running   ask"]);
    assert!(told(&mut track, &first).is_empty());
    let failed = seen(vec![retrying(0, "ask"), task(1, "then", TaskState::Pending)], 400);
    assert_eq!(told(&mut track, &failed), ["✘ attempt 1 ask failed (again after 500ms): busy"]);
    let mut done = retrying(0, "ask");
    done.state = TaskState::Completed;
    done.counters.attempt = 2;
    done.ended = Some(START + Millis(900));
    let ended = seen(vec![done, running(1, "then")], 1000);
    assert_eq!(told(&mut track, &ended), ["▶ running   then", "✔ completed ask"]);
}
