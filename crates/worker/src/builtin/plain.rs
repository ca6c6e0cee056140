//! `noop` and `sleep`: handlers without an outside effect, for benchmarks and first steps.

use super::fields::{Fields, ROOT, refused};
use crate::handler::{Handler, Work};
use async_trait::async_trait;
use orchestrator_core::{FieldError, Json, Millis, Outcome};

/// Takes any payload and completes with `null`.
pub(super) struct Noop;

#[async_trait]
impl Handler for Noop {
    async fn run(&self, _work: Work) -> Outcome {
        Outcome::Completed(Json::null())
    }
}

/// `{"for": "2s"}` waits so long and completes with `{"slept": "2s"}`.
pub(super) struct Sleep;

fn span(payload: &Json) -> Result<Millis, Vec<FieldError>> {
    let mut fields = Fields::open(ROOT, payload);
    let span = fields.required("for");
    fields.finish(span)
}

#[async_trait]
impl Handler for Sleep {
    async fn run(&self, work: Work) -> Outcome {
        match span(&work.leased.payload) {
            Ok(span) => {
                let slept = work.cancelled.run_until_cancelled(tokio::time::sleep(span.into())).await;
                match slept {
                    Some(()) => Outcome::Completed(serde_json::json!({ "slept": span }).into()),
                    None => Outcome::Released,
                }
            }
            Err(errors) => Outcome::Failed(refused(errors)),
        }
    }

    fn check(&self, payload: &Json) -> Vec<FieldError> {
        span(payload).err().unwrap_or_default()
    }
}
