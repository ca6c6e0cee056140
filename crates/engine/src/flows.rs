//! The registry of flows, as a program sees it.

use crate::error::FlowError;
use crate::{Engine, JobError};
use orchestrator_core::flow::Plan;
use orchestrator_store::{FlowChange, FlowChanged, FlowRef, StoreResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most plans that are kept compiled.
const CACHED: usize = 64;

/// Plans that were read back from the store, by hash. A version never changes, so none gets stale.
#[derive(Default)]
pub(crate) struct PlanCache(Mutex<HashMap<Arc<str>, Arc<Plan>>>);

impl PlanCache {
    fn get(&self, hash: &str) -> Option<Arc<Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    fn keep(&self, plan: &Arc<Plan>) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Few programs look at so many flows; those that do compile some again.
        if plans.len() >= CACHED {
            plans.clear();
        }
        plans.insert(plan.hash().clone(), plan.clone());
    }
}

impl Engine {
    /// Makes a flow the current one of its name. Applying it again changes nothing; jobs that run stay on
    /// the version that they started with.
    pub async fn apply(&self, plan: Arc<Plan>) -> StoreResult<FlowChanged> {
        let mut answers = self.store().change_flows(vec![FlowChange::Apply(plan)]).await?;
        Ok(answers.pop().unwrap_or(FlowChanged::NotFound))
    }

    /// A flow of the registry, ready for [`NewJob::of_flow`](orchestrator_core::NewJob::of_flow): the current
    /// version, or the one asked for.
    pub async fn plan(&self, name: &str, version: Option<u32>) -> Result<Arc<Plan>, FlowError> {
        let name: Arc<str> = name.into();
        let Some(found) = self.store().flow(name.clone(), version).await? else {
            return Err(match version {
                Some(version) => FlowError::NoSuchVersion(name, version),
                None => FlowError::NotFound(name),
            });
        };
        if let Some(plan) = self.0.plans.get(&found.flow.hash) {
            return Ok(plan);
        }
        let plan = Plan::from_text(found.definition.as_str())
            .map_err(|problems| FlowError::Unreadable { name, problems })?;
        let plan = Arc::new(plan);
        self.0.plans.keep(&plan);
        Ok(plan)
    }

    /// The version that a job runs.
    pub(crate) async fn pinned(&self, flow: &FlowRef) -> Result<Arc<Plan>, JobError> {
        match self.0.plans.get(&flow.hash) {
            Some(plan) => Ok(plan),
            None => Ok(self.plan(&flow.name, Some(flow.version)).await?),
        }
    }
}
