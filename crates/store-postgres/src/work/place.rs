//! Where tasks are put: in line, out of it until a moment, to their end.

use super::{FairKey, Step, Work};
use crate::place::{At, End, Placed, Spot};
use orchestrator_core::{Counters, Json, TaskState, Timestamp, order};

/// The tenant under which the front of a tier is kept.
pub const FRONT: i32 = 0;

impl Work {
    /// Gives the next place in a tier to a tenant, among its new jobs or among those that go on.
    pub fn enter(&mut self, line: i32, tier: u8, tenant: i32, goes_on: bool) -> Step<Spot> {
        let key = (line, tier, if goes_on { -tenant } else { tenant });
        let front = self.fair((line, tier, FRONT));
        let next = self.fair(key);
        let place = order::enter(front?, next?);
        self.staged.fair.insert(key, place.tenant_next);
        Ok(Spot { stamp: place.stamp, since: self.now })
    }

    fn fair(&mut self, key: FairKey) -> Step<i64> {
        match self.staged.fair.get(&key).or_else(|| self.base.fair.get(&key)) {
            Some(next) => Ok(*next),
            None => self.missing(|needs| {
                needs.fair.insert(key);
            }),
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
