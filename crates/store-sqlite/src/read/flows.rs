//! Flows as readers see them: a version never changes once it is committed, so it is read once.

use super::jobs::unreadable;
use crate::lock;
use crate::writer::read_plan;
use orchestrator_core::flow::Plan;
use orchestrator_core::{Json, Timestamp};
use orchestrator_store::{FlowRef, FlowView};
use rusqlite::{Connection, Row};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};

/// One version of a flow.
#[derive(Clone)]
pub struct Version {
    pub number: u32,
    pub plan: Arc<Plan>,
}

impl Version {
    /// How views name it; the implicit ones have no name.
    pub fn reference(&self) -> Option<FlowRef> {
        (!self.plan.is_implicit()).then(|| FlowRef {
            name: self.plan.name().clone(),
            version: self.number,
            hash: self.plan.hash().clone(),
        })
    }
}

/// The versions that were met.
#[derive(Default)]
pub struct Versions(Mutex<FxHashMap<i64, Version>>);

impl Versions {
    /// The version of an id.
    pub fn get(&self, conn: &Connection, id: i64) -> rusqlite::Result<Version> {
        if let Some(version) = lock(&self.0).get(&id) {
            return Ok(version.clone());
        }
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (implicit, number, body): (bool, u32, String) =
            conn.prepare_cached(include_str!("../../sql/view_flow.sql"))?.query_row([id], read)?;
        let plan = read_plan(implicit, &body).map_err(|error| unreadable(2, &error))?;
        let version = Version { number, plan: Arc::new(plan) };
        lock(&self.0).insert(id, version.clone());
        Ok(version)
    }
}

/// The current version of every flow, or every version of one.
pub fn flows(conn: &Connection, name: Option<&str>) -> rusqlite::Result<Vec<FlowView>> {
    match name {
        None => {
            let mut statement = conn.prepare_cached(include_str!("../../sql/view_flows.sql"))?;
            let rows = statement.query_map([name], view)?;
            rows.filter(|flow| flow.as_ref().map_or(true, |flow| flow.current)).collect()
        }
        Some(name) => {
            let mut statement = conn.prepare_cached(include_str!("../../sql/view_flow_versions.sql"))?;
            statement.query_map((name, None::<u32>), view)?.collect()
        }
    }
}

/// One version, or the current one.
pub fn flow(conn: &Connection, name: &str, version: Option<u32>) -> rusqlite::Result<Option<FlowView>> {
    let mut statement = conn.prepare_cached(include_str!("../../sql/view_flow_versions.sql"))?;
    let found: Vec<FlowView> = statement.query_map((name, version), view)?.collect::<Result<_, _>>()?;
    Ok(found.into_iter().find(|flow| version.is_some() || flow.current))
}

fn view(row: &Row<'_>) -> rusqlite::Result<FlowView> {
    Ok(FlowView {
        flow: FlowRef {
            name: row.get::<_, String>(0)?.into(),
            version: row.get(1)?,
            hash: row.get::<_, String>(2)?.into(),
        },
        created: Timestamp::from_millis(row.get(3)?),
        definition: Json::trusted(row.get::<_, String>(4)?),
        current: row.get(5)?,
    })
}
