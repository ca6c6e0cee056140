//! The registry of flows.

use super::row::Columns;
use super::{Read, Reader, sql};
use orchestrator_core::Json;
use orchestrator_store::{FlowRef, FlowView};
use tokio_postgres::Row;

impl Reader<'_> {
    /// The current version of every flow, or every version of one.
    pub async fn flows(&self, name: Option<&str>) -> Read<Vec<FlowView>> {
        let rows = self.query(sql::FLOWS, &[&name, &None::<i32>, &name.is_none()]).await?;
        rows.iter().map(view).collect()
    }

    /// One version, or the current one.
    pub async fn flow(&self, name: &str, version: Option<u32>) -> Read<Option<FlowView>> {
        let number = match version.map(i32::try_from).transpose() {
            Ok(number) => number,
            // Versions are numbered from one, so there is none as high as this.
            Err(_) => return Ok(None),
        };
        let rows = self.query(sql::FLOWS, &[&Some(name), &number, &version.is_none()]).await?;
        rows.first().map(view).transpose()
    }
}

fn view(row: &Row) -> Read<FlowView> {
    Ok(FlowView {
        flow: FlowRef { name: row.text("name")?, version: row.count("version")?, hash: row.text("hash")? },
        created: row.moment("created")?,
        current: row.try_get("current")?,
        definition: Json::trusted(row.text("body")?),
    })
}
