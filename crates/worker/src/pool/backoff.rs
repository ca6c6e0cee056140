//! Growing pauses while a source does not answer.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// The pauses of one loop: 100 ms, doubled up to 5 s, each with up to a quarter taken off so that
/// many workers do not come back in step.
pub(super) struct Backoff {
    next: Duration,
    rng: fastrand::Rng,
}

impl Backoff {
    pub fn new(rng: fastrand::Rng) -> Self {
        Backoff { next: FIRST, rng }
    }

    /// The pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next.mul_f64(1.0 - 0.25 * self.rng.f64());
        self.next = (self.next * 2).min(LONGEST);
        pause
    }

    /// The source answered.
    pub fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_cap_and_start_over() {
        let mut backoff = Backoff::new(fastrand::Rng::with_seed(1));
        let pauses: Vec<_> = (0..12).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= FIRST * 3 / 4 && pauses[0] <= FIRST);
        assert!(pauses.iter().all(|pause| *pause <= LONGEST));
        assert!(pauses[11] >= LONGEST * 3 / 4);
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
