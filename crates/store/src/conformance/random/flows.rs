//! The flows of random sequences: few, small, and with everything in them.

use crate::verbs::FlowChange;
use orchestrator_core::flow::def::BackoffDef;
use orchestrator_core::flow::{Flow, JoinRule, Plan, Task};
use orchestrator_core::{Millis, NewJob, Priority};
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// Inputs of flows: a good one, one that makes nothing run, and one of which templates fail.
pub(super) const INPUTS: [&str; 4] =
    [r#"{"list":[1,2,3,4],"go":true}"#, r#"{"list":[5,6],"go":true}"#, r#"{"list":[],"go":false}"#, "{}"];

/// Names of tasks to recover from, one of which no flow has.
pub(super) const NAMES: [&str; 6] = ["a", "b", "each", "left", "join", "nothing"];

/// The flows; with `limited` some of their tasks run under limits.
pub(super) fn all(limited: bool) -> Vec<Arc<Plan>> {
    let flows =
        [chain("one"), chain("two"), diamond(), fan_out(limited), cleanup(), condition(), pair(limited)];
    let plan = |flow: Flow| flow.plan().unwrap_or_else(|problems| panic!("a sound flow: {problems:?}"));
    flows.map(plan).map(Arc::new).to_vec()
}

fn task(name: &str, queue: &str, handler: &str) -> Task {
    let backoff = BackoffDef { initial: Some(Millis(400)), ..BackoffDef::default() };
    Task::new(name, handler).queue(queue).retries(1).backoff(backoff).timeout(Millis::secs(40)).max_crashes(2)
}

/// One after the other; two versions of it.
fn chain(version: &str) -> Flow {
    Flow::new("chain")
        .description(version)
        .timeout(Millis::mins(10))
        .task(task("a", "q1", "h1"))
        .task(task("b", "q2", "h1").needs(["a"]).with(json!({"ok": "{{ tasks.a.output.ok }}"})))
        .task(task("c", "q1", "h2").needs(["b"]).priority(Priority::High))
}

/// Two branches, one of which may be missing.
fn diamond() -> Flow {
    Flow::new("diamond")
        .timeout(Millis::mins(2))
        .max_recoveries(1)
        .task(task("a", "q1", "h1"))
        .task(task("left", "q1", "h1").needs(["a"]))
        .task(task("right", "q1", "h2").needs(["a"]).optional().retries(0))
        .task(task("join", "q2", "h2").needs(["left", "right"]).with(json!(["{{ tasks.right.output }}"])))
}

/// One task per item, two at once, and what joins them.
fn fan_out(limited: bool) -> Flow {
    let each = task("each", "q1", "h1").for_each("{{ input.list }}").concurrency(2);
    let each = each.with(json!({"n": "{{ item }}", "at": "{{ item_index }}"}));
    let each = if limited { each.limit("host", "{{ \"a\" if item > 2 else \"b\" }}") } else { each };
    let join = task("join", "q2", "h1").needs(["each"]).with("{{ tasks.each.output }}");
    Flow::new("fan-out").timeout(Millis::mins(10)).task(each).task(join)
}

/// Something to do in any case, and something only after a failure.
fn cleanup() -> Flow {
    let about = json!({"b": "{{ tasks.b.state }}", "why": "{{ tasks.b.error }}"});
    Flow::new("cleanup")
        .task(task("a", "q2", "h1"))
        .task(task("b", "q2", "h2").needs(["a"]))
        .task(task("left", "q1", "h2").needs(["a", "b"]).join(JoinRule::AnyFailed).with(about))
        .task(task("join", "q1", "h1").needs(["b"]).join(JoinRule::AllDone))
        .output("{{ tasks.join.output.ok }}")
}

/// What may have nothing to run at all.
fn condition() -> Flow {
    Flow::new("condition")
        .timeout(Millis::mins(1))
        .task(task("a", "q1", "h1").when("input.go"))
        .task(task("b", "q1", "h1").needs(["a"]).for_each(json!([7, 8])).optional())
}

/// Two tasks side by side.
fn pair(limited: bool) -> Flow {
    let a = task("a", "q1", "h1");
    let a = if limited { a.limit("res", "x") } else { a };
    Flow::new("pair").task(a.priority(Priority::Low)).task(task("b", "q1", "h1"))
}

/// A job in few words: the whole of a plan would hide all else.
pub(super) struct Brief<'a>(pub &'a NewJob);

impl fmt::Debug for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewJob { tenant, key, work, payload, priority, run_at, after, rerun_of, meta, document } = self.0;
        write!(f, "{} of {tenant} {priority} {payload} ", self.0.name())?;
        if let orchestrator_core::Work::Task { spec, limits } = work {
            write!(f, "{spec:?} {limits:?} ")?;
        }
        write!(f, "key {key:?} at {run_at:?} after {after:?} rerun of {rerun_of:?} ")?;
        write!(f, "with {:?} and {document:?}", meta.text())
    }
}

/// A change of the registry in few words.
pub(super) struct BriefChange<'a>(pub &'a FlowChange);

impl fmt::Debug for BriefChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FlowChange::Apply(plan) => write!(f, "apply {} {}", plan.name(), plan.hash()),
            FlowChange::Retire(name) => write!(f, "retire {name}"),
        }
    }
}
