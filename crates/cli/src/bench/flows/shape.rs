//! The flows whose jobs make up a load, and what must come of a job.

use super::super::load::{Bench, MakeJob};
use super::super::place::Place;
use super::{echo, number};
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{Json, NewJob};
use orchestrator_store::JobView;
use serde_json::json;
use std::sync::Arc;

/// How the tasks of a small job hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `a → b → c`.
    Chain,
    /// `a → (b, c) → d`.
    Diamond,
}

/// A load of small jobs.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Their shape.
    pub shape: Shape,
    /// Whether their tasks get the job's input as it is; else each gets a number out of the one before.
    pub plain: bool,
    /// The size of an input, in bytes.
    pub payload: u64,
}

impl Shape {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Chain => "chain",
            Shape::Diamond => "diamond",
        }
    }

    /// How many tasks a job has.
    pub fn tasks(self) -> u64 {
        match self {
            Shape::Chain => 3,
            Shape::Diamond => 4,
        }
    }

    /// Each task with what it needs.
    fn edges(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Shape::Chain => &[("a", &[]), ("b", &["a"]), ("c", &["b"])],
            Shape::Diamond => &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])],
        }
    }
}

impl Load {
    /// The flow.
    pub fn plan(self) -> CliResult<Arc<Plan>> {
        let mut flow = Flow::new(self.shape.name());
        for (name, needs) in self.shape.edges() {
            let task =
                Task::new(*name, if self.plain { "noop" } else { "echo" }).needs(needs.iter().copied());
            flow = flow.task(if self.plain { task } else { task.with(with(needs)) });
        }
        compiled(flow)
    }

    /// Opens a file for such jobs.
    pub async fn open(self, place: &Place, name: &str) -> CliResult<Bench> {
        let plan = self.plan()?;
        let make: MakeJob = Box::new(move |n| NewJob::of_flow(plan.clone()).payload(input(n, self.payload)));
        Bench::open(place, name, echo::handlers(), make).await
    }

    /// Whether a job has the output that it must have: its own number went through all of its tasks.
    pub fn is_right(self, job: &JobView) -> bool {
        let Some(output) = &job.output else { return false };
        let wanted = if self.plain { None } else { number(&job.payload) };
        number(output) == wanted
    }
}

/// What a task gets: the number of each that it needs, the last of them under the name that is passed on.
fn with(needs: &[&str]) -> serde_json::Value {
    match needs {
        [] => json!({ "n": "{{ input.n }}" }),
        [one] => json!({ "n": format!("{{{{ tasks.{one}.output.n }}}}") }),
        [one, other, ..] => json!({
            "other": format!("{{{{ tasks.{one}.output.n }}}}"),
            "n": format!("{{{{ tasks.{other}.output.n }}}}"),
        }),
    }
}

/// An input of about `size` bytes with a number in it.
pub fn input(n: u64, size: u64) -> Json {
    Json::trusted(format!(r#"{{"n":{n},"data":"{}"}}"#, fill(size)))
}

/// What fills an input up to `size` bytes, beside a number of four digits.
pub fn fill(size: u64) -> String {
    "x".repeat((size as usize).saturating_sub(r#"{"n":1000,"data":""}"#.len()))
}

/// Checks a flow of the benchmark.
pub fn compiled(flow: Flow) -> CliResult<Arc<Plan>> {
    flow.plan().map(Arc::new).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        CliError::new(Exit::Error, "bench", format!("the benchmark's flow is wrong: {}", problems.join("; ")))
    })
}
