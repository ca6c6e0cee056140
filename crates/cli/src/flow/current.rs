//! The current versions of flows, by name, for many jobs in a row.

use orchestrator_core::flow::Plan;
use orchestrator_engine::{Engine, FlowError};
use orchestrator_store::StoreError;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Finds flows in the registry. What it found holds until [`Current::renew`], so that a batch asks the store
/// once per flow. For threads that may block.
pub struct Current {
    engine: Engine,
    runtime: Handle,
    found: HashMap<String, Result<Arc<Plan>, String>>,
    trouble: Option<StoreError>,
}

impl Current {
    /// Looks into the registry of an engine's store; to be called inside a Tokio runtime.
    pub fn new(engine: Engine) -> Self {
        Current { engine, runtime: Handle::current(), found: HashMap::new(), trouble: None }
    }

    /// Forgets what was found: versions may have changed since.
    pub fn renew(&mut self) {
        self.found.clear();
    }

    /// The current version of a flow, or what is wrong with its name.
    pub fn find(&mut self, name: &str) -> Result<Arc<Plan>, String> {
        if let Some(found) = self.found.get(name) {
            return found.clone();
        }
        let found = match self.runtime.block_on(self.engine.plan(name, None)) {
            Ok(plan) => Ok(plan),
            Err(FlowError::NotFound(_)) => Err(unknown(name)),
            Err(FlowError::Store(error)) => {
                let text = error.to_string();
                self.trouble = Some(error);
                return Err(text);
            }
            Err(error) => Err(error.to_string()),
        };
        self.found.insert(name.to_owned(), found.clone());
        found
    }

    /// Why the store could not be asked, if it could not since the last call: then a name that was not found is
    /// no mistake of who wrote it.
    pub fn trouble(&mut self) -> Option<StoreError> {
        self.trouble.take()
    }
}

/// What is said of a flow that is not in the registry.
pub fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(60).collect();
    format!(
        "there is no flow {shown:?}; `orchestrator flows apply FILE` puts one in, `flows list` shows what there is"
    )
}
