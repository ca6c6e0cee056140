//! The hub on the model, in virtual time: nothing here waits for a clock on the wall.

use super::{Filter, Hub, Listener, RING};
use orchestrator_core::{Millis, NewJob, Timestamp};
use orchestrator_store::model::ModelStore;
use orchestrator_store::{Catalog, EventId, ManualClock, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

struct World {
    store: Arc<ModelStore>,
    clock: Arc<ManualClock>,
    hub: Arc<Hub>,
    stopping: CancellationToken,
}

impl World {
    fn new(ring: usize) -> World {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
        let store = Arc::new(ModelStore::new(clock.clone()));
        let stopping = CancellationToken::new();
        World { hub: Hub::new(store.clone(), stopping.clone(), ring), store, clock, stopping }
    }

    /// Each submit is an entry of the journal, with so many events.
    async fn submit(&self, jobs: usize) {
        self.store.submit(vec![NewJob::new("work"); jobs]).await.unwrap();
    }

    async fn ids(&self) -> Vec<EventId> {
        let page = self.store.journal(EventId::START, u32::MAX).await.unwrap();
        page.events.iter().map(|told| told.id).collect()
    }
}

/// What a client understands of the next pieces, until it has so many events.
async fn heard(listener: &mut Listener, events: usize) -> Vec<EventId> {
    let mut ids = vec![];
    while ids.len() < events {
        let piece = listener.next().await.expect("it goes on");
        let text = String::from_utf8(piece.to_vec()).unwrap();
        for block in text.split("\n\n").filter(|block| block.contains("\ndata: ")) {
            ids.push(block.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().parse().unwrap());
        }
    }
    ids
}

async fn text(listener: &mut Listener) -> String {
    String::from_utf8(listener.next().await.expect("it goes on").to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn everybody_hears_everything_in_order() {
    let world = World::new(RING);
    world.submit(2).await;
    let mut early = world.hub.listen(EventId::START, Filter::default());
    let mut late = world.hub.listen(EventId { entry: 1, index: 1 }, Filter::default());
    assert_eq!(text(&mut late).await, "retry: 1000\nid: 1.1\n\n");
    for jobs in [1, 3, 700, 1500, 1] {
        world.submit(jobs).await;
    }
    let all = world.ids().await;
    assert_eq!(heard(&mut early, all.len()).await, all);
    assert_eq!(heard(&mut late, all.len() - 2).await, all[2..]);
}

/// A ring so small that it holds nothing makes everybody read the store.
#[tokio::test(start_paused = true)]
async fn who_is_behind_the_ring_misses_nothing() {
    let world = World::new(1);
    let mut steady = world.hub.listen(EventId::START, Filter::default());
    let mut slow = world.hub.listen(EventId::START, Filter::default());
    let mut told = vec![];
    for _ in 0..20 {
        world.submit(150).await;
        told.extend(heard(&mut steady, 150).await);
    }
    let all = world.ids().await;
    assert_eq!(told, all, "nobody waits for one that does not listen");
    assert_eq!(heard(&mut slow, all.len()).await, all);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_tells_how_far_it_is() {
    let world = World::new(RING);
    let none = Filter { flows: ["none".into()].into(), ..Filter::default() };
    let mut listener = world.hub.listen(EventId::START, none);
    text(&mut listener).await;
    let started = Instant::now();
    world.submit(3).await;
    assert_eq!(text(&mut listener).await, ":\nid: 1.2\n\n", "what was passed over is behind it");
    assert_eq!(started.elapsed().as_secs(), 15);
    assert_eq!(text(&mut listener).await, ":\n\n");
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn the_journal_is_read_only_for_somebody() {
    let world = World::new(RING);
    let listener = world.hub.listen(EventId::START, Filter::default());
    drop(listener);
    while world.hub.lock().reading {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(world.hub.lock().ring.is_none(), "and nothing is kept for nobody");
    world.submit(1).await;
    let mut listener = world.hub.listen(EventId::START, Filter::default());
    assert_eq!(heard(&mut listener, 1).await, world.ids().await);
}

#[tokio::test(start_paused = true)]
async fn who_missed_something_is_sent_away() {
    let world = World::new(1);
    for _ in 0..4 {
        world.submit(1).await;
        world.clock.advance(Millis(1));
    }
    let mut listener = world.hub.listen(EventId { entry: 1, index: 0 }, Filter::default());
    text(&mut listener).await;
    assert_eq!(world.store.forget_journal(world.store.now(), 2).await.unwrap(), 2);
    assert_eq!(listener.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn all_are_sent_away_when_the_server_stops() {
    let world = World::new(RING);
    let mut listener = world.hub.listen(EventId::START, Filter::default());
    text(&mut listener).await;
    let (end, ()) = tokio::join!(listener.next(), async { world.stopping.cancel() });
    assert_eq!(end, None);
}
