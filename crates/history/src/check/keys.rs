//! One key, one work: at any moment at most one of its jobs lives or has completed.
//!
//! A key whose job ended badly may be submitted anew. The job of before is then superseded: it stays as it ended, for
//! its key belongs to the new one.

use super::found::Found;
use super::trace::{END, Fact, Place, Trace};
use crate::{Answer, Call, LastJob};
use orchestrator_core::{JobId, JobState};
use std::collections::{BTreeSet, HashMap, HashSet};

pub(super) fn check(trace: &Trace<'_>, found: &mut Found) {
    one_is_not_ended_badly(trace, found);
    let makings = makings(trace, found);
    let mut jobs: HashMap<&str, BTreeSet<JobId>> = HashMap::new();
    for asked in &trace.calls {
        if let (Call::Submit { key, .. }, Answer::Acked { job, .. }) = (asked.call, asked.answer) {
            jobs.entry(key).or_default().insert(*job);
        }
    }
    for job in trace.last.values().map(|ended| ended.job) {
        if let Some(key) = &job.key {
            jobs.entry(key).or_default().insert(job.id);
        }
    }
    for (key, jobs) in jobs.iter().filter(|(_, jobs)| jobs.len() > 1) {
        if let Some(makings) = makings.get(key) {
            superseded_stay_ended(trace, key, jobs, makings, found);
        }
    }
}

fn ended_badly(state: JobState) -> bool {
    matches!(state, JobState::Failed | JobState::TimedOut | JobState::Cancelled)
}

/// At the end nothing is in motion, so the jobs of a key can be counted.
fn one_is_not_ended_badly(trace: &Trace<'_>, found: &mut Found) {
    let mut good: HashMap<&str, Vec<&LastJob>> = HashMap::new();
    for job in trace.last.values().map(|ended| ended.job) {
        if let (Some(key), false) = (&job.key, ended_badly(job.state)) {
            good.entry(key).or_default().push(job);
        }
    }
    for (key, mut jobs) in good.into_iter().filter(|(_, jobs)| jobs.len() > 1) {
        jobs.sort_by_key(|job| job.id);
        let jobs: Vec<String> = jobs.iter().map(|job| format!("{} ({})", job.id, job.state)).collect();
        found.doubled(format!(
            "key {key} has {} jobs that did not end badly: {}",
            jobs.len(),
            jobs.join(", ")
        ));
    }
}

/// A submit that made a job, for certain.
struct Making {
    job: JobId,
    called: Place,
    answered: Place,
}

/// The submits by key that made a job, in the order in which they were called. A job is made once, and was not known before.
fn makings<'a>(trace: &Trace<'a>, found: &mut Found) -> HashMap<&'a str, Vec<Making>> {
    let mut makings: HashMap<&str, Vec<Making>> = HashMap::new();
    let mut made = HashSet::new();
    for asked in &trace.calls {
        let (Call::Submit { key, .. }, Answer::Acked { job, created: true }) = (asked.call, asked.answer)
        else {
            continue;
        };
        let (called, answered) = (asked.called, asked.answered);
        let known_before = trace.job(*job).known.is_some_and(|known| known < called);
        if !made.insert(*job) || known_before {
            found.doubled(format!(
                "job {job} (key {key}) was there, and another submit was told that it made it"
            ));
        }
        makings.entry(key).or_default().push(Making { job: *job, called, answered });
    }
    makings
}

/// A job that was known before another of its key was asked for had ended badly when that one was made, and cannot be
/// revived any more.
fn superseded_stay_ended(
    trace: &Trace<'_>,
    key: &str,
    jobs: &BTreeSet<JobId>,
    makings: &[Making],
    found: &mut Found,
) {
    for id in jobs {
        let job = trace.job(*id);
        let Some(known) = job.known else { continue };
        let later = &makings[makings.partition_point(|making| making.called < known)..];
        let Some(next) = later.iter().filter(|making| making.job != *id).min_by_key(|making| making.answered)
        else {
            continue;
        };
        let successor = next.job;
        let at_the_end = trace.last.get(id).map(|ended| (END, Fact::In(ended.job.state)));
        let sights = job.sights.iter().map(|sight| (sight.called, sight.fact)).chain(at_the_end);
        if sights.filter(|(called, _)| *called > next.answered).any(|(_, fact)| !is_superseded(fact)) {
            found.doubled(format!(
                "job {id} (key {key}) did not stay ended though job {successor} was made for its key"
            ));
        }
    }
}

/// Whether a superseded job may be seen so.
fn is_superseded(fact: Fact) -> bool {
    match fact {
        Fact::In(state) => ended_badly(state),
        Fact::HoldsKey | Fact::Live | Fact::Revived => false,
        // Told by the rule that a job is made once.
        Fact::Made => true,
    }
}
