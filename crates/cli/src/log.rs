//! The log on stderr. It steps aside for progress bars, so that neither garbles the other.

use crate::cli::Globals;
use crate::config::LogConfig;
use crate::output::Output;
use indicatif::MultiProgress;
use std::io::Write;
use std::sync::LazyLock;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Every progress bar is drawn through this.
pub static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Starts the log. `RUST_LOG` wins over flags, flags over the configuration.
pub fn start(config: &LogConfig, globals: &Globals, out: Output) {
    let level = match (globals.quiet, globals.verbose) {
        (true, _) => "error",
        (false, 0) => config.level.as_str(),
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Stderr).with_ansi(out.color_err);
    // Only one log can be started; a second session of this process goes on with the first.
    let _ = match config.format.as_str() {
        "json" => log.json().try_init(),
        _ => log.with_target(false).try_init(),
    };
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
