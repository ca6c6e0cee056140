//! Live events over a real connection.

use crate::live::{Live, take, work};
use crate::world::World;
use axum::http::StatusCode;
use orchestrator_client::{Change, ClientError, EventsQuery, LiveEvent};
use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{Event, JobId, Millis, NewJob};
use orchestrator_server::Drained;
use orchestrator_store::{EventId, JournalEvent, Store};
use orchestrator_store_postgres::PostgresStore;
use orchestrator_store_sqlite::{Options, SqliteStore};
use pg_harness::Server;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

fn file(dir: &Path) -> Arc<dyn Store> {
    SqliteStore::open(&dir.join("jobs.db"), Options::default()).unwrap()
}

/// A job of a flow of two tasks, side by side.
fn pair(name: &str) -> NewJob {
    let flow = Flow::new(name).task(Task::new("a", "work")).task(Task::new("b", "work"));
    NewJob::of_flow(Arc::new(flow.plan().unwrap()))
}

/// The same, as the journal and as a client have it.
fn same(told: &JournalEvent, heard: &LiveEvent) -> bool {
    let fits = match (&told.event, &heard.change) {
        (Event::Task(event), Change::Task(change)) => {
            (event.task.job, event.task.index) == (change.job, change.task)
                && (event.state, event.attempt) == (change.state, change.attempt)
                && told.name.as_ref() == Some(&change.name)
                && (&told.flow, &told.tenant, told.at) == (&change.flow, &change.tenant, change.at)
        }
        (Event::Job(event), Change::Job(change)) => {
            (event.job, event.state) == (change.job, change.state)
                && (&told.flow, &told.tenant, told.at) == (&change.flow, &change.tenant, change.at)
        }
        _ => false,
    };
    fits && told.id == heard.id
}

fn assert_same(told: &[JournalEvent], heard: &[LiveEvent]) {
    assert_eq!(told.len(), heard.len());
    for (told, heard) in told.iter().zip(heard) {
        assert!(same(told, heard), "told {told:?}, heard {heard:?}");
    }
}

#[tokio::test]
async fn whoever_comes_back_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::start(file(dir.path())).await;
    work(&*live.store, vec![pair("f"), NewJob::new("work"), NewJob::new("work").tenant("lab")]).await;
    work(&*live.store, vec![pair("g")]).await;
    let told = live.journal().await;
    assert!(told.len() > 15, "{told:?}");
    assert_same(&told, &take(&mut live.after(EventId::START), told.len()).await);
    for (n, last) in told.iter().enumerate() {
        let rest = &told[n + 1..];
        assert_same(rest, &take(&mut live.after(last.id), rest.len()).await);
    }
    live.stop().await;
}

#[tokio::test]
async fn who_asks_for_nothing_hears_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::start(file(dir.path())).await;
    work(&*live.store, vec![NewJob::new("work")]).await;
    let before = live.journal().await;
    let mut events = live.events(EventsQuery::default());
    assert_eq!(Some(events.start().await.unwrap()), before.last().map(|told| told.id));
    work(&*live.store, vec![NewJob::new("work")]).await;
    assert_same(&live.journal().await[before.len()..], &take(&mut events, 3).await);
    live.stop().await;
}

#[tokio::test]
async fn jobs_and_flows_are_heard_alone() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::start(file(dir.path())).await;
    work(&*live.store, vec![pair("f"), pair("g"), NewJob::new("work")]).await;
    work(&*live.store, vec![pair("f")]).await;
    let told = live.journal().await;
    let jobs: Vec<JobId> = told.iter().map(|told| told.event.job()).collect();
    let hear = async |query: EventsQuery, wanted: &dyn Fn(&JournalEvent) -> bool| {
        let expected: Vec<_> = told.iter().filter(|told| wanted(told)).cloned().collect();
        assert!(!expected.is_empty());
        let query = EventsQuery { after: Some(EventId::START), ..query };
        assert_same(&expected, &take(&mut live.events(query), expected.len()).await);
    };
    let of_flow = |told: &JournalEvent, name: &str| told.flow.as_deref() == Some(name);
    let of_job = |told: &JournalEvent, n: usize| told.event.job() == jobs[n];
    let flows = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let last = jobs.len() - 1;
    hear(EventsQuery { flows: flows(&["f"]), ..EventsQuery::default() }, &|told| of_flow(told, "f")).await;
    let both = EventsQuery { flows: flows(&["f", "g"]), ..EventsQuery::default() };
    hear(both, &|told| told.flow.is_some()).await;
    let one = EventsQuery { jobs: vec![jobs[0]], ..EventsQuery::default() };
    hear(one, &|told| of_job(told, 0)).await;
    let two = EventsQuery { jobs: vec![jobs[0], jobs[last]], ..EventsQuery::default() };
    hear(two, &|told| of_job(told, 0) || of_job(told, last)).await;
    live.stop().await;
}

/// A client across two stops of its server: what happens while there is none is heard afterwards.
#[tokio::test]
async fn a_restart_loses_nothing_and_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::start(file(dir.path())).await;
    let mut events = live.events(EventsQuery::default());
    assert_eq!(events.start().await.unwrap(), EventId::START);
    let mut heard = vec![];
    for _ in 0..3 {
        work(&*live.store, vec![NewJob::new("work"); 2]).await;
        // In the middle of a commit.
        heard.extend(take(&mut events, 3).await);
        let (store, address) = (live.store.clone(), live.address);
        assert_eq!(live.stop().await, Drained::Whole, "listeners do not hold it up");
        work(&*store, vec![NewJob::new("work")]).await;
        store.close().await;
        drop(store);
        live = Live::start_at(file(dir.path()), address).await;
        let rest = live.journal().await.len() - heard.len();
        heard.extend(take(&mut events, rest).await);
    }
    assert_same(&live.journal().await, &heard);
    live.stop().await;
}

/// What a browser sends that comes back: the URL with which it began, and the last id that it saw.
#[tokio::test]
async fn the_header_is_the_newer_word() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::start(file(dir.path())).await;
    work(&*live.store, vec![NewJob::new("work")]).await;
    let told = live.journal().await;
    let mut stream = TcpStream::connect(live.address).await.unwrap();
    let request = format!("GET /events?after=0 HTTP/1.1\r\nhost: x\r\nlast-event-id: {}\r\n\r\n", told[1].id);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(stream);
    while !text.contains("event: ") {
        lines.read_line(&mut text).await.unwrap();
    }
    assert!(text.contains("content-type: text/event-stream\r\n"), "{text}");
    assert!(text.contains("cache-control: no-store\r\n"), "{text}");
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(
        ids,
        [told[1].id.to_string(), told[2].id.to_string()],
        "where it begins, then what comes next"
    );
    drop(lines);
    live.stop().await;
}

#[tokio::test]
async fn what_cannot_be_listened_to_is_told() {
    let world = World::new().await;
    let send = async |path: &str, last: &str| {
        let headers = [("last-event-id", last)];
        world
            .send(axum::http::Method::GET, path, &headers[..usize::from(!last.is_empty())], Value::Null)
            .await
    };
    for (path, last, code, pointer) in [
        ("/events?after=x", "", "bad_parameter", "after"),
        ("/events?job=7", "", "bad_parameter", "job"),
        ("/events?jobs=7", "", "bad_parameter", "jobs"),
        ("/events", "seven", "bad_parameter", "last-event-id"),
        ("/events?after=0", "7", "bad_parameter", "last-event-id"),
    ] {
        let answer = send(path, last).await;
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (StatusCode::BAD_REQUEST, &code.into()),
            "{answer:?}"
        );
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{answer:?}");
    }
    let unknown = send("/events?job=019a8f00-0000-7000-8000-000000000009", "").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{unknown:?}");
    let foreign = send("/events?after=0", "9.0").await;
    assert_eq!(
        (foreign.status, &foreign.body["code"]),
        (StatusCode::GONE, &"events_gone".into()),
        "{foreign:?}"
    );
}

#[tokio::test]
async fn who_was_away_for_too_long_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::start(file(dir.path())).await;
    work(&*live.store, vec![NewJob::new("work")]).await;
    let told = live.journal().await;
    // All but the newest entry.
    while live.store.forget_journal(live.store.now() + Millis::hours(1), 1).await.unwrap() > 0 {}
    let refused = live.after(told[0].id).next().await.unwrap_err();
    assert!(matches!(&refused, ClientError::Refused(problem) if problem.status == 410), "{refused:?}");
    let mut from_the_oldest = live.after(EventId::START);
    assert_same(&told[2..], &take(&mut from_the_oldest, 1).await);
    live.stop().await;
}

/// Two servers on one database: what is done at either is heard at both, the same.
#[tokio::test]
async fn replicas_tell_the_same() {
    let url = Server::shared().database();
    let open = async || PostgresStore::open(orchestrator_store_postgres::Options::new(&url)).await.unwrap();
    let (one, two) = (Live::start(open().await).await, Live::start(open().await).await);
    let mut at_one = one.events(EventsQuery::default());
    let mut at_two = two.events(EventsQuery::default());
    at_one.start().await.unwrap();
    at_two.start().await.unwrap();
    let busy = async |store: &dyn Store| {
        for _ in 0..10 {
            work(store, vec![NewJob::new("work"); 3]).await;
        }
    };
    tokio::join!(busy(&*one.store), busy(&*two.store));
    let told = one.journal().await;
    assert!(told.len() >= 60 * 2, "{}", told.len());
    assert_same(&told, &take(&mut at_one, told.len()).await);
    assert_same(&told, &take(&mut at_two, told.len()).await);
    for live in [one, two] {
        let store = live.store.clone();
        live.stop().await;
        store.close().await;
    }
}
