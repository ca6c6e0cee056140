//! What is submitted: three quarters jobs of a queue, one quarter jobs of two flows.

use crate::behaviour::PATIENCE;
use crate::server::LIMIT_HEADER;
use orchestrator_core::{Json, LimitKey};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Three tasks one after the other, each with something of the one before.
pub const CHAIN: &str = "storm-chain";
/// One task, a list of four made from its answer, and one that takes them together.
pub const FAN: &str = "storm-fan";
/// The limited hosts.
const HOSTS: [&str; 4] = ["storm-0", "storm-1", "storm-2", "storm-3"];
/// How many run at once on each of them.
const PER_HOST: u32 = 2;
/// Of so many jobs one has the key of an earlier one.
const REPEAT_ONE_IN: u32 = 40;
/// So many earlier jobs may be repeated.
const REMEMBERED: usize = 500;

/// One thing to submit.
#[derive(Clone, Debug)]
pub struct Work {
    /// Its key.
    pub key: Arc<str>,
    /// What the store keeps of it.
    pub payload: Json,
    /// The line for `queue import`.
    pub line: String,
    /// Whether it runs under a limit that is checked.
    pub limited: bool,
}

/// Makes works.
pub struct Load {
    rng: fastrand::Rng,
    url: String,
    hand: Vec<String>,
    made: u64,
    recent: Vec<Work>,
}

impl Load {
    /// Works that call `url`, or run the program `hand`.
    pub fn new(seed: u64, url: String, program: PathBuf, file: PathBuf) -> Self {
        let hand = vec![
            program.display().to_string(),
            "hand".to_owned(),
            file.display().to_string(),
            seed.to_string(),
        ];
        Load { rng: fastrand::Rng::with_seed(seed), url, hand, made: 0, recent: vec![] }
    }

    /// The next one.
    pub fn next(&mut self) -> Work {
        if !self.recent.is_empty() && self.rng.u32(0..REPEAT_ONE_IN) == 0 {
            return self.recent[self.rng.usize(0..self.recent.len())].clone();
        }
        self.made += 1;
        let n = self.made;
        let work = match self.rng.u32(0..100) {
            0..13 => self.flow(CHAIN, format!("chain-{n}")),
            13..25 => self.flow(FAN, format!("fan-{n}")),
            25..27 => self.command(format!("command-{n}")),
            _ => self.call(format!("call-{n}")),
        };
        if self.recent.len() < REMEMBERED {
            self.recent.push(work.clone());
        } else {
            let place = self.rng.usize(0..REMEMBERED);
            self.recent[place] = work.clone();
        }
        work
    }

    fn flow(&mut self, flow: &str, key: String) -> Work {
        let input = json!({ "url": self.url, "key": key });
        let line = json!({ "artifact_id": key, "flow": flow, "input": input });
        work(key, input, line, false)
    }

    fn command(&mut self, key: String) -> Work {
        let payload = json!({ "run": self.hand, "timeout": "20s" });
        let line = json!({ "artifact_id": key, "handler": "command", "payload": payload });
        work(key, payload, line, false)
    }

    fn call(&mut self, key: String) -> Work {
        let mut payload =
            json!({ "url": format!("{}/call", self.url), "json": { "key": key }, "timeout": PATIENCE });
        let limited = self.rng.u32(0..4) == 0;
        let mut line = json!({ "artifact_id": key, "handler": "http" });
        if limited {
            let host = HOSTS[self.rng.usize(0..HOSTS.len())];
            payload["headers"] = json!({ LIMIT_HEADER: format!("host:{host}") });
            line["limits"] = json!({ "host": host });
        }
        line["payload"] = payload.clone();
        work(key, payload, line, limited)
    }
}

fn work(key: String, payload: Value, line: Value, limited: bool) -> Work {
    Work { key: key.into(), payload: payload.into(), line: line.to_string(), limited }
}

/// The caps that hold for the works.
pub fn limits() -> BTreeMap<LimitKey, u32> {
    HOSTS.iter().filter_map(|host| Some((LimitKey::new("host", host).ok()?, PER_HOST))).collect()
}

/// The same as a setting of the configuration; hosts that are not limited have room for all.
pub fn host_caps() -> String {
    let caps: Vec<_> = HOSTS.iter().map(|host| format!("{host} = {PER_HOST}")).collect();
    format!("{{ \"*\" = 10000, {} }}", caps.join(", "))
}

/// The flows, to be applied before the storm.
pub fn flows() -> [(&'static str, Value); 2] {
    let defaults = json!({
        "retries": 3, "timeout": "30s", "max_crashes": 1000, "backoff": { "initial": "100ms", "max": "1s" },
    });
    let task = |needs: &[&str], body: Value| {
        json!({
            "handler": "http", "needs": needs,
            "with": { "url": "{{ input.url }}/flow", "json": body, "timeout": PATIENCE },
        })
    };
    let chain = json!({
        "first": task(&[], json!({ "from": "{{ input.key }}" })),
        "second": task(&["first"], json!({ "from": "{{ tasks.first.output.body.token }}" })),
        "third": task(&["second"], json!({ "from": "{{ tasks.second.output.body.token }}" })),
    });
    let mut work = task(&["start"], json!({ "from": "{{ item }}" }));
    work["for_each"] = json!("{{ tasks.start.output.body.parts }}");
    let fan = json!({
        "start": task(&[], json!({ "from": "{{ input.key }}" })),
        "work": work,
        "join": task(&["work"], json!({ "from": "{{ tasks.work.output }}" })),
    });
    [(CHAIN, chain), (FAN, fan)]
        .map(|(name, tasks)| (name, json!({ "flow": name, "defaults": defaults, "tasks": tasks })))
}

/// The names of the tasks that a task of one of the flows needs.
pub fn needs(flow: &str, task: &str) -> &'static [&'static str] {
    match (flow, task) {
        (CHAIN, "second") => &["first"],
        (CHAIN, "third") => &["second"],
        (FAN, "work") => &["start"],
        (FAN, "join") => &["work"],
        _ => &[],
    }
}
