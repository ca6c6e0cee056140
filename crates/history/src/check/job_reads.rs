//! What was told about a job stays true: a job that is known does not vanish, and one that has ended stays so.

use super::found::Found;
use super::trace::{END, Fact, JobTrace, Sight, Trace};
use orchestrator_core::{JobId, JobState};

pub(super) fn check(trace: &Trace<'_>, found: &mut Found) {
    for (id, job) in &trace.jobs {
        known_is_found(trace, *id, job, found);
        ended_stays_ended(trace, *id, job, found);
    }
}

/// Nothing removes jobs, so what was told once is found by every call that begins later, and at the end.
fn known_is_found(trace: &Trace<'_>, id: JobId, job: &JobTrace, found: &mut Found) {
    let Some(known) = job.known else { return };
    let vanished = job.not_found.iter().filter(|called| **called > known).count();
    if vanished > 0 {
        found.lost(format!("{} was known, and {vanished} later calls did not find it", trace.name(id)));
    }
    // A job that an ack names is told of by the rule about submits.
    let acked = job.sights.iter().any(|sight| matches!(sight.fact, Fact::Made | Fact::HoldsKey));
    if !acked && !trace.last.contains_key(&id) {
        found.lost(format!("job {id} was seen, and is not there at the end"));
    }
}

/// Only a revival leads out of an end, and only out of some ends.
fn ended_stays_ended(trace: &Trace<'_>, id: JobId, job: &JobTrace, found: &mut Found) {
    let last = trace.last.get(&id).map(|ended| ended.job.state);
    let end = last.map(|state| Sight { called: END, answered: END, fact: Fact::In(state) });
    for sight in job.sights.iter().copied().chain(end) {
        for (state, called) in job.ends.before(sight.called) {
            let revived = can_be_revived(state) && job.may_have_revived(called, sight.answered);
            if revived || may_follow(state, sight.fact) {
                continue;
            }
            let (name, seen) = (trace.name(id), shown(sight));
            let what = format!("{name} was {state}, and without a revival {seen}");
            match sight.fact {
                Fact::In(other) if other.is_terminal() => found.wrong(what),
                _ => found.lost(what),
            }
        }
    }
}

/// Whether the table of moves has a way out of this end.
fn can_be_revived(end: JobState) -> bool {
    end.can_become(JobState::Recovering)
}

/// Whether a job that ended so, and that nobody revived, may be seen so.
fn may_follow(end: JobState, fact: Fact) -> bool {
    match fact {
        Fact::In(state) => state == end,
        Fact::HoldsKey => end == JobState::Completed,
        Fact::Live => false,
        Fact::Revived => can_be_revived(end),
        // Told by the rule that a job is made once.
        Fact::Made => true,
    }
}

fn shown(sight: Sight) -> String {
    match sight.fact {
        Fact::In(state) if sight.called == END => format!("it is {state} at the end"),
        Fact::In(state) => format!("it was {state} later"),
        Fact::HoldsKey => "a later submit was answered with it".to_owned(),
        Fact::Live => "it could be paused or resumed later".to_owned(),
        Fact::Revived => "it could be revived later".to_owned(),
        Fact::Made => "it was made later".to_owned(),
    }
}
