//! What operators and workers tell beside what they ask of jobs: paused queues, who is there, and whether the database
//! takes writes.

use crate::tx::{Abort, Tx, Value, Write};
use crate::verbs::{Verbs, until_through};
use crate::work::Work;
use orchestrator_store::{QueueChange, WORKER_REMEMBERED, WorkerNote};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Verbs {
    /// Pauses queues, or lets them go on. One that is paused already is so since then.
    pub async fn set_queues(&self, changes: &[QueueChange]) -> Result<(), Abort> {
        const PAUSE: &str =
            "INSERT INTO paused (queue, since) VALUES ($1, $2) ON CONFLICT (queue) DO NOTHING";
        const RESUME: &str = "DELETE FROM paused WHERE queue = $1";
        until_through!(self, |tx, work| {
            for QueueChange { queue, paused } in changes {
                if *paused {
                    tx.query(PAUSE, &[&&**queue, &work.now.as_millis()]).await?;
                } else {
                    tx.query(RESUME, &[&&**queue]).await?;
                }
            }
            ((), vec![])
        });
        self.wake();
        Ok(())
    }

    /// Notes what workers tell of themselves, and forgets those that say nothing any more.
    pub async fn register(&self, workers: &[WorkerNote]) -> Result<(), Abort> {
        const FORGET: &str = "DELETE FROM workers WHERE last_seen <= $1";
        const NOTE: &str = "INSERT INTO workers (name, note, first_seen, last_seen)
            SELECT name, note, $3, $3 FROM unnest($1::text[], $2::text[]) n(name, note)
            ON CONFLICT (name) DO UPDATE SET note = excluded.note, last_seen = excluded.last_seen";
        // In order of the names, as everybody locks them; of two notes of one worker the later counts.
        let mut notes: BTreeMap<&str, String> = BTreeMap::new();
        for note in workers {
            let text = serde_json::to_string(note).map_err(|error| Abort::Invalid(error.to_string()))?;
            notes.insert(note.name.as_str(), text);
        }
        let names: Arc<Vec<String>> = Arc::new(notes.keys().map(|name| (*name).to_owned()).collect());
        let notes: Arc<Vec<String>> = Arc::new(notes.into_values().collect());
        until_through!(self, |tx, work| {
            let now = work.now;
            let forget = Write::new(FORGET, vec![Arc::new((now - WORKER_REMEMBERED).as_millis())]);
            let values: Vec<Value> = vec![names.clone(), notes.clone(), Arc::new(now.as_millis())];
            ((), vec![forget, Write::new(NOTE, values)])
        });
        Ok(())
    }

    /// Commits a write that nobody sees. A standby refuses it, and so does a server that cannot write.
    pub async fn check(&self) -> Result<(), Abort> {
        const CHECK: &str = "INSERT INTO meta (name, value) VALUES ('checked', $1)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        until_through!(self, |tx, work| {
            let now = work.now.as_millis().to_string();
            ((), vec![Write::new(CHECK, vec![Arc::new(now)])])
        });
        Ok(())
    }
}
