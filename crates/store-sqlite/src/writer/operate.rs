//! What operators and workers tell beside what they ask of jobs: paused queues, who is there, whether the file takes
//! writes; and the counts by day.

use super::Writer;
use crate::error::Abort;
use orchestrator_core::JobState;
use orchestrator_store::packed::job_state_code;
use orchestrator_store::{QueueChange, WORKER_REMEMBERED, WorkerNote};

impl Writer<'_> {
    pub(super) fn set_queues(&mut self, changes: &[QueueChange]) -> Result<(), Abort> {
        for QueueChange { queue, paused } in changes {
            if *paused {
                self.sql.put_paused.execute((&**queue, self.now.as_millis()))?;
                self.cache.paused.insert(queue.clone());
            } else {
                self.sql.delete_paused.execute([&**queue])?;
                self.cache.paused.remove(queue);
            }
        }
        self.changes.wake = true;
        Ok(())
    }

    pub(super) fn register(&mut self, workers: &[WorkerNote]) -> Result<(), Abort> {
        self.sql.forget_workers.execute([(self.now - WORKER_REMEMBERED).as_millis()])?;
        for note in workers {
            let text = serde_json::to_string(note).map_err(|error| Abort::Invalid(error.to_string()))?;
            self.sql.put_worker.execute((note.name.as_str(), text, self.now.as_millis()))?;
        }
        Ok(())
    }

    pub(super) fn check(&mut self) -> Result<(), Abort> {
        self.sql.check.execute([])?;
        Ok(())
    }

    /// Counts a job that came, that ended in a state, or that was taken up again after its end.
    pub(super) fn count_today(&mut self, entered: JobState) {
        *self.changes.daily.entry((self.now.day(), job_state_code(entered))).or_default() += 1;
    }
}
