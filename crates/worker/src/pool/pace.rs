//! How many tasks to lease ahead, from how fast they get done.
//!
//! Two measures, and the smaller counts. The mean time of a handler tells slow handlers from fast
//! ones at once, even when slow ones end in bursts. The rate of completions tells what the machine
//! really gets done, however many workers share its cores.

use super::config::Prefetch;
use std::time::Duration;
use tokio::time::Instant;

/// The share of the newest sample in the mean.
const WEIGHT: f64 = 1.0 / 16.0;
/// The rate is counted over at least this long.
const WINDOW: Duration = Duration::from_millis(25);

pub(super) struct Pace {
    prefetch: Prefetch,
    workers: usize,
    /// Mean time of a handler in seconds, once one has ended.
    mean: Option<f64>,
    /// Completions per second in the last full window.
    rate: Option<f64>,
    window_start: Instant,
    window_count: u64,
}

impl Pace {
    pub fn new(prefetch: Prefetch, workers: usize, now: Instant) -> Self {
        Pace { prefetch, workers, mean: None, rate: None, window_start: now, window_count: 0 }
    }

    /// Notes that a handler ended.
    pub fn finished(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.mean = Some(self.mean.map_or(took, |mean| mean + (took - mean) * WEIGHT));
        self.window_count += 1;
    }

    /// How many tasks may wait behind the running ones.
    pub fn ahead(&mut self, now: Instant) -> usize {
        let window = now.duration_since(self.window_start);
        if window >= WINDOW {
            self.rate = Some(self.window_count as f64 / window.as_secs_f64());
            self.window_start = now;
            self.window_count = 0;
        }
        let Some(mean) = self.mean else { return 0 };
        let span = Duration::from(self.prefetch.span).as_secs_f64();
        let by_mean = span * self.workers as f64 / mean.max(1e-9);
        let by_rate = self.rate.map_or(by_mean, |rate| span * rate);
        (by_mean.min(by_rate) as usize).min(self.prefetch.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(now: Instant) -> Pace {
        Pace::new(Prefetch::default(), 8, now)
    }

    #[test]
    fn nothing_is_leased_ahead_of_the_first_result() {
        let now = Instant::now();
        assert_eq!(pace(now).ahead(now), 0);
    }

    #[test]
    fn fast_handlers_are_fed_by_the_thousand() {
        let mut now = Instant::now();
        let mut pace = pace(now);
        for _ in 0..10 {
            (0..1000).for_each(|_| pace.finished(Duration::from_micros(2)));
            now += Duration::from_millis(25);
            pace.ahead(now);
        }
        assert_eq!(pace.ahead(now), 1000, "25 ms at 40,000 a second");
        (0..1_000_000).for_each(|_| pace.finished(Duration::from_micros(2)));
        assert_eq!(pace.ahead(now + Duration::from_millis(25)), 2048, "never past the cap");
    }

    #[test]
    fn slow_handlers_that_end_together_are_not_taken_for_fast_ones() {
        let mut now = Instant::now();
        let mut pace = pace(now);
        for _ in 0..3 {
            now += Duration::from_secs(1);
            for _ in 0..8 {
                pace.finished(Duration::from_secs(1));
                now += Duration::from_millis(5);
                assert_eq!(pace.ahead(now), 0);
            }
        }
    }

    #[test]
    fn many_workers_on_few_cores_count_by_what_they_get_done() {
        let mut now = Instant::now();
        let mut pace = Pace::new(Prefetch::default(), 64, now);
        (0..200).for_each(|_| pace.finished(Duration::from_millis(1)));
        now += Duration::from_millis(100);
        assert_eq!(pace.ahead(now), 50, "2,000 a second, not 64,000");
    }

    #[test]
    fn prefetch_can_be_off() {
        let now = Instant::now();
        let mut pace = Pace::new(Prefetch::OFF, 8, now);
        (0..1000).for_each(|_| pace.finished(Duration::ZERO));
        assert_eq!(pace.ahead(now + Duration::from_millis(30)), 0);
    }
}
