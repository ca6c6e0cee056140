//! The log on stderr. It steps aside for progress bars, so that neither garbles the other.

mod filter;
mod json;

use crate::cli::Globals;
use crate::config::Config;
use crate::output::Output;
use crate::telemetry::spans::Gather;
use crate::telemetry::traces;
use filter::{Spans, Wanted};
use indicatif::MultiProgress;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LazyLock, OnceLock};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

/// Every progress bar is drawn through this.
pub static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Sets a level.
type SetLevel = Box<dyn Fn(&str) + Send + Sync>;

/// Changes the level of the log that runs; absent where something above the configuration chose it.
static LEVEL: OnceLock<SetLevel> = OnceLock::new();

/// Whether the log is JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Starts the log, and the traces where they are wanted. `RUST_LOG` wins over flags, flags over the configuration.
pub fn start(config: &Config, globals: &Globals, out: Output) {
    let flag = match (globals.quiet, globals.verbose) {
        (true, _) => Some("error"),
        (false, 0) => None,
        (false, 1) => Some("info"),
        (false, 2) => Some("debug"),
        (false, _) => Some("trace"),
    };
    let asked = EnvFilter::try_from_default_env().ok();
    let fixed = asked.is_some() || flag.is_some();
    let events = asked.unwrap_or_else(|| EnvFilter::new(flag.unwrap_or(config.log.level.as_str())));
    let json = config.log.format == "json";
    JSON.store(json, Relaxed);
    let (filter, handle) = reload::Layer::new(Wanted { events, spans: json });
    let traces = traces::start(&config.traces, out);
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![];
    if json || traces.is_some() {
        layers.push(Gather.with_filter(Spans).boxed());
    }
    layers.push(if json {
        json::JsonLog(json::to_stderr).with_filter(filter).boxed()
    } else {
        let text = tracing_subscriber::fmt::layer().with_writer(Stderr).with_ansi(out.color_err);
        text.with_target(false).with_filter(filter).boxed()
    });
    layers.extend(traces.map(|traces| traces.with_filter(Spans).boxed()));
    // Only one log can be started; a second session of this process goes on with the first.
    if tracing_subscriber::registry().with(layers).try_init().is_ok() && !fixed {
        let change = move |level: &str| {
            // The log lives as long as the process.
            let _ = handle.modify(|wanted| wanted.events = EnvFilter::new(level));
        };
        let _ = LEVEL.set(Box::new(change));
    }
}

/// Changes the level of the running log. Says whether it may: `RUST_LOG` and flags stand above the configuration.
pub fn set_level(level: &str) -> bool {
    LEVEL.get().map(|change| change(level)).is_some()
}

/// Tells people something, or programs where the log is for them: then every line of stderr is JSON.
pub fn tell(text: &str) {
    let text = if JSON.load(Relaxed) { json::notes(text) } else { text.to_owned() };
    // Nobody reads stderr any more: there is nowhere to say so.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Stderr;
    fn make_writer(&'a self) -> Stderr {
        Stderr
    }
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        BARS.suspend(|| std::io::stderr().write(line))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
