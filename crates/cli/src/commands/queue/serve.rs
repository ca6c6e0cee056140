//! Runs jobs: the engine, its sweeper and a pool of workers, until the work is through or somebody
//! asks for the end. Whatever happens, the pool is stopped in order and nothing is lost.

use super::progress::{Snapshot, View};
use super::report::{Report, Settlements};
use super::watch::Watch;
use crate::error::CliResult;
use crate::session::Session;
use crate::signals::{Signal, Signals};
use orchestrator_core::{Millis, WorkerId};
use orchestrator_store::{LimitChange, LineStats, RuleOrigin, Store};
use orchestrator_store_sqlite::SqliteStore;
use orchestrator_worker::pool::Summary;
use orchestrator_worker::{Pool, PoolConfig, Registry};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What to run.
pub struct Plan {
    /// The queues to serve.
    pub queues: Vec<Arc<str>>,
    /// Whether to end when they are through.
    pub drain: bool,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left to do.
    Drained,
    /// Somebody asked for it.
    Asked(Signal),
}

/// Which lines a run serves: those of its queues for which it has the handler.
pub struct Lines {
    queues: Vec<Arc<str>>,
    registry: Registry,
}

impl Lines {
    /// Whether a line is served.
    pub fn serves(&self, line: &LineStats) -> bool {
        self.queues.contains(&line.queue) && self.registry.get(&line.handler).is_some()
    }
}

/// Runs jobs to the end of the plan.
pub async fn serve(session: &Session, store: Arc<SqliteStore>, plan: Plan) -> CliResult<(Report, Ended)> {
    let mut signals = Signals::listen()?;
    let registry = session.registry();
    write_limits(session, &*store).await?;
    let lines = Lines { queues: plan.queues.clone(), registry: registry.clone() };
    let first = Snapshot::take(&*store, &lines, None).await?;
    let started = Instant::now();
    let engine = session.engine(store.clone());
    let sweeper = engine.start_sweeper();
    let mut settlements = Settlements::new(session.out);
    let pool = Pool::start(engine.source(), registry, pool_config(session, &plan, &settlements));
    let mut view = View::start(session.out, &plan, &session.config.queue, &first);
    let ended = {
        let mut watch = Watch::new(&*store, &lines, &first, &mut view, plan.drain);
        tokio::select! {
            ended = watch.until_drained(&pool, &mut settlements) => ended.map(|()| Ended::Drained),
            signal = signals.next() => Ok(Ended::Asked(signal)),
        }
    };
    if let Ok(Ended::Asked(_)) = ended {
        let running = pool.stats().running;
        view.note(&format!(
            "stopping: {running} running may take up to {} to finish; Ctrl-C again stops at once",
            session.config.queue.grace
        ));
    }
    let stopped = stop(&pool, session.config.queue.grace, &mut signals, &view).await;
    view.finish();
    sweeper.stop().await;
    settlements.flush()?;
    let ended = ended?;
    let last = Snapshot::take(&*store, &lines, Some(&first)).await?;
    let report = Report::new(ended, started.elapsed(), &pool.stats(), stopped, &last, settlements);
    Ok((report, ended))
}

/// Writes the rules of the configuration and strikes those of an earlier one. What an operator set
/// stays as it is.
async fn write_limits(session: &Session, store: &dyn Store) -> CliResult<()> {
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

fn pool_config(session: &Session, plan: &Plan, settlements: &Settlements) -> PoolConfig {
    let queue = &session.config.queue;
    PoolConfig {
        queues: plan.queues.clone(),
        max_workers: queue.max_workers as usize,
        lease_ttl: queue.lease_ttl,
        heartbeat: queue.heartbeat,
        grace: queue.grace,
        // Longer than the `command` handler gives a program between the request to end and its kill.
        cancel_grace: Millis::secs(6),
        on_settled: Some(settlements.listener()),
        ..PoolConfig::new(WorkerId::new(worker_name()))
    }
}

/// A name that no other process has, on this machine or another.
fn worker_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "local" } else { host.trim() };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{host}-{}-{:x}", std::process::id(), since.as_millis())
}

/// Stops the pool: with grace, or at once on another signal.
async fn stop(pool: &Pool, grace: Millis, signals: &mut Signals, view: &View) -> Summary {
    let mut stopping = pin!(pool.shutdown(grace));
    tokio::select! {
        summary = &mut stopping => return summary,
        _ = signals.next() => view.note("stopping at once: what runs is given back"),
    }
    pool.shutdown(Millis(0)).await
}
