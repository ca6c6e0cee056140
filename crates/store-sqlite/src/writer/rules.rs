//! Changing limit rules.

use super::Writer;
use crate::error::Abort;
use orchestrator_store::{LimitChange, RuleOrigin};

impl Writer<'_> {
    pub(super) fn set_limits(&mut self, changes: &[LimitChange]) -> Result<(), Abort> {
        for change in changes {
            let standing = self.cache.origins.get(&change.key);
            if change.origin == RuleOrigin::Config && standing == Some(&RuleOrigin::Operator) {
                continue;
            }
            match change.rule {
                Some(rule) => {
                    let body = serde_json::to_string(&rule).map_err(|e| Abort::Invalid(e.to_string()))?;
                    let operator = change.origin == RuleOrigin::Operator;
                    self.sql.put_rule.execute((change.key.as_str(), body, operator))?;
                    self.cache.origins.insert(change.key.clone(), change.origin);
                }
                None => {
                    self.sql.delete_rule.execute([change.key.as_str()])?;
                    self.cache.origins.remove(&change.key);
                }
            }
            self.cache.book.set(change.key.clone(), change.rule);
        }
        self.cache.refresh_rules();
        self.changes.wake = true;
        Ok(())
    }
}
