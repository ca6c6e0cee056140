//! How SQLite goes about each statement: by seeks into the primary keys. What reads a whole table
//! does so by name, and with a reason.

use crate::support::{open, scratch};
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, StatementStatus};
use std::collections::BTreeMap;

/// Statements that may step over rows or sort them, with the lines of their plans that do.
const LEAVE: &[(&str, &[&str], &str)] = &[
    ("dues", &["SCAN delayed"], "the first 64 in the order of the key"),
    (
        "overdue",
        &["SCAN leases", "USE TEMP B-TREE FOR ORDER BY"],
        "there are as many leases as slots; an index would be written by every heartbeat",
    ),
    (
        "parked_heads",
        &["SCAN parked", "SCAN (subquery-1)", "SCAN h", "SCAN h"],
        "the first row of the table, then a row per lane; how far it steps is tested below",
    ),
    ("scan_delayed", &["SCAN delayed"], "the last resort for a task that moved since it entered"),
    ("scan_parked", &["SCAN parked"], "the last resort for a task that moved since it entered"),
    ("view_moved", &["SCAN d", "SCAN p"], "the last resort for a task that moved since it entered"),
    (
        "view_counts",
        &[
            "SCAN ready",
            "SCAN r",
            "SCAN parked",
            "SCAN p",
            "USE TEMP B-TREE FOR GROUP BY",
            "SCAN d",
            "USE TEMP B-TREE FOR GROUP BY",
            "SCAN h",
            "USE TEMP B-TREE FOR GROUP BY",
            "SCAN dead",
            "USE TEMP B-TREE FOR GROUP BY",
            "SCAN h",
            "USE TEMP B-TREE FOR GROUP BY",
        ],
        "it counts live work, on a reader's connection",
    ),
    (
        "view_live_jobs",
        &[
            "SCAN alive",
            "USE TEMP B-TREE FOR ORDER BY",
            "SCAN ready",
            "USE TEMP B-TREE FOR ORDER BY",
            "SCAN parked",
            "USE TEMP B-TREE FOR ORDER BY",
            "SCAN delayed",
            "USE TEMP B-TREE FOR ORDER BY",
            "SCAN leases",
            "USE TEMP B-TREE FOR ORDER BY",
        ],
        "it lists live jobs, on a reader's connection, and none that are over",
    ),
    ("view_bad_runs", &["SCAN bad"], "all jobs that may be recovered, in order"),
    ("view_flows", &["USE TEMP B-TREE FOR LAST TERM OF ORDER BY"], "the few versions of a name"),
    ("view_flow_versions", &["USE TEMP B-TREE FOR ORDER BY"], "the few versions of a name"),
    ("forget_workers", &["SCAN workers"], "a row per worker of the last day"),
    ("view_workers", &["SCAN workers"], "a row per worker of the last day"),
    (
        "view_running",
        &["SCAN leases", "USE TEMP B-TREE FOR GROUP BY"],
        "as many as slots, when somebody looks at the workers",
    ),
    ("view_paused", &["SCAN paused"], "the queues that somebody paused"),
    ("view_daily", &["SCAN daily"], "the newest days first, as many as are asked for"),
    ("view_ids", &["SCAN jobs"], "the newest first, up to the moment that the prefix names"),
];

/// Plans that must be exactly these.
const SEEKS: &[(&str, &[&str])] = &[
    (
        "ready_page",
        &[
            "SEARCH r USING PRIMARY KEY (line=? AND tier=? AND (stamp,task)>(?,?))",
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    ("delete_ready_prefix", &["SEARCH ready USING PRIMARY KEY (line=? AND tier=? AND (stamp,task)<(?,?))"]),
    ("due_page", &["SEARCH d USING PRIMARY KEY (due<?)", "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"]),
    ("delete_due_prefix", &["SEARCH delayed USING PRIMARY KEY ((due,task)<(?,?))"]),
    ("parked_head", &["SEARCH parked USING PRIMARY KEY (lane=? AND tier=?)"]),
    ("find_idem", &["SEARCH idem USING PRIMARY KEY (hash=?)"]),
    ("lease_row", &["SEARCH leases USING INTEGER PRIMARY KEY (rowid=?)"]),
    ("delete_lease", &["SEARCH leases USING INTEGER PRIMARY KEY (rowid=?)"]),
    ("extend_lease", &["SEARCH leases USING INTEGER PRIMARY KEY (rowid=?)"]),
    ("job_by_seq", &["SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"]),
    ("view_context_oldest", &["SEARCH jobs USING INDEX jobs_context (seq>? AND seq<?)"]),
    ("view_context_newest", &["SEARCH jobs USING INDEX jobs_context (seq>? AND seq<?)"]),
    ("view_journal", &["SEARCH journal USING INTEGER PRIMARY KEY (rowid>?)"]),
    ("view_next_created", &["SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"]),
    ("overdue_runs", &["SEARCH alive USING PRIMARY KEY (deadline<?)"]),
    ("any_lease", &["SEARCH leases USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
];

/// An empty database of the current schema, and the directory that it lives in. Plans are made as
/// for the writer: without a look at what is bound.
fn migrated() -> (tempfile::TempDir, Connection) {
    let dir = scratch();
    let path = dir.path().join("plans.db");
    open(&path).close();
    let conn = Connection::open(&path).unwrap();
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
    (dir, conn)
}

/// Every statement that lies in `sql/`, by name.
fn statements() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")).unwrap();
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let found: BTreeMap<_, _> = files.map(read).collect();
    assert!(found.len() > 40, "these are not all: {:?}", found.keys());
    found
}

fn plan(conn: &Connection, text: &str) -> Vec<String> {
    // A PRAGMA has no plan and would be carried out.
    if text.lines().any(|line| line.starts_with("PRAGMA")) {
        return vec![];
    }
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
    let mut rows = statement.raw_query();
    let mut lines = vec![];
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get("detail").unwrap());
    }
    lines
}

/// Lines of a plan that cost as much as there are rows.
fn is_costly(line: &str) -> bool {
    line.starts_with("SCAN ") || line.contains("TEMP B-TREE") || line.contains("AUTOMATIC")
}

#[test]
fn no_statement_scans_or_sorts_without_leave() {
    let (_dir, conn) = migrated();
    let mut with_leave = 0;
    for (name, text) in statements() {
        let plan = plan(&conn, &text);
        let costly: Vec<_> = plan.iter().filter(|line| is_costly(line)).collect();
        let leave = LEAVE.iter().find(|(other, _, _)| *other == name);
        with_leave += usize::from(leave.is_some());
        let allowed = leave.map_or(&[][..], |(_, lines, _)| lines);
        assert_eq!(costly, allowed, "{name} ({}):\n{}", leave.map_or("", |(_, _, why)| why), plan.join("\n"));
    }
    assert_eq!(with_leave, LEAVE.len(), "a leave for a statement that is not there");
}

#[test]
fn ranges_and_fences_are_seeks() {
    let (_dir, conn) = migrated();
    let statements = statements();
    for (name, expected) in SEEKS {
        assert_eq!(plan(&conn, &statements[*name]), *expected, "{name}");
    }
}

/// A plan does not tell how many rows a seek steps over until it stops; counting does.
#[test]
fn what_a_statement_touches_does_not_grow_with_the_backlog() {
    const ROWS: i64 = 20_000;
    let (_dir, conn) = migrated();
    let numbers =
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})");
    for insert in [
        "INSERT INTO jobs SELECT i, 0, 1, 1, NULL, 2, 1, i, NULL, NULL, NULL, '1', NULL FROM n",
        "INSERT INTO ready SELECT 1, 2, i, i << 20, 1, 0, 0, 0, 0, NULL FROM n",
        "INSERT INTO parked SELECT 1 + i % 3, 2, i, i << 20, 0, 0, 0, 0, NULL FROM n",
        "INSERT INTO delayed SELECT i, i << 20, 1, 2, 0, 0, 0, NULL FROM n",
        "INSERT INTO idem SELECT i, i FROM n",
        "INSERT INTO runs SELECT i, 1, x'00', NULL FROM n",
        "INSERT INTO tasks SELECT i << 20, 1, 2, i, NULL, NULL FROM n",
        "INSERT INTO ended SELECT i << 20, 4, i, 1, 0, 0, 1, NULL FROM n",
        "INSERT INTO alive SELECT i, i FROM n",
        "INSERT INTO waits SELECT i, i + 1 FROM n",
    ] {
        conn.execute_batch(&format!("{numbers} {insert}")).unwrap();
    }
    let middle = ROWS / 2;
    let cases: &[(&str, &[i64], usize)] = &[
        ("parked_heads", &[], 3),
        ("parked_head", &[2, 2], 1),
        ("ready_page", &[1, 2, middle, middle << 20, 10], 10),
        ("due_page", &[middle, 10], 10),
        ("dues", &[], 64),
        ("find_idem", &[middle], 1),
        ("job_by_seq", &[middle], 1),
        ("run_by_seq", &[middle], 1),
        ("overdue_runs", &[middle, 10], 10),
        ("live_tasks", &[middle << 20, (middle + 1) << 20], 0),
        ("task_row", &[middle << 20], 1),
        ("ends", &[middle << 20, (middle + 1) << 20], 1),
        ("waiters", &[middle], 1),
        ("delete_waits_of", &[middle], 0),
        ("delete_ready_prefix", &[1, 2, 10, 10 << 20], 0),
        ("delete_due_prefix", &[10, 10 << 20], 0),
    ];
    let statements = statements();
    for (name, params, expected) in cases {
        let mut statement = conn.prepare(&statements[*name]).unwrap();
        for (n, value) in params.iter().enumerate() {
            statement.raw_bind_parameter(n + 1, Value::Integer(*value)).unwrap();
        }
        let mut found = 0;
        let mut rows = statement.raw_query();
        while rows.next().unwrap().is_some() {
            found += 1;
        }
        drop(rows);
        assert_eq!(found, *expected, "{name}");
        let steps = statement.get_status(StatementStatus::VmStep);
        assert!(steps < 2000, "{name} takes {steps} steps over {ROWS} rows");
    }
}
