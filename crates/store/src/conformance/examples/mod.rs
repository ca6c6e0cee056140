//! Named examples of every verb. Each starts on a fresh store, and after each the journal must
//! tell, by legal moves, how the tasks came to where the catalog shows them.

mod catalog;
mod control;
mod expired;
mod extend;
mod journal;
mod lease;
mod limits;
mod order;
mod rates;
mod reopen;
mod settle;
mod stale;
mod submit;

use super::Fixture;
use super::world::World;

macro_rules! run {
    ($fixture:expr, $($module:ident { $($example:ident),* $(,)? })*) => {
        $($({
            let _running = Running(concat!(stringify!($module), "::", stringify!($example)));
            let world = World::new($fixture).await;
            Box::pin($module::$example(&world)).await;
            Box::pin(journal::agrees_with_the_catalog(&world)).await;
        })*)*
    };
}

/// Runs every example.
pub async fn examples(fixture: &dyn Fixture) {
    run!(fixture,
        submit {
            a_job_is_kept_as_it_was_given, a_repeated_key_names_the_same_job, another_payload_is_a_conflict,
            keys_belong_to_tenant_and_handler, a_window_ends_at_its_bucket, a_batch_sees_its_own_jobs,
            a_key_is_free_again_after_a_bad_end, a_completed_key_stays_taken,
            an_empty_batch_is_fine, a_submit_rings_the_bell,
        }
        lease {
            a_lease_tells_all, slots_bound_a_grant, only_asked_lines_are_served, a_leased_task_is_not_leased_again,
            a_delayed_job_waits_for_its_moment, a_moment_in_the_past_is_now, attempts_are_counted,
        }
        order {
            urgent_work_goes_first, a_tier_is_served_in_order_of_arrival, tenants_take_turns,
            a_latecomer_does_not_wait_behind_a_backlog, waiting_lifts_a_task, fresh_urgent_work_starves_nobody,
            a_task_given_back_keeps_its_place,
        }
        limits {
            a_cap_holds, every_stacked_key_needs_room, a_full_key_does_not_hold_up_others,
            defaults_apply_where_no_exact_rule_stands, a_raised_cap_lets_more_start, a_lowered_cap_starts_nothing_new,
            zero_stops_a_key, a_struck_rule_limits_nothing, the_configuration_yields_to_the_operator,
            a_freed_slot_wakes_the_next, limits_lists_rules_and_use,
        }
        rates {
            a_burst_then_a_steady_pace, a_rate_stacks_with_a_cap, each_key_has_its_own_bucket,
            a_rate_can_change_while_it_runs,
        }
        extend { a_heartbeat_prolongs, an_overdue_lease_is_held_until_it_is_swept, a_lease_not_held_is_lost }
        settle {
            completed, skipped, a_passing_error_is_retried, retries_run_out, a_final_error_is_not_retried,
            retry_after_is_kept, released_costs_nothing, continue_goes_on_at_once, continue_can_wait,
            a_failure_keeps_the_checkpoint, one_batch_ends_many,
        }
        stale {
            a_second_completion, an_older_attempt, after_a_cancel, after_an_expiry, after_a_retry_by_hand,
            of_an_unknown_job, every_repetition_is_recorded,
        }
        expired {
            nothing_is_overdue_too_early, a_vanished_worker, a_slow_attempt, what_comes_first_decides,
            vanishing_workers_make_a_poison, a_sweep_pages_through_all, heartbeats_do_not_stop_the_timeout,
        }
        control {
            retry_starts_over, retry_restores_the_submitted_limits, only_what_failed_is_retried, a_retry_is_superseded,
            cancel_ends_any_live_job, an_ended_job_is_not_cancelled, unknown_jobs_are_not_found,
        }
        catalog {
            stats_count_every_place, stats_know_the_oldest, lists_page_and_filter, dead_letters_page_and_filter,
            an_empty_store_shows_nothing,
        }
        journal { it_pages_by_entry, it_tells_a_whole_life, reads_and_stale_writes_leave_no_entry }
    );
    let _running = Running("reopen::everything_is_kept");
    Box::pin(reopen::everything_is_kept(fixture)).await;
}

/// Names the example in the output of a test that panics.
struct Running(&'static str);

impl Drop for Running {
    #[expect(
        clippy::print_stderr,
        reason = "the only way to say which example panicked, beside the panic itself"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the conformance example {} failed", self.0);
        }
    }
}
