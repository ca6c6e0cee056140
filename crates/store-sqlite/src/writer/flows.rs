//! The flows that the writer knows, and the registry.
//!
//! A version of a flow never changes once it is committed, so what was read of it stays good, also when
//! other processes commit; only a rollback of our own may take one back.

use super::Writer;
use crate::error::Abort;
use orchestrator_core::flow::Plan;
use orchestrator_core::flow::plan::LimitPlan;
use orchestrator_core::{Limits, TaskSpec};
use orchestrator_store::{FlowChange, FlowChanged};
use rusqlite::OptionalExtension;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The flows that were met.
#[derive(Default)]
pub struct Flows {
    by_id: FxHashMap<i64, Arc<Plan>>,
    ids: FxHashMap<(bool, Arc<str>), i64>,
    /// The spec and, where its limits are fixed, the lane of each task that was met.
    tasks: FxHashMap<(i64, u32), (i64, Option<i64>)>,
}

impl Writer<'_> {
    /// The id of a flow, which is written down if it is new.
    pub(super) fn flow_id(&mut self, plan: &Arc<Plan>) -> Result<i64, Abort> {
        let name = (plan.is_implicit(), plan.hash().clone());
        if let Some(id) = self.flows.ids.get(&name) {
            return Ok(*id);
        }
        let key = (plan.is_implicit(), &**plan.name(), &**plan.hash());
        let known = self.sql.find_flow.query_row(key, |row| row.get(0)).optional()?;
        let id = match known {
            Some(id) => id,
            None => {
                let text = &**plan.text();
                self.sql.insert_flow.execute((key.0, key.1, key.2, self.now.as_millis(), text))?;
                self.conn.last_insert_rowid()
            }
        };
        self.flows.ids.insert(name, id);
        self.flows.by_id.insert(id, plan.clone());
        Ok(id)
    }

    /// The flow of an id.
    pub(super) fn plan(&mut self, id: i64) -> Result<Arc<Plan>, Abort> {
        if let Some(plan) = self.flows.by_id.get(&id) {
            return Ok(plan.clone());
        }
        let (implicit, body): (bool, String) =
            self.sql.flow_by_id.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let plan = Arc::new(read_plan(implicit, &body).map_err(Abort::Invalid)?);
        self.flows.by_id.insert(id, plan.clone());
        Ok(plan)
    }

    /// The id of the spec of a flow's task.
    pub(super) fn task_spec_id(&mut self, flow: i64, plan: &Plan, task: u32) -> Result<i64, Abort> {
        Ok(self.task_ids(flow, plan, task)?.0)
    }

    /// The lane of a flow's task under limits that may be its own for this once.
    pub(super) fn task_lane_id(
        &mut self,
        flow: i64,
        plan: &Plan,
        task: u32,
        limits: &Limits,
    ) -> Result<i64, Abort> {
        match self.task_ids(flow, plan, task)? {
            (_, Some(lane)) => Ok(lane),
            (_, None) => self.lane_id(&spec_of(plan, task), limits),
        }
    }

    fn task_ids(&mut self, flow: i64, plan: &Plan, task: u32) -> Result<(i64, Option<i64>), Abort> {
        if let Some(ids) = self.flows.tasks.get(&(flow, task)) {
            return Ok(*ids);
        }
        let spec = spec_of(plan, task);
        let lane = match &plan.tasks()[task as usize].limits {
            LimitPlan::Fixed(limits) => Some(self.lane_id(&spec, limits)?),
            LimitPlan::Templates(_) => None,
        };
        let ids = (self.spec_id(&spec)?, lane);
        self.flows.tasks.insert((flow, task), ids);
        Ok(ids)
    }

    pub(super) fn change_flows(&mut self, changes: &[FlowChange]) -> Result<Vec<FlowChanged>, Abort> {
        changes
            .iter()
            .map(|change| match change {
                FlowChange::Apply(plan) => {
                    let key = (false, &**plan.name(), &**plan.hash());
                    let known: Option<i64> =
                        self.sql.find_flow.query_row(key, |row| row.get(0)).optional()?;
                    let id = self.flow_id(plan)?;
                    let standing = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                    let (version, current): (u32, bool) = self.sql.flow_standing.query_row([id], standing)?;
                    if current {
                        return Ok(FlowChanged::Unchanged(version));
                    }
                    self.sql.apply_flow.execute([id])?;
                    Ok(if known.is_some() {
                        FlowChanged::Restored(version)
                    } else {
                        FlowChanged::Created(version)
                    })
                }
                FlowChange::Retire(name) => {
                    let retired = self.sql.retire_flow.execute([&**name])?;
                    Ok(if retired > 0 { FlowChanged::Retired } else { FlowChanged::NotFound })
                }
            })
            .collect()
    }
}

fn spec_of(plan: &Plan, task: u32) -> Arc<TaskSpec> {
    plan.tasks()[task as usize].spec.clone()
}

/// Reads a flow back that was stored.
pub fn read_plan(implicit: bool, body: &str) -> Result<Plan, String> {
    if implicit {
        return Plan::of_task_from_text(body).map_err(|error| error.to_string());
    }
    Plan::from_text(body).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        format!("a stored flow does not read back: {}", problems.join("; "))
    })
}
