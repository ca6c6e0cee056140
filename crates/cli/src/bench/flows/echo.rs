//! The handlers of the benchmark: they do next to nothing, but what they got can be seen in what they give.

use super::number;
use orchestrator_core::{ErrorClass, Failure, Json, Outcome};
use orchestrator_worker::{Registry, Work, handler_fn, typed};
use serde::{Deserialize, Serialize};

/// How many items a fan-out is to have.
#[derive(Deserialize)]
struct Count {
    count: u64,
}

/// What the items of a fan-out gave, as its join gets it.
#[derive(Deserialize)]
struct Seen {
    seen: Vec<u64>,
}

/// What a join makes of it.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// How many items it saw.
    pub count: u64,
    /// What they add up to.
    pub sum: u64,
}

/// Every handler.
pub fn handlers() -> Registry {
    Registry::new()
        .with("noop", handler_fn(|_| async { Outcome::Completed(Json::null()) }))
        .with("echo", handler_fn(|work: Work| async move { Outcome::Completed(work.leased.payload) }))
        .with("number", handler_fn(|work: Work| async move { the_number(&work.leased.payload) }))
        .with("list", typed(|wanted: Count, _| async move { Ok((0..wanted.count).collect::<Vec<_>>()) }))
        .with(
            "sum",
            typed(|Seen { seen }: Seen, _| async move {
                Ok(Sum { count: seen.len() as u64, sum: seen.iter().sum() })
            }),
        )
}

fn the_number(input: &Json) -> Outcome {
    match number(input) {
        Some(n) => Outcome::Completed(Json::from(serde_json::Value::from(n))),
        None => Outcome::Failed(Failure::new(ErrorClass::Validation, "there is no number in the input")),
    }
}
