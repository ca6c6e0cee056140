//! Runs jobs: the engine, its sweeper and a pool of workers, until the work is through or somebody
//! asks for the end. Whatever happens, the pool is stopped in order and nothing is lost.

use super::progress::{Snapshot, View};
use super::report::{Report, Settlements};
use super::watch::Watch;
use crate::error::CliResult;
use crate::reload::{Live, Reloader};
use crate::session::{Missing, Session};
use crate::signals::{Asked, Signal, Signals};
use crate::telemetry::metrics::Metrics;
use crate::workers;
use orchestrator_engine::Measured;
use orchestrator_store::LineStats;
use orchestrator_store::Store;
use orchestrator_worker::{Pool, PoolConfig, Registry};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

/// What to run.
pub struct Plan {
    /// The queues to serve.
    pub queues: Vec<Arc<str>>,
    /// Whether to end when they are through.
    pub drain: bool,
    /// Whether it is a service, with metrics where they are wanted and a configuration that can be read anew.
    pub service: bool,
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

/// Runs jobs by a plan, tells what was done and leaves the store in order.
pub async fn run_until(session: &Session, plan: Plan) -> CliResult<(Report, Ended)> {
    let address = &session.config.worker.metrics_listen;
    let wanted = plan.service && session.config.server.metrics.0 && !address.is_empty();
    // Before anything is opened that records.
    let metrics = wanted.then(|| Metrics::start(session.out)).flatten();
    let mut store = match plan.service {
        true => session.open_waiting(Missing::Create).await?,
        false => session.open(Missing::Create).await?,
    };
    if let Some(metrics) = metrics {
        store = Measured::wrap(store);
        // A server shows the facts of its store itself.
        let facts = (!session.is_remote()).then(|| store.clone());
        workers::show_metrics(session, metrics.page(facts, None)).await;
    }
    let served = serve(session, store.clone(), plan).await;
    // Another process may lead from now on.
    store.close().await;
    let (report, ended) = served?;
    report.tell(session.out)?;
    Ok((report, ended))
}

/// Runs jobs to the end of the plan.
pub async fn serve(session: &Session, store: Arc<dyn Store>, plan: Plan) -> CliResult<(Report, Ended)> {
    let mut signals = if plan.service { Signals::of_service()? } else { Signals::listen()? };
    let registry = session.registry();
    workers::write_limits(session, &*store).await?;
    let lines = Lines { queues: plan.queues.clone(), registry: registry.clone() };
    let first = Snapshot::take(&*store, &lines, None).await?;
    let started = Instant::now();
    let engine = session.engine(store.clone());
    let sweeper = engine.start_sweeper();
    let retainer = engine.start_retention(session.retention());
    let mut settlements = Settlements::new(session.out);
    let pool = Pool::start(session.source(&engine)?, registry, pool_config(session, &plan, &settlements));
    let mut view = View::start(session.out, &plan, &session.config.queue, &first);
    let mut live = Live { engine: Some(engine.clone()), retainer, app: None };
    let mut reloader = Reloader::new(session);
    let ended = {
        let mut watch = Watch::new(&*store, &lines, &first, &mut view, plan.drain);
        let mut drained = pin!(watch.until_drained(&pool, &mut settlements));
        loop {
            tokio::select! {
                ended = &mut drained => break ended.map(|()| Ended::Drained),
                asked = signals.asked() => match asked {
                    Asked::End(signal) => break Ok(Ended::Asked(signal)),
                    Asked::Reload => reloader.reload(session, &mut live).await,
                },
            }
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
    if let Some(retainer) = live.retainer {
        retainer.stop().await;
    }
    settlements.flush()?;
    let ended = ended?;
    let last = Snapshot::take(&*store, &lines, Some(&first)).await?;
    let report = Report::new(ended, started.elapsed(), &pool.stats(), stopped, &last, settlements);
    Ok((report, ended))
}

fn pool_config(session: &Session, plan: &Plan, settlements: &Settlements) -> PoolConfig {
    PoolConfig {
        on_settled: Some(settlements.listener()),
        ..workers::pool_config(session, plan.queues.clone())
    }
}
