//! Randomness by name: every decision has a stream of its own, made of the seed and of what is decided.
//!
//! So a script from which one action was taken out still draws the same numbers everywhere else, and a shortened
//! script goes on to fail.

use std::hash::Hasher;

/// FNV-1a: the same in every build and on every machine, unlike the hashers of the standard library.
#[derive(Clone, Copy)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The stream of one decision, or of a run of decisions: `what` names it, `which` tells it from its like.
pub fn stream(seed: u64, what: &str, which: &[u64]) -> fastrand::Rng {
    let mut hash = Fnv::default();
    hash.write(&seed.to_le_bytes());
    hash.write(what.as_bytes());
    for part in which {
        hash.write(&part.to_le_bytes());
    }
    fastrand::Rng::with_seed(hash.finish())
}

/// Chances that are said in thousandths.
pub trait Chance {
    /// Whether something happens that does so `per_mille` times in a thousand.
    fn one_of_thousand(&mut self, per_mille: u16) -> bool;

    /// One of several, as often as its weight says. There must be one with a weight.
    fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T;
}

impl Chance for fastrand::Rng {
    fn one_of_thousand(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.u16(..1000) < per_mille
    }

    fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let total: u32 = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.u32(..total);
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        unreachable!("the weights were summed up")
    }
}
