//! Which job has an idempotency key.
//!
//! The index from key hashes to jobs is written late. Hashes are random, so an insert per submit
//! would dirty a page per job and halve the speed of everything. Instead the hashes of recent jobs
//! are held in memory, rebuilt from the tail of `jobs` when the file is opened, and moved into the
//! table `idem` in sorted slices, many to a page. `idem` then has every job up to a watermark, the
//! memory every job after it, and a look-up asks both. The newest job with a key is the one that
//! has it, so nothing is deleted here, save with the job itself.

use super::bulk::{Bulk, IdemIn};
use orchestrator_core::TaskSpec;
use orchestrator_core::planted::{Bug, planted};
use rusqlite::{Connection, OptionalExtension, Statement};
use rustc_hash::FxHashMap;
use siphasher::sip::SipHasher13;
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::ops::Bound;
use std::sync::Arc;

/// How many hashes gather in memory at least before they are moved.
const MERGE_AT: usize = 1 << 17;
/// How many jobs may come after the watermark before it is raised, whatever their keys: all of them
/// are read when the file is opened.
const LONGEST_TAIL: i64 = 1 << 20;
/// How many are moved per commit.
const SLICE: usize = 1 << 13;

/// The keys of recent jobs.
#[derive(Debug, Default)]
pub struct Keys {
    /// Hash and job of every keyed job after the watermark, and of some before it.
    recent: BTreeSet<(i64, i64)>,
    /// `idem` has every keyed job up to this one.
    watermark: i64,
    /// Every job up to this one is known here.
    known: i64,
    merge: Option<Merge>,
}

/// A move into `idem` that is under way.
#[derive(Debug)]
struct Merge {
    /// It moves the jobs up to this one.
    upto: i64,
    /// It has moved all hashes up to this entry.
    at: Bound<(i64, i64)>,
}

impl Keys {
    /// Learns of the jobs that were committed since the last time, by whomever.
    pub fn catch_up(
        &mut self,
        conn: &Connection,
        specs: &FxHashMap<i64, Arc<TaskSpec>>,
        tenants: &FxHashMap<i64, Arc<str>>,
    ) -> rusqlite::Result<()> {
        let sql = "SELECT value FROM meta WHERE name = 'idem_watermark'";
        let watermark = conn.query_row(sql, [], |row| row.get(0)).optional()?.unwrap_or(0);
        if watermark != self.watermark {
            self.watermark = watermark;
            self.recent.retain(|(_, job)| *job > watermark);
            self.merge = None;
        }
        let mut statement = conn.prepare(include_str!("../../sql/keyed_jobs_after.sql"))?;
        let mut rows = statement.query([self.known.max(watermark)])?;
        while let Some(row) = rows.next()? {
            let (seq, tenant, spec): (i64, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let key = row.get_ref(3)?.as_str()?;
            let scope = match row.get_ref(5)?.as_str_or_null()? {
                Some(flow) => Some(flow),
                None => spec.and_then(|spec| specs.get(&spec)).map(|spec| &*spec.handler),
            };
            let (Some(tenant), Some(scope)) = (tenants.get(&tenant), scope) else { continue };
            self.recent.insert((hash(tenant, scope, key, row.get(4)?), seq));
        }
        self.known = conn.query_row("SELECT ifnull(max(seq), 0) FROM jobs", [], |row| row.get(0))?;
        Ok(())
    }

    /// Notes that a new job has the key with this hash.
    pub fn add(&mut self, hash: i64, job: i64) {
        self.recent.insert((hash, job));
        self.known = job;
    }

    /// Notes a new job without a key.
    pub fn skip(&mut self, job: i64) {
        self.known = job;
    }

    /// Notes that a job is removed; its row in `idem`, if it has one, is the caller's to remove.
    pub fn remove(&mut self, hash: i64, job: i64) {
        self.recent.remove(&(hash, job));
    }

    /// The jobs whose key may have this hash, the newest first. Some of them may have been removed by another process.
    pub fn candidates(&self, hash: i64, find_idem: &mut Statement<'_>) -> rusqlite::Result<Vec<i64>> {
        let mut jobs: Vec<i64> =
            self.recent.range((hash, i64::MIN)..=(hash, i64::MAX)).rev().map(|(_, job)| *job).collect();
        if (self.watermark > 0 || self.merge.is_some()) && !planted(Bug::ForgetMovedKeys) {
            let mut rows = find_idem.query([hash])?;
            while let Some(row) = rows.next()? {
                jobs.push(row.get(0)?);
            }
        }
        Ok(jobs)
    }

    /// How many hashes gather before they are moved: a part of what was moved already, so that each
    /// move, which touches every page of `idem`, is paid for by more jobs as `idem` grows.
    fn merge_at(&self) -> usize {
        MERGE_AT.max(usize::try_from(self.watermark / 8).unwrap_or(usize::MAX))
    }

    /// Moves a slice into `idem`, if enough has gathered. Answers with the new watermark when a
    /// move is complete.
    pub fn merge_slice(&mut self, idem: &mut Bulk<'_, IdemIn>) -> rusqlite::Result<Option<i64>> {
        let behind = self.known - self.watermark >= LONGEST_TAIL;
        if self.merge.is_none() && (behind || self.recent.len() >= self.merge_at()) {
            self.merge = Some(Merge { upto: self.known, at: Bound::Unbounded });
        }
        let Some(merge) = &mut self.merge else { return Ok(None) };
        let slice: Vec<(i64, i64)> = self
            .recent
            .range((merge.at, Bound::Unbounded))
            .filter(|(_, job)| *job <= merge.upto)
            .take(SLICE)
            .copied()
            .collect();
        for entry in &slice {
            idem.push(IdemIn { hash: entry.0, job: entry.1 })?;
            self.recent.remove(entry);
        }
        idem.flush()?;
        match slice.last() {
            Some(last) if slice.len() == SLICE => {
                merge.at = Bound::Excluded(*last);
                Ok(None)
            }
            _ => {
                self.watermark = if planted(Bug::WatermarkTooHigh) { self.known } else { merge.upto };
                self.merge = None;
                Ok(Some(self.watermark))
            }
        }
    }
}

/// A hash that is the same in every build and process: it is written to disk.
pub fn hash(tenant: &str, scope: &str, key: &str, bucket: i64) -> i64 {
    let mut hasher = SipHasher13::new_with_keys(0x6F72_6368, 0x6964_656D);
    for part in [tenant, scope, key] {
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part.as_bytes());
    }
    hasher.write(&bucket.to_le_bytes());
    hasher.finish() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_without_keys_do_not_make_the_tail_long() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE idem (hash INTEGER, job INTEGER, PRIMARY KEY (hash, job))").unwrap();
        let mut idem = Bulk::prepare(&conn).unwrap();
        let mut keys = Keys::default();
        keys.add(7, 1);
        keys.skip(LONGEST_TAIL - 1);
        assert_eq!(keys.merge_slice(&mut idem).unwrap(), None, "short enough yet");
        keys.skip(LONGEST_TAIL);
        assert_eq!(keys.merge_slice(&mut idem).unwrap(), Some(LONGEST_TAIL));
        let moved: Vec<i64> =
            keys.candidates(7, &mut conn.prepare("SELECT job FROM idem WHERE hash = ?1").unwrap()).unwrap();
        assert_eq!(moved, [1], "a key that was moved is found in the table");
    }
}
