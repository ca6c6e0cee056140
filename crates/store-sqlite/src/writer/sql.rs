//! The writer's statements: each has a name, a file in `sql/`, and stays prepared.

use rusqlite::{Connection, Statement};

macro_rules! statements {
    ($($name:ident),* $(,)?) => {
        /// All statements of the writer, prepared once.
        pub struct Sql<'c> { $(pub $name: Statement<'c>,)* }

        impl<'c> Sql<'c> {
            /// Prepares them all.
            pub fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
                Ok(Sql { $($name: conn.prepare(text(stringify!($name)))?,)* })
            }
        }

        /// The text of a statement.
        pub fn text(name: &str) -> &'static str {
            match name {
                $(stringify!($name) => include_str!(concat!("../../sql/", stringify!($name), ".sql")),)*
                _ => unreachable!("a statement without a file"),
            }
        }
    };
}

statements! {
    begin, commit, rollback, data_version,
    insert_spec, insert_tenant, insert_lane,
    job_by_seq, find_idem, put_watermark,
    ready_page, delete_ready_prefix, delete_ready, seek_ready, scan_ready,
    insert_document, document_digest, delete_document,
    insert_parked, parked_head, parked_row, delete_parked, seek_parked, scan_parked,
    insert_delayed, due_page, delete_due_prefix, delete_delayed, dues, seek_delayed, scan_delayed,
    lease_row, delete_lease, extend_lease, overdue, lease_by_task,
    find_flow, flow_by_id, insert_flow, flow_standing, apply_flow, retire_flow,
    run_by_seq, overdue_runs, delete_alive, insert_bad, delete_bad, upgrade_job, upgrade_lease,
    task_row, move_task, reset_task, live_tasks, delete_tasks, task_output, task_error, any_lease,
    row_ready, row_parked, row_delayed, insert_held, held_rows, delete_held,
    bad_ends, ends, dead_by_task, delete_attempts,
    insert_wait, waiters, delete_waits_on, delete_waits_of, add_timing,
    ended_by_task, delete_ended, insert_dead, delete_dead, insert_attempt,
    ends_of_job, end_moment, delete_job, delete_run, delete_ends, delete_dead_of, delete_idem, put_last_seq,
    old_journal, delete_journal,
    put_paused, delete_paused, put_worker, forget_workers, check,
    add_tally, add_daily, get_fair, put_fair, put_bucket, put_rule, delete_rule, insert_journal,
}
