//! What the fuzz targets and the tests that replay their corpus call. Each function takes an input from outside
//! and panics where something that must hold for every input does not.

use crate::commands::queue::lines::Lines;
use crate::config::{self, Sources, layered, problem_lines, render};
use crate::flow::graph;
use crate::intake::Intake;
use orchestrator_core::flow::Plan;
use orchestrator_core::{Json, Work};
use orchestrator_worker::builtin::{BuiltinConfig, registry};
use std::io::BufReader;

/// Lines of `queue import`: each is answered once, as a job that the store takes or as a reject.
pub fn jsonl(bytes: &[u8]) {
    let config = settings("[queue]\nmax_payload = \"1KB\"\n").expect("they are right").config;
    let max_payload = config.queue.max_payload.0 as usize;
    let intake = || Intake::new(&config, registry(BuiltinConfig::default()), false);
    // A small buffer, so that lines come in pieces.
    let mut lines = Lines::new(BufReader::with_capacity(13, bytes), intake());
    let (mut read, mut answered) = (0, vec![]);
    while let Some(chunk) = lines.chunk().expect("memory is read without errors") {
        read += chunk.bytes;
        assert_eq!(chunk.jobs.len(), chunk.lines.len());
        for (job, (line, text)) in chunk.jobs.iter().zip(&chunk.lines) {
            assert_eq!(job.problems(max_payload), [], "line {line}");
            assert!(Json::parse(job.payload.as_str()).is_ok(), "line {line}: nobody can read the payload");
            if let Work::Task { spec, limits } = &job.work {
                let stored = serde_json::to_string(&(spec, limits)).expect("both have a JSON form");
                assert_eq!(
                    stored,
                    Plan::of_task_from_text(&stored).expect("it was just written").text().as_ref()
                );
            }
            let again = intake().line(text);
            assert_eq!(again.map(|again| format!("{again:?}")), Ok(format!("{job:?}")), "line {line}");
            answered.push(*line);
        }
        for reject in &chunk.rejects {
            assert!(!reject.reason.is_empty());
            serde_json::to_string(reject).expect("the rejects file takes it");
            answered.push(reject.line);
        }
    }
    assert_eq!(read, bytes.len() as u64);
    answered.sort_unstable();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let said =
        (1..).zip(bytes.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
    assert_eq!(answered, said.map(|(line, _)| line).collect::<Vec<u64>>());
}

/// A configuration file: what `config show` writes of it reads back as the same settings.
pub fn config(text: &str) {
    let first = match settings(text) {
        Ok(first) => first,
        Err(problems) => {
            assert!(!problem_lines(&problems).is_empty());
            return;
        }
    };
    for origins in [false, true] {
        let shown = render::effective_file(&first, origins);
        let again = settings(&shown).unwrap_or_else(|problems| panic!("{problems:#?} in\n{shown}"));
        assert_eq!(render::effective_json(&again, false), render::effective_json(&first, false), "{shown}");
        assert_eq!(again.config.limit_rules(), first.config.limit_rules(), "{shown}");
    }
    render::effective_json(&first, true);
}

/// A flow: every drawing shows each task.
pub fn drawings(plan: &Plan) {
    let nodes = graph::text(plan).matches('●').count();
    assert!(nodes >= plan.tasks().len());
    for drawing in [graph::mermaid(plan), graph::dot(plan), graph::as_json(plan).to_string()] {
        assert!(plan.tasks().iter().all(|task| drawing.contains(&*task.name)), "{drawing}");
    }
}

fn settings(text: &str) -> Result<config::Loaded, Vec<config::Problem>> {
    layered("orchestrator.toml", Ok(text.to_owned()), &Sources::default())
}
