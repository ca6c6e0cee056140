//! What every command that runs work needs: rules, a name, and an end in order.

use crate::error::CliResult;
use crate::session::Session;
use crate::signals::Signals;
use crate::telemetry::{metrics, traces};
use orchestrator_core::{Millis, WorkerId};
use orchestrator_server::{Scrape, metrics_page, serve};
use orchestrator_store::{LimitChange, RuleOrigin, Store};
use orchestrator_worker::pool::{Introduction, Summary};
use orchestrator_worker::{Pool, PoolConfig};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// Longer than the `command` handler gives a program between the request to end and its kill.
pub const CANCEL_GRACE: Millis = Millis::secs(6);
/// How often workers say that they are there.
const SAID_EVERY: Millis = Millis::secs(30);

/// Writes the rules of the configuration and strikes those of an earlier one. What an operator set
/// stays as it is. A server has written those of its own.
pub async fn write_limits(session: &Session, store: &dyn Store) -> CliResult<()> {
    if session.is_remote() {
        return Ok(());
    }
    let rules = session.config.limit_rules();
    let written = store.limits().await?;
    let stale = written
        .into_iter()
        .filter(|view| view.origin == Some(RuleOrigin::Config) && !rules.contains_key(&view.key));
    let strikes = stale.map(|view| (view.key, None));
    let changes = rules.iter().map(|(key, rule)| (key.clone(), Some(*rule))).chain(strikes);
    let changes = changes.map(|(key, rule)| LimitChange { key, rule, origin: RuleOrigin::Config });
    Ok(store.set_limits(changes.collect()).await?)
}

/// How a pool serves queues.
pub fn pool_config(session: &Session, queues: Vec<Arc<str>>) -> PoolConfig {
    let queue = &session.config.queue;
    PoolConfig {
        queues,
        max_workers: queue.max_workers as usize,
        lease_ttl: queue.lease_ttl,
        heartbeat: queue.heartbeat,
        grace: queue.grace,
        cancel_grace: CANCEL_GRACE,
        introduction: Some(introduction()),
        traced: traces::are_kept(),
        ..PoolConfig::new(name())
    }
}

/// What the workers of this process tell of themselves.
pub fn introduction() -> Introduction {
    Introduction {
        host: host().into(),
        version: concat!("orchestrator ", env!("CARGO_PKG_VERSION")).into(),
        every: SAID_EVERY,
    }
}

/// Shows metrics at the address that the configuration gives to workers, as long as the process lives.
pub async fn show_metrics(session: &Session, scrape: Scrape) {
    let Some(listener) = metrics::listen(&session.config.worker.metrics_listen, session.out).await else {
        return;
    };
    let page = metrics_page(scrape);
    tokio::spawn(serve(listener, page, CancellationToken::new(), Duration::ZERO));
}

/// A name that no other process has, on this machine or another.
pub fn name() -> WorkerId {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WorkerId::new(format!("{}-{}-{:x}", host(), std::process::id(), since.as_millis()))
}

fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if host.trim().is_empty() { "local".to_owned() } else { host.trim().to_owned() }
}

/// Stops a pool: with grace, or at once on another signal.
pub async fn stop(pool: &Pool, grace: Millis, signals: &mut Signals, note: impl Fn(&str)) -> Summary {
    let mut stopping = pin!(pool.shutdown(grace));
    tokio::select! {
        summary = &mut stopping => return summary,
        _ = signals.next() => note("stopping at once: what runs is given back"),
    }
    pool.shutdown(Millis(0)).await
}
