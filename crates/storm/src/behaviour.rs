//! What the other side does with a request: decided by the seed, the task and the attempt alone, so that a
//! retried attempt fares anew and a repeated request would fare the same.

use orchestrator_history::Run;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The timeout that the jobs give their requests.
pub const PATIENCE: &str = "1s";
const PATIENCE_MS: u64 = 1000;

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// An answer with this status.
    Answer(u16),
    /// The connection is cut.
    Cut,
}

/// What comes of a request, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// After this long.
    pub after: Duration,
    /// This.
    pub act: Act,
}

impl Behaviour {
    /// Decides. One that runs under a limit is never slow: when its client gives up, its slot is another's before
    /// this side can know.
    pub fn of(seed: u64, run: Run, limited: bool) -> Behaviour {
        let mut hasher = DefaultHasher::new();
        (seed, run.task, run.attempt).hash(&mut hasher);
        let mut rng = fastrand::Rng::with_seed(hasher.finish());
        let quick = Duration::from_millis(rng.u64(0..=20));
        let slow = Duration::from_millis(rng.u64(200..=PATIENCE_MS + 300));
        match rng.u32(0..1000) {
            0..880 => Behaviour { after: quick, act: Act::Answer(200) },
            880..910 if !limited => Behaviour { after: slow, act: Act::Answer(200) },
            880..950 => Behaviour { after: quick, act: Act::Answer(503) },
            950..975 => Behaviour { after: quick, act: Act::Cut },
            975..985 => Behaviour { after: quick, act: Act::Answer(422) },
            _ => Behaviour { after: quick, act: Act::Answer(200) },
        }
    }

    /// Whether the attempt will fail by this side's doing, where its client waits for the end.
    pub fn fails(&self) -> bool {
        // A client that started late may give up a little earlier than this side thinks.
        self.act != Act::Answer(200) || self.after.as_millis() as u64 > PATIENCE_MS - 200
    }
}

/// What a run gives that nobody else gives.
pub fn token(seed: u64, run: Run) -> String {
    let mut hasher = DefaultHasher::new();
    ("token", seed, run.task, run.attempt).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_core::{JobId, TaskId, Timestamp};

    fn runs(attempts: u32) -> impl Iterator<Item = Run> {
        let task = TaskId::only(JobId::from_parts(Timestamp::from_millis(1), 1));
        (1..=attempts).map(move |attempt| Run { task, attempt })
    }

    #[test]
    fn most_end_well_and_every_kind_of_trouble_comes() {
        let all: Vec<_> = runs(10_000).map(|run| Behaviour::of(7, run, false)).collect();
        let share = |act: Act| all.iter().filter(|behaviour| behaviour.act == act).count() / 100;
        assert!((90..96).contains(&share(Act::Answer(200))), "{}", share(Act::Answer(200)));
        assert!([Act::Answer(503), Act::Cut].into_iter().all(|act| (1..6).contains(&share(act))));
        assert!(all.iter().any(|behaviour| behaviour.act == Act::Answer(422)));
        assert!(all.iter().any(|behaviour| behaviour.after.as_millis() as u64 > PATIENCE_MS));
        assert_eq!(all, runs(10_000).map(|run| Behaviour::of(7, run, false)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_limited_is_never_slow() {
        assert!(runs(10_000).all(|run| Behaviour::of(7, run, true).after < Duration::from_millis(50)));
    }
}
