//! The jobs of a script as an engine takes them.

use crate::script::{NewWork, Shape, TaskShape};
use orchestrator_core::flow::def::BackoffDef;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{JobId, Json, Key, Limits, Millis, NewJob, RetryPolicy, TaskSpec, Timestamp};
use orchestrator_store::JobView;
use serde_json::json;
use std::sync::Arc;

/// The queues that every process serves.
pub const QUEUES: [&str; 2] = ["default", "side"];

const FIRST_WAIT: Millis = Millis(400);
const LONGEST_WAIT: Millis = Millis::secs(8);

/// The name of a handler.
pub fn handler(number: u8) -> String {
    format!("h{number}")
}

fn queue(task: &TaskShape) -> &'static str {
    QUEUES[usize::from(task.handler == 2)]
}

/// The name of a task of a flow.
pub fn task_name(number: u8) -> String {
    format!("t{number}")
}

/// What is submitted for job `number`, now. `after` are the jobs that it waits for.
pub fn new_job(number: u32, work: &NewWork, after: Vec<JobId>, now: Timestamp) -> NewJob {
    let job = match &work.shape {
        Shape::Task(task) => {
            let spec = TaskSpec {
                queue: queue(task).into(),
                handler: handler(task.handler).into(),
                retry: RetryPolicy {
                    max_retries: task.retries,
                    initial: FIRST_WAIT,
                    max: LONGEST_WAIT,
                    ..RetryPolicy::default()
                },
                timeout: task.timeout.map(Millis),
                max_crashes: task.crashes,
            };
            let limits = Limits::new(task.limits.iter().cloned()).expect("few limit keys");
            NewJob::with_spec(Arc::new(spec)).limits(limits)
        }
        Shape::Flow { deadline, recoveries, tasks } => {
            let name = format!("flow-{}", work.key.unwrap_or(number));
            NewJob::of_flow(Arc::new(plan(&name, *deadline, *recoveries, tasks)))
        }
    };
    let mut job =
        job.payload(payload(work)).tenant(format!("tenant-{}", work.tenant)).priority(work.priority);
    job.key = work.key.map(|key| Key::new(format!("k{key}")));
    job.run_at = work.run_in.map(|span| now + Millis(span));
    job.after = after;
    job
}

/// What goes with a job.
pub fn payload(work: &NewWork) -> Json {
    json!({ "n": work.payload }).into()
}

/// The name of the work that a submit is about, for the history: the same for submits with the same key.
pub fn client_key(number: u32, work: &NewWork) -> Arc<str> {
    match work.key {
        Some(key) => format!("k{key}").into(),
        None => format!("keyless-{number}").into(),
    }
}

/// The same of a job that is there. Keys are used by one handler or flow only, and the payload of a job without
/// a key holds its number.
pub fn key_of(job: &JobView) -> Option<Arc<str>> {
    let keyless = || job.payload.value()["n"].as_u64().map(|number| format!("keyless-{number}").into());
    job.key.clone().or_else(keyless)
}

fn plan(name: &str, deadline: Option<u64>, recoveries: u32, tasks: &[TaskShape]) -> Plan {
    let flow = Flow::new(name).max_recoveries(recoveries);
    let flow = deadline.into_iter().fold(flow, |flow, span| flow.timeout(Millis(span)));
    let flow = (0u8..).zip(tasks).fold(flow, |flow, (n, _)| flow.task(task(n, tasks)));
    flow.plan().unwrap_or_else(|problems| panic!("a flow of a script is wrong: {problems:?}"))
}

fn task(number: u8, tasks: &[TaskShape]) -> Task {
    let shape = &tasks[usize::from(number)];
    // A script that was shortened may have lost what was needed.
    let needs: Vec<u8> = shape.needs.iter().copied().filter(|need| *need < number).collect();
    let backoff = BackoffDef { initial: Some(FIRST_WAIT), max: Some(LONGEST_WAIT), ..BackoffDef::default() };
    let mut task = Task::new(task_name(number), handler(shape.handler))
        .queue(queue(shape))
        .needs(needs.iter().map(|need| task_name(*need)))
        .join(shape.join.into())
        .retries(shape.retries)
        .backoff(backoff)
        .max_crashes(shape.crashes);
    if shape.optional {
        task = task.optional();
    }
    if let Some(divisor) = shape.when {
        task = task.when(format!("input.n % {} == 0", divisor.max(1)));
    }
    if let Some(span) = shape.timeout {
        task = task.timeout(Millis(span));
    }
    for key in &shape.limits {
        task = task.limit(key.kind(), key.name());
    }
    if let Some((count, at_once)) = shape.items {
        let list = match needs.first() {
            // What the handler of an earlier task found, if that runs one.
            Some(need) if tasks[usize::from(*need)].items.is_none() && count % 2 == 0 => {
                json!(format!("{{{{ tasks.{}.output.items }}}}", task_name(*need)))
            }
            _ => json!((0..count).collect::<Vec<_>>()),
        };
        task = task.for_each(list).with(json!({ "n": "{{ input.n }}", "item": "{{ item }}" }));
        task = at_once.into_iter().fold(task, |task, at_once| task.concurrency(at_once));
    }
    task
}
