//! What every command that runs work needs: rules, a name, and an end in order.

use crate::error::CliResult;
use crate::session::Session;
use crate::signals::Signals;
use orchestrator_core::{Millis, WorkerId};
use orchestrator_store::{LimitChange, RuleOrigin, Store};
use orchestrator_worker::Pool;
use orchestrator_worker::pool::Summary;
use std::pin::pin;
use std::time::{SystemTime, UNIX_EPOCH};

/// Longer than the `command` handler gives a program between the request to end and its kill.
pub const CANCEL_GRACE: Millis = Millis::secs(6);

/// Writes the rules of the configuration and strikes those of an earlier one. What an operator set
/// stays as it is.
pub async fn write_limits(session: &Session, store: &dyn Store) -> CliResult<()> {
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

/// A name that no other process has, on this machine or another.
pub fn name() -> WorkerId {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "local" } else { host.trim() };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WorkerId::new(format!("{host}-{}-{:x}", std::process::id(), since.as_millis()))
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
