//! Examples of rates.

use crate::conformance::world::*;
use orchestrator_core::{LimitRule, Millis, Rate};

fn rate(count: u32, burst: u32) -> Option<LimitRule> {
    Some(LimitRule { concurrency: None, rate: Some(Rate::new(count, Millis::secs(1)).with_burst(burst)) })
}

pub(super) async fn a_burst_then_a_steady_pace(world: &World) {
    world.limit("host:a", rate(2, 3)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 7]).await.unwrap();
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (3, Some(START + Millis(500))), "a burst of three");
    world.complete(&grant.tasks[0]).await;
    assert_eq!(world.lease(9).await, [], "an end gives nothing back: starts are counted");
    world.advance(Millis(499));
    assert_eq!(world.lease(9).await, []);
    world.advance(Millis(1));
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (1, Some(START + Millis(1000))));
    world.advance(Millis(1000));
    assert_eq!(world.lease(9).await.len(), 2, "two in a second");
    world.advance(Millis::mins(1));
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (1, None), "the last");
}

pub(super) async fn a_rate_stacks_with_a_cap(world: &World) {
    let mut rule = rate(1, 2).unwrap_or_default();
    rule.concurrency = Some(1);
    world.limit("host:a", Some(rule)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 4]).await.unwrap();
    let first = world.lease(9).await;
    assert_eq!(first.len(), 1, "the rate would allow two, the cap does not");
    world.complete(&first[0]).await;
    let second = world.lease(9).await;
    assert_eq!(second.len(), 1);
    world.complete(&second[0]).await;
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (0, Some(START + Millis(1000))), "now the rate holds it");
    world.advance(Millis(1000));
    assert_eq!(world.lease(9).await.len(), 1);
}

pub(super) async fn each_key_has_its_own_bucket(world: &World) {
    world.limit("host:*", rate(1, 1)).await;
    for host in ["host:a", "host:b"] {
        world.store.submit(vec![job().limits(limits(&[host])); 2]).await.unwrap();
    }
    let granted = world.lease(9).await;
    assert_eq!(granted.len(), 2);
    assert_ne!(granted[0].limits, granted[1].limits, "one of each host");
    world.advance(Millis(1000));
    assert_eq!(world.lease(9).await.len(), 2);
}

pub(super) async fn a_rate_can_change_while_it_runs(world: &World) {
    world.limit("host:a", rate(1, 1)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 6]).await.unwrap();
    assert_eq!(world.lease(9).await.len(), 1);
    world.limit("host:a", None).await;
    assert_eq!(world.lease(2).await.len(), 2, "without a rule all may start");
    world.limit("host:a", rate(1, 1)).await;
    assert_eq!(world.lease(9).await.len(), 0, "the start of before still counts");
    world.limit("host:a", rate(10, 1)).await;
    world.advance(Millis(1000));
    assert_eq!(world.lease(9).await.len(), 1);
    world.advance(Millis(100));
    assert_eq!(world.lease(9).await.len(), 1, "the new pace");
}
