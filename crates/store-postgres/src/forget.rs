//! Removing what is over: jobs with all of their rows, and the beginning of the journal.
//!
//! A transaction locks what tells that a job has ended and keeps it so: the job's row, its key, its head, and the end of
//! the task of a queue. Whoever takes the job up again at the same time either comes first, and the job stays, or finds
//! it gone and looks anew. Nobody waits for a job that has ended, and it stands nowhere else.

use crate::flush::TALLY;
use crate::read::JOURNAL_NUMBERING;
use crate::tx::{Abort, Tx, Value, Write};
use crate::verbs::{Verbs, until_through};
use crate::work::{Work, key_digest};
use orchestrator_core::Timestamp;
use orchestrator_core::flow::Run;
use orchestrator_store::packed::{Ids, pack, seq_of};
use orchestrator_store::{Forget, Forgot};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Jobs by number, with what their keys are made of.
const JOBS: &str = "
    SELECT j.seq, j.created, j.flow, j.key, j.bucket, t.name,
           coalesce(l.handler, CASE WHEN f.implicit THEN f.name ELSE 'flow:' || f.name END)
    FROM jobs j
    JOIN tenants t ON t.id = j.tenant
    LEFT JOIN lanes l ON l.id = j.lane
    LEFT JOIN flows f ON f.id = j.flow
    WHERE j.seq = ANY($1)
    ORDER BY j.seq FOR UPDATE OF j";
const KEYS: &str = "SELECT digest, job FROM keys WHERE digest = ANY($1) ORDER BY digest FOR UPDATE";
const HEADS: &str = "SELECT seq, body FROM runs WHERE seq = ANY($1) ORDER BY seq FOR UPDATE";
const ENDS: &str = "SELECT task, at FROM ended WHERE task = ANY($1) ORDER BY task FOR UPDATE";

/// The ends of tasks go, and are counted on the way.
const DELETE_ENDS: &str = "
    WITH gone AS (
        DELETE FROM ended e USING unnest($1::bigint[]) w(seq)
        WHERE e.task >= w.seq << 20 AND e.task < (w.seq + 1) << 20
        RETURNING e.lane, e.state
    )
    SELECT coalesce(l.line, l.id) AS line, g.state, count(*) FROM gone g JOIN lanes l ON l.id = g.lane GROUP BY 1, 2";
const DELETE_ATTEMPTS: &str = "DELETE FROM attempts a USING unnest($1::bigint[]) w(seq)
    WHERE a.task >= w.seq << 20 AND a.task < (w.seq + 1) << 20";
const DELETE_DEAD: &str = "DELETE FROM dead d USING unnest($1::bigint[]) w(seq)
    WHERE d.task >= w.seq << 20 AND d.task < (w.seq + 1) << 20";
const DELETE_TASKS: &str = "DELETE FROM tasks t USING unnest($1::bigint[]) w(seq)
    WHERE t.task >= w.seq << 20 AND t.task < (w.seq + 1) << 20";

/// Of the jobs that had a key before, those that go; then the newest that is left has the key of a job that goes.
const DELETE_FORMER: &str = "DELETE FROM former_keys f USING unnest($1::uuid[], $2::bigint[]) w(digest, job)
    WHERE f.digest = ANY (ARRAY[w.digest]) AND f.job = ANY (ARRAY[w.job])";
const HAND_BACK: &str = "
    WITH next AS (
        SELECT digest, max(job) AS job FROM former_keys WHERE digest = ANY($1) GROUP BY digest
    ), taken AS (
        DELETE FROM former_keys f USING next n WHERE f.digest = ANY (ARRAY[n.digest]) AND f.job = ANY (ARRAY[n.job])
    )
    UPDATE keys k SET job = n.job FROM next n WHERE k.digest = ANY (ARRAY[n.digest])";
const DELETE_KEYS: &str = "DELETE FROM keys WHERE digest = ANY($1) AND job = ANY($2)";

/// The oldest entries of the journal. The newest is not among them, nor the one with the last number: the next numbers
/// follow from it.
const OLD_JOURNAL: &str = "
    SELECT id, at FROM journal
    WHERE id < (SELECT max(id) FROM journal) AND (n IS NULL OR n < (SELECT max(n) FROM journal))
    ORDER BY id LIMIT $1";

impl Verbs {
    /// Removes jobs that have ended.
    pub async fn forget(&self, jobs: &[Forget]) -> Result<Vec<Forgot>, Abort> {
        Ok(until_through!(self, |tx, work| forget(tx, self.ids, jobs).await?).0)
    }

    /// Removes old entries of the journal.
    pub async fn forget_journal(&self, before: Timestamp, limit: u32) -> Result<u32, Abort> {
        let (mut tx, _) = self.begin().await?;
        // Nobody gives out numbers meanwhile.
        tx.query("SELECT pg_advisory_xact_lock($1)", &[&JOURNAL_NUMBERING]).await?;
        let oldest = tx.query(OLD_JOURNAL, &[&i64::from(limit)]).await?;
        let old = oldest.iter().take_while(|row| row.get::<_, i64>(1) < before.as_millis());
        let old: Vec<i64> = old.map(|row| row.get(0)).collect();
        let gone = old.len() as u32;
        tx.commit(vec![Write::new("DELETE FROM journal WHERE id = ANY($1)", vec![Arc::new(old)])]).await?;
        Ok(gone)
    }
}

/// A job that may go.
struct Found {
    created: Timestamp,
    ended: Option<Timestamp>,
    key: Option<Uuid>,
}

async fn forget(tx: &mut Tx, ids: Ids, jobs: &[Forget]) -> Result<(Vec<Forgot>, Vec<Write>), Abort> {
    let seqs: Vec<i64> = jobs.iter().filter_map(|wish| ids.seq(wish.job)).collect();
    let (mut found, holders) = find(tx, &seqs).await?;
    let mut gone: Vec<i64> = vec![];
    let mut keys: (Vec<Uuid>, Vec<i64>) = (vec![], vec![]);
    let mut answers = Vec::with_capacity(jobs.len());
    for wish in jobs {
        let job = ids.seq(wish.job).and_then(|seq| Some((seq, found.get(&seq)?)));
        let Some((seq, job)) = job.filter(|(_, job)| job.created == wish.job.created()) else {
            answers.push(Forgot::NotFound);
            continue;
        };
        if job.ended != Some(wish.ended) {
            answers.push(Forgot::Kept);
            continue;
        }
        gone.push(seq);
        if let Some(key) = job.key {
            keys.0.push(key);
            keys.1.push(seq);
        }
        // The same job once more in the batch is not there any more.
        found.remove(&seq);
        answers.push(Forgot::Done);
    }
    if gone.is_empty() {
        return Ok((answers, vec![]));
    }
    let mut writes = vec![];
    let ends = tx.query(DELETE_ENDS, &[&gone]).await?;
    if !ends.is_empty() {
        let lines: Vec<i32> = ends.iter().map(|row| row.get(0)).collect();
        let states: Vec<i16> = ends.iter().map(|row| row.get(1)).collect();
        let by: Vec<i64> = ends.iter().map(|row| -row.get::<_, i64>(2)).collect();
        writes.push(Write::new(TALLY, vec![Arc::new(lines), Arc::new(states), Arc::new(by)]));
    }
    let held = keys.0.iter().zip(&keys.1).filter(|(key, seq)| holders.get(key) == Some(seq));
    let held: Arc<Vec<Uuid>> = Arc::new(held.map(|(key, _)| *key).collect());
    if !keys.0.is_empty() {
        writes.push(Write::new(DELETE_FORMER, vec![Arc::new(keys.0), Arc::new(keys.1)]));
    }
    let gone: Value = Arc::new(gone);
    if !held.is_empty() {
        writes.push(Write::new(HAND_BACK, vec![held.clone()]));
        writes.push(Write::new(DELETE_KEYS, vec![held, gone.clone()]));
    }
    let all = [
        DELETE_ATTEMPTS,
        DELETE_DEAD,
        DELETE_TASKS,
        "DELETE FROM documents WHERE seq = ANY($1)",
        "DELETE FROM runs WHERE seq = ANY($1)",
        "DELETE FROM bad WHERE seq = ANY($1)",
        "DELETE FROM jobs WHERE seq = ANY($1)",
    ];
    writes.extend(all.map(|sql| Write::new(sql, vec![gone.clone()])));
    Ok((answers, writes))
}

/// Finds jobs and locks all that says that they have ended; and which jobs have their keys now.
async fn find(tx: &mut Tx, seqs: &[i64]) -> Result<(FxHashMap<i64, Found>, FxHashMap<Uuid, i64>), Abort> {
    let mut found = FxHashMap::default();
    let (mut heads, mut tasks, mut digests) = (vec![], vec![], vec![]);
    for row in tx.query(JOBS, &[&seqs]).await? {
        let seq: i64 = row.get(0);
        match row.get::<_, Option<i32>>(2) {
            Some(_) => heads.push(seq),
            None => tasks.push(pack(seq, 0)),
        }
        let key = row.get::<_, Option<&str>>(3).zip(row.get::<_, Option<i64>>(4));
        let key = key.map(|(key, bucket)| key_digest(row.get(5), row.get(6), key, bucket));
        digests.extend(key);
        let created = Timestamp::from_millis(row.get(1));
        found.insert(seq, Found { created, ended: None, key });
    }
    let mut holders = FxHashMap::default();
    if !digests.is_empty() {
        let rows = tx.query(KEYS, &[&digests]).await?;
        holders.extend(rows.iter().map(|row| (row.get::<_, Uuid>(0), row.get::<_, i64>(1))));
    }
    if !heads.is_empty() {
        for row in tx.query(HEADS, &[&heads]).await? {
            let run: Run =
                postcard::from_bytes(row.get(1)).map_err(|_| crate::load::unreadable("the head of a job"))?;
            if let Some(job) = found.get_mut(&row.get::<_, i64>(0)) {
                job.ended = run.ended;
            }
        }
    }
    if !tasks.is_empty() {
        for row in tx.query(ENDS, &[&tasks]).await? {
            if let Some(job) = found.get_mut(&seq_of(row.get(0))) {
                job.ended = Some(Timestamp::from_millis(row.get(1)));
            }
        }
    }
    Ok((found, holders))
}
