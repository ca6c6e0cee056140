//! A page of the journal as the text of server-sent events, written once and shared by all who listen.

use bytes::Bytes;
use orchestrator_api::events::{JOB, JobChange, TASK, TaskChange};
use orchestrator_core::{Event, JobId};
use orchestrator_store::{EventId, JournalEvent, JournalPage};
use serde::Serialize;
use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

/// Which events a listener wants. Where nothing is chosen, all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of these jobs.
    pub jobs: HashSet<JobId>,
    /// Only of jobs of these flows.
    pub flows: HashSet<Arc<str>>,
}

impl Filter {
    fn takes_all(&self) -> bool {
        self.jobs.is_empty() && self.flows.is_empty()
    }

    fn takes(&self, line: &Line) -> bool {
        (self.jobs.is_empty() || self.jobs.contains(&line.job))
            && (self.flows.is_empty() || line.flow.as_ref().is_some_and(|flow| self.flows.contains(flow)))
    }
}

/// Events that follow each other.
#[derive(Debug)]
pub struct Chunk {
    /// The last event that it speaks for; events of removed jobs are not among its lines.
    pub upto: EventId,
    text: Bytes,
    lines: Vec<Line>,
}

/// One event, and where its text ends.
#[derive(Debug)]
struct Line {
    id: EventId,
    job: JobId,
    flow: Option<Arc<str>>,
    end: usize,
}

impl Chunk {
    /// Writes a page.
    pub fn of(page: JournalPage) -> Chunk {
        let mut text = Vec::with_capacity(page.events.len() * 256);
        let line = |told: JournalEvent| {
            write(&mut text, &told);
            Line { id: told.id, job: told.event.job(), flow: told.flow, end: text.len() }
        };
        let lines = page.events.into_iter().map(line).collect();
        text.shrink_to_fit();
        Chunk { upto: page.next, text: text.into(), lines }
    }

    /// The bytes that it takes, roughly.
    pub fn size(&self) -> usize {
        size_of::<Chunk>() + self.text.len() + self.lines.len() * size_of::<Line>()
    }

    /// The texts of the events after one that a filter takes; those that stand together are one piece.
    pub fn after(&self, after: EventId, filter: &Filter) -> Vec<Bytes> {
        let from = self.lines.partition_point(|line| line.id <= after);
        let start = |n: usize| if n == 0 { 0 } else { self.lines[n - 1].end };
        if filter.takes_all() {
            let rest = self.text.slice(start(from)..);
            return if rest.is_empty() { vec![] } else { vec![rest] };
        }
        let mut pieces: Vec<std::ops::Range<usize>> = vec![];
        for (n, line) in self.lines.iter().enumerate().skip(from).filter(|(_, line)| filter.takes(line)) {
            match pieces.last_mut() {
                Some(piece) if piece.end == start(n) => piece.end = line.end,
                _ => pieces.push(start(n)..line.end),
            }
        }
        pieces.into_iter().map(|piece| self.text.slice(piece)).collect()
    }
}

/// Writes one event.
fn write(text: &mut Vec<u8>, told: &JournalEvent) {
    let (flow, tenant, at) = (told.flow.clone(), told.tenant.clone(), told.at);
    match told.event {
        Event::Task(event) => {
            let (job, task) = (event.task.job, event.task.index);
            let name = told.name.clone().unwrap_or_default();
            let change =
                TaskChange { job, task, name, state: event.state, attempt: event.attempt, flow, tenant, at };
            put(text, told.id, TASK, &change);
        }
        Event::Job(event) => {
            let change = JobChange { job: event.job, state: event.state, flow, tenant, at };
            put(text, told.id, JOB, &change);
        }
    }
}

fn put(text: &mut Vec<u8>, id: EventId, event: &str, data: &impl Serialize) {
    // JSON has no line breaks in it, and writing into memory does not fail.
    let _ = write!(text, "id: {id}\nevent: {event}\ndata: ");
    let _ = serde_json::to_writer(&mut *text, data);
    text.extend_from_slice(b"\n\n");
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use orchestrator_core::{JobEvent, JobState, TaskEvent, TaskId, TaskState, Timestamp};

    pub fn id(text: &str) -> EventId {
        text.parse().unwrap()
    }

    fn job(n: u128) -> JobId {
        JobId::from_parts(Timestamp::from_millis(1), n)
    }

    /// An event of a job; of every second one, the job's own.
    pub fn told(text: &str, n: u128, flow: Option<&str>) -> JournalEvent {
        let task = TaskEvent { task: TaskId { job: job(n), index: 0 }, state: TaskState::Queued, attempt: 0 };
        let own = JobEvent { job: job(n), state: JobState::Running };
        let event = if n.is_multiple_of(2) { Event::Task(task) } else { Event::Job(own) };
        let name = n.is_multiple_of(2).then(|| "main".into());
        let at = Timestamp::from_millis(0);
        JournalEvent { id: id(text), at, event, name, tenant: "default".into(), flow: flow.map(Into::into) }
    }

    fn ids(pieces: &[Bytes]) -> Vec<Vec<String>> {
        let lines = |piece: &Bytes| {
            let text = String::from_utf8(piece.to_vec()).unwrap();
            text.lines().filter_map(|line| line.strip_prefix("id: ").map(str::to_owned)).collect()
        };
        pieces.iter().map(lines).collect()
    }

    fn chunk() -> Chunk {
        let events = vec![
            told("1.0", 0, None),
            told("1.2", 1, Some("f")),
            told("2.0", 2, Some("f")),
            told("3.0", 0, None),
            told("3.1", 1, Some("f")),
        ];
        Chunk::of(JournalPage { events, next: id("3.5"), missed: false })
    }

    #[test]
    fn an_event_is_a_block_of_three_lines() {
        let page = JournalPage { events: vec![told("7.1", 1, Some("f"))], next: id("7.1"), missed: false };
        let text = Chunk::of(page).after(EventId::START, &Filter::default());
        let job = job(1);
        assert_eq!(
            text,
            [format!(
                "id: 7.1\nevent: job\ndata: {{\"job\":\"{job}\",\"state\":\"running\",\"flow\":\"f\",\"tenant\":\"default\",\"at\":\"1970-01-01T00:00:00Z\"}}\n\n"
            )]
        );
    }

    #[test]
    fn it_is_cut_where_a_listener_stands() {
        let all = Filter::default();
        assert_eq!(ids(&chunk().after(EventId::START, &all)), [["1.0", "1.2", "2.0", "3.0", "3.1"]]);
        assert_eq!(ids(&chunk().after(id("1.1"), &all)), [["1.2", "2.0", "3.0", "3.1"]]);
        assert_eq!(ids(&chunk().after(id("3.0"), &all)), [["3.1"]]);
        assert!(chunk().after(id("3.1"), &all).is_empty());
    }

    #[test]
    fn a_filter_takes_jobs_and_flows() {
        let flow = Filter { flows: ["f".into()].into(), ..Filter::default() };
        assert_eq!(ids(&chunk().after(EventId::START, &flow)), [vec!["1.2", "2.0"], vec!["3.1"]]);
        let jobs = Filter { jobs: [job(0)].into(), ..Filter::default() };
        assert_eq!(ids(&chunk().after(id("1.0"), &jobs)), [["3.0"]]);
        let both = Filter { jobs: [job(0)].into(), flows: ["f".into()].into() };
        assert!(chunk().after(EventId::START, &both).is_empty());
    }
}
