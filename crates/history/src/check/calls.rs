//! Calls while nothing was broken: nearly all of them must work, or the history shows little.

use super::found::Found;
use super::trace::{Asked, END, Place, Trace};
use crate::{Answer, Event, History};

/// How many of a hundred calm calls must be answered as a working system answers. Not all: a call may meet what a
/// fault left behind, such as a connection that died with it.
const WORKING_PERCENT: u64 = 95;

/// With fewer calm calls than this a share says nothing: a single failure would be too much.
const ENOUGH_CALLS: u64 = 20;

/// What the calls came to.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) calm: u64,
    pub(super) calm_successes: u64,
    pub(super) unknown: u64,
}

pub(super) fn check(history: &History, trace: &Trace<'_>, found: &mut Found) -> Calls {
    let faults = Faults::new(history);
    let mut calls = Calls::default();
    for asked in &trace.calls {
        calls.unknown += u64::from(asked.is_unknown());
        if faults.none_during(asked.called, asked.answered) {
            calls.calm += 1;
            calls.calm_successes += u64::from(is_success(asked));
        }
    }
    if calls.calm >= ENOUGH_CALLS && calls.calm_successes * 100 < calls.calm * WORKING_PERCENT {
        let Calls { calm, calm_successes: worked, .. } = calls;
        found.unavailable(format!(
            "only {worked} of {calm} calls worked while nothing was broken, less than {WORKING_PERCENT} %"
        ));
    }
    calls
}

fn is_success(asked: &Asked<'_>) -> bool {
    !matches!(asked.answer, Answer::Failed | Answer::Unknown)
}

/// When something was broken: spans in order that do not touch.
struct Faults(Vec<(Place, Place)>);

impl Faults {
    /// Faults may overlap, so something is broken from the first beginning to the end that leaves none open.
    fn new(history: &History) -> Self {
        let (mut spans, mut open, mut since) = (vec![], 0_u32, 0);
        for (place, (_, event)) in history.events.iter().enumerate() {
            match event {
                Event::FaultBegan { .. } => {
                    if open == 0 {
                        since = place;
                    }
                    open += 1;
                }
                Event::FaultEnded { .. } if open > 0 => {
                    open -= 1;
                    if open == 0 {
                        spans.push((since, place));
                    }
                }
                _ => {}
            }
        }
        if open > 0 {
            spans.push((since, END));
        }
        Faults(spans)
    }

    fn none_during(&self, from: Place, until: Place) -> bool {
        let next = self.0.partition_point(|(_, end)| *end < from);
        self.0.get(next).is_none_or(|(began, _)| *began > until)
    }
}
