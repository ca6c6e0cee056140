//! Examples of concurrency limits.

use crate::conformance::world::*;
use crate::verbs::{Command, RuleOrigin};
use crate::views::LimitView;
use orchestrator_core::{ErrorClass, LimitRule, Millis, Outcome};

fn cap(n: u32) -> Option<LimitRule> {
    Some(LimitRule::at_most(n))
}

pub(super) async fn a_cap_holds(world: &World) {
    world.limit("host:a", cap(2)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 3]).await.unwrap();
    assert_eq!(world.lease(3).await.len(), 2, "three leases under a cap of two, in one grant");
    assert_eq!(world.lease(1).await, []);
    assert_eq!(world.running("host:a").await, 2);
    let line = world.line().await;
    assert_eq!((line.running, line.ready + line.parked), (2, 1));
}

pub(super) async fn every_stacked_key_needs_room(world: &World) {
    world.limit("resolver:r", cap(2)).await;
    world.limit("host:*", cap(1)).await;
    let both = |host| job().limits(limits(&["resolver:r", host]));
    let a1 = world.add(both("host:a")).await;
    let a2 = world.add(both("host:a")).await;
    let b = world.add(both("host:b")).await;
    let c = world.add(both("host:c")).await;
    let first = world.lease(9).await;
    let jobs: Vec<_> = first.iter().map(|leased| leased.task.job).collect();
    assert_eq!(jobs, [a1, b], "the second of host a waits for its host, c for the resolver");
    world.complete(&first[1]).await;
    assert_eq!(world.lease_one().await.task.job, c, "host a is still full");
    world.complete(&first[0]).await;
    assert_eq!(world.lease_one().await.task.job, a2);
    assert_eq!((world.running("resolver:r").await, world.running("host:b").await), (2, 0));
}

pub(super) async fn a_full_key_does_not_hold_up_others(world: &World) {
    world.limit("host:full", cap(1)).await;
    world.store.submit(vec![job().limits(limits(&["host:full"])); 50]).await.unwrap();
    let free = world.store.submit(vec![job(), job().limits(limits(&["host:free"]))]).await.unwrap();
    let jobs: Vec<_> = world.lease(9).await.iter().map(|leased| leased.task.job).collect();
    assert_eq!(jobs.len(), 3);
    assert!(free.iter().all(|answer| jobs.contains(&answer.id())), "{jobs:?}");
}

pub(super) async fn defaults_apply_where_no_exact_rule_stands(world: &World) {
    world.limit("host:*", cap(1)).await;
    world.limit("host:big", cap(3)).await;
    for host in ["host:big", "host:small", "other:x"] {
        world.store.submit(vec![job().limits(limits(&[host])); 4]).await.unwrap();
    }
    world.lease(20).await;
    assert_eq!(world.running("host:big").await, 3, "the exact rule wins");
    assert_eq!(world.running("host:small").await, 1, "each key counts for itself under a default");
    assert_eq!(world.running("other:x").await, 4, "no rule, no limit");
}

pub(super) async fn a_raised_cap_lets_more_start(world: &World) {
    world.limit("host:a", cap(1)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 5]).await.unwrap();
    assert_eq!(world.lease(9).await.len(), 1);
    assert_eq!(world.lease(9).await.len(), 0);
    world.limit("host:a", cap(3)).await;
    assert_eq!(world.lease(9).await.len(), 2);
    assert_eq!(world.running("host:a").await, 3);
}

pub(super) async fn a_lowered_cap_starts_nothing_new(world: &World) {
    world.limit("host:a", cap(3)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 6]).await.unwrap();
    let leased = world.lease(9).await;
    world.limit("host:a", cap(1)).await;
    for (n, attempt) in leased.iter().enumerate() {
        assert_eq!(world.lease(9).await, [], "{} still run", 3 - n);
        world.complete(attempt).await;
    }
    assert_eq!(world.lease(9).await.len(), 1);
}

pub(super) async fn zero_stops_a_key(world: &World) {
    world.limit("host:a", cap(0)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 2]).await.unwrap();
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (0, None), "no passing of time helps");
    world.limit("host:a", cap(2)).await;
    assert_eq!(world.lease(9).await.len(), 2);
}

pub(super) async fn a_struck_rule_limits_nothing(world: &World) {
    world.limit("host:*", cap(1)).await;
    world.limit("host:a", cap(2)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 6]).await.unwrap();
    let first = world.lease(9).await;
    assert_eq!(first.len(), 2);
    world.limit("host:a", None).await;
    assert_eq!(world.lease(9).await.len(), 0, "now the default applies");
    world.limit("host:*", None).await;
    assert_eq!(world.lease(9).await.len(), 4);
}

pub(super) async fn the_configuration_yields_to_the_operator(world: &World) {
    let rules = async || {
        let limits = world.store.limits().await.unwrap();
        limits.iter().map(|limit| (limit.rule.concurrency, limit.origin)).collect::<Vec<_>>()
    };
    world.set_limit("host:a", cap(4), RuleOrigin::Config).await;
    assert_eq!(rules().await, [(Some(4), Some(RuleOrigin::Config))]);
    world.set_limit("host:a", cap(5), RuleOrigin::Config).await;
    assert_eq!(rules().await, [(Some(5), Some(RuleOrigin::Config))]);
    world.set_limit("host:a", cap(2), RuleOrigin::Operator).await;
    world.set_limit("host:a", cap(9), RuleOrigin::Config).await;
    world.set_limit("host:a", None, RuleOrigin::Config).await;
    assert_eq!(rules().await, [(Some(2), Some(RuleOrigin::Operator))]);
    world.set_limit("host:a", None, RuleOrigin::Operator).await;
    assert_eq!(rules().await, []);
    world.set_limit("host:a", cap(1), RuleOrigin::Config).await;
    world.set_limit("host:a", None, RuleOrigin::Config).await;
    assert_eq!(rules().await, []);
}

pub(super) async fn a_freed_slot_wakes_the_next(world: &World) {
    world.limit("host:a", cap(1)).await;
    world.store.submit(vec![job().limits(limits(&["host:a"])); 7]).await.unwrap();
    for end in ["complete", "fail", "retry", "skip", "cancel", "vanish"] {
        let leased = world.lease_one().await;
        assert_eq!(world.lease(1).await, [], "the slot is taken before: {end}");
        match end {
            "complete" => world.complete(&leased).await,
            "fail" => world.fail(&leased).await,
            "retry" => {
                world.settle(leased.held(), failed(ErrorClass::Network)).await;
            }
            "skip" => {
                world.settle(leased.held(), Outcome::Skipped(json("1"))).await;
            }
            "cancel" => {
                world.control(Command::Cancel(leased.task.job)).await;
            }
            _ => {
                world.advance(Millis(TTL.0 + 1));
                assert_eq!(world.sweep(9).await.ended.len(), 1);
            }
        }
        assert_eq!(world.running("host:a").await, 0, "after: {end}");
    }
    world.lease_one().await;
}

pub(super) async fn limits_lists_rules_and_use(world: &World) {
    world.limit("resolver:r", cap(5)).await;
    world.limit("host:*", cap(2)).await;
    world.add(job().limits(limits(&["host:a", "free:x"]))).await;
    world.add(job().limits(limits(&["host:idle"])).run_at(START + Millis::hours(1))).await;
    world.lease_one().await;
    let view = |name, rule, origin, running| LimitView { key: key(name), rule, origin, running };
    let expected = [
        view("free:x", LimitRule::default(), None, 1),
        view("host:*", LimitRule::at_most(2), Some(RuleOrigin::Operator), 0),
        view("host:a", LimitRule::at_most(2), None, 1),
        view("resolver:r", LimitRule::at_most(5), Some(RuleOrigin::Operator), 0),
    ];
    assert_eq!(world.store.limits().await.unwrap(), expected);
}
