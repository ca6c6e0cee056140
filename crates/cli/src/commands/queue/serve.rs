//! Runs jobs: the engine, its sweeper and a pool of workers, until the work is through or somebody
//! asks for the end. Whatever happens, the pool is stopped in order and nothing is lost.

use super::options::ServeArgs;
use super::progress::{Snapshot, View};
use super::report::{Report, Settlements};
use super::watch::Watch;
use crate::cli::Globals;
use crate::error::CliResult;
use crate::session::{Missing, Session};
use crate::signals::{Signal, Signals};
use crate::workers;
use orchestrator_store::LineStats;
use orchestrator_store::Store;
use orchestrator_worker::{Pool, PoolConfig, Registry};
use std::sync::Arc;
use std::time::Instant;

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

/// Runs jobs by the options of a command, tells what was done and leaves the store in order.
pub async fn run_until(args: &ServeArgs, drain: bool, globals: &Globals) -> CliResult<(Report, Ended)> {
    let session = Session::start(globals, args.flags())?;
    let store = session.open(Missing::Create).await?;
    let served = serve(&session, store.clone(), Plan { queues: args.queues(), drain }).await;
    // Another process may lead from now on.
    store.close().await;
    let (report, ended) = served?;
    report.tell(session.out)?;
    Ok((report, ended))
}

/// Runs jobs to the end of the plan.
pub async fn serve(session: &Session, store: Arc<dyn Store>, plan: Plan) -> CliResult<(Report, Ended)> {
    let mut signals = Signals::listen()?;
    let registry = session.registry();
    workers::write_limits(session, &*store).await?;
    let lines = Lines { queues: plan.queues.clone(), registry: registry.clone() };
    let first = Snapshot::take(&*store, &lines, None).await?;
    let started = Instant::now();
    let engine = session.engine(store.clone());
    let sweeper = engine.start_sweeper();
    let retainer = engine.start_retention(session.retention());
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
    let stopped =
        workers::stop(&pool, session.config.queue.grace, &mut signals, |text| view.note(text)).await;
    view.finish();
    sweeper.stop().await;
    if let Some(retainer) = retainer {
        retainer.stop().await;
    }
    settlements.flush()?;
    let ended = ended?;
    let last = Snapshot::take(&*store, &lines, Some(&first)).await?;
    let report = Report::new(ended, started.elapsed(), &pool.stats(), stopped, &last, settlements);
    Ok((report, ended))
}

fn pool_config(session: &Session, plan: &Plan, settlements: &Settlements) -> PoolConfig {
    let queue = &session.config.queue;
    PoolConfig {
        queues: plan.queues.clone(),
        max_workers: queue.max_workers as usize,
        lease_ttl: queue.lease_ttl,
        heartbeat: queue.heartbeat,
        grace: queue.grace,
        cancel_grace: workers::CANCEL_GRACE,
        on_settled: Some(settlements.listener()),
        ..PoolConfig::new(workers::name())
    }
}
