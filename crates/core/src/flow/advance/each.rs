//! A `for_each`: one task per item, let in little by little, joined at the end.

use super::{Change, MAX_EXPANSION, MAX_INDEX, MAX_ITEMS, Machine, Past, Release, invalid};
use crate::flow::run::{Group, Standing};
use crate::flow::template::{Scope, shown};
use crate::json::Json;
use crate::outcome::Failure;
use crate::planted::{Bug, planted};
use crate::state::TaskState;
use serde_json::Value;

impl<P: Past> Machine<'_, P> {
    /// Makes one task per item.
    pub(super) fn expand(&mut self, task: u32, items: Vec<Value>, scope: &mut Scope) -> Result<(), Failure> {
        let rules = &self.plan.tasks()[task as usize];
        let count = items.len() as u32;
        if items.len() > MAX_ITEMS || self.run.next.saturating_add(count) > MAX_INDEX {
            let message =
                format!("for_each has {count} items; at most {MAX_ITEMS}, and {MAX_INDEX} tasks per job");
            return Err(invalid(message));
        }
        if items.is_empty() {
            self.close(task, Standing::Completed, None);
            return Ok(());
        }
        // Nothing is written before every item is known to be sound: a list is run as a whole or not at all.
        let first = self.run.next;
        let window =
            rules.each.as_ref().and_then(|each| each.concurrency).map_or(count, |most| most.min(count));
        let (mut releases, mut bytes) = (Vec::with_capacity(items.len()), 0);
        for (n, item) in (0..count).zip(items) {
            let own = rules.with.is_none().then(|| Json::from(item.clone()));
            scope.set_item(item, n as usize);
            let (payload, limits) = self
                .render(rules, scope)
                .map_err(|failure| invalid(format!("item {n}: {}", failure.message)))?;
            let (payload, admitted) = (payload.or(own), n < window);
            bytes += payload.as_ref().map_or(0, Json::size);
            if bytes > MAX_EXPANSION {
                let message = format!(
                    "the inputs of its items have more than {} MiB together: pass references instead of the data",
                    MAX_EXPANSION >> 20
                );
                return Err(invalid(message));
            }
            let index = first + n;
            releases.push(Change::Release(Release { index, task, payload, limits, attempt: 0, admitted }));
        }
        self.run.next += count;
        self.run.groups.push(Group {
            task,
            first,
            count,
            admitted: window,
            ended: 0,
            failed: 0,
            again: vec![],
        });
        self.moves.changes.push(Change::Expanded(task));
        self.moves.changes.append(&mut releases);
        self.set(task, Standing::Live);
        Ok(())
    }

    /// Takes items up again that went wrong, as many at once as may run at once.
    pub(super) fn reopen(&mut self, items: &[(u32, u32)]) {
        for group in &mut self.run.groups {
            let again: Vec<u32> =
                items.iter().map(|(index, _)| *index).filter(|index| group.has(*index)).collect();
            if again.is_empty() {
                continue;
            }
            group.ended = group.count - again.len() as u32;
            group.failed = group.failed.saturating_sub(again.len() as u32);
            group.admitted = group.count;
            let each = self.plan.tasks()[group.task as usize].each.as_ref();
            let window = each.and_then(|each| each.concurrency).map_or(again.len(), |most| most as usize);
            let (now, later) = again.split_at(window.min(again.len()));
            self.moves.changes.push(Change::Expanded(group.task));
            self.moves.changes.extend(now.iter().copied().map(Change::Admit));
            group.again = later.iter().rev().copied().collect();
            self.run.tasks[group.task as usize] = Standing::Live;
        }
    }

    /// Counts an item off, lets the next one in, and ends the whole with the last.
    pub(super) fn item_ended(&mut self, index: u32, state: TaskState) {
        if planted(Bug::UncountedItem) && state == TaskState::Failed {
            return;
        }
        let Some(group) = self.run.groups.iter_mut().find(|group| group.has(index)) else { return };
        group.ended += 1;
        group.failed += u32::from(state == TaskState::Failed);
        let (task, done) = (group.task, group.ended == group.count);
        let next = match group.again.pop() {
            None if group.admitted < group.count => {
                group.admitted += 1;
                Some(group.first + group.admitted - 1)
            }
            again => again,
        };
        self.moves.changes.extend(next.map(Change::Admit));
        if done {
            let end = if group.failed > 0 { Standing::Failed } else { Standing::Completed };
            self.close(task, end, None);
        }
    }
}

pub(super) fn as_list(value: Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(invalid(format!("for_each must be a list, but it is {}", shown(&other)))),
    }
}
