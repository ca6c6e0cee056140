//! The processes of a run: each an engine, its sweeper and a pool, on its own way to the store.

use crate::chance::stream;
use crate::generate::HANDLERS;
use crate::handler::{MAX_OUTPUT, SimHandler};
use crate::jobs::{QUEUES, handler};
use crate::oracle::Violation;
use crate::process::{Name, Process};
use crate::store::SimStore;
use crate::world::World;
use orchestrator_core::{Millis, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, Sweeper};
use orchestrator_worker::{Pool, PoolConfig, Prefetch, Registry};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a pool may take to hand in its last outcomes, beyond all graces.
const LAST_WORDS: u64 = 10_000;

/// All processes.
pub struct Fleet {
    world: Arc<World>,
    slots: Mutex<Vec<Slot>>,
}

/// The place of one replica.
#[derive(Default)]
struct Slot {
    lives: u32,
    current: Option<Arc<Member>>,
    /// One that is on its way to a graceful end.
    stopping: Option<Arc<Process>>,
    /// Those that were killed. What is left of them stays around until the run is over: dropping a pool would
    /// stop it in good order, which nothing does for a process that was killed.
    killed: Vec<Arc<Member>>,
}

/// One process.
pub struct Member {
    /// Its gate.
    pub process: Arc<Process>,
    /// Its engine.
    pub engine: Engine,
    worker: WorkerId,
    pool: Pool,
    sweeper: Mutex<Option<Sweeper>>,
}

impl Fleet {
    /// No process runs yet.
    pub fn new(world: Arc<World>) -> Self {
        let slots = (0..world.script.settings.replicas).map(|_| Slot::default()).collect();
        Fleet { world, slots: Mutex::new(slots) }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many replicas there are.
    pub fn size(&self) -> u8 {
        self.world.script.settings.replicas
    }

    /// Starts a replica, unless it runs.
    pub fn start(&self, replica: u8) {
        let name = {
            let slot = &mut self.slots()[usize::from(replica)];
            if slot.current.is_some() {
                return;
            }
            slot.lives += 1;
            Name { replica, life: slot.lives }
        };
        self.world.trace(name, || "starts".to_owned());
        let member = Arc::new(self.member(name));
        self.slots()[usize::from(replica)].current = Some(member);
    }

    fn member(&self, name: Name) -> Member {
        let settings = &self.world.script.settings;
        let rng = |what| stream(self.world.script.seed, what, &[name.replica.into(), name.life.into()]);
        let process = Arc::new(Process::new(name));
        let store = Arc::new(SimStore::new(self.world.clone(), process.clone()));
        let engine = Engine::new(
            store,
            EngineConfig {
                sweep_every: Millis(settings.sweep),
                sweep_page: settings.sweep_page,
                poll_every: Millis(settings.poll),
                rng: rng("engine"),
                ..EngineConfig::default()
            },
        );
        let worker = WorkerId::new(name.to_string());
        let config = PoolConfig {
            queues: QUEUES.iter().map(|queue| Arc::from(*queue)).collect(),
            max_workers: settings.workers.into(),
            lease_ttl: Millis(settings.lease_ttl),
            heartbeat: Millis(settings.heartbeat),
            grace: Millis(settings.grace),
            cancel_grace: Millis(settings.cancel_grace),
            watch: Millis(settings.watch),
            max_output: MAX_OUTPUT,
            prefetch: Prefetch { span: Millis(settings.prefetch.0), cap: settings.prefetch.1 },
            rng: rng("pool"),
            ..PoolConfig::new(worker.clone())
        };
        let handlers = (0..HANDLERS).fold(Registry::new(), |registry, n| {
            registry.with(&handler(n), SimHandler::new(self.world.clone(), process.clone()))
        });
        let pool = Pool::start(engine.source(), handlers, config);
        let sweeper = Mutex::new(Some(engine.start_sweeper()));
        Member { process, engine, worker, pool, sweeper }
    }

    /// A process to talk to: this one, or the next that runs.
    pub fn reach(&self, via: u8) -> Option<Arc<Member>> {
        let slots = self.slots();
        let turns = (0..slots.len()).map(|n| (usize::from(via) + n) % slots.len());
        turns.filter_map(|n| slots[n].current.clone()).next()
    }

    /// Kills a replica. False if there was nothing to kill.
    pub fn kill(&self, replica: u8) -> bool {
        let process = {
            let slot = &mut self.slots()[usize::from(replica)];
            match slot.current.take() {
                Some(member) => {
                    slot.killed.push(member.clone());
                    Some(member.process.clone())
                }
                None => slot.stopping.take(),
            }
        };
        let Some(process) = process else { return false };
        self.world.trace(process.name, || "is killed".to_owned());
        self.end(&process);
        true
    }

    /// Stops a replica for a while.
    pub fn freeze(&self, replica: u8, span: u64) {
        let Some(member) = self.slots()[usize::from(replica)].current.clone() else { return };
        self.world.trace(member.process.name, || format!("stands still for {span} ms"));
        member.process.freeze(Instant::now() + Duration::from_millis(span));
    }

    /// Ends a replica in good order. Returns when it is gone.
    pub async fn retire(&self, replica: u8, grace: u64) {
        let member = {
            let slot = &mut self.slots()[usize::from(replica)];
            let Some(member) = slot.current.take() else { return };
            slot.stopping = Some(member.process.clone());
            member
        };
        let process = member.process.clone();
        self.world.trace(process.name, || format!("stops, grace {grace} ms"));
        tokio::select! {
            biased;
            () = process.ended() => {
                self.slots()[usize::from(replica)].killed.push(member);
                return;
            }
            () = self.stop(&member, grace) => {}
        }
        self.slots()[usize::from(replica)].stopping = None;
        self.end(&process);
    }

    async fn stop(&self, member: &Member, grace: u64) {
        let settings = &self.world.script.settings;
        let began = Instant::now();
        let healthy = self.world.is_healthy();
        let summary = member.pool.shutdown(Millis(grace)).await;
        let took = began.elapsed().as_millis() as u64;
        self.world.trace(member.process.name, || format!("has stopped: {summary:?}"));
        let margin = if healthy { 1_000 + 20 * settings.latency } else { LAST_WORDS + 1_000 };
        let most = grace + settings.cancel_grace + margin;
        if took > most {
            let what = format!("{} took {took} ms, more than {most}", member.process.name);
            self.world.fail(Violation::new("shutdown", what));
        }
        let left = self.world.ask(|oracle| oracle.held_by(&member.worker));
        if healthy && (summary.unreported > 0 || !left.is_empty()) {
            let what = format!("{} left {} behind: {left:?}", member.process.name, summary.unreported);
            self.world.fail(Violation::new("shutdown", what));
        }
        let sweeper = member.sweeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sweeper) = sweeper {
            sweeper.stop().await;
        }
    }

    fn end(&self, process: &Process) {
        process.end();
        self.world.process_gone(process.name);
    }

    /// Ends a replica in good order, and starts it again.
    pub async fn restart(&self, replica: u8, grace: u64, down: u64) {
        self.retire(replica, grace).await;
        sleep(Duration::from_millis(down)).await;
        self.start(replica);
    }

    /// Kills a replica, and starts it again.
    pub async fn kill_and_start(&self, replica: u8, down: u64) {
        if self.kill(replica) {
            sleep(Duration::from_millis(down)).await;
            self.start(replica);
        }
    }
}
