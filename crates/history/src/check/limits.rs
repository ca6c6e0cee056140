//! Limits: never more handlers at work under a key than it allows.

use super::found::Found;
use crate::{Event, History, Run};
use orchestrator_core::LimitKey;
use std::collections::{BTreeMap, HashMap};

/// The use of one key.
struct Use {
    most: u32,
    running: u32,
    peak: u32,
    /// The start that was one too many, and its event's number.
    first: Option<(usize, Run)>,
}

/// A run holds its slots from before its start until after its end, so those between the two never are too many.
/// A run without an end is counted until the last event.
pub(super) fn check(history: &History, limits: &BTreeMap<LimitKey, u32>, found: &mut Found) {
    let usage = |(key, most): (_, &u32)| (key, Use { most: *most, running: 0, peak: 0, first: None });
    let mut usages: BTreeMap<&LimitKey, Use> = limits.iter().map(usage).collect();
    let mut running: HashMap<Run, &[LimitKey]> = HashMap::new();
    for (place, (_, event)) in history.events.iter().enumerate() {
        match event {
            Event::Started { run, limits } if !running.contains_key(run) => {
                running.insert(*run, limits);
                for key in limits {
                    let Some(usage) = usages.get_mut(key) else { continue };
                    usage.running += 1;
                    usage.peak = usage.peak.max(usage.running);
                    if usage.running > usage.most {
                        usage.first.get_or_insert((place, *run));
                    }
                }
            }
            Event::Finished { run, .. } | Event::Aborted { run } => {
                for key in running.remove(run).unwrap_or_default() {
                    if let Some(usage) = usages.get_mut(key) {
                        usage.running -= 1;
                    }
                }
            }
            _ => {}
        }
    }
    for (key, usage) in usages {
        if let Some((place, run)) = usage.first {
            let Use { most, peak, .. } = usage;
            let (attempt, task) = (run.attempt, run.task);
            found.wrong(format!(
                "{peak} handlers worked at once under {key}, which allows {most}; the first too many was attempt {attempt} of task {task}, event {place}"
            ));
        }
    }
}
