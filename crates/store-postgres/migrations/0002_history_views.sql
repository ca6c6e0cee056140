-- History for any SQL tool: flow_run_history and task_execution_history. They are views over the tables of the work, so
-- nothing is written twice and nothing can differ.

-- What history tells and work does not need. Null in rows of programs that did not know these columns.
-- When the head changed last, when it ended, and why, where no task tells.
ALTER TABLE runs ADD COLUMN changed bigint, ADD COLUMN ended bigint, ADD COLUMN reason text;
-- When the task came to life. Of an item, which task of the flow it belongs to and which item it is, from 0.
ALTER TABLE tasks ADD COLUMN created bigint, ADD COLUMN list integer, ADD COLUMN item integer;
-- When the last attempt started, if there was one.
ALTER TABLE ended ADD COLUMN started bigint;

-- A job's id: a UUID of version 7 that holds the moment of its creation, the salt of the database and its number.
CREATE FUNCTION job_id(salt bigint, created bigint, seq bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (lpad(to_hex(created & 281474976710655), 12, '0') || '7' || lpad(to_hex(salt >> 19), 3, '0')
    || to_hex((1::bigint << 63) | ((salt & 524287) << 43) | seq))::uuid::text;

-- The number in a job's id, by which tables are indexed.
CREATE FUNCTION job_seq(id text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ('x' || right(replace(id::uuid::text, '-', ''), 16))::bit(64)::bigint & 8796093022207;

-- Payloads are JSON texts, of which jsonb refuses a few: the character zero becomes the replacement character, and what
-- is refused all the same (half a surrogate pair, a number of a million digits) is shown as its text.
CREATE FUNCTION json_of(body text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN replace(body, '\u0000', '\ufffd')::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN to_jsonb(body);
END $$;

-- Jobs are found by the fields of their contexts, where they have one: it stands first in what they carry along.
CREATE INDEX jobs_context ON jobs USING gin ((json_of(meta) -> 'context') jsonb_path_ops)
    WHERE left(meta, 11) = '{"context":';

-- The jobs whose context holds all that is asked for. The sessions of the program go without bitmaps, so that rows are
-- met in the order of an index; this index has nothing else.
CREATE FUNCTION jobs_in_context(facts jsonb) RETURNS SETOF bigint LANGUAGE sql STABLE
    SET enable_bitmapscan = on SET enable_seqscan = off
BEGIN ATOMIC
    SELECT seq FROM jobs WHERE left(meta, 11) = '{"context":' AND json_of(meta) -> 'context' @> facts;
END;

-- The tasks of every flow, in order: their index, their name, what each gets where that is written in the flow, and
-- whether it is one of those that no other needs.
CREATE VIEW flow_tasks AS
SELECT f.id AS flow, (t.n - 1)::integer AS index, t.key AS name, (t.value -> 'with')::text AS input,
       t.key <> ALL (d.needed) AS last
FROM flows f
CROSS JOIN LATERAL (
    -- OFFSET 0: the text is read once, not once per use.
    SELECT x.tasks, ARRAY(
        SELECT json_array_elements_text(o.value -> 'needs') FROM json_each(x.tasks) o
    ) AS needed
    FROM (
        SELECT CASE WHEN f.implicit THEN '{"main": {}}'::json
                    ELSE replace(f.body, '\u0000', '\ufffd')::json -> 'tasks' END AS tasks OFFSET 0
    ) x
    OFFSET 0
) d
CROSS JOIN LATERAL json_each(d.tasks) WITH ORDINALITY t(key, value, n);

-- Every task that came to life or ended without that, wherever it stands: the one statement sees one moment of all
-- tables, so each task stands in one of them. The columns from `id` on are those of task_execution_history.
CREATE VIEW task_history AS
SELECT j.seq, t.item, n.name, n.last,
       t.task AS id,
       job_id(m.value::bigint, j.created, j.seq)::varchar AS run_id,
       (CASE WHEN j.flow IS NULL THEN 'main'
             -- An item that was made before items were numbered is called by its index.
             WHEN n.name IS NULL THEN '[' || (t.task & 1048575) || ']'
             ELSE n.name || coalesce('[' || t.item || ']', '') END)::varchar AS task_id,
       l.handler::varchar AS handler,
       (ARRAY['pending', 'queued', 'running', 'retrying', 'completed', 'skipped', 'failed', 'timed_out', 'cancelled'])[s.state + 1]::varchar AS status,
       coalesce(e.attempt, h.attempt, r.attempt, p.attempt, d.attempt, w.attempt, 0) AS attempts,
       CASE WHEN NOT t.closed THEN json_of(coalesce(t.payload, n.input, j.payload)) END AS input_data,
       -- Only lists complete without having come to life: of their items.
       CASE WHEN t.closed AND s.state = 4 THEN coalesce(i.outputs, '[]') ELSE json_of(e.output) END AS output_data,
       a.message AS error_message,
       least(e.at - e.started, 2147483647)::integer AS execution_time_ms,
       to_timestamp(c.created / 1000.0) AS created_at,
       to_timestamp(greatest(c.created, e.at, h.started, r.since, p.since, w.since, a.at) / 1000.0) AS updated_at,
       to_timestamp(e.at / 1000.0) AS completed_at
FROM jobs j
JOIN meta m ON m.name = 'salt'
CROSS JOIN LATERAL (
    SELECT task, lane, tier, entry, payload, created, list, item, false AS closed
    FROM tasks WHERE task >= j.seq << 20 AND task < (j.seq + 1) << 20
    UNION ALL
    SELECT e.task, e.lane, e.tier, NULL, NULL, NULL, NULL, NULL, true
    FROM ended e
    WHERE j.flow IS NOT NULL AND e.task >= j.seq << 20 AND e.task < (j.seq + 1) << 20
      AND NOT EXISTS (SELECT FROM tasks x WHERE x.task = e.task)
    UNION ALL
    SELECT j.seq << 20, j.lane, j.tier, j.entry, NULL, NULL, NULL, NULL, false WHERE j.flow IS NULL
) t
JOIN lanes l ON l.id = t.lane
LEFT JOIN flow_tasks n ON n.flow = j.flow AND n.index = coalesce(t.list, (t.task & 1048575)::integer)
LEFT JOIN ended e ON e.task = t.task
LEFT JOIN leases h ON h.task = t.task
LEFT JOIN ready r ON r.line = coalesce(l.line, l.id) AND r.tier = t.tier AND r.stamp = t.entry AND r.task = t.task
LEFT JOIN parked p ON p.task = t.task
LEFT JOIN delayed d ON d.task = t.task
LEFT JOIN held w ON w.task = t.task
LEFT JOIN LATERAL (
    SELECT message, at FROM attempts WHERE task = t.task AND how <> 'stale' ORDER BY n DESC LIMIT 1
) a ON true
LEFT JOIN LATERAL (
    SELECT jsonb_agg(json_of(x.output) ORDER BY y.task) AS outputs, min(y.created) AS created
    FROM tasks y LEFT JOIN ended x ON x.task = y.task
    WHERE y.task >= j.seq << 20 AND y.task < (j.seq + 1) << 20 AND y.list = (t.task & 1048575)
) i ON t.closed
CROSS JOIN LATERAL (
    -- A job of a queue that was paused got the row of its task then, but had the task from its beginning.
    SELECT CASE WHEN t.closed THEN coalesce(i.created, e.at)
                WHEN j.spec IS NULL THEN coalesce(t.created, j.created)
                ELSE j.created END AS created
) c
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN e.task IS NOT NULL THEN e.state
        WHEN h.task IS NOT NULL THEN 2
        WHEN coalesce(d.due, w.due) IS NOT NULL AND coalesce(d.failures, w.failures) > 0 THEN 3
        WHEN coalesce(r.task, p.task, d.task, w.task) IS NOT NULL THEN 1
        ELSE 0 END AS state
) s;

CREATE VIEW task_execution_history AS
SELECT id, run_id, task_id, handler, status, attempts, input_data, output_data, error_message, execution_time_ms,
       created_at, updated_at, completed_at
FROM task_history;

-- The tasks of one job, found by its number instead of by looking at all.
CREATE FUNCTION tasks_of(run text) RETURNS SETOF task_execution_history LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT id, run_id, task_id, handler, status, attempts, input_data, output_data, error_message, execution_time_ms,
           created_at, updated_at, completed_at
    FROM task_history t WHERE t.seq = job_seq(run) AND t.run_id = run::uuid::text;
END;

-- Every job. One of a queue is a run of its handler.
CREATE VIEW flow_run_history AS
SELECT j.seq AS id,
       o.run_id::varchar AS run_id,
       coalesce(f.name, l.handler)::varchar AS flow_id,
       t.name::varchar AS tenant_id,
       coalesce(o.meta ->> 'user', o.input ->> 'user_id', '')::varchar AS user_id,
       coalesce(o.meta ->> 'correlation_id', o.input ->> 'correlation_id', o.run_id)::varchar AS correlation_id,
       o.status::varchar AS status,
       o.input AS input_data,
       CASE WHEN j.flow IS NULL THEN q.output_data
            WHEN r.output IS NOT NULL THEN json_of(r.output)
            -- Where the flow says nothing, its output is that of its last task, or of several an object by name.
            WHEN r.state = 5 THEN (
                SELECT CASE WHEN count(*) = 1 THEN jsonb_agg(x.output_data) -> 0
                            ELSE jsonb_object_agg(x.name, x.output_data) END
                FROM task_history x WHERE x.seq = j.seq AND x.last AND x.item IS NULL
            ) END AS output_data,
       jsonb_strip_nulls(jsonb_build_object(
           'kind', CASE WHEN f.implicit IS NOT FALSE THEN 'queue' ELSE 'flow' END,
           'flow_version', CASE WHEN NOT f.implicit THEN f.version END,
           'flow_hash', CASE WHEN NOT f.implicit THEN f.hash END,
           'priority', (ARRAY['critical', 'high', 'normal', 'low'])[least(j.tier, 3) + 1],
           'key', j.key,
           'previous_run_id', job_id(m.value::bigint, b.created, b.seq)
       -- What the caller said goes before what is said here.
       )) || CASE WHEN jsonb_typeof(o.meta -> 'context') = 'object' THEN o.meta -> 'context' ELSE '{}' END
           AS execution_context,
       CASE WHEN o.status NOT IN ('failed', 'timed_out', 'cancelled') THEN NULL
            WHEN j.flow IS NULL THEN q.error_message
            ELSE coalesce(r.reason, (
                SELECT a.message FROM attempts a JOIN ended e ON e.task = a.task
                WHERE a.task >= j.seq << 20 AND a.task < (j.seq + 1) << 20 AND e.state = 6 AND a.how <> 'stale'
                ORDER BY a.n DESC LIMIT 1
            )) END AS error_message,
       to_timestamp(j.created / 1000.0) AS created_at,
       CASE WHEN j.flow IS NULL THEN q.updated_at
            ELSE to_timestamp(greatest(j.created, r.changed, r.ended) / 1000.0) END AS updated_at,
       CASE WHEN j.flow IS NULL THEN q.completed_at
            -- The moment is absent where a program wrote the end that did not know the column.
            WHEN r.state >= 5 THEN to_timestamp(coalesce(r.ended, (
                SELECT max(e.at) FROM ended e WHERE e.task >= j.seq << 20 AND e.task < (j.seq + 1) << 20
            )) / 1000.0) END AS completed_at
FROM jobs j
JOIN tenants t ON t.id = j.tenant
JOIN meta m ON m.name = 'salt'
LEFT JOIN lanes l ON l.id = j.lane
LEFT JOIN flows f ON f.id = j.flow
LEFT JOIN runs r ON r.seq = j.seq
LEFT JOIN jobs b ON b.seq = j.previous
LEFT JOIN task_history q ON q.seq = j.seq AND j.flow IS NULL
CROSS JOIN LATERAL (
    SELECT job_id(m.value::bigint, j.created, j.seq) AS run_id, json_of(j.payload) AS input,
           json_of(j.meta) AS meta,
           CASE WHEN r.seq IS NOT NULL THEN
               (ARRAY['pending', 'running', 'pausing', 'paused', 'recovering', 'completed', 'failed', 'timed_out', 'cancelled'])[r.state + 1]
               WHEN q.status IN ('pending', 'queued') AND q.attempts = 0 THEN 'pending'
               WHEN q.status IN ('pending', 'queued', 'retrying') THEN 'running'
               WHEN q.status = 'skipped' THEN 'completed'
               ELSE q.status END AS status
    OFFSET 0
) o;
