//! The graph of a flow: its rings, and which tasks have ended whenever another one starts.
//!
//! A flow has at most 2,000 tasks but may have a hundred needs for each: everything here is about linear
//! in the needs, and nothing recurses.

/// The tasks in an order in which every need comes first; those on a ring, and after one, are left out.
fn order(needs: &[Vec<u32>]) -> Vec<u32> {
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut dependents: Vec<Vec<u32>> = vec![vec![]; needs.len()];
    for (task, needed) in (0..).zip(needs) {
        for need in needed {
            dependents[*need as usize].push(task);
        }
    }
    let mut sorted: Vec<u32> = (0..needs.len() as u32).filter(|task| open[*task as usize] == 0).collect();
    let mut at = 0;
    while let Some(task) = sorted.get(at).copied() {
        at += 1;
        for dependent in &dependents[task as usize] {
            open[*dependent as usize] -= 1;
            if open[*dependent as usize] == 0 {
                sorted.push(*dependent);
            }
        }
    }
    sorted
}

/// Rings of tasks, each of which needs the next, and the last of which needs the first. Rings that share
/// tasks hide each other; wherever there is a ring, at least one is found.
pub(super) fn rings(needs: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut free = vec![false; needs.len()];
    order(needs).into_iter().for_each(|task| free[task as usize] = true);
    // Each task that is left needs one that is left: following these leads onto a ring, or to where an
    // earlier walk has been.
    let mut walked_from: Vec<Option<u32>> = vec![None; needs.len()];
    let mut found = vec![];
    for start in (0..needs.len() as u32).filter(|task| !free[*task as usize]) {
        let (mut at, mut way) = (start, vec![]);
        while walked_from[at as usize].is_none() {
            walked_from[at as usize] = Some(start);
            way.push(at);
            let Some(next) = needs[at as usize].iter().find(|need| !free[**need as usize]) else { break };
            at = *next;
        }
        if walked_from[at as usize] == Some(start)
            && let Some(first) = way.iter().position(|task| *task == at)
        {
            found.push(way.split_off(first));
        }
    }
    found
}

/// For each task, the tasks that have ended whenever it starts.
pub(super) struct Ancestors {
    /// How many words the bits of one task take.
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    /// Of a graph without rings.
    pub(super) fn of(needs: &[Vec<u32>]) -> Self {
        let words = needs.len().div_ceil(64);
        let mut all = Ancestors { words, bits: vec![0; words * needs.len()] };
        for task in order(needs) {
            for need in &needs[task as usize] {
                let (mine, theirs) = (task as usize * words, *need as usize * words);
                all.bits[mine + *need as usize / 64] |= 1 << (need % 64);
                for word in 0..words {
                    all.bits[mine + word] |= all.bits[theirs + word];
                }
            }
        }
        all
    }

    /// Whether `other` has ended whenever `task` starts.
    pub(super) fn has(&self, task: u32, other: u32) -> bool {
        self.bits[task as usize * self.words + other as usize / 64] >> (other % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rings_are_found_beside_tails_and_beside_each_other() {
        for (needs, expected) in [
            (vec![vec![], vec![0], vec![0, 1]], vec![]),
            (vec![vec![1], vec![0]], vec![vec![0, 1]]),
            // A tail that leads into the ring, and one that the ring needs.
            (vec![vec![1], vec![2], vec![3, 4], vec![1], vec![]], vec![vec![1, 2, 3]]),
            (vec![vec![1], vec![0], vec![3], vec![2], vec![0, 2]], vec![vec![0, 1], vec![2, 3]]),
        ] {
            assert_eq!(rings(&needs), expected, "{needs:?}");
        }
    }

    proptest! {
        #[test]
        fn ancestors_are_those_that_can_be_reached(
            needs in proptest::collection::vec(proptest::collection::btree_set(0u32..100, 0..4), 1..100),
        ) {
            let needs: Vec<Vec<u32>> = (0..)
                .zip(needs)
                .map(|(task, needed)| needed.into_iter().filter(|need| *need < task).collect())
                .collect();
            prop_assert!(rings(&needs).is_empty());
            let ancestors = Ancestors::of(&needs);
            for task in 0..needs.len() as u32 {
                let mut reached = vec![false; needs.len()];
                let mut open = needs[task as usize].clone();
                while let Some(need) = open.pop() {
                    reached[need as usize] = true;
                    open.extend(&needs[need as usize]);
                }
                for other in 0..needs.len() as u32 {
                    prop_assert_eq!(ancestors.has(task, other), reached[other as usize]);
                }
            }
        }
    }
}
