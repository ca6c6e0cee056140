//! The verbs that change something, asked of the server.

use super::RemoteStore;
use super::jobs::batch;
use crate::http::Repeat;
use async_trait::async_trait;
use orchestrator_api::batch::{ControlAnswer, ControlRequest, JobBatchAnswer};
use orchestrator_api::flows::{FlowChangeFields, FlowChanges, FlowsChanged};
use orchestrator_api::limits::{LimitChangeFields, LimitChanges};
use orchestrator_api::old::{ForgetAnswer, ForgetRequest};
use orchestrator_api::workers::RegisterRequest;
use orchestrator_core::{Json, Millis, NewJob, Timestamp};
use orchestrator_store::*;
use orchestrator_worker::{SourceError, WorkSource};
use reqwest::Method;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a source says, as a store says it.
pub(super) fn of_source(error: SourceError) -> StoreError {
    match error {
        SourceError::Store(error) => error,
        SourceError::Remote { source, .. } => match source.downcast::<crate::ClientError>() {
            Ok(error) => (*error).into(),
            Err(source) => StoreError::Database { source },
        },
    }
}

#[async_trait]
impl Store for RemoteStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        // A key tells a repetition from a second job. One that the flow makes does so, too.
        let repeat = if jobs.iter().all(|job| job.key.is_some()) { Repeat::Safe } else { Repeat::Unsent };
        let body = batch(&jobs)?;
        let JobBatchAnswer { jobs } =
            self.client.post(&["jobs", "batch"], &body, Duration::ZERO, repeat).await?;
        Ok(jobs.into_iter().map(Into::into).collect())
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        let wait = Duration::from(ask.hold);
        let tasks = self.source.lease(ask, wait, &CancellationToken::new()).await.map_err(of_source)?;
        Ok(LeaseGrant { tasks, next_at: None })
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        self.source.extend(held, ttl).await.map_err(of_source)
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        self.source.settle(batch).await.map_err(of_source)
    }

    async fn expired(&self, _ask: SweepAsk) -> StoreResult<Swept> {
        Ok(Swept::default())
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        let body = ControlRequest { wishes: wishes.into_iter().map(Into::into).collect() };
        // Asked again, a retry that was done already would be refused, or would be a second one.
        let ControlAnswer { results } =
            self.client.post(&["jobs", "control"], &body, Duration::ZERO, Repeat::Unsent).await?;
        Ok(results.into_iter().map(Into::into).collect())
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        for QueueChange { queue, paused } in changes {
            let verb = if paused { "pause" } else { "resume" };
            self.client.tell(Method::POST, &["queues", &queue, verb], None::<&()>, Repeat::Safe).await?;
        }
        Ok(())
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        Ok(self
            .client
            .tell(Method::POST, &["work", "register"], Some(&RegisterRequest { workers }), Repeat::Safe)
            .await?)
    }

    async fn check(&self) -> StoreResult<()> {
        Ok(self.client.tell(Method::GET, &["ready"], None::<&()>, Repeat::Safe).await?)
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        // Retired a second time, a name is not found.
        let retires = changes.iter().any(|change| matches!(change, FlowChange::Retire(_)));
        let repeat = if retires { Repeat::Unsent } else { Repeat::Safe };
        let change = |change| match change {
            FlowChange::Apply(plan) => FlowChangeFields::Apply(Json::trusted(plan.text().to_string())),
            FlowChange::Retire(name) => FlowChangeFields::Retire(name),
        };
        let body = FlowChanges { changes: changes.into_iter().map(change).collect() };
        let FlowsChanged { results } =
            self.client.post(&["flows", "changes"], &body, Duration::ZERO, repeat).await?;
        Ok(results)
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        if changes.iter().any(|change| change.origin == RuleOrigin::Config) {
            let message = "the rules of a configuration are the server's own";
            return Err(StoreError::Invalid(message.to_owned()));
        }
        let change = |LimitChange { key, rule, .. }| LimitChangeFields { key, rule };
        let body = LimitChanges { changes: changes.into_iter().map(change).collect() };
        Ok(self.client.tell(Method::PATCH, &["limits"], Some(&body), Repeat::Safe).await?)
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        let body = ForgetRequest { jobs: jobs.into_iter().map(Into::into).collect() };
        let ForgetAnswer { results } =
            self.client.post(&["jobs", "forget"], &body, Duration::ZERO, Repeat::Safe).await?;
        Ok(results.into_iter().map(Into::into).collect())
    }

    async fn forget_journal(&self, _before: Timestamp, _limit: u32) -> StoreResult<u32> {
        Err(StoreError::Invalid("a server removes entries of its journal itself".to_owned()))
    }
}
