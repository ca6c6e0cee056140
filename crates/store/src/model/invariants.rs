//! What must be true of a model at any moment.

use super::Model;
use super::job::{End, Job, Location, Task};
use super::replay::Told;
use orchestrator_core::flow::run::{Group, Standing};
use orchestrator_core::{JobState, TaskState};

impl Model {
    /// Says what is broken, if anything.
    pub fn invariants(&self) -> Result<(), String> {
        self.invariants_since(&mut Told::default())
    }

    /// The same, for who asks after every step: what was read of the journal is not read again.
    pub fn invariants_since(&self, told: &mut Told) -> Result<(), String> {
        for (seq, job) in &self.jobs {
            let wrong = |what: String| format!("job {}: {what}: {job:?}", job.id);
            self.job_is_sane(job).map_err(wrong)?;
            self.waits_are_live(*seq, job).map_err(wrong)?;
            for (index, task) in &job.tasks {
                let wrong = |what| format!("task {index} of job {}: {what}: {job:?}", job.id);
                self.task_is_sane(job, *index, task).map_err(wrong)?;
            }
        }
        self.keys_name_their_jobs()?;
        self.journal_tells_the_truth(told)
    }

    fn task_is_sane(&self, job: &Job, index: u32, task: &Task) -> Result<(), String> {
        let wrong = |what: &str| Err(what.to_owned());
        let counters = task.counters;
        if counters.failures + counters.crashes > counters.attempt {
            return wrong("more failures and crashes than attempts");
        }
        if counters.attempt < job.run.attempts_before(index) {
            return wrong("its attempts fell behind those before it was reset");
        }
        match &task.location {
            Location::InLine(spot) => {
                let next = [false, true].map(|goes_on| (job.tier(index), job.tenant.clone(), goes_on));
                let next = next.iter().filter_map(|line| self.tenant_next.get(line)).max();
                if next.is_none_or(|next| spot.stamp >= *next) {
                    return wrong("its stamp was never handed out");
                }
            }
            Location::Leased(_) if counters.attempt == 0 => return wrong("runs without an attempt"),
            Location::Ended(end) if end.dead.is_some() && end.state != TaskState::Failed => {
                return wrong("in the dead letters without having failed");
            }
            Location::Ended(End { output: Some(_), state, .. })
                if !matches!(state, TaskState::Completed | TaskState::Skipped) =>
            {
                return wrong("an output without a good end");
            }
            _ => {}
        }
        Ok(())
    }

    fn job_is_sane(&self, job: &Job) -> Result<(), String> {
        standings_agree(job)?;
        job.run.groups.iter().try_for_each(|group| group_agrees(job, group))?;
        let alive = || job.tasks.values().filter(|task| task.is_alive());
        let lines = |task: &Task| matches!(task.location, Location::InLine(_) | Location::Waiting { .. });
        let held = |task: &Task| matches!(task.location, Location::Held { .. });
        let (state, paused) = (job.state(), job.run.is_paused());
        if paused != matches!(state, JobState::Pausing | JobState::Paused) {
            return Err("its clock and its state disagree on whether it is paused".to_owned());
        }
        if paused && alive().any(lines) || !paused && alive().any(held) {
            return Err("what is out of line and whether it is paused disagree".to_owned());
        }
        if paused && job.is_busy() != (state == JobState::Pausing) {
            return Err("pausing and what runs disagree".to_owned());
        }
        if state.is_terminal() && alive().next().is_some() {
            return Err("it has ended, but something of it lives".to_owned());
        }
        if state.is_terminal() != job.run.ended.is_some() {
            return Err("its end and its state disagree".to_owned());
        }
        if !job.header {
            let task = &job.tasks[&0];
            let told = JobState::of_only_task(task.state(), task.counters.attempt > 0);
            if told != state {
                return Err(format!("its one task says that it is {told}"));
            }
        }
        Ok(())
    }

    /// A job waits for jobs that are live, and has not begun.
    fn waits_are_live(&self, seq: u64, job: &Job) -> Result<(), String> {
        if job.run.waits as usize != job.waits_for.len() {
            return Err("the number of jobs that it waits for is wrong".to_owned());
        }
        let ended = job.waits_for.iter().find(|other| self.at(**other).state().is_terminal());
        if let Some(other) = ended {
            return Err(format!("job number {seq} waits for number {other}, which has ended"));
        }
        let begun = job.run.tasks.iter().any(|task| *task != Standing::Pending);
        if job.run.waits > 0 && begun { Err("it has begun before its time".to_owned()) } else { Ok(()) }
    }

    /// At most one live job per key, and it is the one that the key names.
    fn keys_name_their_jobs(&self) -> Result<(), String> {
        for (seq, job) in &self.jobs {
            let Some(key) = &job.key else { continue };
            let named = self.keys.get(key).copied();
            if !job.state().is_terminal() && named != Some(*seq) {
                return Err(format!("key {key:?} names job number {named:?}, but job {} is live", job.id));
            }
        }
        for (key, seq) in &self.keys {
            if self.jobs.get(seq).is_none_or(|job| job.key.as_ref() != Some(key)) {
                return Err(format!("key {key:?} names job number {seq}, which does not have it"));
            }
        }
        Ok(())
    }
}

/// What the run says of each task of the plan is where the task is, and what waits has something to wait for.
fn standings_agree(job: &Job) -> Result<(), String> {
    for (index, standing) in (0..).zip(&job.run.tasks) {
        let agrees = match &job.tasks[&index].location {
            Location::Pending => *standing == Standing::Pending,
            Location::Ended(end) => standing.is_over() && standing.state() == end.state,
            _ => *standing == Standing::Live,
        };
        if !agrees {
            return Err(format!("the run says that task {index} is {standing:?}"));
        }
        let needs = &job.plan.tasks()[index as usize].needs;
        let open = needs.iter().any(|need| !job.run.tasks[*need as usize].is_over());
        if *standing == Standing::Pending && !open && job.run.waits == 0 {
            return Err(format!("task {index} waits for nothing"));
        }
    }
    Ok(())
}

/// The counts of a `for_each` are those of its items, and no more of them are in than may be.
fn group_agrees(job: &Job, group: &Group) -> Result<(), String> {
    let items: Vec<&Task> =
        (group.first..group.first + group.count).map(|index| &job.tasks[&index]).collect();
    let count = |wanted: &dyn Fn(&Task) -> bool| items.iter().filter(|task| wanted(task)).count();
    let bad = |task: &Task| {
        use TaskState::{Cancelled, Failed, TimedOut};
        matches!(task.state(), Failed | TimedOut | Cancelled)
    };
    let ended = count(&|task| task.end().is_some());
    if (ended, count(&bad)) != (group.ended as usize, group.failed as usize) {
        return Err(format!("its ends are not those of {group:?}"));
    }
    let pending = count(&|task| matches!(task.location, Location::Pending));
    let open = (group.count - group.admitted) as usize + group.again.len();
    if !job.state().is_terminal() && pending != open {
        return Err(format!("{pending} items have not been let in, {open} by {group:?}"));
    }
    let each = job.plan.tasks()[group.task as usize].each.as_ref();
    let most = each.and_then(|each| each.concurrency).unwrap_or(u32::MAX);
    let inside = items.len() - ended - pending;
    if inside > most as usize { Err(format!("{inside} of {group:?} at once")) } else { Ok(()) }
}
