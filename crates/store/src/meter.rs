//! What the metrics of a crate are called and mean. Each crate that measures has a table of these beside the code that
//! records; the program that shows them describes them from the tables, and so does the reference page.
//!
//! Recording goes through the `metrics` facade: where nobody installed a recorder, a handle does nothing.

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The labels that its series have. Their values are bounded in number: never an id, a tenant or a text of a caller.
    pub labels: &'static [&'static str],
    /// Of what it tells.
    pub whose: Whose,
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// The kinds of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only rises.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// How values are spread.
    Histogram(Scale),
}

/// What the buckets of a histogram are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Seconds of what takes milliseconds: calls and commits.
    Calls,
    /// Seconds of what may take hours: tasks and jobs.
    Work,
    /// How many come together.
    Sizes,
}

impl Scale {
    /// The upper bounds of the buckets.
    pub const fn buckets(self) -> &'static [f64] {
        match self {
            Scale::Calls => {
                &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]
            }
            Scale::Work => {
                &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0]
            }
            Scale::Sizes => {
                &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0]
            }
        }
    }
}

/// Of what a metric tells, which says how to put those of several processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of what this process did: `sum` over processes is the whole.
    Process,
    /// Of the store, which all processes on it see alike: `max` over processes is the whole.
    Store,
}

impl Meter {
    /// Tells the recorder what it means.
    pub fn describe(&self) {
        match self.kind {
            Kind::Counter => metrics::describe_counter!(self.name, self.help),
            Kind::Gauge => metrics::describe_gauge!(self.name, self.help),
            Kind::Histogram(Scale::Sizes) => {
                metrics::describe_histogram!(self.name, metrics::Unit::Count, self.help);
            }
            Kind::Histogram(_) => {
                metrics::describe_histogram!(self.name, metrics::Unit::Seconds, self.help);
            }
        }
    }
}

/// How long commits to the database took; both stores record it.
pub const COMMIT_SECONDS: Meter = Meter {
    name: "orchestrator_commit_seconds",
    kind: Kind::Histogram(Scale::Calls),
    labels: &["store"],
    whose: Whose::Process,
    help: "How long a commit to the database took, its sync to disk included.",
};

/// How many requests rode in a commit; the embedded store records it.
pub const COMMIT_REQUESTS: Meter = Meter {
    name: "orchestrator_commit_requests",
    kind: Kind::Histogram(Scale::Sizes),
    labels: &["store"],
    whose: Whose::Process,
    help: "How many requests shared one commit of the embedded store.",
};

/// What stores record.
pub const METERS: &[Meter] = &[COMMIT_SECONDS, COMMIT_REQUESTS];
