//! How ids and states look in the tables.

use orchestrator_core::{JobId, JobState, TaskId, TaskState, Timestamp};

/// Bits of a packed task that hold its index; the job's seq stands above them.
const INDEX_BITS: u32 = 20;
/// Bits of a job id that hold the job's seq; the database's salt stands above them.
const SEQ_BITS: u32 = 63 - INDEX_BITS;
/// Bits of a job id that are left for the salt.
pub const SALT_BITS: u32 = 74 - SEQ_BITS;

/// A packed task: `seq << 20 | index`.
pub fn pack(seq: i64, index: u32) -> i64 {
    seq << INDEX_BITS | i64::from(index)
}

/// The job's seq of a packed task.
pub fn seq_of(task: i64) -> i64 {
    task >> INDEX_BITS
}

/// The index of a packed task.
pub fn index_of(task: i64) -> u32 {
    (task & ((1 << INDEX_BITS) - 1)) as u32
}

/// Makes and reads the ids of one database. An id holds the job's creation time, its seq and the
/// database's salt, so that looking a job up needs no index, and an id of another database is not
/// mistaken for one of this.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    salt: u32,
}

impl Ids {
    /// The ids of the database with this salt.
    pub fn new(salt: u32) -> Self {
        Ids { salt: salt & ((1 << SALT_BITS) - 1) }
    }

    /// The id of a job.
    pub fn job(self, created: Timestamp, seq: i64) -> JobId {
        JobId::from_parts(created, u128::from(self.salt) << SEQ_BITS | seq as u128)
    }

    /// The id of a packed task.
    pub fn task(self, created: Timestamp, task: i64) -> TaskId {
        TaskId { job: self.job(created, seq_of(task)), index: index_of(task) }
    }

    /// The seq of a job, if the id is of this database. Its creation time is still to be compared.
    pub fn seq(self, id: JobId) -> Option<i64> {
        let bits = id.free_bits();
        (bits >> SEQ_BITS == u128::from(self.salt)).then_some((bits & ((1 << SEQ_BITS) - 1)) as i64)
    }

    /// The packed form of a task, if the id is of this database.
    pub fn packed(self, task: TaskId) -> Option<i64> {
        (task.index < 1 << INDEX_BITS).then_some(())?;
        self.seq(task.job).map(|seq| pack(seq, task.index))
    }
}

/// The number that stands for a state. Written to disk: never renumber.
pub fn state_code(state: TaskState) -> u8 {
    match state {
        TaskState::Pending => 0,
        TaskState::Queued => 1,
        TaskState::Running => 2,
        TaskState::Retrying => 3,
        TaskState::Completed => 4,
        TaskState::Skipped => 5,
        TaskState::Failed => 6,
        TaskState::TimedOut => 7,
        TaskState::Cancelled => 8,
    }
}

/// Stands in the journal where the index of a task would, when the event is the job's own.
pub const JOB_EVENT: u32 = u32::MAX;

/// The number that stands for a job's state. Written to disk: never renumber.
pub fn job_state_code(state: JobState) -> u8 {
    match state {
        JobState::Pending => 0,
        JobState::Running => 1,
        JobState::Pausing => 2,
        JobState::Paused => 3,
        JobState::Recovering => 4,
        JobState::Completed => 5,
        JobState::Failed => 6,
        JobState::TimedOut => 7,
        JobState::Cancelled => 8,
    }
}

/// The job's state that a number stands for.
pub fn job_state_of(code: u8) -> Option<JobState> {
    JobState::ALL.iter().copied().find(|state| job_state_code(*state) == code)
}

/// The state that a number stands for.
pub fn state_of(code: u8) -> Option<TaskState> {
    TaskState::ALL.iter().copied().find(|state| state_code(*state) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_back_to_its_row_and_only_in_its_database() {
        let ids = Ids::new(0x7ABC_DEF1);
        let id = ids.job(Timestamp::from_millis(1_800_000_000_000), (1 << SEQ_BITS) - 1);
        assert_eq!(ids.seq(id), Some((1 << SEQ_BITS) - 1));
        assert_eq!(Ids::new(1).seq(id), None);
        let task = TaskId { job: id, index: 77 };
        let packed = ids.packed(task).unwrap();
        assert_eq!((seq_of(packed), index_of(packed)), ((1 << SEQ_BITS) - 1, 77));
    }

    #[test]
    fn every_state_has_its_own_number() {
        for state in TaskState::ALL {
            assert_eq!(state_of(state_code(*state)), Some(*state));
        }
        assert_eq!(state_of(99), None);
        for state in JobState::ALL {
            assert_eq!(job_state_of(job_state_code(*state)), Some(*state));
        }
    }
}
