//! `orchestrator dev`

use crate::cli::Globals;
use crate::config::{self, Flag, Sources};
use crate::error::{CliError, CliResult};
use crate::output::{Output, Paint};
use crate::service::{self, Service};
use crate::session::{self, Session};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments of `dev`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator dev
  orchestrator dev --port 9000 --dir /tmp/try",
    after_help = "Everything in one process, on this machine alone: the API, workers, and a database in a directory that is kept. Stop it as you
like, also with kill -9, and start it again: work goes on where it was. What ran at a kill begins anew when its lease is over, after
20 seconds unless queue.lease_ttl or queue.heartbeat is set."
)]
pub struct DevArgs {
    /// The port to listen on, at 127.0.0.1
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = ".orchestrator")]
    dir: PathBuf,
}

/// Serves until a signal comes.
pub async fn run(args: DevArgs, globals: &Globals) -> CliResult {
    std::fs::create_dir_all(&args.dir).map_err(|error| CliError::io(&args.dir, &error))?;
    let flag = |key, value: String| Flag { key, name: "dev", value };
    let mut flags = vec![flag("server.listen", format!("127.0.0.1:{}", args.port))];
    if globals.db.is_none() {
        flags.push(flag("store.db", args.dir.join("orchestrator.db").display().to_string()));
    }
    flags.push(flag("download.dir", args.dir.join("downloads").display().to_string()));
    let session = Session::start_from(globals, brisk(session::sources(globals, flags)?))?.on_database();
    let service = Service { workers: true, metrics_port: false, allow_unauthenticated: false };
    service::run(&session, service, greet).await
}

/// Work of a process that was killed comes back when its lease is over. The usual one is for machines that may stand still
/// for minutes; who tries things out should not wait for that long.
fn brisk(mut sources: Sources) -> Sources {
    let flag = |key, value: &str| Flag { key, name: "dev", value: value.to_owned() };
    let lease = [flag("queue.lease_ttl", "20s"), flag("queue.heartbeat", "5s")];
    // What is wrong is told when the session starts.
    if config::load(&sources).is_ok_and(|loaded| lease.iter().all(|flag| loaded.is_default(flag.key))) {
        sources.flags.extend(lease);
    }
    sources
}

/// Says where everything is, and what to try.
fn greet(out: Output, address: SocketAddr) {
    let bold = |text: String| out.paint_err(Paint::Bold, &text);
    out.note(format!("API        {}", bold(format!("http://{address}"))));
    out.note(format!("its docs   http://{address}/docs"));
    out.note(format!("health     http://{address}/health"));
    out.note(format!("metrics    http://{address}/metrics"));
    out.note("");
    out.note("Try, in another terminal:");
    out.note(format!(
        "  curl -s http://{address}/jobs -H 'content-type: application/json' -d '{{\"handler\": \"sleep\", \"payload\": {{\"for\": \"2s\"}}}}'"
    ));
    out.note(format!("  orchestrator jobs list --server http://{address}"));
    out.note(format!("  orchestrator workers list --server http://{address}"));
    out.note(format!("  curl -N 'http://{address}/events?after=0'"));
    out.note("");
    out.note("Ctrl-C ends it; what is under way goes on at the next start.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn lease(file: &Path) -> String {
        let sources = brisk(Sources { file: Some(file.to_owned()), ..Sources::default() });
        config::load(&sources).unwrap().config.queue.lease_ttl.to_string()
    }

    #[test]
    fn a_lease_is_short_unless_somebody_has_chosen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(lease(file.path()), "20s");
        std::fs::write(file.path(), "[queue]\nheartbeat = \"30s\"\n").unwrap();
        assert_eq!(lease(file.path()), "10m", "a heartbeat of their own goes with the usual lease");
        std::fs::write(file.path(), "[queue]\nlease_ttl = \"2m\"\n").unwrap();
        assert_eq!(lease(file.path()), "2m");
    }
}
