//! What was submitted, and what there is: nothing that was answered for is missing, and nothing else is there.

use super::found::Found;
use super::trace::{Asked, Trace};
use crate::{Answer, Call, LastJob};
use orchestrator_core::{JobId, Json};
use std::collections::{HashMap, HashSet};

pub(super) fn check(trace: &Trace<'_>, found: &mut Found) {
    let mut submits: HashMap<&str, Vec<Submit<'_>>> = HashMap::new();
    for asked in &trace.calls {
        if let Call::Submit { key, payload } = asked.call {
            submits.entry(key).or_default().push(Submit { payload, asked });
            if let Answer::Acked { job, .. } = asked.answer {
                acked_is_there(trace, key, payload, *job, found);
            }
        }
    }
    somebody_submitted_each(trace, &submits, found);
}

struct Submit<'a> {
    payload: &'a Json,
    asked: &'a Asked<'a>,
}

/// An ack is a promise: from then on the job exists, with what was submitted.
fn acked_is_there(trace: &Trace<'_>, key: &str, payload: &Json, id: JobId, found: &mut Found) {
    let Some(job) = trace.last.get(&id).map(|ended| ended.job) else {
        return found.lost(format!("the submit of key {key} was acked with job {id}, which is not there"));
    };
    if job.key.as_deref() != Some(key) {
        let has = job.key.as_deref().map_or("no key".to_owned(), |key| format!("key {key}"));
        found.wrong(format!("the submit of key {key} was acked with job {id}, which has {has}"));
    } else if !job.payload.same_value(payload) {
        let (has, sent) = (&job.payload, payload);
        found.wrong(format!("job {id} (key {key}) has the payload {has}, but {sent} was acked"));
    }
}

/// A job comes from a submit that was acked with it, or from one of which nobody knows. So there are at most as many
/// jobs that no ack names as there are unknown submits, and their payloads come from those.
fn somebody_submitted_each(trace: &Trace<'_>, submits: &HashMap<&str, Vec<Submit<'_>>>, found: &mut Found) {
    let acked: HashSet<JobId> = trace.calls.iter().filter_map(acked_job).collect();
    let mut unnamed: HashMap<&str, Vec<&LastJob>> = HashMap::new();
    for job in trace.last.values().map(|ended| ended.job) {
        match &job.key {
            None => found.wrong(format!("job {} has no key, so nobody submitted it", job.id)),
            Some(key) if acked.contains(&job.id) && submits.contains_key(&**key) => {}
            Some(key) => unnamed.entry(key).or_default().push(job),
        }
    }
    for (key, jobs) in unnamed {
        let of_key = submits.get(key).map_or(&[][..], Vec::as_slice);
        let unknown: Vec<&Json> =
            of_key.iter().filter(|submit| submit.asked.is_unknown()).map(|submit| submit.payload).collect();
        if unknown.is_empty() {
            let why = if of_key.is_empty() { "nobody submitted it" } else { "no submit can have made it" };
            for job in jobs {
                found.wrong(format!("job {} (key {key}) is there, but {why}", job.id));
            }
            continue;
        }
        if jobs.len() > unknown.len() {
            let ids: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
            let (ids, submits) = (ids.join(", "), unknown.len());
            found.doubled(format!(
                "key {key} has the jobs {ids} that no ack names, but only {submits} submits of it are unknown"
            ));
        }
        for job in jobs {
            if !unknown.iter().any(|payload| job.payload.same_value(payload)) {
                let (id, has) = (job.id, &job.payload);
                found.wrong(format!("job {id} (key {key}) has the payload {has}, which nobody submitted"));
            }
        }
    }
}

fn acked_job(asked: &Asked<'_>) -> Option<JobId> {
    match asked.answer {
        Answer::Acked { job, .. } => Some(*job),
        _ => None,
    }
}
