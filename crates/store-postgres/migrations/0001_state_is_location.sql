-- State is location: a task moves between small tables and no hot row is updated in place.
-- A task is `seq << 20 | index`: the job's number and the task's index in it.
-- The counters (attempt, failures, crashes) and the checkpoint travel with the task.

-- What many rows share is kept once, and never removed. The digests keep long texts out of the indexes.
CREATE TABLE specs (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest uuid NOT NULL UNIQUE,
    body   text NOT NULL
);
CREATE TABLE tenants (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);
-- A lane is a queue, a handler and a set of limit keys; `line` is the lane of the same queue and handler without
-- keys, and stands for the pair; null where it is the lane itself.
CREATE TABLE lanes (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest  uuid NOT NULL UNIQUE,
    line    integer,
    queue   text NOT NULL,
    handler text NOT NULL,
    limits  text NOT NULL
);
-- Every version of every flow: jobs are pinned to theirs. The one with the highest `applied` is the current one of
-- its name. The implicit ones stand behind jobs of queues that need what flows have.
CREATE TABLE flows (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    implicit boolean NOT NULL,
    name     text NOT NULL,
    hash     text NOT NULL,
    version  integer NOT NULL,
    created  bigint NOT NULL,
    applied  bigint,
    body     text NOT NULL,
    UNIQUE (implicit, name, hash)
);
CREATE SEQUENCE applied;

-- Numbers of jobs.
CREATE SEQUENCE job_seq CACHE 1;

-- A job of a queue has a spec and a lane; `entry` is the stamp with which its task stands in line, if it does. A job of
-- a flow has a row in `runs`; its `entry` is the moment before which it must not start.
CREATE TABLE jobs (
    seq      bigint PRIMARY KEY,
    created  bigint NOT NULL,
    spec     integer,
    lane     integer,
    flow     integer,
    tier     smallint NOT NULL,
    tenant   integer NOT NULL,
    entry    bigint,
    key      text,
    bucket   bigint,
    previous bigint,
    payload  text NOT NULL,
    meta     text
);

-- Documents that are kept with jobs. Mostly they are compressed already.
CREATE TABLE documents (
    seq        bigint PRIMARY KEY,
    name       text NOT NULL,
    media_type text NOT NULL,
    size       bigint NOT NULL,
    sha256     text NOT NULL,
    content    bytea NOT NULL
);
ALTER TABLE documents ALTER COLUMN content SET STORAGE EXTERNAL;

-- The digest of (tenant, handler or flow, key, bucket) and the one job that has the key now.
CREATE TABLE keys (
    digest uuid PRIMARY KEY,
    job    bigint NOT NULL
);

-- Jobs that had a key before, and ended badly: the newest of them has it again when the one that has it is removed.
CREATE TABLE former_keys (
    digest uuid NOT NULL,
    job    bigint NOT NULL,
    PRIMARY KEY (digest, job)
);

-- The head of a job of a flow: all of it that changes. Its row lock is the lock of the job.
CREATE TABLE runs (
    seq     bigint PRIMARY KEY,
    state   smallint NOT NULL,
    started boolean NOT NULL,
    body    bytea NOT NULL,
    output  text
) WITH (fillfactor = 50);
-- Heads that live, by deadline: the end of time where a job has none, or while its clock stands still.
CREATE TABLE alive (
    deadline bigint NOT NULL,
    seq      bigint NOT NULL,
    PRIMARY KEY (deadline, seq)
);
-- Heads that ended badly: what may be recovered.
CREATE TABLE bad (
    seq bigint PRIMARY KEY
);

-- Tasks of flows that came to life. `entry` is the stamp with which the task stands in line, if it does. The payload
-- is absent where it is the job's own or written in the flow.
CREATE TABLE tasks (
    task    bigint PRIMARY KEY,
    lane    integer NOT NULL,
    tier    smallint NOT NULL,
    entry   bigint,
    payload text
) WITH (fillfactor = 80);

-- In line. Who takes rows from here need not hold the lock of the job; who puts rows here does.
CREATE TABLE ready (
    line       integer NOT NULL,
    tier       smallint NOT NULL,
    stamp      bigint NOT NULL,
    task       bigint NOT NULL,
    lane       integer NOT NULL,
    since      bigint NOT NULL,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    crashes    integer NOT NULL,
    checkpoint text,
    PRIMARY KEY (line, tier, stamp, task)
);
-- In line, behind the limit key that was full when the task was met last.
CREATE TABLE parked (
    limit_key  integer NOT NULL,
    line       integer NOT NULL,
    tier       smallint NOT NULL,
    stamp      bigint NOT NULL,
    task       bigint NOT NULL,
    lane       integer NOT NULL,
    since      bigint NOT NULL,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    crashes    integer NOT NULL,
    checkpoint text,
    PRIMARY KEY (limit_key, line, tier, stamp, task)
);
CREATE INDEX parked_task ON parked (task);
-- Out of line until a moment.
CREATE TABLE delayed (
    due        bigint NOT NULL,
    task       bigint NOT NULL,
    lane       integer NOT NULL,
    tier       smallint NOT NULL,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    crashes    integer NOT NULL,
    checkpoint text,
    PRIMARY KEY (due, task)
);
CREATE INDEX delayed_task ON delayed (task);
-- Tasks of paused jobs that would stand in line (with their place) or wait for a moment (with that).
CREATE TABLE held (
    task       bigint PRIMARY KEY,
    lane       integer NOT NULL,
    tier       smallint NOT NULL,
    stamp      bigint,
    since      bigint,
    due        bigint,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    crashes    integer NOT NULL,
    checkpoint text
);
-- Held by a worker. `headed` is set when the job gets a head while it is held: who read that there is none and waited
-- for this row meanwhile sees it.
CREATE TABLE leases (
    task       bigint PRIMARY KEY,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    crashes    integer NOT NULL,
    spec       integer NOT NULL,
    lane       integer NOT NULL,
    tier       smallint NOT NULL,
    stamp      bigint NOT NULL,
    since      bigint NOT NULL,
    started    bigint NOT NULL,
    expires    bigint NOT NULL,
    times_out  bigint,
    worker     text NOT NULL,
    checkpoint text,
    headed     boolean NOT NULL DEFAULT false
) WITH (fillfactor = 90);
-- Over. Only appended to, save by an operator's retry or recovery.
CREATE TABLE ended (
    task     bigint PRIMARY KEY,
    state    smallint NOT NULL,
    at       bigint NOT NULL,
    attempt  integer NOT NULL,
    failures integer NOT NULL,
    crashes  integer NOT NULL,
    lane     integer NOT NULL,
    tier     smallint NOT NULL,
    output   text
);
-- Failed tasks that wait for somebody's decision.
CREATE TABLE dead (
    task   bigint PRIMARY KEY,
    at     bigint NOT NULL,
    reason text NOT NULL,
    line   integer NOT NULL
);
-- Attempts that did not end well, and writes that came too late.
CREATE TABLE attempts (
    task    bigint NOT NULL,
    n       bigint GENERATED ALWAYS AS IDENTITY,
    attempt integer NOT NULL,
    at      bigint NOT NULL,
    how     text NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (task, n)
);

-- Which jobs wait for the end of a job.
CREATE TABLE waits (
    job    bigint NOT NULL,
    waiter bigint NOT NULL,
    PRIMARY KEY (job, waiter)
);
CREATE INDEX waits_waiter ON waits (waiter);

-- Counts that many transactions add to: each writes to a slot of its own choice, and readers add the slots up.
CREATE TABLE timings (
    flow  integer NOT NULL,
    task  integer NOT NULL,
    slot  smallint NOT NULL,
    n     bigint NOT NULL,
    total bigint NOT NULL,
    PRIMARY KEY (flow, task, slot)
) WITH (fillfactor = 20);
CREATE TABLE tally (
    line  integer NOT NULL,
    state smallint NOT NULL,
    slot  smallint NOT NULL,
    n     bigint NOT NULL,
    PRIMARY KEY (line, state, slot)
) WITH (fillfactor = 20);

-- How many jobs came on a day (0), or ended in a state. Nothing is taken back, whatever becomes of the jobs.
CREATE TABLE daily (
    day  integer NOT NULL,
    what smallint NOT NULL,
    slot smallint NOT NULL,
    n    bigint NOT NULL,
    PRIMARY KEY (day, what, slot)
) WITH (fillfactor = 20);

-- Fairness: where a tenant's next task stands at the earliest; tenant 0 holds the front, the highest stamp that was
-- leased. Tasks of jobs that have started stand in a line of their own, under the tenant's number made negative.
CREATE TABLE fair (
    line   integer NOT NULL,
    tier   smallint NOT NULL,
    tenant integer NOT NULL,
    next   bigint NOT NULL,
    PRIMARY KEY (line, tier, tenant)
) WITH (fillfactor = 20);

CREATE TABLE rules (
    key      text PRIMARY KEY,
    rule     text NOT NULL,
    operator boolean NOT NULL
);
-- A limit key in use: how many leases hold a slot of it, its token bucket, and when its rate lets the next of those
-- start that are parked behind it.
CREATE TABLE limit_keys (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key     text NOT NULL UNIQUE,
    running integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    tat     bigint NOT NULL DEFAULT 0,
    wake_at bigint
) WITH (fillfactor = 50);
-- In which lines a key is met: where to look for those that are parked behind it.
CREATE TABLE key_lines (
    limit_key integer NOT NULL,
    line      integer NOT NULL,
    PRIMARY KEY (limit_key, line)
);
CREATE INDEX limit_keys_wake ON limit_keys (wake_at) WHERE wake_at IS NOT NULL;

-- Queues of which nothing is handed out.
CREATE TABLE paused (
    queue text PRIMARY KEY,
    since bigint NOT NULL
);
-- What workers told of themselves.
CREATE TABLE workers (
    name       text PRIMARY KEY,
    note       text NOT NULL,
    first_seen bigint NOT NULL,
    last_seen  bigint NOT NULL
) WITH (fillfactor = 50);

-- One row per transaction with all that changed in it. `id` follows the order in which transactions that touch one job
-- held its lock; `n` is given when the journal is read, to what is committed by then, so that no reader misses a row.
CREATE TABLE journal (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    n      bigint UNIQUE,
    at     bigint NOT NULL,
    events bytea NOT NULL
);
CREATE INDEX journal_new ON journal (id) WHERE n IS NULL;

CREATE TABLE meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

-- Rows come and go here, so dead ones are cleared away soon, however large the rest of the database is.
ALTER TABLE ready SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE leases SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE parked SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE delayed SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE alive SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE fair SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tally SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE daily SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE limit_keys SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- Rows gather here for as long as jobs are kept. Of a large table the usual share would be millions of rows, cleared away in
-- one long go: smaller shares keep each go short, and what retention removes is filled again soon.
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE keys SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE ended SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE runs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE tasks SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
ALTER TABLE journal SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 100000);
