//! The statements of the reads. Columns are read by their names.
//!
//! They are planned once per session, as those of the writers are, and just so a join is written `= ANY (ARRAY[x])`:
//! that can only be looked up row by row, also if the plan was made while the table was empty. Only the counts of all
//! that lives read whole tables, and may join as they like.

/// Who holds these tasks.
pub const HOLDERS: &str = "SELECT task, attempt FROM leases WHERE task = ANY($1::bigint[])";

pub const SPECS: &str = "SELECT id, body FROM specs WHERE id = ANY($1::int[])";

pub const FLOW_BODIES: &str = "SELECT id, implicit, body FROM flows WHERE id = ANY($1::int[])";

/// Jobs by number, with their heads where they have one.
pub const JOBS: &str = "
    SELECT j.seq, j.created, j.spec, j.flow, j.tier, j.key, j.payload, j.previous, p.created AS previous_created,
           t.name AS tenant, f.version, r.body, r.output, j.meta,
           d.name AS document_name, d.media_type, d.size AS document_size, d.sha256
    FROM jobs j
    JOIN tenants t ON t.id = ANY (ARRAY[j.tenant])
    LEFT JOIN jobs p ON p.seq = ANY (ARRAY[j.previous])
    LEFT JOIN flows f ON f.id = ANY (ARRAY[j.flow])
    LEFT JOIN runs r ON r.seq = ANY (ARRAY[j.seq])
    LEFT JOIN documents d ON d.seq = ANY (ARRAY[j.seq])
    WHERE j.seq = ANY($1::bigint[])
    ORDER BY j.seq";

pub const DOCUMENT: &str = "
    SELECT j.created, d.name, d.media_type, d.content
    FROM documents d JOIN jobs j ON j.seq = ANY (ARRAY[d.seq])
    WHERE d.seq = $1";

pub const WAITS: &str = "
    SELECT w.waiter, w.job, j.created
    FROM unnest($1::bigint[]) g(waiter)
    JOIN waits w ON w.waiter = ANY (ARRAY[g.waiter])
    JOIN jobs j ON j.seq = ANY (ARRAY[w.job])";

pub const ENDED: &str = "
    SELECT e.task, e.state, e.at, e.attempt, e.failures, e.crashes, e.output, l.limits, d.reason
    FROM ended e JOIN lanes l ON l.id = ANY (ARRAY[e.lane]) LEFT JOIN dead d ON d.task = ANY (ARRAY[e.task])
    WHERE e.task = ANY($1::bigint[])";

pub const LEASED: &str = "
    SELECT h.task, h.attempt, h.failures, h.crashes, h.checkpoint, h.worker, h.started, h.expires, l.limits
    FROM leases h JOIN lanes l ON l.id = ANY (ARRAY[h.lane])
    WHERE h.task = ANY($1::bigint[])";

/// Tasks that wait, wherever: $1 are the tasks, $2 the jobs of queues among those they belong to. What stands in line is
/// found by its stamp, which is written at the task of a flow and at the job of a queue: no index of `ready` is by task.
pub const WAITING: &str = "
    SELECT r.task, r.attempt, r.failures, r.crashes, r.checkpoint, NULL::bigint AS due, r.since, l.limits,
           false AS parked, false AS held
    FROM jobs j
    JOIN lanes e ON e.id = ANY (ARRAY[j.lane])
    JOIN ready r ON r.line = ANY (ARRAY[coalesce(e.line, e.id)]) AND r.tier = ANY (ARRAY[j.tier])
        AND r.stamp = ANY (ARRAY[j.entry]) AND r.task = ANY (ARRAY[j.seq << 20])
    JOIN lanes l ON l.id = ANY (ARRAY[r.lane])
    WHERE j.seq = ANY($2::bigint[])
    UNION ALL
    SELECT r.task, r.attempt, r.failures, r.crashes, r.checkpoint, NULL, r.since, l.limits, false, false
    FROM tasks t
    JOIN lanes e ON e.id = ANY (ARRAY[t.lane])
    JOIN ready r ON r.line = ANY (ARRAY[coalesce(e.line, e.id)]) AND r.tier = ANY (ARRAY[t.tier])
        AND r.stamp = ANY (ARRAY[t.entry]) AND r.task = ANY (ARRAY[t.task])
    JOIN lanes l ON l.id = ANY (ARRAY[r.lane])
    WHERE t.task = ANY($1::bigint[])
    UNION ALL
    SELECT p.task, p.attempt, p.failures, p.crashes, p.checkpoint, NULL, p.since, l.limits, true, false
    FROM parked p JOIN lanes l ON l.id = ANY (ARRAY[p.lane]) WHERE p.task = ANY($1::bigint[])
    UNION ALL
    SELECT d.task, d.attempt, d.failures, d.crashes, d.checkpoint, d.due, NULL, l.limits, false, false
    FROM delayed d JOIN lanes l ON l.id = ANY (ARRAY[d.lane]) WHERE d.task = ANY($1::bigint[])
    UNION ALL
    SELECT h.task, h.attempt, h.failures, h.crashes, h.checkpoint, h.due, NULL, l.limits, false, true
    FROM held h JOIN lanes l ON l.id = ANY (ARRAY[h.lane]) WHERE h.task = ANY($1::bigint[])";

pub const ATTEMPTS: &str = "
    SELECT task, attempt, at, how, message FROM attempts WHERE task = ANY($1::bigint[]) ORDER BY task, n";

pub const TASKS: &str = "
    SELECT t.task, t.payload, l.limits
    FROM tasks t JOIN lanes l ON l.id = ANY (ARRAY[t.lane])
    WHERE t.task = ANY($1::bigint[])";

/// How many tasks of each range are held by workers.
pub const RUNNING_ITEMS: &str = "
    SELECT g.first, (SELECT count(*)::int FROM leases h WHERE h.task >= g.first AND h.task < g.last) AS n
    FROM unnest($1::bigint[], $2::bigint[]) g(first, last)";

/// What the tasks of ranges ended with.
pub const ITEM_OUTPUTS: &str = "
    SELECT e.task, e.output
    FROM unnest($1::bigint[], $2::bigint[]) g(first, last)
    CROSS JOIN LATERAL (SELECT task, output FROM ended WHERE task >= g.first AND task < g.last) e";

/// Sums of bigint are numeric, whose plain division would round.
pub const TIMINGS: &str = "
    SELECT flow, task, div(sum(total), sum(n))::bigint AS usual
    FROM timings WHERE flow = ANY($1::int[]) GROUP BY flow, task HAVING sum(n) > 0";

/// Looks at the next jobs after a number: which of them a filter may take, as far as that shows without reading their
/// tasks, and which was the last one. A statement looks at so many jobs and no more, however few of them are taken.
///
/// $3 queue, $4 handler, $5 flow; states $6 of heads and $7 of the ended tasks of queues' jobs, $8 whether those that
/// have not ended are taken. Null takes all, and then what tells states is not looked at. It ends before the job $9, and
/// takes those that came from $10 on and before $11.
macro_rules! scan {
    ($after:literal, $before:literal, $order:literal, $last:literal) => {
        concat!(
            "SELECT coalesce(array_agg(seq ORDER BY seq ",
            $order,
            ") FILTER (WHERE taken), '{}') AS taken, ",
            $last,
            "(seq) AS last
             FROM (
                 SELECT j.seq,
                     (l.id IS NULL OR (($3::text IS NULL OR l.queue = $3) AND ($4::text IS NULL OR l.handler = $4)))
                     AND ($5::text IS NULL OR (f.name = $5 AND NOT f.implicit))
                     AND ($6::smallint[] IS NULL OR CASE
                         WHEN r.state IS NOT NULL THEN r.state = ANY($6)
                         WHEN e.state IS NOT NULL THEN e.state = ANY($7::smallint[])
                         ELSE $8::boolean END)
                     AND ($10::bigint IS NULL OR j.created >= $10)
                     AND ($11::bigint IS NULL OR j.created < $11) AS taken
                 FROM (SELECT seq, lane, flow, created FROM jobs WHERE seq ",
            $after,
            " $1 AND seq ",
            $before,
            " $9 ORDER BY seq ",
            $order,
            " LIMIT $2) j
                 LEFT JOIN lanes l ON l.id = ANY (ARRAY[j.lane])
                 LEFT JOIN flows f ON f.id = ANY (ARRAY[j.flow])
                 LEFT JOIN runs r ON $6::smallint[] IS NOT NULL AND r.seq = ANY (ARRAY[j.seq])
                 LEFT JOIN ended e ON $6::smallint[] IS NOT NULL AND e.task = ANY (ARRAY[j.seq << 20])
             ) looked_at"
        )
    };
}
pub const SCAN_OLDEST: &str = scan!(">", "<", "ASC", "max");
pub const SCAN_NEWEST: &str = scan!("<", ">", "DESC", "min");

/// Jobs that have not ended, as far as they may be in a state: heads that live in one of the states $1, and jobs whose
/// tasks wait ($2 those that never ran, $3 those that did) or run ($4). Null takes heads in all states.
pub const LIVE: &str = "
    SELECT a.seq FROM alive a JOIN runs r ON r.seq = ANY (ARRAY[a.seq]) WHERE $1::smallint[] IS NULL OR r.state = ANY($1)
    UNION SELECT task >> 20 FROM ready WHERE CASE WHEN attempt = 0 THEN $2::boolean ELSE $3::boolean END
    UNION SELECT task >> 20 FROM parked WHERE CASE WHEN attempt = 0 THEN $2 ELSE $3 END
    UNION SELECT task >> 20 FROM delayed WHERE CASE WHEN attempt = 0 THEN $2 ELSE $3 END
    UNION SELECT task >> 20 FROM leases WHERE $4::boolean";

/// Jobs whose context holds all that $1 does.
pub const CONTEXT: &str = "SELECT seq FROM jobs_in_context(json_of($1)) j(seq) WHERE seq > $2 AND seq < $3";

/// Jobs that may be recovered.
pub const BAD: &str = "SELECT seq FROM bad";

pub const LAST_JOB: &str = "SELECT seq FROM jobs ORDER BY seq DESC LIMIT 1";

pub const NEXT_JOB: &str = "SELECT created FROM jobs WHERE seq >= $1 ORDER BY seq LIMIT 1";

/// Jobs between two numbers that were created between two moments.
pub const CREATED_BETWEEN: &str = "
    SELECT seq, created FROM jobs
    WHERE seq >= $1 AND seq < $2 AND created >= $3 AND created <= $4
    ORDER BY seq DESC LIMIT $5";

pub const DEAD: &str = "
    SELECT d.task, d.at, d.reason, j.created, j.key, j.flow, r.body, l.queue, l.handler,
           e.attempt, e.failures, e.crashes,
           (SELECT a.message FROM attempts a WHERE a.task = d.task AND a.how <> 'stale' ORDER BY a.n DESC LIMIT 1) AS message
    FROM dead d
    JOIN jobs j ON j.seq = ANY (ARRAY[d.task >> 20])
    JOIN ended e ON e.task = ANY (ARRAY[d.task])
    JOIN lanes l ON l.id = ANY (ARRAY[d.line])
    LEFT JOIN runs r ON r.seq = ANY (ARRAY[j.seq])
    WHERE d.task > $1 AND ($2::text IS NULL OR l.queue = $2) AND ($3::text IS NULL OR l.handler = $3)
    ORDER BY d.task
    LIMIT $4";

/// Versions of flows: $1 a name, or null for all; $2 a version, or null for all; $3 only the current ones.
pub const FLOWS: &str = r#"
    SELECT name, version, hash, created, body, current
    FROM (
        SELECT name, version, hash, created, body,
               coalesce(applied = max(applied) OVER (PARTITION BY name), false) AS current
        FROM flows
        WHERE NOT implicit AND ($1::text IS NULL OR name = $1)
    ) f
    WHERE ($2::int IS NULL OR version = $2) AND (current OR NOT $3::boolean)
    ORDER BY name COLLATE "C", version"#;

pub const LINES: &str = "SELECT id, queue, handler FROM lanes WHERE line IS NULL";

/// Live work only; what ended is counted in `tally`. Jobs are numbered in order of their arrival, so the lowest task is
/// the oldest.
pub const COUNTS: &str = "
    SELECT r.line, 'ready' AS what, r.n, j.created AS oldest
    FROM (SELECT line, count(*) AS n, min(task) >> 20 AS oldest FROM ready GROUP BY line) r
    JOIN jobs j ON j.seq = ANY (ARRAY[r.oldest])
    UNION ALL
    SELECT p.line, 'parked', p.n, j.created
    FROM (SELECT line, count(*) AS n, min(task) >> 20 AS oldest FROM parked GROUP BY line) p
    JOIN jobs j ON j.seq = ANY (ARRAY[p.oldest])
    UNION ALL
    SELECT coalesce(l.line, l.id), CASE WHEN d.failures > 0 THEN 'retrying' ELSE 'scheduled' END, count(*), NULL
    FROM delayed d JOIN lanes l ON l.id = d.lane GROUP BY 1, 2
    UNION ALL
    SELECT coalesce(l.line, l.id), 'running', count(*), min(h.started)
    FROM leases h JOIN lanes l ON l.id = h.lane GROUP BY 1
    UNION ALL
    SELECT line, 'dead', count(*), min(at) FROM dead GROUP BY line
    UNION ALL
    SELECT coalesce(l.line, l.id), 'paused', count(*), NULL
    FROM held h JOIN lanes l ON l.id = h.lane GROUP BY 1";

pub const TALLY: &str = "SELECT line, state, sum(n)::bigint AS n FROM tally GROUP BY line, state";

/// The newest days on which something happened, as many as $1, by going from each to the one before.
pub const DAILY: &str = "
    WITH RECURSIVE days(day, n) AS (
        (SELECT day, 1 FROM daily ORDER BY day DESC LIMIT 1)
        UNION ALL
        SELECT (SELECT d.day FROM daily d WHERE d.day < days.day ORDER BY d.day DESC LIMIT 1), days.n + 1
        FROM days WHERE days.day IS NOT NULL AND days.n < $1
    )
    SELECT d.day, d.what, sum(d.n)::bigint AS n
    FROM days JOIN daily d ON d.day = ANY (ARRAY[days.day])
    GROUP BY d.day, d.what ORDER BY d.day DESC";

pub const PAUSED: &str = r#"SELECT queue, since FROM paused ORDER BY queue COLLATE "C""#;

pub const WORKERS: &str = r#"
    SELECT name, note, first_seen, last_seen FROM workers WHERE last_seen > $1 ORDER BY name COLLATE "C""#;

pub const RUNNING: &str = "SELECT worker, count(*) AS n FROM leases GROUP BY worker";

pub const RULES: &str = "SELECT key, rule, operator FROM rules";

pub const KEYS_IN_USE: &str = "SELECT key, running FROM limit_keys WHERE running > 0";

pub const JOURNAL: &str = "SELECT n, at, events FROM journal WHERE n >= $1 ORDER BY n LIMIT $2";

/// Whether entries have no number yet.
pub const JOURNAL_NEW: &str =
    "SELECT EXISTS (SELECT FROM journal WHERE n IS NULL ORDER BY id LIMIT 1) AS any";

/// The newest entry, and the number of the oldest.
pub const JOURNAL_ENDS: &str = "
    SELECT n, events, (SELECT o.n FROM journal o WHERE o.n IS NOT NULL ORDER BY o.n LIMIT 1) AS oldest
    FROM journal WHERE n IS NOT NULL ORDER BY n DESC LIMIT 1";

/// What the journal tells of jobs.
pub const JOURNAL_JOBS: &str = "
    SELECT j.seq, j.created, j.flow, t.name AS tenant, r.body
    FROM jobs j JOIN tenants t ON t.id = ANY (ARRAY[j.tenant])
    LEFT JOIN runs r ON r.seq = ANY (ARRAY[j.seq]) AND j.flow IS NOT NULL
    WHERE j.seq = ANY($1::bigint[])";

/// One at a time gives out numbers, else two could give out the same.
pub const JOURNAL_LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// Gives the next numbers to entries that are committed and have none.
pub const JOURNAL_NUMBER: &str = "
    UPDATE journal j SET n = last.n + new.rank
    FROM (
        SELECT id, row_number() OVER (ORDER BY id) AS rank
        FROM (SELECT id FROM journal WHERE n IS NULL ORDER BY id LIMIT $1) unread
    ) new,
    (SELECT coalesce(max(n), 0) AS n FROM journal) last
    WHERE j.id = new.id";

/// The next jobs behind one, with how and when they ended, and whether a dead letter of theirs is undecided. LIMIT 1: a
/// page looks at its own rows only, whatever seems cheaper.
pub const REMOVABLE: &str = "
    SELECT j.seq, j.created, r.body, e.state, e.at,
           EXISTS (SELECT FROM dead d WHERE d.task >= j.seq << 20 AND d.task < (j.seq + 1) << 20) AS dead
    FROM (SELECT seq, created FROM jobs WHERE seq > $1 ORDER BY seq LIMIT $2) j
    LEFT JOIN LATERAL (SELECT body FROM runs WHERE seq = j.seq LIMIT 1) r ON true
    LEFT JOIN LATERAL (SELECT state, at FROM ended WHERE task = j.seq << 20 LIMIT 1) e ON true
    ORDER BY j.seq";
