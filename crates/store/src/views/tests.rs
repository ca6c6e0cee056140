//! Every view reads back from its own JSON: what one process shows, another can read.

use super::*;
use crate::journal::{EventId, JournalEvent, JournalPage};
use crate::verbs::{FlowChanged, RuleOrigin, Submitted, WorkerNote};
use orchestrator_core::{Event, JobEvent, LimitRule, Rate, TaskEvent};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Writes and reads a value, which must be the same, and written again as the same text.
fn reads_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("it can be written");
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!(read, *value);
    assert_eq!(serde_json::to_string(&read).expect("it can be written"), text);
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + ms)
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("valid JSON")
}

fn task_id() -> TaskId {
    TaskId { job: JobId::from_parts(at(0), 77), index: 3 }
}

fn task() -> TaskView {
    let spec = Arc::new(TaskSpec::new("work").on_queue("q").with_timeout(Some(Millis::secs(5))));
    let record = |how| AttemptRecord { attempt: 1, at: at(3), how, message: "it \"broke\"".to_owned() };
    TaskView {
        state: TaskState::Failed,
        counters: Counters { attempt: 3, failures: 2, crashes: 1 },
        limits: Limits::new(["host:a".parse().expect("a key")]).expect("few keys"),
        input: Some(json(r#"{ "x": 1.50 }"#)),
        checkpoint: Some(json("[1]")),
        worker: Some(WorkerId::new("w1")),
        started: Some(at(1)),
        expires: Some(at(2)),
        due: Some(at(3)),
        since: Some(at(4)),
        parked: true,
        held: true,
        ended: Some(at(5)),
        output: Some(json("{\"ok\":true}")),
        dead: Some(DeadReason::Exhausted),
        items: Some(ItemsView { first: 2, count: 9, ended: 3, failed: 1, running: 2 }),
        usual: Some(Millis(1500)),
        history: vec![
            record(AttemptEnd::Failed(ErrorClass::Network)),
            record(AttemptEnd::Lost),
            record(AttemptEnd::Stale),
        ],
        ..TaskView::pending(0, "main".into(), spec)
    }
}

fn job() -> JobView {
    let flow = FlowRef { name: "f".into(), version: 2, hash: "abc".into() };
    let document = Document::new("a.pdf", "application/pdf", *b"%PDF");
    JobView {
        id: JobId::from_parts(at(0), 77),
        state: JobState::Paused,
        flow: Some(flow),
        tenant: "t".into(),
        key: Some("k".into()),
        created: at(0),
        started: Some(at(1)),
        ended: Some(at(2)),
        deadline: Some(at(3)),
        priority: Priority::High,
        previous: Some(JobId::from_parts(at(0), 5)),
        waits_for: vec![JobId::from_parts(at(0), 6)],
        recoveries: 1,
        max_recoveries: 3,
        reason: Some("because".to_owned()),
        payload: json(r#"{"b": 1e3, "a": [null]}"#),
        meta: Meta {
            context: Some(json(r#"{"order": 7}"#)),
            correlation_id: Some("c".into()),
            traceparent: Some("00-1-2-01".into()),
            user: Some("ann".into()),
        },
        document: Some(DocumentView::of(&document)),
        output: Some(json("[1, 2]")),
        tasks: vec![task(), TaskView::pending(1, "b".into(), Arc::new(TaskSpec::new("work")))],
    }
}

#[test]
fn jobs_and_tasks() {
    reads_back(&job());
    reads_back(&JobView { meta: Meta::default(), document: None, payload: Json::null(), ..job() });
    reads_back(&task());
}

#[test]
fn flows() {
    let flow = FlowRef { name: "f".into(), version: 2, hash: "abc".into() };
    let view =
        FlowView { flow, created: at(0), current: true, definition: json(r#"{"name": "f", "n": 1.0}"#) };
    reads_back(&view);
    let value = serde_json::to_value(&view).expect("it can be written");
    let fields: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, ["created", "current", "definition", "hash", "name", "version"], "flat");
}

#[test]
fn what_is_seen_of_a_whole_store() {
    let mut line = LineStats::new("q".into(), "work".into());
    (line.ready, line.oldest_failed) = (3, Some(at(1)));
    reads_back(&Stats { lines: vec![line] });
    reads_back(&DayStats { created: 3, timed_out: 1, ..DayStats::new(at(0).day()) });
    reads_back(&PausedQueue { queue: "q".into(), since: at(0) });
    let note = WorkerNote {
        name: WorkerId::new("w1"),
        host: "h".into(),
        version: "orchestrator 0.1.0".into(),
        queues: vec!["q".into()],
        handlers: vec!["work".into()],
        slots: 8,
        gone: false,
    };
    reads_back(&WorkerView { note, first_seen: at(0), last_seen: at(1), running: 2 });
    let rule = LimitRule { concurrency: Some(3), rate: Some(Rate::new(2, Millis::secs(1))) };
    let origin = Some(RuleOrigin::Operator);
    reads_back(&LimitView { key: "host:a".parse().expect("a key"), rule, origin, running: 1 });
    reads_back(&DeadLetter {
        task: task_id(),
        name: "main".into(),
        flow: Some("f".into()),
        key: None,
        queue: "q".into(),
        handler: "work".into(),
        reason: DeadReason::Poison,
        at: at(0),
        counters: Counters::default(),
        message: "it broke".to_owned(),
    });
}

#[test]
fn the_journal_and_answers() {
    let told = |index, event, name: Option<&str>| JournalEvent {
        id: EventId { entry: 7, index },
        at: at(0),
        event,
        name: name.map(Into::into),
        tenant: "default".into(),
        flow: Some("f".into()),
    };
    let task = Event::Task(TaskEvent { task: task_id(), state: TaskState::Retrying, attempt: 2 });
    let job = Event::Job(JobEvent { job: task_id().job, state: JobState::Recovering });
    let events = vec![told(0, task, Some("a[1]")), told(2, job, None)];
    reads_back(&JournalPage { events, next: EventId { entry: 7, index: 3 }, missed: false });
    let id = task_id().job;
    reads_back(&Submitted::Created { id, previous: Some(id) });
    reads_back(&Submitted::Existing { id, state: JobState::Running });
    reads_back(&Submitted::Conflict { id });
    reads_back(&FlowChanged::Restored(2));
}

#[test]
fn days_are_named_by_their_date() {
    assert_eq!(DayStats::new(0).day, "1970-01-01");
    assert_eq!(DayStats::new(at(0).day()).day, "2027-01-15");
    assert_eq!(Timestamp::from_millis(-1).day(), -1);
}
