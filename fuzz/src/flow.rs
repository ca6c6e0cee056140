//! Flow files: whatever the text, it is answered; and a flow that is accepted can be stored and run to its end.

#[path = "../../crates/core/tests/flows/harness.rs"]
#[allow(dead_code, reason = "the tests of the core use more of it")]
mod harness;

use harness::Job;
use orchestrator_core::flow::Plan;
use orchestrator_core::flow::advance::From;
use orchestrator_core::{Failure, JobState, Json, Outcome};
use orchestrator_flowfile::{FlowFile, Format, Report};
use serde_json::{Value, json};

/// So many attempts are made in one run; then it is cancelled.
const MAX_ATTEMPTS: usize = 60;

/// With more tasks than this, a job is not driven: the harness looks at all of them after each attempt.
const MAX_DRIVEN: usize = 300;

/// Reads a text in every format. Answers with the flow, where it is one.
pub fn check(text: &str) -> Option<Plan> {
    let mut flow: Option<Plan> = None;
    for format in [Format::Yaml, Format::Json, Format::Toml] {
        match plan(text, format) {
            Err(report) => {
                assert!(!report.findings().is_empty());
                assert!(report.findings().iter().all(|finding| !finding.message.is_empty()));
            }
            Ok(plan) => {
                if let Some(other) = &flow {
                    assert_eq!(other.hash(), plan.hash(), "{format:?} reads it as another flow");
                }
                flow = Some(plan);
            }
        }
    }
    // A job takes its plan, so each gets one that was read back, as it is after a restart.
    let flow = flow?;
    for round in 0..3 {
        drive(stored(&flow), Dice::new(text, round));
    }
    Some(flow)
}

fn plan(text: &str, format: Format) -> Result<Plan, Report> {
    FlowFile::from_text("flow", text, format)?.plan()
}

/// The flow as a store gives it back, which is the same.
fn stored(plan: &Plan) -> Plan {
    let again = Plan::from_text(plan.text()).expect("a flow that was accepted can be read back");
    assert_eq!((again.hash(), again.text(), again.def()), (plan.hash(), plan.text(), plan.def()));
    let count = plan.tasks().len() as u32;
    assert_eq!(plan.with_descendants(plan.roots()), (0..count).collect::<Vec<_>>(), "all come after a root");
    for (index, task) in (0..).zip(plan.tasks()) {
        assert_eq!(plan.task_named(&task.name), Some(index));
        assert!(task.needs.iter().all(|need| plan.tasks()[*need as usize].dependents.contains(&index)));
    }
    again
}

/// Runs a job to its end, with ends in random order; half of the time it is stopped on the way. What went wrong is
/// recovered. The harness checks every move.
fn drive(plan: Plan, mut dice: Dice) {
    let input = input(dice.pick(4));
    let json = Json::from(input.clone());
    let _ = plan.check_input(&json);
    let _ = plan.derive_key(&json);
    if plan.tasks().len() > MAX_DRIVEN {
        return;
    }
    let mut job = Job::of(plan, input);
    let patience = if dice.pick(2) == 0 { MAX_ATTEMPTS } else { dice.pick(8) };
    for round in 0..3 {
        run(&mut job, &mut dice, patience, round);
        if !job.run.state.is_terminal() {
            job.stop(if dice.pick(3) == 0 { JobState::Cancelled } else { JobState::TimedOut });
        }
        if job.run.next as usize > MAX_DRIVEN || job.recover(From::Failures, dice.pick(4) > 0).is_err() {
            return;
        }
    }
}

/// Ends what is in line; from round to round more of it well.
fn run(job: &mut Job, dice: &mut Dice, attempts: usize, round: usize) {
    for _ in 0..attempts {
        let ready = job.ready();
        if job.run.next as usize > MAX_DRIVEN {
            return;
        }
        let Some(index) = ready.get(dice.pick(ready.len().max(1))).copied() else {
            assert!(job.run.state.is_terminal(), "it stands still: {}", job.states());
            return;
        };
        // Handlers get what can be read.
        let payload = job.payload(&job.name(index));
        assert!(serde_json::to_string(&payload).is_ok());
        let outcome = match dice.pick(6 + round * 3) {
            0 => Outcome::Failed(Failure::permanent("it broke")),
            1 => Outcome::Skipped(Json::null()),
            _ => Outcome::Completed(output(dice.pick(5)).into()),
        };
        job.attempt(index, outcome);
    }
}

fn input(n: usize) -> Value {
    match n {
        0 => Value::Null,
        1 => json!({"source": "https://example.org/a", "n": 2, "list": [1, 2, 3], "flag": true}),
        2 => json!({"source": 7, "list": [{"url": "http://a/"}, {"url": null}], "files": []}),
        _ => json!(["x", {"a": "é"}]),
    }
}

fn output(n: usize) -> Value {
    match n {
        0 => Value::Null,
        1 => json!({"n": 1, "files": ["a", "b", "c"], "ok": true, "url": "https://example.org/"}),
        2 => json!([{"name": "x", "url": "http://h/1"}, 2, "three"]),
        3 => json!("some text"),
        _ => json!({"output": {"items": [], "n": -1.5}, "files": null}),
    }
}

/// A small source of choices: the same for the same text.
struct Dice(u64);

impl Dice {
    fn new(text: &str, round: u64) -> Self {
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Dice(text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ round, mix))
    }

    fn pick(&mut self, from: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % from
    }
}
