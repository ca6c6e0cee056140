//! Bugs that are another flow than the one that was asked for, under the same name.

use crate::Bug;
use orchestrator_core::flow::{FlowDef, JoinRule, Plan};
use orchestrator_core::{Json, Millis};
use orchestrator_store::{FlowRef, FlowView, JobView};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The flows that were changed, by the hash of what they became.
#[derive(Default)]
pub struct Forged(Mutex<HashMap<Arc<str>, Arc<Plan>>>);

impl Forged {
    /// What a store with a bug makes of a flow; where that would not be sound, the flow itself.
    pub fn forge(&self, plan: Arc<Plan>, bug: Bug) -> Arc<Plan> {
        let mut def = plan.def().clone();
        change(&mut def, bug);
        let Ok(forged) = Plan::compile(def) else { return plan };
        let mut known = self.0.lock().unwrap();
        known.entry(forged.hash().clone()).or_insert(plan);
        Arc::new(forged)
    }

    /// Shows the flow that was asked for.
    pub fn hide(&self, flow: &mut FlowRef) {
        if let Some(plan) = self.0.lock().unwrap().get(&flow.hash) {
            flow.hash = plan.hash().clone();
        }
    }

    pub fn hide_in(&self, job: &mut JobView) {
        if let Some(flow) = &mut job.flow {
            self.hide(flow);
        }
    }

    pub fn hide_view(&self, mut view: FlowView) -> FlowView {
        if let Some(plan) = self.0.lock().unwrap().get(&view.flow.hash) {
            view.definition = Json::trusted(plan.text().clone());
        }
        self.hide(&mut view.flow);
        view
    }
}

fn change(def: &mut FlowDef, bug: Bug) {
    if bug == Bug::IgnoresTheDeadline {
        def.timeout = Some(Millis::hours(24 * 365));
    }
    for task in &mut def.tasks {
        match bug {
            Bug::ForgetsANeed if task.needs.len() > 1 => {
                task.needs.remove(0);
            }
            Bug::LetsTooManyItemsRun => task.concurrency = None,
            Bug::IgnoresConditions => task.when = None,
            Bug::IgnoresOptional => task.optional = false,
            Bug::IgnoresJoinRules => task.join = JoinRule::default(),
            Bug::IgnoresTaskPriorities => task.priority = None,
            _ => {}
        }
    }
}
