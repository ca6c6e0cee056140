//! Each way of being dishonest that a history can show, done to histories of the honest system: the checker must see it.

use crate::play::{Story, play};
use crate::scene::{json, seen};
use fastrand::Rng;
use orchestrator_core::{JobId, JobState, LimitKey, TaskId, TaskState, Timestamp};
use orchestrator_history::{Answer, Call, Event, Kind, LastJob, LastTask, Run, check};

/// Changes a story, or says that it has nothing to be changed so.
type Mutation = fn(&mut Story, &mut Rng) -> Option<()>;

const MUTATIONS: &[(&str, Mutation)] = &[
    ("drop a job", drop_job),
    ("change a payload", change_payload),
    ("change a key", change_key),
    ("leave a job open", open_job),
    ("end a job otherwise than it was seen", end_otherwise),
    ("make a second job for a key", second_job),
    ("deny the submits of a job", deny_submits),
    ("ack with the job of another key", ack_another),
    ("do not find a job", not_found),
    ("see an older attempt", older_attempt),
    ("see a job live that has ended", live_again),
    ("start an attempt twice", start_twice),
    ("start an attempt that was never handed out", start_unknown),
    ("start what is over", start_over),
    ("start before what is needed", start_early),
    ("lose the run that completed a task", lose_finish),
    ("swap an output", swap_output),
    ("complete at another attempt", other_attempt),
    ("cancel what completed", cancel_completed),
    ("count more crashes than attempts", too_many_crashes),
    ("leave a task open in an ended job", open_task),
    ("work under a full limit", over_limit),
];

#[test]
fn every_mutation_is_caught() {
    let stories: Vec<Story> = (0..400).map(play).collect();
    for (name, mutation) in MUTATIONS {
        let mut tried = 0;
        for (seed, story) in (0..).zip(&stories) {
            let mut story = story.clone();
            let mut rng = Rng::with_seed(seed);
            if mutation(&mut story, &mut rng).is_none() {
                continue;
            }
            tried += 1;
            let verdict = check(&story.history, &story.last, &story.rules);
            // That calls fail is no proof of anything.
            let caught = verdict.findings.iter().any(|finding| finding.kind != Kind::Unavailable);
            assert!(caught, "{name}: not caught with seed {seed}");
        }
        assert!(tried >= 20, "{name}: only {tried} stories have what it changes");
    }
}

fn pick<'a>(story: &'a mut Story, rng: &mut Rng, fits: impl Fn(&LastJob) -> bool) -> Option<&'a mut LastJob> {
    rng.choice(story.last.jobs.iter_mut().filter(|job| fits(job)).collect::<Vec<_>>())
}

/// A task, with its job, that fits.
fn pick_task<'a>(
    story: &'a mut Story,
    rng: &mut Rng,
    fits: impl Fn(&LastTask) -> bool,
) -> Option<(JobId, &'a mut LastTask)> {
    let tasks = story.last.jobs.iter_mut().flat_map(|job| {
        let id = job.id;
        job.tasks.iter_mut().map(move |task| (id, task))
    });
    rng.choice(tasks.filter(|(_, task)| fits(task)).collect::<Vec<_>>())
}

fn is_completed(task: &LastTask) -> bool {
    task.state == TaskState::Completed
}

fn note(story: &mut Story, event: Event) {
    let tick = story.history.events.len() as u64;
    story.history.note(tick, event);
}

fn ask(story: &mut Story, call: Call, answer: Answer) {
    let tick = story.history.events.len() as u64;
    let id = story.history.call(tick, call);
    story.history.answer(tick, id, answer);
}

fn is_acked(story: &Story, id: JobId) -> bool {
    story.history.events.iter().any(
        |(_, event)| matches!(event, Event::Answered { answer: Answer::Acked { job, .. }, .. } if *job == id),
    )
}

/// Whether somebody asked to revive a job, which can explain much.
fn may_be_revived(story: &Story, id: JobId) -> bool {
    let revives =
        |event: &Event| matches!(event, Event::Called { call: Call::Revive { job }, .. } if *job == id);
    story.history.events.iter().any(|(_, event)| revives(event))
}

/// The place of the event that finished a run.
fn finish_of(story: &Story, run: Run) -> Option<usize> {
    let finished = |event: &Event| matches!(event, Event::Finished { run: other, .. } if *other == run);
    story.history.events.iter().position(|(_, event)| finished(event))
}

fn drop_job(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let acked: Vec<JobId> =
        story.last.jobs.iter().map(|job| job.id).filter(|id| is_acked(story, *id)).collect();
    let dropped = rng.choice(acked)?;
    story.last.jobs.retain(|job| job.id != dropped);
    Some(())
}

fn change_payload(story: &mut Story, rng: &mut Rng) -> Option<()> {
    pick(story, rng, |_| true)?.payload = json("{}");
    Some(())
}

fn change_key(story: &mut Story, rng: &mut Rng) -> Option<()> {
    pick(story, rng, |_| true)?.key = Some("never submitted".into());
    Some(())
}

fn open_job(story: &mut Story, rng: &mut Rng) -> Option<()> {
    pick(story, rng, |_| true)?.state = JobState::Running;
    Some(())
}

fn end_otherwise(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let job = pick(story, rng, |job| job.state == JobState::Completed)?;
    job.state = JobState::Failed;
    let call = Call::Read { job: job.id };
    ask(story, call, seen(JobState::Completed, &[]));
    Some(())
}

fn second_job(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let job = pick(story, rng, |job| job.state == JobState::Completed)?;
    let id = JobId::from_parts(Timestamp::from_millis(1), 1);
    let twin = LastJob { id, ..job.clone() };
    story.last.jobs.push(twin);
    Some(())
}

fn deny_submits(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let key = pick(story, rng, |_| true)?.key.clone()?;
    let of_key = |event: &Event| match event {
        Event::Called { id, call: Call::Submit { key: other, .. } } if *other == key => Some(*id),
        _ => None,
    };
    let calls: Vec<_> = story.history.events.iter().filter_map(|(_, event)| of_key(event)).collect();
    for call in calls {
        let answers = story.history.events.iter_mut().filter_map(|(_, event)| match event {
            Event::Answered { id, answer } if *id == call => Some(answer),
            _ => None,
        });
        let Some(answer) = answers.last() else {
            story.history.answer(0, call, Answer::Failed);
            continue;
        };
        *answer = Answer::Failed;
    }
    Some(())
}

fn ack_another(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let job = pick(story, rng, |_| true)?.id;
    let call = Call::Submit { key: "another".into(), payload: json("{}") };
    ask(story, call, Answer::Acked { job, created: false });
    Some(())
}

fn not_found(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let job = pick(story, rng, |_| true)?.id;
    if !is_acked(story, job) {
        return None;
    }
    ask(story, Call::Read { job }, Answer::NotFound);
    Some(())
}

fn older_attempt(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (job, task) = pick_task(story, rng, |task| is_completed(task) && task.attempt > 1)?;
    let sight = (task.index, TaskState::Running, task.attempt - 1);
    ask(story, Call::Read { job }, seen(JobState::Running, &[sight]));
    Some(())
}

fn live_again(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let job = pick(story, rng, |job| job.state == JobState::Completed)?.id;
    ask(story, Call::Read { job }, seen(JobState::Completed, &[]));
    ask(story, Call::Read { job }, seen(JobState::Running, &[]));
    Some(())
}

fn starts(story: &Story) -> Vec<usize> {
    let events = story.history.events.iter().enumerate();
    events.filter(|(_, (_, event))| matches!(event, Event::Started { .. })).map(|(at, _)| at).collect()
}

fn start_twice(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let at = rng.choice(starts(story))?;
    let again = story.history.events[at].clone();
    story.history.events.insert(at + 1, again);
    Some(())
}

fn start_unknown(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (job, task) = pick_task(story, rng, |_| true)?;
    let run = Run { task: TaskId { job, index: task.index }, attempt: task.attempt + 1 };
    note(story, Event::Started { run, limits: vec![] });
    Some(())
}

fn start_over(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (job, task) = pick_task(story, rng, is_completed)?;
    let sight = (task.index, TaskState::Completed, task.attempt);
    task.attempt += 1;
    let run = Run { task: TaskId { job, index: task.index }, attempt: task.attempt };
    let output = task.output.clone();
    ask(story, Call::Read { job }, seen(JobState::Running, &[sight]));
    note(story, Event::Started { run, limits: vec![] });
    note(story, Event::Finished { run, output });
    (!may_be_revived(story, job)).then_some(())
}

fn start_early(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (job, task) = pick_task(story, rng, |task| task.attempt > 0 && !task.needs.is_empty())?;
    let task = TaskId { job, index: task.index };
    if may_be_revived(story, job) {
        return None;
    }
    let is_start = |event: &Event| matches!(event, Event::Started { run, .. } if run.task == task);
    let started = story.history.events.iter().position(|(_, event)| is_start(event))?;
    // Task 0 is what all others need.
    let need = TaskId { job, index: 0 };
    let of_need = |event: &Event| matches!(event, Event::Finished { run, .. } if run.task == need);
    let finished = story.history.events.iter().position(|(_, event)| of_need(event))?;
    let event = story.history.events.remove(started);
    story.history.events.insert(finished, event);
    Some(())
}

fn lose_finish(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (job, task) = pick_task(story, rng, is_completed)?;
    let run = Run { task: TaskId { job, index: task.index }, attempt: task.attempt };
    let at = finish_of(story, run)?;
    story.history.events.remove(at);
    Some(())
}

fn swap_output(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (_, task) = pick_task(story, rng, is_completed)?;
    task.output = Some(json("\"of another\""));
    Some(())
}

fn other_attempt(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (_, task) = pick_task(story, rng, is_completed)?;
    task.attempt += 1;
    Some(())
}

fn cancel_completed(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let job = pick(story, rng, |job| job.state == JobState::Completed)?.id;
    ask(story, Call::Cancel { job }, Answer::Done);
    Some(())
}

fn too_many_crashes(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (_, task) = pick_task(story, rng, |_| true)?;
    task.crashes = task.attempt + 1;
    Some(())
}

fn open_task(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let (_, task) = pick_task(story, rng, |_| true)?;
    task.state = TaskState::Queued;
    Some(())
}

fn over_limit(story: &mut Story, rng: &mut Rng) -> Option<()> {
    let limit: LimitKey = story.rules.limits.keys().next()?.clone();
    story.rules.limits.insert(limit, 0);
    rng.choice(starts(story)).map(drop)
}
