//! Takes up a changed configuration in a process that runs on (SIGHUP): what may change while it works, and nothing of it if
//! anything is wrong.

use crate::config::{self, Loaded, Sources, problem_lines};
use crate::error::CliResult;
use crate::intake;
use crate::log;
use crate::session::Session;
use crate::workers;
use orchestrator_engine::{Engine, Intake, Retainer};
use orchestrator_server::Shared;

/// What a reload takes up: settings by their key or section. The rules of `[limits]` are taken up, too.
const TAKEN_UP: &[&str] =
    &["log.level", "queue.max_per_host", "queue.max_per_resolver", "retention.", "retry.", "task."];

/// The same for people.
#[cfg(test)]
pub const DOC: &str = "`log.level`, `[limits]` with `queue.max_per_host` and `queue.max_per_resolver`, `[retention]`, and what \
    `serve` and `dev` give to new jobs that say nothing else: `[retry]` and `[task]`";

/// The parts of a process that a reload changes.
#[derive(Default)]
pub struct Live {
    /// The engine, where this process has the store.
    pub engine: Option<Engine>,
    /// What removes old jobs.
    pub retainer: Option<Retainer>,
    /// The server.
    pub app: Option<Shared>,
}

/// What is in force: what the next configuration is compared with.
#[derive(Clone, Debug)]
pub struct InForce {
    /// Each setting, as it is shown.
    settings: Vec<(&'static str, String)>,
    /// The rules of `[limits]`.
    limits: String,
}

impl InForce {
    /// What a configuration brings into force.
    pub fn of(loaded: &Loaded) -> Self {
        let settings = loaded.effective.iter().map(|(setting, shown, _)| (setting.key, shown.clone()));
        InForce { settings: settings.collect(), limits: format!("{:?}", loaded.config.limits) }
    }
}

/// The configuration of a process that runs.
pub struct Reloader {
    sources: Sources,
    in_force: InForce,
}

impl Reloader {
    /// The configuration that the session started with, whatever the file says by now.
    pub fn new(session: &Session) -> Self {
        Reloader { sources: session.sources.clone(), in_force: session.in_force.clone() }
    }

    /// Reads the configuration anew and takes up what may change.
    pub async fn reload(&mut self, session: &Session, live: &mut Live) {
        match config::load(&self.sources) {
            Err(problems) => {
                tracing::error!(problems = problems.len(), "the configuration is wrong and was not taken up");
                session.out.note("the configuration was not taken up, the old one stays in force:");
                for line in problem_lines(&problems) {
                    session.out.note(format!("  {line}"));
                }
            }
            Ok(loaded) => match self.take_up(session, live, loaded).await {
                Ok(later) => {
                    tracing::info!("the configuration was taken up");
                    session.out.note("the configuration was taken up");
                    for key in later {
                        session.out.note(format!("  {key} has changed; it holds from the next start on"));
                    }
                }
                Err(error) => {
                    tracing::error!(error = error.text(), "the configuration could not be taken up whole");
                    session
                        .out
                        .note(format!("the configuration could not be taken up whole: {}", error.text()));
                }
            },
        }
    }

    /// Says which settings have changed but need a new start.
    async fn take_up(
        &mut self,
        session: &Session,
        live: &mut Live,
        loaded: Loaded,
    ) -> CliResult<Vec<&'static str>> {
        let InForce { settings, limits } = InForce::of(&loaded);
        let old = &self.in_force;
        let changed = settings.iter().filter(|now| !old.settings.contains(now)).map(|(key, _)| *key);
        let (now, later): (Vec<_>, Vec<_>) =
            changed.partition(|key| TAKEN_UP.iter().any(|taken| key.starts_with(taken)));
        let touches = |section: &str| now.iter().any(|key| key.starts_with(section));
        let session = session.with_config(loaded.config);
        // First what can fail: nothing else is taken up then.
        if let Some(engine) = &live.engine {
            if touches("queue.max_per_") || limits != old.limits {
                workers::write_limits(&session, &**engine.store()).await?;
            }
            if touches("retention.") {
                if let Some(retainer) = live.retainer.take() {
                    retainer.stop().await;
                }
                live.retainer = engine.start_retention(session.retention());
            }
        }
        if touches("log.level") {
            log::set_level(&session.config.log.level);
        }
        if let Some(app) = &live.app
            && (touches("retry.") || touches("task."))
        {
            app.set_intake(new_jobs(&session));
        }
        // A setting that waits for the next start is told again by the next reload.
        let waits = |key: &&'static str| later.contains(key);
        let kept = old.settings.iter().filter(|(key, _)| waits(key)).cloned();
        let settings = settings.iter().filter(|(key, _)| !waits(key)).cloned().chain(kept).collect();
        self.in_force = InForce { settings, limits };
        Ok(later)
    }
}

/// What a server makes jobs by that say nothing else.
pub fn new_jobs(session: &Session) -> Intake {
    Intake::new(intake::rules(&session.config), session.registry(), true)
}
