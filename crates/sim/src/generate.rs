//! Makes a script of a seed: a few minutes of load, operators and trouble.

use crate::chance::{Chance, stream};
use crate::script::{
    Action, Faults, Habits, Join, LONG_LEASE, NewWork, RARE, Script, Settings, Shape, Step, TaskShape, Wish,
};
use orchestrator_core::{LimitKey, LimitRule, Millis, Priority, Rate};

/// How many handlers there are.
pub const HANDLERS: u8 = 3;

/// The script of a seed. One seed in eight is calm: nothing breaks. In another one calls fail now and then, and no
/// lease may be lost by that.
pub fn generate(seed: u64) -> Script {
    let mut rng = stream(seed, "script", &[]);
    let calm = seed % 8 == 7;
    let gentle = seed % 8 == 3;
    let mut settings = settings(&mut rng);
    let mut faults = faults(&mut rng);
    if gentle {
        settings.lease_ttl = settings.lease_ttl.max(LONG_LEASE);
        faults = Faults { error: rng.u16(1..=RARE), ..Faults::default() };
    } else if calm {
        faults = Faults::default();
    }
    let handlers = habits(&mut rng);
    let span = rng.u64(15_000..75_000);
    let mut maker = Maker { rng, span, replicas: settings.replicas, ttl: settings.lease_ttl, works: vec![] };
    let mut steps = maker.submits();
    steps.extend(maker.wishes());
    steps.extend(maker.operations());
    if !calm && !gentle {
        steps.extend(maker.harm());
    }
    steps.sort_by_key(|step| step.at);
    Script { seed, settings, faults, handlers, steps }
}

fn key(text: &str) -> LimitKey {
    text.parse().expect("the names of limits are good ones")
}

fn settings(rng: &mut fastrand::Rng) -> Settings {
    let lease_ttl = rng.u64(2_000..8_000);
    let mut limits = vec![];
    if rng.bool() {
        limits.push((key("host:a"), LimitRule::at_most(rng.u32(1..3))));
    }
    if rng.bool() {
        limits.push((key("host:*"), LimitRule::at_most(rng.u32(1..4))));
    }
    if rng.bool() {
        let rate = Rate::new(rng.u32(1..4), Millis(rng.u64(500..3000))).with_burst(rng.u32(1..4));
        limits.push((key("api:r"), LimitRule { concurrency: None, rate: Some(rate) }));
    }
    Settings {
        replicas: rng.weighted(&[(2, 1), (3, 2), (2, 3)]),
        workers: rng.u8(1..5),
        lease_ttl,
        heartbeat: rng.u64(lease_ttl / 6..lease_ttl),
        grace: rng.u64(0..4_000),
        cancel_grace: rng.u64(100..2_500),
        watch: rng.u64(300..2_000),
        prefetch: if rng.bool() { (0, 0) } else { (rng.u64(10..4_000), rng.usize(1..8)) },
        poll: rng.u64(150..2_500),
        sweep: rng.u64(500..2_500),
        sweep_page: rng.weighted(&[(1, 1), (1, 2), (3, 100)]),
        hints: rng.bool(),
        latency: rng.weighted(&[(2, 0), (2, 3), (1, 40)]),
        limits,
    }
}

/// Each kind of fault in every other seed, so that some seeds show one kind alone.
fn faults(rng: &mut fastrand::Rng) -> Faults {
    let mut some = |most: u16| if rng.bool() { rng.u16(1..=most) } else { 0 };
    Faults {
        error: some(150),
        unknown_after: some(80),
        unknown_before: some(60),
        slow: some(60),
        stall: some(15),
        duplicate: some(200),
        lost_hint: some(500),
    }
}

fn habits(rng: &mut fastrand::Rng) -> Habits {
    let mut some = |most: u16| if rng.bool() { rng.u16(1..=most) } else { 0 };
    Habits {
        fail: some(300),
        panic: some(50),
        hang: some(60),
        deaf: some(40),
        leg: some(120),
        skip: some(60),
        give_back: some(60),
        too_large: some(40),
        long: some(150),
        span: rng.weighted(&[(2, 300), (3, 1_500), (2, 5_000)]),
    }
}

struct Maker {
    rng: fastrand::Rng,
    span: u64,
    replicas: u8,
    ttl: u64,
    /// What was submitted so far, by number.
    works: Vec<NewWork>,
}

impl Maker {
    fn at(&mut self) -> u64 {
        self.rng.u64(..self.span)
    }

    fn via(&mut self) -> u8 {
        self.rng.u8(..self.replicas)
    }

    fn job(&mut self) -> u32 {
        self.rng.u32(..self.works.len() as u32)
    }

    fn submits(&mut self) -> Vec<Step> {
        let count = self.rng.u32(8..=24);
        // Most come early, so that there is time for things to happen to them.
        let mut times: Vec<u64> = (0..count).map(|_| self.at() * self.rng.u64(..=100) / 100).collect();
        times.sort_unstable();
        let mut steps = vec![];
        for (job, at) in (0..count).zip(times) {
            let what = self.work(job);
            self.works.push(what.clone());
            steps.push(Step { at, action: Action::Submit { job, via: self.via(), what } });
        }
        steps
    }

    fn work(&mut self, job: u32) -> NewWork {
        let keyed: Vec<u32> = (0..job).filter(|job| self.works[*job as usize].key.is_some()).collect();
        if !keyed.is_empty() && self.rng.one_of_thousand(150) {
            // The same key again, with the same payload or another.
            let first = keyed[self.rng.usize(..keyed.len())];
            let again = self.works[first as usize].clone();
            let payload = if self.rng.bool() { again.payload } else { job };
            return NewWork { payload, ..again };
        }
        let rng = &mut self.rng;
        let after = if job > 0 && rng.one_of_thousand(150) {
            (0..rng.u32(1..3)).map(|_| rng.u32(..job)).collect()
        } else {
            vec![]
        };
        NewWork {
            key: rng.one_of_thousand(800).then_some(job),
            payload: job,
            tenant: rng.u8(..2),
            priority: rng.weighted(&[
                (1, Priority::Critical),
                (1, Priority::High),
                (4, Priority::Normal),
                (1, Priority::Low),
            ]),
            run_in: rng.one_of_thousand(150).then(|| rng.u64(..20_000)),
            after,
            shape: shape(rng),
        }
    }

    fn wishes(&mut self) -> Vec<Step> {
        let count = self.rng.u32(4..=20);
        let wish = |maker: &mut Maker| {
            let what = maker.rng.u8(..8);
            let (at, job, via) = (maker.at(), maker.job(), maker.via());
            let ask = |what| vec![Step { at, action: Action::Ask { what, job, via } }];
            match what {
                0 => ask(Wish::Cancel),
                1 | 2 => {
                    // Most who pause something also resume it.
                    let mut steps = ask(Wish::Pause);
                    if maker.rng.one_of_thousand(800) {
                        let (at, via) = (at + maker.rng.u64(..10_000), maker.via());
                        steps.push(Step { at, action: Action::Ask { what: Wish::Resume, job, via } });
                    }
                    steps
                }
                3 => ask(Wish::Retry),
                4 => ask(Wish::Recover(None)),
                5 => ask(Wish::Recover(Some(maker.rng.u8(..5)))),
                _ => {
                    let requeue = maker.rng.one_of_thousand(700);
                    vec![Step { at, action: Action::DeadLetter { nth: maker.rng.u32(..8), requeue, via } }]
                }
            }
        };
        (0..count).flat_map(|_| wish(self)).collect()
    }

    fn operations(&mut self) -> Vec<Step> {
        let mut steps = vec![];
        for _ in 0..self.rng.u32(2..=10) {
            let limit = self.rng.one_of_thousand(300).then(|| self.rng.u64(100..20_000));
            let (job, via) = (self.job(), self.via());
            steps.push(Step { at: self.at(), action: Action::Wait { job, via, limit } });
        }
        for _ in 0..self.rng.u32(0..=6) {
            let (job, via) = (self.job(), self.via());
            steps.push(Step { at: self.at(), action: Action::Read { job, via } });
        }
        for _ in 0..self.rng.u32(0..=3) {
            let keys = ["host:a", "host:b", "host:*", "api:r"];
            let key = key(keys[self.rng.usize(..keys.len())]);
            let rule = self.rule();
            steps.push(Step { at: self.at(), action: Action::Limit { key, rule, via: self.via() } });
        }
        for _ in 0..self.rng.u32(0..=2) {
            let (grace, down) = (self.rng.u64(..6_000), self.rng.u64(..5_000));
            steps.push(Step { at: self.at(), action: Action::Restart { replica: self.via(), grace, down } });
        }
        steps
    }

    fn rule(&mut self) -> Option<LimitRule> {
        let rng = &mut self.rng;
        match rng.u8(..5) {
            0 => None,
            1 => Some(LimitRule::at_most(0)),
            2 | 3 => Some(LimitRule::at_most(rng.u32(1..4))),
            _ => {
                let rate = Rate::new(rng.u32(1..5), Millis(rng.u64(300..4_000))).with_burst(rng.u32(1..3));
                Some(LimitRule { concurrency: Some(rng.u32(1..5)), rate: Some(rate) })
            }
        }
    }

    /// Each kind of harm in about every other seed.
    fn harm(&mut self) -> Vec<Step> {
        let mut steps = vec![];
        let mut some = |maker: &mut Maker, most: u32, harm: fn(&mut Maker) -> Action| {
            let count = if maker.rng.bool() { maker.rng.u32(1..=most) } else { 0 };
            for _ in 0..count {
                let action = harm(maker);
                steps.push(Step { at: maker.at(), action });
            }
        };
        some(self, 3, |maker| Action::Kill { replica: maker.via(), down: maker.rng.u64(..8_000) });
        some(self, 2, |maker| {
            let span = maker.rng.u64(500..maker.ttl * 3);
            Action::Freeze { replica: maker.via(), span }
        });
        some(self, 2, |maker| {
            let most = maker.rng.weighted(&[(3, 3_000), (2, 60_000), (1, 3_600_000)]);
            Action::Jump { by: maker.rng.i64(-most..=most) }
        });
        some(self, 2, |maker| {
            let span = maker.rng.u64(200..maker.ttl * 2);
            Action::Outage { span, hang: maker.rng.bool() }
        });
        steps
    }
}

fn shape(rng: &mut fastrand::Rng) -> Shape {
    if rng.bool() {
        return Shape::Task(task(rng));
    }
    let mut tasks: Vec<TaskShape> = match rng.u8(..4) {
        0 => chain(rng),
        1 => diamond(rng),
        2 => fan(rng),
        _ => web(rng),
    };
    for task in &mut tasks {
        task.optional = rng.one_of_thousand(120);
        task.when = rng.one_of_thousand(100).then(|| rng.u32(1..3));
    }
    Shape::Flow {
        deadline: rng.one_of_thousand(400).then(|| rng.u64(2_000..60_000)),
        recoveries: rng.u32(0..4),
        tasks,
    }
}

fn task(rng: &mut fastrand::Rng) -> TaskShape {
    let keys = ["host:a", "host:b", "api:r"];
    let limits = keys.iter().filter(|_| rng.one_of_thousand(200)).map(|name| key(name)).collect();
    TaskShape {
        handler: rng.u8(..HANDLERS),
        needs: vec![],
        join: Join::AllCompleted,
        optional: false,
        when: None,
        items: None,
        limits,
        retries: rng.u32(0..4),
        timeout: rng.one_of_thousand(800).then(|| rng.u64(1_000..15_000)),
        crashes: rng.u32(1..6),
    }
}

fn join(rng: &mut fastrand::Rng) -> Join {
    rng.weighted(&[(3, Join::AllCompleted), (2, Join::AllDone), (1, Join::AnyFailed)])
}

fn chain(rng: &mut fastrand::Rng) -> Vec<TaskShape> {
    let count = rng.u8(2..5);
    (0..count).map(|n| TaskShape { needs: n.checked_sub(1).into_iter().collect(), ..task(rng) }).collect()
}

fn diamond(rng: &mut fastrand::Rng) -> Vec<TaskShape> {
    let arms = rng.u8(2..4);
    let mut tasks = vec![task(rng)];
    tasks.extend((0..arms).map(|_| TaskShape { needs: vec![0], ..task(rng) }));
    tasks.push(TaskShape { needs: (1..=arms).collect(), join: join(rng), ..task(rng) });
    tasks
}

fn fan(rng: &mut fastrand::Rng) -> Vec<TaskShape> {
    let items = Some((rng.u32(0..6), rng.bool().then(|| rng.u32(1..4))));
    let each = TaskShape { needs: vec![0], items, ..task(rng) };
    vec![task(rng), each, TaskShape { needs: vec![1], join: join(rng), ..task(rng) }]
}

/// Any graph of a few tasks.
fn web(rng: &mut fastrand::Rng) -> Vec<TaskShape> {
    let count = rng.u8(2..6);
    let one = |n: u8, rng: &mut fastrand::Rng| TaskShape {
        needs: (0..n).filter(|_| rng.one_of_thousand(400)).collect(),
        join: join(rng),
        items: rng.one_of_thousand(200).then(|| (rng.u32(0..5), rng.bool().then(|| rng.u32(1..3)))),
        ..task(rng)
    };
    (0..count).map(|n| one(n, rng)).collect()
}
