//! A server that listens for real.

use crate::world::routes;
use orchestrator_client::{Client, Events, EventsQuery, LiveEvent};
use orchestrator_core::{Millis, NewJob, Outcome, WorkerId};
use orchestrator_engine::{Engine, EngineConfig};
use orchestrator_server::{Drained, serve};
use orchestrator_store::{EventId, JournalEvent, LeaseAsk, Settlement, Store};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A server on a store.
pub struct Live {
    pub store: Arc<dyn Store>,
    pub address: SocketAddr,
    stopping: CancellationToken,
    serving: JoinHandle<Drained>,
}

impl Live {
    /// Serves on any port.
    pub async fn start(store: Arc<dyn Store>) -> Live {
        Live::start_at(store, ([127, 0, 0, 1], 0).into()).await
    }

    /// Serves on an address.
    pub async fn start_at(store: Arc<dyn Store>, address: SocketAddr) -> Live {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = CancellationToken::new();
        let engine = Engine::new(store.clone(), EngineConfig::default());
        let router = routes(&engine, &stopping);
        let serving = tokio::spawn(serve(listener, router, stopping.clone(), Duration::from_secs(60)));
        Live { store, address, stopping, serving }
    }

    /// Stops in order.
    pub async fn stop(self) -> Drained {
        self.stopping.cancel();
        self.serving.await.unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Listens.
    pub fn events(&self, query: EventsQuery) -> Events {
        Client::new(&self.url("")).unwrap().events(query)
    }

    /// Listens to everything from after an event.
    pub fn after(&self, after: EventId) -> Events {
        self.events(EventsQuery { after: Some(after), ..EventsQuery::default() })
    }

    /// The whole journal.
    pub async fn journal(&self) -> Vec<JournalEvent> {
        self.store.journal(EventId::START, u32::MAX).await.unwrap().events
    }
}

/// The next events.
pub async fn take(events: &mut Events, number: usize) -> Vec<LiveEvent> {
    let mut taken = vec![];
    while taken.len() < number {
        taken.push(events.next().await.unwrap());
    }
    taken
}

/// Takes jobs in, runs one task of each, and completes it.
pub async fn work(store: &dyn Store, jobs: Vec<NewJob>) {
    let slots = jobs.len() as u32;
    store.submit(jobs).await.unwrap();
    let ask = LeaseAsk {
        worker: WorkerId::new("w"),
        queues: vec!["default".into()],
        handlers: vec!["work".into()],
        slots,
        ttl: Millis::mins(1),
        hold: Millis(0),
    };
    let leased = store.lease(ask).await.unwrap().tasks;
    let done = |held| Settlement { held, outcome: Outcome::Completed(Default::default()), jitter: 0.0 };
    store.settle(leased.iter().map(|leased| done(leased.held())).collect()).await.unwrap();
}
