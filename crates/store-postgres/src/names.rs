//! What many rows share, by number: specs, tenants, lanes, limit keys and flows. None of it ever changes or goes, so
//! whatever was read once stays good, whoever wrote it.

use orchestrator_core::flow::Plan;
use orchestrator_core::{LimitKey, Limits, TaskSpec};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::sync::{Arc, PoisonError, RwLock};
use uuid::Uuid;

/// A queue, a handler and a set of limit keys.
#[derive(Debug)]
pub struct Lane {
    /// Its number.
    pub id: i32,
    /// The lane of the same queue and handler without keys.
    pub line: i32,
    /// The keys.
    pub limits: Limits,
    /// Their numbers, in the same order.
    pub keys: Vec<i32>,
}

/// What names a lane.
pub type LaneName = (Arc<str>, Arc<str>, Limits);

/// Everything that was met. Cheap to clone: a transaction works on the copy that it took when it began.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Spec to number.
    pub spec_ids: FxHashMap<Arc<TaskSpec>, i32>,
    /// Number to spec.
    pub specs: FxHashMap<i32, Arc<TaskSpec>>,
    /// Tenant to number.
    pub tenant_ids: FxHashMap<Arc<str>, i32>,
    /// Number to tenant.
    pub tenants: FxHashMap<i32, Arc<str>>,
    /// Lane to number.
    pub lane_ids: FxHashMap<LaneName, i32>,
    /// Number to lane.
    pub lanes: FxHashMap<i32, Arc<Lane>>,
    /// Limit key to number.
    pub key_ids: FxHashMap<LimitKey, i32>,
    /// Number to limit key.
    pub keys: FxHashMap<i32, LimitKey>,
    /// Flow, by whether it is implicit and its hash, to number.
    pub flow_ids: FxHashMap<(bool, Arc<str>), i32>,
    /// Number to flow.
    pub flows: FxHashMap<i32, Arc<Plan>>,
}

/// The names that this process has met.
#[derive(Debug, Default)]
pub struct Names(RwLock<Arc<Known>>);

impl Names {
    /// All that is known now.
    pub fn known(&self) -> Arc<Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds to it.
    pub fn learn(&self, add: impl FnOnce(&mut Known)) {
        add(Arc::make_mut(&mut self.0.write().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// A digest of texts, none of which can pass for another by moving what stands between them.
pub fn digest(parts: &[&[u8]]) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    Uuid::from_bytes(bytes)
}
