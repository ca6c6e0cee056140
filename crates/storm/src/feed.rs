//! Submits the whole load, spread over the run.

use crate::Failure;
use crate::load::Work;
use crate::submitter::Submitter;
use crate::world::World;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// No more is submitted while so many tasks are live: a storm is to hit work, not a backlog.
const MOST_LIVE: u64 = 1500;
/// A client whose batch failed waits before the next.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// How the load is submitted.
pub struct Feed {
    /// Over how long.
    pub over: Duration,
    /// At how many submitted jobs the submitter is killed, rising.
    pub kills: VecDeque<u64>,
    /// Told how many jobs were submitted.
    pub progress: watch::Sender<u64>,
}

impl Feed {
    /// Submits all; answers how often the submitter was killed.
    pub async fn run(mut self, world: &mut World, submitter: &mut Submitter) -> Result<u64, Failure> {
        let mut rng = fastrand::Rng::with_seed(world.options.seed ^ 0xfeed);
        let (jobs, started) = (world.options.jobs, Instant::now());
        let (mut sent, mut killed) = (0, 0);
        let mut again: Vec<Work> = vec![];
        while sent < jobs || !again.is_empty() {
            self.wait(world, started, sent).await;
            let number = (jobs - sent).min(rng.u64(5..=30));
            let mut works = std::mem::take(&mut again);
            works.extend((0..number).map(|_| world.load.next()));
            sent += number;
            let kill = self.kills.front().is_some_and(|at| *at <= sent);
            // About as long as a batch takes, so that some die before, some in and some after the commit.
            let kill = kill.then(|| Duration::from_micros(rng.u64(0..8000)));
            if kill.is_some() {
                self.kills.pop_front();
                killed += 1;
            }
            let batch = submitter.submit(works, kill).await?;
            if batch.acked.is_empty() && kill.is_none() {
                tokio::time::sleep(AFTER_FAILURE).await;
            }
            for (job, work) in batch.acked {
                world.known.add(job, work.limited);
            }
            // Half of those that nobody knows of are submitted again; of the rest it stays unknown.
            again = batch.unknown.into_iter().filter(|_| rng.bool()).collect();
            self.progress.send_replace(sent);
        }
        Ok(killed)
    }

    async fn wait(&self, world: &mut World, started: Instant, sent: u64) {
        let due = started + self.over.mul_f64(sent as f64 / world.options.jobs.max(1) as f64);
        tokio::time::sleep_until(due.into()).await;
        // The count is gone only where counting failed; the end tells.
        let _ = world.counts.wait_for(|counts| counts.live() < MOST_LIVE).await;
    }
}

/// `number` moments of a run, as numbers of submitted jobs, rising: one at random in each equal part of the run.
pub fn moments(rng: &mut fastrand::Rng, number: u64, jobs: u64) -> VecDeque<u64> {
    // A hundredth at both ends is left out: there is work before the first, and after the last.
    let (first, length) = (jobs as f64 * 0.01, jobs as f64 * 0.98);
    let moment = |n: u64, random: f64| (first + length * (n as f64 + random) / number as f64) as u64;
    (0..number).map(|n| moment(n, rng.f64())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_rise_and_come_before_the_last_job() {
        for (number, jobs) in [(200, 20_000), (6, 400), (7, 3), (0, 10)] {
            let moments = moments(&mut fastrand::Rng::with_seed(number), number, jobs);
            assert_eq!(moments.len() as u64, number);
            assert!(moments.iter().is_sorted() && moments.iter().all(|moment| *moment < jobs), "{moments:?}");
        }
    }
}
