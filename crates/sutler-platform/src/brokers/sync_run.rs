//! Runs the syncs of a broker's catalog: one operation for all of them, so that each is done once across replicas.
//!
//! # Flow
//! 1. The catalog is read with the tag of the known one. A failure changes nothing but what is said of it.
//! 2. What it adds, changes and marks is written in batches; then, in a second pass, what was marked and is not used is
//!    dropped.
//! 3. The last commit says how it ended, and gives the operation back until the next sync.
//!
//! # Guarantees
//! * Every commit that writes items gives the catalog another revision, so no process keeps an old item for long.
//! * From the first of these commits to the last one there is no tag. A sync that was interrupted between them reads the
//!   whole catalog again.
//! * Nothing is read while the breaker is open or paused; it wakes the operation when it closes.

use super::Brokers;
use super::breaker_effects::StateChange;
use super::broker_view::{BrokerView, BrokerViewError};
use super::catalog_request::{CatalogAnswer, CatalogExchange, bounded, failure};
use super::chance::jitter;
use super::item_writes::{batches, item_writes};
use super::planned_sync::{PlannedSync, has_marks, plan_drops, plan_take_over};
use super::probe_run::{AGAIN_AFTER, RunState, broker_of, end_foreign, entity_tag, given_back};
use super::sync_end::{SyncEnd, SyncFacts, end_of_sync};
use super::unused_items::UnusedItems;
use crate::catalog::SyncPlan;
use crate::records::BrokerState;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use sutler_client::{EntityTag, RetryAfter};
use sutler_journal::{Commit, CommitRejectedError, Lost, Run, RunResult, Write};
use uuid::Uuid;

/// Verb of the operations of syncs.
pub const SYNC_VERB: &str = "sync";

/// Longest wait before it is looked whether a broker that was stopped goes on, if that is not noticed otherwise.
const STOPPED_AGAIN_AFTER: Duration = Duration::from_secs(5 * 60);

/// Why a sync did not end.
enum SyncStop {
    /// The claim was lost.
    Lost,
    /// It goes on later, from the beginning.
    Later,
    /// An item is too large for any store.
    TooLarge,
}

impl From<Lost> for SyncStop {
    fn from(_: Lost) -> Self {
        Self::Lost
    }
}

impl Brokers {
    /// Runs the operation of syncs: one sync.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn execute_sync(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let Some(broker) = broker_of(&run) else {
            return end_foreign(&run).await;
        };
        let state = match self.sync_state(&run, broker).await? {
            RunState::Current(_, state) => state,
            RunState::Newer => return Ok(RunResult::Yield(AGAIN_AFTER)),
            RunState::Foreign => return end_foreign(&run).await,
        };
        let view = match self.view(broker).await {
            Ok(view) => view,
            Err(BrokerViewError::NotRegistered(_)) => return end_foreign(&run).await,
            Err(error @ (BrokerViewError::NewerForm(_) | BrokerViewError::Record(_))) => {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error, "the catalog is synced later");
                return Ok(RunResult::Yield(AGAIN_AFTER));
            }
        };
        if let Some(since) = view.registration.deregistering {
            return self.resume_deregistration(broker, since).await;
        }
        if view.state.breaker.stop().is_some() {
            let relist = view.registration.limits.relist_every;
            return Ok(RunResult::Yield(relist.min(STOPPED_AGAIN_AFTER)));
        }
        if view.catalog.has_newer_items() {
            return Ok(RunResult::Yield(AGAIN_AFTER));
        }
        let serving = state.sync.requested;
        let end = match self.read_and_write(&run, &view).await {
            Ok(end) => end,
            Err(SyncStop::Lost) => return Err(Lost),
            Err(SyncStop::Later) => return Ok(RunResult::Yield(AGAIN_AFTER)),
            Err(SyncStop::TooLarge) => failed("an item of the catalog is too large to be kept"),
        };
        self.commit_end(&run, &view, (serving, end)).await
    }

    /// Looks at a sync that was interrupted again and again, perhaps because its catalog ends processes: it is read again
    /// at its next time.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn give_up_sync(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let Some(broker) = broker_of(&run) else {
            return end_foreign(&run).await;
        };
        let serving = match self.sync_state(&run, broker).await? {
            RunState::Current(_, state) => state.sync.requested,
            RunState::Newer => return Ok(RunResult::Yield(AGAIN_AFTER)),
            RunState::Foreign => return end_foreign(&run).await,
        };
        match self.view(broker).await {
            Ok(view) => {
                let end = failed("it was interrupted too often; see why processes end");
                self.commit_end(&run, &view, (serving, end)).await
            }
            Err(_) => Ok(RunResult::Yield(AGAIN_AFTER)),
        }
    }

    async fn sync_state(&self, run: &Run, broker: Uuid) -> Result<RunState, Lost> {
        let is_named = |state: &BrokerState| state.sync.operation == Some(run.id());
        self.run_state(run, broker, is_named).await
    }

    async fn read_and_write(&self, run: &Run, view: &BrokerView) -> Result<SyncEnd, SyncStop> {
        let transport = match &view.transport {
            Ok(transport) => transport,
            Err(error) => return Ok(failed(&error.to_string())),
        };
        // A catalog with marked items is always read: they may be dropped, and only the whole catalog says so.
        let is_marked = has_marks(view.catalog.known());
        let tag = entity_tag(&view.state).filter(|_| !is_marked);
        run.confirm_claim().await?;
        let begun = self.records.now();
        let exchange = CatalogExchange::send(transport.as_ref(), run.id(), tag.as_ref()).await;
        let broker = view.registration.uid;
        self.exchange_ended(broker, begun, exchange.outcome, None)
            .await;
        match exchange.answer {
            CatalogAnswer::NotModified => Ok(SyncEnd::NotModified),
            CatalogAnswer::Other(reading) => {
                let (failure, after) = failure(&reading);
                let after = after.map(|after| self.wait_for(after));
                Ok(SyncEnd::Failed { failure, after })
            }
            CatalogAnswer::Whole { body, entity_tag } => {
                self.take_over(run, view, (body, entity_tag)).await
            }
        }
    }

    /// How long a broker wants to be left alone.
    fn wait_for(&self, after: RetryAfter) -> Duration {
        let seconds = u64::try_from(self.records.now().as_second()).unwrap_or(0);
        after.from_now(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// Writes what a catalog changes.
    async fn take_over(
        &self,
        run: &Run,
        view: &BrokerView,
        (body, entity_tag): (Bytes, Option<EntityTag>),
    ) -> Result<SyncEnd, SyncStop> {
        let (records, broker) = (&self.records, view.registration.uid);
        let now = records.now();
        let planned = plan_take_over(view.catalog.clone(), body.clone(), now).await?;
        let PlannedSync { plan, known } = match planned {
            Ok(planned) => planned,
            Err(sentence) => {
                let sentence = format!("the catalog cannot be read: {sentence}");
                return Ok(failed(&sentence));
            }
        };
        self.write_items(run, broker, &plan).await?;
        if has_marks(&known) {
            let unused = UnusedItems::find(records, broker, &known, jitter()).await;
            let unused = unused.map_err(|error| {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error, "removed plans are dropped later");
                SyncStop::Later
            })?;
            match plan_drops(known, body, now, unused).await? {
                Ok(drops) => self.write_items(run, broker, &drops).await?,
                Err(sentence) => return Ok(failed(&sentence)),
            }
        }
        let faults = plan.faults;
        Ok(SyncEnd::Read { faults, entity_tag })
    }

    async fn write_items(&self, run: &Run, broker: Uuid, plan: &SyncPlan) -> Result<(), SyncStop> {
        let items = item_writes(&self.records, broker, plan);
        for batch in batches(&self.records, items) {
            self.write_batch(run, broker, &batch).await?;
        }
        Ok(())
    }

    /// Writes items, with the next revision of the catalog and without its tag.
    async fn write_batch(&self, run: &Run, broker: Uuid, batch: &[Write]) -> Result<(), SyncStop> {
        loop {
            let RunState::Current(was, state) = self.sync_state(run, broker).await? else {
                return Err(SyncStop::Later);
            };
            let mut change = StateChange::of(*state);
            change.next.catalog_revision += 1;
            change.next.entity_tag = None;
            change.writes = batch.to_vec();
            let commit = self.with_state(Commit::new(), broker, &was, &change);
            match run.commit(commit).await? {
                Ok(()) => return Ok(()),
                // The breaker was decided on meanwhile.
                Err(CommitRejectedError::Stale(_)) => {}
                Err(CommitRejectedError::TooLarge(_)) => return Err(SyncStop::TooLarge),
            }
        }
    }

    async fn commit_end(
        &self,
        run: &Run,
        view: &BrokerView,
        (serving, end): (u64, SyncEnd),
    ) -> Result<RunResult, Lost> {
        let broker = view.registration.uid;
        loop {
            let (was, state) = match self.sync_state(run, broker).await? {
                RunState::Current(was, state) => (was, state),
                RunState::Newer => return Ok(RunResult::Yield(AGAIN_AFTER)),
                RunState::Foreign => return end_foreign(run).await,
            };
            let facts = SyncFacts {
                operation: run.id(),
                serving,
                relist_every: view.registration.limits.relist_every,
                now: self.records.now(),
                jitter: jitter(),
            };
            let change = end_of_sync(&state, end.clone(), facts);
            let commit = self.with_state(Commit::new(), broker, &was, &change);
            match run.commit(commit).await? {
                Ok(()) => {
                    let after = change.again_after;
                    return Ok(after.map_or(RunResult::Finished, given_back));
                }
                Err(CommitRejectedError::Stale(_)) => {}
                Err(error @ CommitRejectedError::TooLarge(_)) => {
                    tracing::error!(%broker, %error, "the end of a sync cannot be written");
                    return Ok(RunResult::Yield(STOPPED_AGAIN_AFTER));
                }
            }
        }
    }
}

fn failed(failure: &str) -> SyncEnd {
    SyncEnd::Failed {
        failure: bounded(failure),
        after: None,
    }
}
