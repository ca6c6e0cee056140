//! Examples of the order in which tasks are handed out.

use crate::conformance::world::*;
use orchestrator_core::order::{AGING, Priority};
use orchestrator_core::{JobId, LimitRule, Millis, Outcome};

pub(super) async fn urgent_work_goes_first(world: &World) {
    let mut ids = vec![];
    for priority in [Priority::Low, Priority::Normal, Priority::Critical, Priority::High, Priority::Critical]
    {
        ids.push(world.add(job().priority(priority)).await);
    }
    let expected = [ids[2], ids[4], ids[3], ids[1], ids[0]];
    let granted: Vec<_> = world.lease(5).await.iter().map(|leased| leased.task.job).collect();
    assert_eq!(granted, expected, "the best stands first in a grant");
}

pub(super) async fn a_tier_is_served_in_order_of_arrival(world: &World) {
    let answers = world.store.submit(vec![job(); 20]).await.unwrap();
    let ids: Vec<_> = answers.iter().map(|answer| answer.id()).collect();
    let mut served = world.work_off(5).await;
    served.extend(world.lease(5).await.iter().map(|leased| leased.task.job));
    served.extend(world.work_off(10).await);
    assert_eq!(served, ids);
}

pub(super) async fn tenants_take_turns(world: &World) {
    world.store.submit(vec![job().tenant("big"); 20]).await.unwrap();
    let small = world.store.submit(vec![job().tenant("small"); 3]).await.unwrap();
    let served = world.work_off(6).await;
    let of_small = small.iter().filter(|answer| served.contains(&answer.id())).count();
    assert_eq!(of_small, 3, "half of the turns belong to the small tenant");
}

pub(super) async fn a_latecomer_does_not_wait_behind_a_backlog(world: &World) {
    world.store.submit(vec![job().tenant("big"); 30]).await.unwrap();
    world.work_off(10).await;
    let late = world.store.submit(vec![job().tenant("late"); 3]).await.unwrap();
    let served = world.work_off(6).await;
    let of_late = late.iter().filter(|answer| served.contains(&answer.id())).count();
    assert_eq!(of_late, 3, "a tenant that comes late takes turns from where the others are");
    world.store.submit(vec![job().tenant("late"); 2]).await.unwrap();
    let tenants = world.store.lease(ask(4)).await.unwrap().tasks;
    let big = tenants.iter().filter(|leased| &*leased.tenant == "big").count();
    assert_eq!(big, 2, "but it does not push the others aside");
}

pub(super) async fn waiting_lifts_a_task(world: &World) {
    let low = world.add(job().priority(Priority::Low)).await;
    let normal = world.add(job()).await;
    world.advance(AGING);
    world.advance(AGING);
    let high = world.add(job().priority(Priority::High)).await;
    let critical = world.add(job().priority(Priority::Critical)).await;
    let served = world.work_off(4).await;
    let place = |id: JobId| served.iter().position(|other| *other == id);
    // Normal has risen to critical, low to high; the order on a level is the store's own.
    assert!(place(normal) < place(high) && place(critical) < place(high), "{served:?}");
    assert!(place(normal) < place(low) && place(critical) < place(low), "{served:?}");
}

/// What has no room at the front of a line says nothing about how urgent the next one is.
pub(super) async fn a_blocked_task_hides_no_urgent_one(world: &World) {
    world.limit("host:full", Some(LimitRule::at_most(0))).await;
    let first = world.add(job().tenant("old")).await;
    let urgent = world.add(job().tenant("old")).await;
    let low = world.add(job().tenant("other").priority(Priority::Low)).await;
    world.advance(AGING);
    // It stands behind the first and before the second of the other tenant.
    world.add(job().tenant("new").limits(limits(&["host:full"]))).await;
    let mut served = vec![];
    for _ in 0..3 {
        served.push(world.lease_one().await.task.job);
    }
    assert_eq!(served, [first, urgent, low]);
}

/// A store that prefers fresh urgent work over old work of the same level starves the old.
pub(super) async fn fresh_urgent_work_starves_nobody(world: &World) {
    let low = world.add(job().priority(Priority::Low)).await;
    for minute in 0.. {
        assert!(minute < 10, "a job waited for ten minutes beside a stream of urgent ones");
        world.store.submit(vec![job().priority(Priority::Critical); 2]).await.unwrap();
        if world.work_off(1).await == [low] {
            break;
        }
        world.advance(Millis::mins(1));
    }
}

pub(super) async fn a_task_given_back_keeps_its_place(world: &World) {
    let answers = world.store.submit(vec![job(); 3]).await.unwrap();
    let first = world.lease_one().await;
    assert_eq!(first.task.job, answers[0].id());
    world.settle(first.held(), Outcome::Released).await;
    let served = world.work_off(3).await;
    assert_eq!(served, answers.iter().map(|answer| answer.id()).collect::<Vec<_>>());
}
