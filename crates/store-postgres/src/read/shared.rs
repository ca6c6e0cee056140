//! What the rows of a page share: specs and flows. They never change, so what was met once is not read again.

use super::{Read, Reader, sql, unreadable};
use crate::names::Known;
use crate::naming::read_plan;
use orchestrator_core::TaskSpec;
use std::sync::Arc;

impl Reader<'_> {
    /// The names that are known, with all of these specs and flows among them.
    pub(super) async fn shared(&self, mut specs: Vec<i32>, mut flows: Vec<i32>) -> Read<Arc<Known>> {
        let known = self.names.known();
        specs.retain(|spec| !known.specs.contains_key(spec));
        flows.retain(|flow| !known.flows.contains_key(flow));
        if specs.is_empty() && flows.is_empty() {
            return Ok(known);
        }
        let [specs, flows] = self.query_all([(sql::SPECS, &[&specs]), (sql::FLOW_BODIES, &[&flows])]).await?;
        let (mut new_specs, mut new_flows) = (vec![], vec![]);
        for row in specs {
            let spec: TaskSpec =
                serde_json::from_str(row.try_get("body")?).map_err(|_| unreadable("how a task is run"))?;
            new_specs.push((row.try_get("id")?, Arc::new(spec)));
        }
        for row in flows {
            let plan = read_plan(row.try_get("implicit")?, row.try_get("body")?).map_err(unreadable)?;
            new_flows.push((row.try_get("id")?, Arc::new(plan)));
        }
        self.names.learn(|known| {
            known.specs.extend(new_specs);
            known.flows.extend(new_flows);
        });
        Ok(self.names.known())
    }
}
