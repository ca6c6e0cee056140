//! What a pool measures of its own slots and handlers.

use crate::handler::Registry;
use metrics::{Gauge, Histogram};
use orchestrator_store::meter::{Kind, Meter, Scale, Whose};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const TASK_SECONDS: Meter = Meter {
    name: "orchestrator_task_execution_seconds",
    kind: Kind::Histogram(Scale::Work),
    labels: &["handler"],
    whose: Whose::Process,
    help: "How long handlers of this process ran, by handler: one record per attempt.",
};

const SLOTS: Meter = Meter {
    name: "orchestrator_worker_slots",
    kind: Kind::Gauge,
    labels: &[],
    whose: Whose::Process,
    help: "How many tasks the workers of this process can run at once.",
};

const BUSY: Meter = Meter {
    name: "orchestrator_worker_slots_busy",
    kind: Kind::Gauge,
    labels: &[],
    whose: Whose::Process,
    help: "How many tasks the workers of this process run now.",
};

/// What workers record.
pub const METERS: &[Meter] = &[TASK_SECONDS, SLOTS, BUSY];

/// The handles of one pool, looked up once. They do nothing where no recorder was installed before it started.
pub(crate) struct Meters {
    seconds: BTreeMap<Arc<str>, Histogram>,
    busy: Gauge,
    slots: Gauge,
    own: f64,
}

impl Meters {
    /// Those of a pool with so many slots.
    pub fn new(registry: &Registry, slots: usize) -> Self {
        let seconds = |name: &Arc<str>| {
            (name.clone(), metrics::histogram!(TASK_SECONDS.name, "handler" => name.to_string()))
        };
        let meters = Meters {
            seconds: registry.names().map(seconds).collect(),
            busy: metrics::gauge!(BUSY.name),
            slots: metrics::gauge!(SLOTS.name),
            own: slots as f64,
        };
        meters.slots.increment(meters.own);
        meters.busy.increment(0.0);
        meters
    }

    /// An attempt starts; it ends when what comes back is dropped.
    pub fn start(&self) -> Busy<'_> {
        self.busy.increment(1.0);
        Busy(&self.busy)
    }

    /// A handler ran for so long.
    pub fn ran(&self, handler: &str, took: Duration) {
        if let Some(seconds) = self.seconds.get(handler) {
            seconds.record(took.as_secs_f64());
        }
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        self.slots.decrement(self.own);
    }
}

/// A slot at work.
pub(crate) struct Busy<'a>(&'a Gauge);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
