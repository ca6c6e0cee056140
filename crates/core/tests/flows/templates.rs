//! What templates see, and what becomes of a task or a job where they cannot be resolved.

use crate::harness::{Job, flow, task};
use orchestrator_core::JobState;
use orchestrator_core::flow::JoinRule::AllDone;
use serde_json::{Value, json};

#[test]
fn a_handler_gets_the_input_the_literal_or_what_was_rendered() {
    let mut job = Job::new(
        flow([
            task("a"),
            task("b").with(json!({"fixed": [1]})),
            task("c")
                .needs(["a"])
                .with(json!({"n": "{{ tasks.a.output.n + 1 }}", "who": "{{ job.tenant }}"})),
        ]),
        json!({"x": 1}),
    );
    assert_eq!((job.payload("a"), job.payload("b")), (json!({"x": 1}), json!({"fixed": [1]})));
    assert_eq!((job.seen("a").payload.clone(), job.seen("b").payload.clone()), (None, None));
    job.complete("a", json!({"n": 41}));
    assert_eq!(job.payload("c"), json!({"n": 42, "who": "acme"}));
}

#[test]
fn an_error_is_known_to_what_follows_at_once() {
    let job = Job::new(
        flow([
            task("bad").with("{{ input.nothing }}"),
            task("after").needs(["bad"]).join(AllDone).with("{{ tasks.bad.error }}"),
        ]),
        json!({}),
    );
    let message = "with: {{ input.nothing }}: input has no field \"nothing\"; it is {}";
    assert_eq!((job.error("bad"), job.payload("after")), (message, json!(message)));
}

#[test]
fn a_job_knows_its_id() {
    let job = Job::new(flow([task("a").with("{{ job.id }}")]), json!(null));
    assert_eq!(job.payload("a").as_str().map(str::len), Some(36));
}

#[test]
fn states_and_errors_of_earlier_tasks_can_be_asked_for() {
    let about = |name: &str| {
        json!([format!("{{{{ tasks.{name}.state }}}}"), format!("{{{{ tasks.{name}.error }}}}")])
    };
    let mut job = Job::new(
        flow([
            task("good"),
            task("bad"),
            task("blocked").needs(["bad"]),
            task("soft").optional(),
            task("z").needs(["good", "blocked", "soft"]).join(AllDone).with(json!({
                "good": about("good"), "bad": about("bad"), "blocked": about("blocked"), "soft": about("soft"),
                "none": "{{ tasks.bad.output | default('nothing', true) }}",
                "whole": "{{ tasks.good }}",
            })),
        ]),
        json!(null),
    );
    job.complete("good", json!(1));
    job.fail("soft");
    job.fail("bad");
    assert_eq!(
        job.payload("z"),
        json!({
            "good": ["completed", null],
            "bad": ["failed", "bad broke"],
            "blocked": ["skipped", null],
            "soft": ["skipped", "soft broke"],
            "none": "nothing",
            "whole": {"state": "completed", "output": 1, "error": null},
        })
    );
}

#[test]
fn what_cannot_be_resolved_fails_the_task_with_the_expression_and_the_value() {
    for (broken, expected) in [
        (
            task("b").with(json!({"n": "{{ tasks.a.output.missing }}"})),
            "with: {{ tasks.a.output.missing }}: tasks.a.output has no field \"missing\"; it is {\"n\":1}",
        ),
        (
            task("b").when("tasks.a.output.missing > 3"),
            "when: {{ tasks.a.output.missing > 3 }}: tasks.a.output has no field \"missing\"; \
             tasks.a.output is {\"n\":1}",
        ),
        (
            task("b").limit("host", "{{ tasks.a.output.host }}"),
            "limits: {{ tasks.a.output.host }}: tasks.a.output has no field \"host\"; it is {\"n\":1}",
        ),
        (
            task("b").limit("host", "a\n{{ tasks.a.output.n }}"),
            "limits: \"host:a\\n1\" is not a limit key; write it as kind:name, such as host:example.org \
             (at most 256 bytes, kind of a-z, 0-9, _ and -)",
        ),
    ] {
        for optional in [false, true] {
            let b = if optional { broken.clone().optional() } else { broken.clone() };
            let mut job = Job::new(flow([task("a"), b.needs(["a"]), task("c").needs(["b"])]), json!(null));
            job.complete("a", json!({"n": 1}));
            assert_eq!(job.error("b"), expected);
            let states = if optional { "b skipped, c queued" } else { "b failed, c skipped" };
            assert_eq!(job.states(), format!("a completed, {states}"));
            assert_eq!(job.run.state.is_terminal(), !optional);
        }
    }
}

#[test]
fn an_input_has_a_size_and_a_depth() {
    let wrapped = |with: Value, input: Value| Job::new(flow([task("a").with(with)]), input);
    let large = wrapped(json!(["{{ input }}", "{{ input }}"]), json!("x".repeat(600_000)));
    assert_eq!(
        large.error("a"),
        "its input has 1200007 bytes, over the limit of 1048576: pass a reference instead of the data"
    );
    let deep = |levels: usize| (0..levels).fold(json!("{{ input }}"), |value, _| json!([value]));
    let input = (0..90).fold(json!(1), |value, _| json!([value]));
    assert_eq!(wrapped(deep(10), input.clone()).run.state, JobState::Pending);
    let too_deep = wrapped(deep(11), input.clone());
    assert_eq!(too_deep.error("a"), "with: the result nests deeper than 100 levels");

    let mut job = Job::new(flow([task("a")]).output(deep(11)), input);
    job.complete("a", json!(null));
    assert_eq!(job.run.state, JobState::Failed);
    assert_eq!(job.run.reason.as_deref(), Some("output: the result nests deeper than 100 levels"));
}

#[test]
fn a_job_that_cannot_begin_fails_at_once() {
    let job = Job::new(flow([task("a").with("{{ input.x }}"), task("b").needs(["a"])]), json!({}));
    assert_eq!((job.run.state, &*job.states()), (JobState::Failed, "a failed, b skipped"));
}

#[test]
fn the_output_is_made_when_the_job_completes() {
    let output = json!({
        "n": "{{ tasks.a.output.n }}", "of": "{{ input }}", "job": "{{ job.tenant }}", "b": "{{ tasks.b.state }}",
        "rest": "{{ tasks.b.output | default([]) }}", "none": "{{ tasks.b.output.x | default(7) }}",
    });
    let tasks = || flow([task("a"), task("b").needs(["a"]).optional()]);
    let mut job = Job::new(tasks().output(output.clone()), json!("in"));
    job.complete("a", json!({"n": 1}));
    assert_eq!(job.output, None);
    job.complete("b", json!({"x": 2}));
    let expected = json!({"n": 1, "of": "in", "job": "acme", "b": "completed", "rest": {"x": 2}, "none": 2});
    assert_eq!((job.run.state, job.output.clone()), (JobState::Completed, Some(expected)));

    // An optional task that failed has null for its output.
    let mut job = Job::new(tasks().output(output), json!("in"));
    job.complete("a", json!({"n": 1}));
    job.fail("b");
    let expected = json!({"n": 1, "of": "in", "job": "acme", "b": "skipped", "rest": null, "none": 7});
    assert_eq!((job.run.state, job.output.clone()), (JobState::Completed, Some(expected)));
}

#[test]
fn an_output_that_cannot_be_made_fails_the_job_and_a_failed_job_has_none() {
    let tasks = || flow([task("a")]).output("{{ tasks.a.output.n }}");
    let mut job = Job::new(tasks(), json!(null));
    job.complete("a", json!({}));
    assert_eq!((job.run.state, job.output.clone(), &*job.states()), (JobState::Failed, None, "a completed"));
    assert_eq!(
        job.run.reason.as_deref(),
        Some("output: {{ tasks.a.output.n }}: tasks.a.output has no field \"n\"; it is {}")
    );

    let mut job = Job::new(tasks(), json!(null));
    job.fail("a");
    assert_eq!((job.run.state, job.output.clone(), job.run.reason.clone()), (JobState::Failed, None, None));
}
