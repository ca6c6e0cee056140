//! A store that counts the attempts of a task anew after it was recovered.

use orchestrator_core::{JobId, TaskId};
use orchestrator_store::{Catalog, Held, TaskView};
use std::collections::HashMap;
use std::sync::Mutex;

/// How many attempts of each task are forgotten.
#[derive(Default)]
pub struct Forgotten(Mutex<HashMap<TaskId, u32>>);

impl Forgotten {
    /// Forgets the attempts of all that a recovery has reset.
    pub async fn forget(&self, store: &dyn Catalog, job: JobId) {
        let view = store.job(job).await.unwrap().unwrap();
        let reset = view.tasks.iter().filter(|task| !task.state.is_terminal());
        let mut forgotten = self.0.lock().unwrap();
        forgotten.extend(reset.map(|task| (TaskId { job, index: task.index }, task.counters.attempt)));
    }

    pub fn of(&self, task: TaskId) -> u32 {
        self.0.lock().unwrap().get(&task).copied().unwrap_or(0)
    }

    /// The attempt that a caller means.
    pub fn meant(&self, held: Held) -> Held {
        Held { attempt: held.attempt + self.of(held.task), ..held }
    }

    /// A task as the store thinks that it is.
    pub fn hide(&self, job: JobId, task: &mut TaskView) {
        let forgotten = self.of(TaskId { job, index: task.index });
        task.counters.attempt = task.counters.attempt.saturating_sub(forgotten);
    }
}
