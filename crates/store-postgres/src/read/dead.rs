//! Dead letters: failed tasks that wait for somebody's decision.

use super::jobs::read_run;
use super::row::Columns;
use super::tasks::place_name;
use super::{Read, Reader, sql, unreadable};
use crate::names::Known;
use orchestrator_core::flow::Plan;
use orchestrator_core::{DeadReason, TaskId};
use orchestrator_store::packed::index_of;
use orchestrator_store::{DeadLetter, LineFilter};
use std::sync::Arc;
use tokio_postgres::Row;

impl Reader<'_> {
    /// A page of dead letters in order of their jobs.
    pub async fn dead_letters(
        &self,
        filter: &LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Read<Vec<DeadLetter>> {
        // Behind a task of another database there is nothing.
        let after = after.map_or(-1, |task| self.ids.packed(task).unwrap_or(i64::MAX));
        let (queue, handler) = (filter.queue.as_deref(), filter.handler.as_deref());
        let rows = self.query(sql::DEAD, &[&after, &queue, &handler, &i64::from(limit)]).await?;
        let mut flows = vec![];
        for row in &rows {
            flows.extend(row.try_get::<_, Option<i32>>("flow")?);
        }
        let known = self.shared(vec![], flows).await?;
        rows.iter().map(|row| self.dead_letter(row, &known)).collect()
    }

    fn dead_letter(&self, row: &Row, known: &Known) -> Read<DeadLetter> {
        let task: i64 = row.try_get("task")?;
        let reason: &str = row.try_get("reason")?;
        let (name, flow) = match row.try_get::<_, Option<i32>>("flow")? {
            None => ("main".into(), None),
            Some(flow) => {
                let plan = known.flows.get(&flow).ok_or_else(|| unreadable("the flow of a job"))?;
                let name = task_name(row, plan, index_of(task))?;
                (name, (!plan.is_implicit()).then(|| plan.name().clone()))
            }
        };
        Ok(DeadLetter {
            task: self.ids.task(row.moment("created")?, task),
            name,
            flow,
            key: row.maybe_text("key")?,
            queue: row.text("queue")?,
            handler: row.text("handler")?,
            reason: DeadReason::from_word(reason)
                .ok_or_else(|| unreadable(format!("the reason {reason:?} of a dead letter")))?,
            at: row.moment("at")?,
            counters: row.counters()?,
            message: row.try_get::<_, Option<String>>("message")?.unwrap_or_default(),
        })
    }
}

fn task_name(row: &Row, plan: &Plan, index: u32) -> Read<Arc<str>> {
    let place = read_run(row)?.place(index).ok_or_else(|| unreadable("the index of a task"))?;
    Ok(place_name(&plan.tasks()[place.task as usize].name, place))
}
