//! Jobs as they are written in a batch.

use orchestrator_api::batch::JobBatch;
use orchestrator_core::{Json, NewJob, Work};
use orchestrator_engine::{DocumentFields, JobFields};
use orchestrator_store::{StoreError, StoreResult};
use std::collections::BTreeMap;

/// Writes jobs. Each flow stands once in the batch, under its hash.
pub fn batch(jobs: &[NewJob]) -> StoreResult<JobBatch> {
    let mut batch = JobBatch::default();
    for job in jobs {
        if let Work::Flow(plan) = &job.work
            && !batch.flows.contains_key(&**plan.hash())
        {
            batch.flows.insert(plan.hash().to_string(), Json::trusted(plan.text().to_string()));
        }
        let fields = fields(job)?;
        batch.jobs.push(Json::of(&fields).map_err(|error| StoreError::Invalid(error.to_string()))?);
    }
    Ok(batch)
}

/// Whether the server makes the very key of the job, from the flow and its input.
fn is_made_again(job: &NewJob) -> bool {
    match &job.work {
        Work::Flow(plan) => job.rerun_of.is_none() && plan.derive_key(&job.payload).ok().flatten() == job.key,
        Work::Task { .. } => false,
    }
}

fn fields(job: &NewJob) -> StoreResult<JobFields> {
    let key = job.key.as_ref().filter(|key| !key.derived);
    if key.is_none() && job.key.is_some() && !is_made_again(job) {
        return Err(StoreError::Invalid(
            "a key that its flow did not make cannot be sent as such".to_owned(),
        ));
    }
    let text = |word: &Option<std::sync::Arc<str>>| word.as_ref().map(|word| word.to_string());
    let common = JobFields {
        artifact_id: key.map(|key| key.text.to_string()),
        window: key.and_then(|key| key.window),
        priority: Some(job.priority.to_string()),
        run_at: job.run_at.map(|at| at.to_string()),
        tenant: Some(job.tenant.to_string()),
        after: job.after.clone(),
        context: job.meta.context.clone(),
        correlation_id: text(&job.meta.correlation_id),
        traceparent: text(&job.meta.traceparent),
        user: text(&job.meta.user),
        rerun_of: job.rerun_of,
        document: job.document.as_ref().map(DocumentFields::of),
        ..JobFields::default()
    };
    let (spec, limits) = match &job.work {
        Work::Flow(plan) => {
            let flow = Some(plan.hash().to_string());
            return Ok(JobFields { flow, input: Some(job.payload.clone()), ..common });
        }
        Work::Task { spec, limits } => (spec, limits),
    };
    let Some(timeout) = spec.timeout else {
        return Err(StoreError::Invalid(
            "a job without a limit on its time cannot be sent to a server".to_owned(),
        ));
    };
    let named: BTreeMap<String, String> =
        limits.keys().iter().map(|key| (key.kind().to_owned(), key.name().to_owned())).collect();
    if named.len() < limits.keys().len() {
        let message = "a job under two limits of one kind cannot be sent to a server";
        return Err(StoreError::Invalid(message.to_owned()));
    }
    Ok(JobFields {
        handler: Some(spec.handler.to_string()),
        payload: Some(job.payload.clone()),
        queue: Some(spec.queue.to_string()),
        retry: Some(spec.retry),
        timeout: Some(timeout),
        max_crashes: Some(spec.max_crashes),
        limits: named,
        ..common
    })
}
