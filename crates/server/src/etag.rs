//! The tag of a job, so that a change can be asked for on the condition that nothing has changed since.
//!
//! It is of the job itself and not of its tasks: one that works goes on and on, and a cancel that only holds while no task
//! moves would never hold.

use crate::problem::Problem;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use orchestrator_core::JobState;
use orchestrator_engine::{JobError, JobHandle};
use orchestrator_store::JobView;
use siphasher::sip::SipHasher13;
use std::hash::{Hash, Hasher};

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

/// What a request expects of a job, by its `If-Match`: the state in which the caller saw it. None where it expects nothing.
pub async fn expected(headers: &HeaderMap, handle: &JobHandle) -> Result<Option<JobState>, Problem> {
    let Some(given) = headers.get(IF_MATCH) else { return Ok(None) };
    let job = handle.view().await?;
    let tag = of(&job);
    let given = given.to_str().unwrap_or_default();
    if given.split(',').map(str::trim).any(|one| one == "*" || one == tag) {
        Ok(Some(job.state))
    } else {
        Err(JobError::Changed { job: job.id, state: job.state }.into())
    }
}
