//! What was known at a place of the history.
//!
//! A rule such as "what was seen as ended stays ended" compares a sight with every earlier one. Only the strongest
//! of those matters, so it is kept as a running maximum and found by bisection: many reads of one job stay cheap.

use super::trace::Place;

/// The greatest of the values that were heard, by the place at which they were heard.
#[derive(Default)]
pub(super) struct Known<T>(Vec<(Place, T)>);

impl<T: Ord + Copy> Known<T> {
    /// Adds a value. Places come in order.
    pub(super) fn hear(&mut self, at: Place, value: T) {
        let greatest = self.0.last().map_or(value, |(_, before)| value.max(*before));
        self.0.push((at, greatest));
    }

    /// The greatest value that was heard before a place.
    pub(super) fn before(&self, place: Place) -> Option<T> {
        let n = self.0.partition_point(|(at, _)| *at < place);
        n.checked_sub(1).map(|last| self.0[last].1)
    }
}

/// The ends in which something was seen: for each, when the latest call began that saw it. If a revival cannot
/// explain a change since the latest call, it cannot explain one since an earlier call either.
pub(super) struct Ends<S>(Vec<(S, Known<Place>)>);

impl<S> Default for Ends<S> {
    fn default() -> Self {
        Ends(vec![])
    }
}

impl<S: Copy + PartialEq> Ends<S> {
    /// Adds a sight of an end. Answers come in order.
    pub(super) fn hear(&mut self, end: S, called: Place, answered: Place) {
        let at = self.0.iter().position(|(known, _)| *known == end).unwrap_or_else(|| {
            self.0.push((end, Known(vec![])));
            self.0.len() - 1
        });
        self.0[at].1.hear(answered, called);
    }

    /// The ends that were seen before a place, each with the place at which the latest such call began.
    pub(super) fn before(&self, place: Place) -> impl Iterator<Item = (S, Place)> {
        self.0.iter().filter_map(move |(end, known)| Some((*end, known.before(place)?)))
    }
}
