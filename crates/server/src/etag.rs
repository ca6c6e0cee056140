//! The tag of a job, so that a change can be asked for on the condition that nothing has changed since.
//!
//! It is of the job itself and not of its tasks: one that works goes on and on, and a cancel that only holds while no task
//! moves would never hold.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::response::Response;
use orchestrator_engine::{JobError, JobHandle};
use orchestrator_store::JobView;
use siphasher::sip::SipHasher13;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};
use utoipa::IntoParams;

/// The tag of a job.
pub fn of(job: &JobView) -> String {
    let mut hash = SipHasher13::new();
    (job.id, job.state, job.recoveries, job.started, job.ended, job.deadline).hash(&mut hash);
    (&job.waits_for, &job.reason).hash(&mut hash);
    format!("\"{:016x}\"", hash.finish())
}

/// Puts the tag on an answer.
pub fn put(response: &mut Response, job: &JobView) {
    if let Ok(tag) = HeaderValue::from_str(&of(job)) {
        response.headers_mut().insert(ETAG, tag);
    }
}

/// The `If-Match` of a request.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct IfMatch {
    /// The tag of the job as it was seen: nothing is done if it has changed.
    #[param(rename = "If-Match", value_type = Option<String>)]
    given: Option<HeaderValue>,
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(IfMatch { given: parts.headers.get(IF_MATCH).cloned() })
    }
}

impl IfMatch {
    /// The job, to be changed only while it is in the state in which the caller saw it, where the request says so.
    pub async fn guard(self, handle: JobHandle) -> Result<JobHandle, Problem> {
        let Some(given) = self.given else { return Ok(handle) };
        let job = handle.view().await?;
        let tag = of(&job);
        let given = given.to_str().unwrap_or_default();
        if given.split(',').map(str::trim).any(|one| one == "*" || one == tag) {
            Ok(handle.expecting(job.state))
        } else {
            Err(JobError::Changed { job: job.id, state: job.state }.into())
        }
    }
}
