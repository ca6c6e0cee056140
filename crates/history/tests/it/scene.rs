//! Small histories, told step by step.

use orchestrator_core::{JobId, JobState, Json, LimitKey, TaskId, TaskState, Timestamp};
use orchestrator_history::{
    Answer, Call, CallId, Event, History, Kind, LastJob, LastTask, LastWord, Rules, Run, Seen, SeenTask,
    Verdict, check,
};

/// A history under construction, and the end that it comes to.
#[derive(Default)]
pub struct Scene {
    pub history: History,
    pub last: LastWord,
    pub rules: Rules,
    jobs: u128,
}

pub fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub fn limit(text: &str) -> LimitKey {
    text.parse().unwrap()
}

/// What every handler gives unless told otherwise.
pub const OUTPUT: &str = r#"{"ok":true}"#;

impl Scene {
    pub fn new() -> Self {
        Scene::default()
    }

    /// An id that no job has yet.
    pub fn id(&mut self) -> JobId {
        self.jobs += 1;
        JobId::from_parts(Timestamp::from_millis(1_700_000_000_000), self.jobs)
    }

    pub fn note(&mut self, event: Event) {
        let tick = self.history.events.len() as u64;
        self.history.note(tick, event);
    }

    pub fn call(&mut self, call: Call) -> CallId {
        let tick = self.history.events.len() as u64;
        self.history.call(tick, call)
    }

    pub fn answer(&mut self, id: CallId, answer: Answer) {
        self.note(Event::Answered { id, answer });
    }

    /// A call that is answered at once.
    pub fn ask(&mut self, call: Call, answer: Answer) {
        let id = self.call(call);
        self.answer(id, answer);
    }

    pub fn submit(&mut self, key: &str, answer: Answer) {
        self.ask(submit(key), answer);
    }

    pub fn read(&mut self, job: JobId, state: JobState, tasks: &[(u32, TaskState, u32)]) {
        self.ask(Call::Read { job }, seen(state, tasks));
    }

    pub fn start(&mut self, job: JobId, index: u32, attempt: u32) {
        self.start_under(job, index, attempt, vec![]);
    }

    pub fn start_under(&mut self, job: JobId, index: u32, attempt: u32, limits: Vec<LimitKey>) {
        self.note(Event::Started { run: run(job, index, attempt), limits });
    }

    pub fn finish(&mut self, job: JobId, index: u32, attempt: u32, output: Option<&str>) {
        let run = run(job, index, attempt);
        self.note(Event::Finished { run, output: output.map(json) });
    }

    pub fn abort(&mut self, job: JobId, index: u32, attempt: u32) {
        self.note(Event::Aborted { run: run(job, index, attempt) });
    }

    /// A submit that makes a job.
    pub fn acked(&mut self, key: &str) -> JobId {
        let job = self.id();
        self.submit(key, Answer::Acked { job, created: true });
        job
    }

    /// A job of one task that is submitted, runs once and completes.
    pub fn completed(&mut self, key: &str) -> JobId {
        let job = self.acked(key);
        self.start(job, 0, 1);
        self.finish(job, 0, 1, Some(OUTPUT));
        self.ends(job, key, JobState::Completed, vec![task(0, TaskState::Completed, 1)]);
        job
    }

    /// A job of one task that is submitted, runs once and fails.
    pub fn failed(&mut self, key: &str) -> JobId {
        let job = self.acked(key);
        self.start(job, 0, 1);
        self.finish(job, 0, 1, None);
        let failed = LastTask { failures: 1, ..task(0, TaskState::Failed, 1) };
        self.ends(job, key, JobState::Failed, vec![failed]);
        job
    }

    /// How a job stands at the end.
    pub fn ends(&mut self, id: JobId, key: &str, state: JobState, tasks: Vec<LastTask>) {
        self.last.jobs.push(LastJob { id, key: Some(key.into()), payload: payload(key), state, tasks });
    }

    pub fn last(&mut self, id: JobId) -> &mut LastJob {
        self.last.jobs.iter_mut().find(|job| job.id == id).unwrap()
    }

    pub fn verdict(&self) -> Verdict {
        check(&self.history, &self.last, &self.rules)
    }

    #[track_caller]
    pub fn is_clean(&self) {
        let verdict = self.verdict();
        assert!(verdict.is_clean(), "{:#?}", verdict.findings);
    }

    /// That there is exactly one finding, of this kind and with these words.
    #[track_caller]
    pub fn finds(&self, kind: Kind, words: &str) {
        let findings = self.verdict().findings;
        let [finding] = &findings[..] else { panic!("expected one finding, got {findings:#?}") };
        assert!(finding.kind == kind && finding.what.contains(words), "{finding}");
    }

    /// That this is among the findings.
    #[track_caller]
    pub fn finds_also(&self, kind: Kind, words: &str) {
        let findings = self.verdict().findings;
        let found = findings.iter().any(|finding| finding.kind == kind && finding.what.contains(words));
        assert!(found, "{findings:#?}");
    }
}

/// What is submitted with a key.
pub fn payload(key: &str) -> Json {
    json(&format!(r#"{{"for":"{key}","n":1}}"#))
}

pub fn submit(key: &str) -> Call {
    Call::Submit { key: key.into(), payload: payload(key) }
}

pub fn seen(state: JobState, tasks: &[(u32, TaskState, u32)]) -> Answer {
    let task = |(index, state, attempt): &(u32, TaskState, u32)| SeenTask {
        index: *index,
        state: *state,
        attempt: *attempt,
    };
    Answer::Seen(Seen { state, tasks: tasks.iter().map(task).collect() })
}

pub fn run(job: JobId, index: u32, attempt: u32) -> Run {
    Run { task: TaskId { job, index }, attempt }
}

/// A task that handlers run and that needs none.
pub fn task(index: u32, state: TaskState, attempt: u32) -> LastTask {
    let output = (state == TaskState::Completed).then(|| json(OUTPUT));
    let name = format!("t{index}").into();
    LastTask { index, name, state, attempt, failures: 0, crashes: 0, output, runs: true, needs: vec![] }
}
