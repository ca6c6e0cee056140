//! Where tasks are put: in line, out of it until a moment, to their end.

use super::{Step, Work};
use crate::place::{At, End, Placed, Spot};
use orchestrator_core::{Counters, Json, TaskState, Timestamp};

impl Work {
    /// Gives the next place in a tier to a tenant, among its new jobs or among those that go on. Places are reserved in
    /// another transaction, which keeps nobody waiting; until there are enough, a number below all stamps stands for the
    /// one to come, so that the computation shows how many it needs.
    pub fn enter(&mut self, line: i32, tier: u8, tenant: i32, goes_on: bool) -> Spot {
        let key = (line, tier, if goes_on { -tenant } else { tenant });
        let used = self.staged.places.entry(key).or_default();
        let place = self.base.places.get(&key).and_then(|places| places.get(*used)).copied();
        *used += 1;
        let stamp = place.unwrap_or_else(|| {
            *self.needs.places.entry(key).or_default() += 1;
            self.staged.promised.push((key, *used - 1));
            i64::MIN + self.staged.promised.len() as i64 - 1
        });
        Spot { stamp, since: self.now }
    }

    /// Puts the stamps that are reserved by now where numbers stand for them. Nothing that was computed depends on a stamp,
    /// so nothing has to be computed again.
    pub fn take_promised_places(&mut self) {
        let promised = std::mem::take(&mut self.staged.promised);
        let places = &self.base.places;
        let real = |stamp: i64| {
            let promise = usize::try_from(stamp.wrapping_sub(i64::MIN)).ok().and_then(|n| promised.get(n));
            promise.and_then(|(key, n)| places.get(key)?.get(*n)).copied().unwrap_or(stamp)
        };
        for placed in self.staged.tasks.values_mut().flatten() {
            match &mut placed.at {
                At::Ready(spot) | At::Parked(_, spot) | At::Held(Some(spot), _) => {
                    spot.stamp = real(spot.stamp)
                }
                At::Leased(_) | At::Delayed(_) | At::Held(None, _) | At::Ended(_) => {}
            }
        }
        for entry in self.staged.jobs.values_mut().filter_map(|job| job.entry.as_mut()) {
            *entry = real(*entry);
        }
    }

    /// Puts a task in line. Whether its limits have room is seen when it is met there.
    pub fn stand(
        &mut self,
        task: i64,
        lane: i32,
        tier: u8,
        spot: Spot,
        counters: Counters,
        checkpoint: Option<Json>,
    ) {
        self.staged.wake = true;
        self.put(task, Some(Placed { lane, tier, counters, checkpoint, at: At::Ready(spot) }));
    }

    /// Takes a task out of line until a moment.
    pub fn wait(
        &mut self,
        task: i64,
        lane: i32,
        tier: u8,
        due: Timestamp,
        counters: Counters,
        checkpoint: Option<Json>,
    ) {
        self.staged.wake = true;
        self.put(task, Some(Placed { lane, tier, counters, checkpoint, at: At::Delayed(due) }));
    }

    /// Takes a task away from where it is: the slots of a lease come free, and a place in line that it may have been let
    /// into because there was room under a limit is offered to the next.
    pub fn pull(&mut self, placed: &Placed) -> Step<()> {
        let lane = self.lane(placed.lane)?;
        match placed.at {
            At::Leased(_) => {
                for key in &lane.keys {
                    *self.staged.freed.entry(*key).or_default() += 1;
                }
                self.staged.wake = true;
            }
            At::Ready(_) => {
                for key in &lane.keys {
                    *self.staged.unused.entry(*key).or_default() += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the end of a task.
    pub fn finish(&mut self, task: i64, lane: i32, tier: u8, counters: Counters, end: End) -> Step<()> {
        let line = self.lane(lane)?.line;
        self.tally(line, end.state, 1);
        self.put(task, Some(Placed { lane, tier, counters, checkpoint: None, at: At::Ended(end) }));
        Ok(())
    }

    /// An end without a result.
    pub fn plain_end(&self, state: TaskState) -> End {
        End { state, at: self.now, output: None, dead: None }
    }
}
