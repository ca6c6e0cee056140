-- State is location: a task moves between small tables and no hot row is updated in place.
-- A task is `seq << 20 | index`: the job's row and the task's index in it.
-- The counters (attempt, failures, crashes) and the checkpoint travel with the task.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

-- What many rows share is kept once. The cache of the writer holds these tables whole.
CREATE TABLE specs (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE tenants (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
-- A lane is a queue, a handler and a set of limit keys; `line` is the lane of the same queue and
-- handler without keys, and stands for the pair.
CREATE TABLE lanes (
    id      INTEGER PRIMARY KEY,
    line    INTEGER NOT NULL,
    queue   TEXT NOT NULL,
    handler TEXT NOT NULL,
    keys    TEXT NOT NULL,
    UNIQUE (queue, handler, keys)
) STRICT;

-- Every version of every flow, for ever: jobs are pinned to theirs. The one with the highest `applied`
-- is the current one of its name; one that nobody applied, or that was retired, has none. The
-- implicit ones stand behind jobs of queues that need what flows have.
CREATE TABLE flows (
    id       INTEGER PRIMARY KEY,
    implicit INTEGER NOT NULL,
    name     TEXT NOT NULL,
    hash     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    applied  INTEGER,
    body     TEXT NOT NULL,
    UNIQUE (implicit, name, hash)
) STRICT;

-- Written once. A job of a queue has a spec and a lane; its `entry` is the stamp or the due time with
-- which the task entered: it finds the task's row in ready, parked or delayed by a seek as long as the
-- task has not moved since. A job of a flow has a row in `runs`; its `entry` is the moment before which it
-- must not start.
CREATE TABLE jobs (
    seq      INTEGER PRIMARY KEY,
    created  INTEGER NOT NULL,
    spec     INTEGER,
    lane     INTEGER,
    flow     INTEGER,
    tier     INTEGER NOT NULL,
    tenant   INTEGER NOT NULL,
    entry    INTEGER,
    key      TEXT,
    bucket   INTEGER,
    previous INTEGER,
    payload  TEXT NOT NULL,
    meta     TEXT
) STRICT;
-- The jobs that have a context, which stands first in what they carry along.
CREATE INDEX jobs_context ON jobs (seq) WHERE substr(meta, 1, 11) = '{"context":';

-- Documents that are kept with jobs. The content stands last, so that the rest is read without it.
CREATE TABLE documents (
    seq        INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size       INTEGER NOT NULL,
    sha256     TEXT NOT NULL,
    content    BLOB NOT NULL
) STRICT;

-- The head of a job of a flow: all of it that changes. It has no index, so that a commit overwrites the heads that
-- it changed, sixteen to a statement.
CREATE TABLE runs (
    seq    INTEGER PRIMARY KEY,
    state  INTEGER NOT NULL,
    body   BLOB NOT NULL,
    output TEXT
) STRICT;
-- Heads that live, by deadline: the end of time where a job has none, or while its clock stands still.
CREATE TABLE alive (
    deadline INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (deadline, seq)
) STRICT, WITHOUT ROWID;
-- Heads that ended badly: what may be recovered.
CREATE TABLE bad (
    seq INTEGER PRIMARY KEY
) STRICT;

-- Tasks of flows that came to life, written when they do. `entry` is where the task stands now, if it
-- stands anywhere: its stamp or its due time; none for an item that waits behind the others of its for_each.
-- `leg` is the lane in which it stands, where that is no longer the one in which it came to life.
-- The payload is absent where it is the job's own or written in the flow.
CREATE TABLE tasks (
    task    INTEGER PRIMARY KEY,
    lane    INTEGER NOT NULL,
    tier    INTEGER NOT NULL,
    entry   INTEGER,
    leg     INTEGER,
    payload TEXT
) STRICT;

-- Tasks of paused jobs that would stand in line (with their place) or wait for a moment (with that).
CREATE TABLE held (
    task       INTEGER PRIMARY KEY,
    lane       INTEGER NOT NULL,
    tier       INTEGER NOT NULL,
    stamp      INTEGER,
    since      INTEGER,
    due        INTEGER,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    checkpoint TEXT
) STRICT;

-- Which jobs wait for the end of a job.
CREATE TABLE waits (
    job    INTEGER NOT NULL,
    waiter INTEGER NOT NULL,
    PRIMARY KEY (job, waiter)
) STRICT, WITHOUT ROWID;
CREATE INDEX waits_waiter ON waits (waiter);

-- How long the tasks of a version of a flow took.
CREATE TABLE timings (
    flow  INTEGER NOT NULL,
    task  INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (flow, task)
) STRICT, WITHOUT ROWID;

-- Hash of (tenant, handler or flow, key, bucket) to the one job that has the key now. Hashes may collide:
-- the job's own row is the truth.
CREATE TABLE idem (
    hash INTEGER NOT NULL,
    job  INTEGER NOT NULL,
    PRIMARY KEY (hash, job)
) STRICT, WITHOUT ROWID;

-- In line.
CREATE TABLE ready (
    line       INTEGER NOT NULL,
    tier       INTEGER NOT NULL,
    stamp      INTEGER NOT NULL,
    task       INTEGER NOT NULL,
    lane       INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    checkpoint TEXT,
    PRIMARY KEY (line, tier, stamp, task)
) STRICT, WITHOUT ROWID;

-- In line behind a limit that was full: off the ready index, so that they cost the others nothing.
CREATE TABLE parked (
    lane       INTEGER NOT NULL,
    tier       INTEGER NOT NULL,
    stamp      INTEGER NOT NULL,
    task       INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    checkpoint TEXT,
    PRIMARY KEY (lane, tier, stamp, task)
) STRICT, WITHOUT ROWID;

-- Out of line until a moment.
CREATE TABLE delayed (
    due        INTEGER NOT NULL,
    task       INTEGER NOT NULL,
    lane       INTEGER NOT NULL,
    tier       INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    checkpoint TEXT,
    PRIMARY KEY (due, task)
) STRICT, WITHOUT ROWID;

-- Held by a worker. A lease's lane is its slot under each of the lane's keys: slots are counted
-- from these rows and so cannot leak.
CREATE TABLE leases (
    task       INTEGER PRIMARY KEY,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    spec       INTEGER NOT NULL,
    flow       INTEGER,
    lane       INTEGER NOT NULL,
    tier       INTEGER NOT NULL,
    stamp      INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    started    INTEGER NOT NULL,
    expires    INTEGER NOT NULL,
    times_out  INTEGER,
    worker     TEXT NOT NULL,
    checkpoint TEXT
) STRICT;

-- Over. Only appended to, save by an operator's retry.
CREATE TABLE ended (
    task     INTEGER PRIMARY KEY,
    state    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    crashes  INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    output   TEXT
) STRICT;

-- Failed tasks that wait for somebody's decision.
CREATE TABLE dead (
    task   INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    reason TEXT NOT NULL,
    line   INTEGER NOT NULL
) STRICT;

-- Attempts that did not end well, and writes that came too late.
CREATE TABLE attempts (
    task    INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    how     TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (task, n)
) STRICT, WITHOUT ROWID;

-- How many tasks of a line ended in a state: kept, because counting millions is slow.
CREATE TABLE tally (
    line  INTEGER NOT NULL,
    state INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (line, state)
) STRICT, WITHOUT ROWID;

-- How many jobs came on a day (0), or ended in a state. Nothing is taken back, whatever becomes of the jobs.
CREATE TABLE daily (
    day  INTEGER NOT NULL,
    what INTEGER NOT NULL,
    n    INTEGER NOT NULL,
    PRIMARY KEY (day, what)
) STRICT, WITHOUT ROWID;

-- Fairness: where a tenant's next task stands at the earliest; tenant 0 holds the front, the
-- highest stamp that was leased. Tasks of jobs that have started stand in a line of their own, kept
-- under the tenant's number made negative.
CREATE TABLE fair (
    line   INTEGER NOT NULL,
    tier   INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    next   INTEGER NOT NULL,
    PRIMARY KEY (line, tier, tenant)
) STRICT, WITHOUT ROWID;

CREATE TABLE rules (
    key      TEXT PRIMARY KEY,
    rule     TEXT NOT NULL,
    operator INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE buckets (
    key TEXT PRIMARY KEY,
    tat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Queues of which nothing is handed out.
CREATE TABLE paused (
    queue TEXT PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- What workers told of themselves.
CREATE TABLE workers (
    name       TEXT PRIMARY KEY,
    note       TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per commit, with all that changed in it.
CREATE TABLE journal (
    n      INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    events BLOB NOT NULL
) STRICT;
