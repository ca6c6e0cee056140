//! Which task goes first.
//!
//! A task stands in a line (queue and handler), inside it in a tier (priority), inside that in
//! order of its *stamp*: a virtual time that is handed out on entry so that tenants take turns.
//! Inside one tenant stamps follow arrival. Waiting lifts a task through the tiers, so nothing
//! starves behind a busy higher tier.

use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How urgent a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before everything else.
    Critical,
    /// Before the usual.
    High,
    /// The usual.
    #[default]
    Normal,
    /// When nothing else waits.
    Low,
}

impl Priority {
    /// All, most urgent first.
    pub const ALL: [Priority; 4] = [Priority::Critical, Priority::High, Priority::Normal, Priority::Low];

    /// The tier: 0 is served first.
    pub const fn tier(self) -> u8 {
        self as u8
    }

    /// The priority of a tier; tiers past the last read as the last.
    pub const fn from_tier(tier: u8) -> Priority {
        match tier {
            0 => Priority::Critical,
            1 => Priority::High,
            2 => Priority::Normal,
            _ => Priority::Low,
        }
    }

    /// The word for the priority in every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Priority::Critical => "critical",
            Priority::High => "high",
            Priority::Normal => "normal",
            Priority::Low => "low",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no priority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a priority; it is critical, high, normal or low")]
pub struct BadPriority(String);

impl FromStr for Priority {
    type Err = BadPriority;
    fn from_str(text: &str) -> Result<Self, BadPriority> {
        Priority::ALL.into_iter().find(|p| p.as_str() == text).ok_or_else(|| BadPriority(text.to_owned()))
    }
}

/// A task rises by one tier each time it has waited this long.
pub const AGING: Millis = Millis::mins(1);

/// The tier in which a task of `tier` is served after it has `waited`.
pub fn effective_tier(tier: u8, waited: Millis) -> u8 {
    let risen = (waited.0 / AGING.0).min(u64::from(u8::MAX)) as u8;
    tier.saturating_sub(risen)
}

/// A place in line: start-time fair queueing over tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The task's stamp; lower goes first.
    pub stamp: i64,
    /// Where the tenant's next task will stand at the earliest.
    pub tenant_next: i64,
}

/// The place of a task that enters a tier. `front` is the stamp at the head of the tier (what is
/// being served now), `tenant_next` what the tenant's last entry left. A tenant that was away
/// starts at the front, one that has a backlog goes behind it.
pub fn enter(front: i64, tenant_next: i64) -> Place {
    let stamp = front.max(tenant_next);
    Place { stamp, tenant_next: stamp + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latecomer_takes_turns_with_a_backlog() {
        let mut line: Vec<(i64, &str, usize)> = vec![];
        let mut next = 0;
        for n in 0..100 {
            let place = enter(0, next);
            next = place.tenant_next;
            line.push((place.stamp, "big", n));
        }
        let served = 40;
        let mut small_next = 0;
        for n in 0..10 {
            let place = enter(served, small_next);
            small_next = place.tenant_next;
            line.push((place.stamp, "small", n));
        }
        line.sort();
        let next_twenty: Vec<_> =
            line.iter().skip(served as usize).take(20).map(|(_, tenant, _)| *tenant).collect();
        assert_eq!(next_twenty.iter().filter(|t| **t == "small").count(), 10);
    }

    #[test]
    fn waiting_lifts_a_task_to_the_top() {
        let low = Priority::Low.tier();
        assert_eq!(effective_tier(low, Millis(0)), 3);
        assert_eq!(effective_tier(low, AGING), 2);
        assert_eq!(effective_tier(low, Millis(AGING.0 * 3)), 0);
        assert_eq!(effective_tier(low, Millis::hours(24 * 365)), 0);
    }

    #[test]
    fn priorities_read_and_write() {
        for priority in Priority::ALL {
            assert_eq!(priority.to_string().parse::<Priority>(), Ok(priority));
            assert_eq!(Priority::from_tier(priority.tier()), priority);
        }
        assert!("urgent".parse::<Priority>().is_err());
    }
}
