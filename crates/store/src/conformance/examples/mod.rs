//! Named examples of every verb. Each starts on a fresh store, and after each the journal must
//! tell, by legal moves, how the tasks came to where the catalog shows them.

mod catalog;
mod control;
mod daily;
mod documents;
mod expired;
mod extend;
mod flow;
mod forget;
mod journal;
mod lease;
mod limits;
mod meta;
mod order;
mod queues;
mod rates;
mod reopen;
mod settle;
mod stale;
mod submit;
mod workers;

use super::Fixture;
use super::world::World;
use flow::{
    after, cancel, chain, dead, deadline, each, join, keys, optional, outputs, pause, places, recovery,
    recovery_of_items, registry, templates, when,
};

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
            an_answer_that_nobody_takes_goes_back,
        }
        order {
            urgent_work_goes_first, a_tier_is_served_in_order_of_arrival, tenants_take_turns,
            a_latecomer_does_not_wait_behind_a_backlog, waiting_lifts_a_task, a_blocked_task_hides_no_urgent_one, fresh_urgent_work_starves_nobody,
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
            what_has_moved_on_is_left_alone, an_expectation_that_holds_is_no_hindrance,
        }
        meta {
            it_is_kept_and_handed_out, every_task_of_a_flow_gets_it, it_does_not_tell_jobs_apart,
            jobs_are_found_by_their_context, jobs_are_found_by_when_they_came,
        }
        documents {
            a_document_is_kept_as_it_was_given, another_document_is_a_conflict, a_batch_sees_its_own_documents,
            any_document_goes_with_a_key_of_the_flow, a_document_goes_with_its_job,
        }
        queues {
            nothing_of_a_paused_queue_is_handed_out, what_runs_of_it_may_finish, a_queue_goes_on_where_it_was,
            what_falls_due_meanwhile_waits, tasks_of_flows_wait_too, what_waits_for_a_limit_waits_on,
            pauses_are_listed, a_resumed_queue_rings_the_bell, others_are_served_meanwhile,
        }
        workers { they_tell_of_themselves, what_they_hold_is_counted, who_says_nothing_is_forgotten }
        daily { jobs_are_counted_by_day, an_end_that_was_taken_back_stays, what_is_removed_stays_counted, flows_count_once }
        catalog {
            stats_count_every_place, stats_know_the_oldest, lists_page_and_filter, dead_letters_page_and_filter,
            an_empty_store_shows_nothing, a_check_leaves_no_trace,
        }
        forget {
            a_job_goes_with_all_that_belongs_to_it, only_an_end_that_was_seen_goes, a_key_is_free_again,
            a_key_goes_back_to_the_job_before, what_named_it_names_none, numbers_are_not_given_out_again,
            a_page_goes_on_behind_a_job_that_went, a_flow_goes_with_its_items, a_late_write_is_stale_and_leaves_nothing,
            nothing_can_wait_for_it, each_kind_by_its_age, a_look_is_bounded,
        }
        journal { it_pages_by_event, it_tells_whose_events_they_are, what_is_removed_leaves_the_ids_of_others, it_tells_a_whole_life, reads_and_stale_writes_leave_no_entry }
    );
    flow_examples(fixture).await;
    let _running = Running("forget::the_journal_loses_its_beginning");
    Box::pin(forget::the_journal_loses_its_beginning(fixture)).await;
    let _running = Running("forget::what_went_stays_away");
    Box::pin(forget::what_went_stays_away(fixture)).await;
    let _running = Running("reopen::everything_is_kept");
    Box::pin(reopen::everything_is_kept(fixture)).await;
    let _running = Running("reopen::flows_are_kept");
    Box::pin(reopen::flows_are_kept(fixture)).await;
    let _running = Running("reopen::what_is_held_goes_back_to_its_line");
    Box::pin(reopen::what_is_held_goes_back_to_its_line(fixture)).await;
}

async fn flow_examples(fixture: &dyn Fixture) {
    run!(fixture,
        chain {
            each_task_starts_when_the_one_before_has_ended, a_job_shows_its_flow_and_tasks,
            a_failure_ends_what_needs_it, tasks_retry_and_go_on_like_any, tasks_stand_in_lines_of_their_own,
            one_batch_ends_many_tasks_of_a_job,
        }
        join {
            a_diamond_joins_once, by_default_all_must_have_completed, a_rule_may_take_any_end,
            a_rule_may_want_a_failure, a_failure_is_found_through_what_it_blocked,
            a_cleanup_sees_what_went_wrong,
        }
        optional {
            its_failure_is_a_skip, it_is_retried_like_any_other, a_vanished_worker_is_a_skip_too,
            its_result_counts_if_there_is_one, a_skip_of_another_holds_up_those_behind,
        }
        when {
            a_condition_decides_when_its_needs_have_ended, a_false_condition_skips_those_behind_it,
            a_job_of_nothing_ends_at_once, a_condition_that_cannot_be_told_is_a_failure,
        }
        each {
            a_list_becomes_its_items, an_item_is_named_in_its_template, so_many_at_once,
            one_bad_item_fails_the_whole, optional_items_may_be_missing, a_list_of_nothing_has_completed,
            a_list_may_come_from_a_task, what_is_no_list_is_a_failure, a_list_runs_as_a_whole_or_not_at_all,
            items_are_read_by_page,
        }
        templates {
            types_are_kept, a_literal_is_given_as_it_is, what_cannot_resolve_fails_without_an_attempt,
            what_is_optional_is_skipped_instead, an_output_that_cannot_resolve_fails_the_job,
            a_root_that_cannot_resolve_ends_the_job_at_once,
        }
        pause {
            nothing_new_starts, what_runs_may_finish, a_job_may_end_while_it_is_pausing,
            resumed_before_it_came_to_rest, a_place_in_line_is_kept,
            a_task_given_back_meanwhile_keeps_its_place, a_retry_falls_due_after_the_resume,
            a_moment_to_come_is_kept, a_place_that_was_given_between_two_pauses_is_kept, a_vanished_worker_of_a_pausing_job, a_job_of_a_queue_can_be_paused,
            a_running_job_of_a_queue_can_be_paused, only_what_lives_is_paused,
            items_that_come_meanwhile_are_held,
        }
        cancel {
            everything_ends_with_the_job, the_job_is_told_last, one_cancel_leaves_others_alone,
        }
        deadline {
            a_job_ends_when_its_time_is_up, a_job_that_never_started_times_out_too,
            jobs_come_before_attempts_and_count, a_pause_stops_the_clock,
            the_clock_stands_still_from_the_pause_on, a_recovery_gives_new_time, a_queue_has_no_deadline,
        }
        recovery {
            only_what_failed_runs_again, a_task_and_all_behind_it_run_again, what_stands_beside_is_left_alone,
            an_unknown_task_is_refused, recoveries_are_capped, a_retry_is_a_recovery_from_what_failed,
            attempts_of_before_stay_stale, attempts_count_on_over_recoveries,
            a_recovery_of_an_old_key_is_superseded, a_queue_has_no_recoveries, a_recovery_may_end_at_once,
        }
        recovery_of_items {
            only_the_items_that_failed, so_many_at_once_also_then, from_the_task_itself_the_list_is_made_anew,
            from_further_up_too, one_item_from_the_dead_letters,
        }
        dead {
            a_requeue_runs_it_and_what_comes_after, a_discard_only_puts_it_away, those_of_queues_too,
            what_is_no_dead_letter, they_stand_in_order_of_jobs_and_tasks,
        }
        after {
            a_job_begins_when_the_others_have_completed, a_job_of_a_queue_can_wait,
            what_has_completed_is_not_waited_for, a_bad_end_cancels_those_that_wait,
            a_job_behind_a_bad_end_is_cancelled_at_once, a_clock_starts_when_the_wait_is_over, a_pause_before_the_start_stops_no_clock,
            a_job_that_waits_can_be_cancelled, a_paused_job_begins_held,
            a_paused_job_that_waits_can_be_resumed, a_recovered_job_is_waited_for_again,
        }
        keys {
            keys_of_flows_are_apart_from_those_of_handlers, a_key_made_by_the_flow_takes_any_input,
            a_bad_end_frees_the_key, a_rerun_names_what_it_repeats,
        }
        registry {
            versions_are_for_ever, the_current_ones_are_listed_by_name, a_submit_brings_its_flow_along,
            a_job_stays_on_its_version, a_conflict_brings_no_flow,
        }
        outputs {
            the_output_of_the_last_task, the_outputs_of_several_last_tasks, the_outputs_of_items,
            the_output_that_the_flow_defines, the_output_of_a_queue, the_mean_of_past_runs, the_mean_of_items,
        }
        places {
            a_task_may_be_more_urgent_than_its_job, a_flow_may_be_more_urgent_than_others,
            limits_come_from_the_input, a_bad_limit_is_a_failure, a_recovered_item_has_its_own_limits_again,
            a_job_may_wait_for_its_moment, what_is_started_and_what_is_new_take_turns, leases_can_be_asked_after, tasks_can_be_looked_at_alone,
            ids_are_found_by_their_beginning, jobs_are_listed_by_what_they_are,
        }
    );
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
