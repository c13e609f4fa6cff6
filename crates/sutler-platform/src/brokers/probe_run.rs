//! Runs the probe of an open breaker: reads the catalog under a claim, and lets the breaker decide.
//!
//! There is one operation for all probes of one outage; its lane is the state of the broker. It is in the platform's own
//! queue, because that of the broker is closed.

use super::Brokers;
use super::breaker_effects::{DecisionPlace, StateChange, announce};
use super::broker_view::BrokerViewError;
use super::catalog_request::{CatalogExchange, not_sent};
use super::chance::jitter;
use super::state_change::StoredState;
use crate::lifecycle::breaker::{
    Breaker, BreakerEffect, BreakerEvent, OpenBreaker, PROBE_PAUSE_MAX, ProbeResult, decide,
};
use crate::records::{BrokerState, Record};
use std::sync::Arc;
use std::time::Duration;
use sutler_client::EntityTag;
use sutler_journal::{Commit, CommitRejectedError, Lost, Next, Outcome, Run, RunResult, Write};
use uuid::Uuid;

/// Verb of the operations of probes.
pub const PROBE_VERB: &str = "probe";

/// Wait before an operation is tried again whose documents a newer version wrote, or cannot be read.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// What a step of a probe leads to.
enum ProbeStep {
    /// Something changed meanwhile: look again.
    Again,
    /// The run is over.
    Done(RunResult),
}

/// The state of a broker for a run of one of its operations.
pub(super) enum RunState {
    /// The state names the operation.
    Current(StoredState, Box<BrokerState>),
    /// A newer version of the platform wrote it.
    Newer,
    /// The broker is gone, or has another operation.
    Foreign,
}

/// The broker of a lane.
pub(super) fn broker_of(run: &Run) -> Option<Uuid> {
    Uuid::try_parse(run.operation().row.lane.id(0)).ok()
}

impl Brokers {
    /// Runs the operation of a probe.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn execute_probe(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let Some(broker) = broker_of(&run) else {
            return end_foreign(&run).await;
        };
        loop {
            match self.probe_step(&run, broker).await? {
                ProbeStep::Again => {}
                ProbeStep::Done(result) => return Ok(result),
            }
        }
    }

    /// Looks at a probe that was interrupted again and again: it goes on, but with the longest pause.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn give_up_probe(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        tracing::error!(operation.id = %run.id(), "a probe was interrupted too often; it is sent again later");
        Ok(RunResult::Yield(PROBE_PAUSE_MAX))
    }

    async fn probe_step(&self, run: &Run, broker: Uuid) -> Result<ProbeStep, Lost> {
        let is_named = |state: &BrokerState| state.probe == Some(run.id());
        let (was, state) = match self.run_state(run, broker, is_named).await? {
            RunState::Current(was, state) => (was, state),
            RunState::Newer => return Ok(ProbeStep::Done(RunResult::Yield(AGAIN_AFTER))),
            RunState::Foreign => return Ok(ProbeStep::Done(end_foreign(run).await?)),
        };
        let event = BreakerEvent::ProbeTurn;
        let now = self.records.now();
        // It belongs to every state; if it did not, looking later would still be right.
        let Ok(decision) = decide(state.breaker.clone(), event, now, jitter()) else {
            return Ok(ProbeStep::Done(RunResult::Yield(AGAIN_AFTER)));
        };
        if decision.effects.contains(&BreakerEffect::SendProbe) {
            return self.send_probe(run, broker, &state).await;
        }
        let place = DecisionPlace::Probe(run.id());
        let change = StateChange::decided(&self.records, broker, &state, &decision, place);
        self.commit_probe(run, broker, &was, change).await
    }

    async fn send_probe(
        &self,
        run: &Run,
        broker: Uuid,
        state: &BrokerState,
    ) -> Result<ProbeStep, Lost> {
        let view = match self.view(broker).await {
            Ok(view) => view,
            Err(BrokerViewError::NotRegistered(_)) => {
                return Ok(ProbeStep::Done(end_foreign(run).await?));
            }
            Err(error @ (BrokerViewError::NewerForm(_) | BrokerViewError::Record(_))) => {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error, "the broker is probed later");
                return Ok(ProbeStep::Done(RunResult::Yield(AGAIN_AFTER)));
            }
        };
        let result = match &view.transport {
            Ok(transport) => {
                run.confirm_claim().await?;
                let tag = entity_tag(state);
                let sent = CatalogExchange::send(transport.as_ref(), run.id(), tag.as_ref());
                sent.await.answer.probe_result()
            }
            Err(error) => not_sent(error.to_string()),
        };
        self.commit_result(run, broker, (planned_probe(state), result))
            .await
    }

    /// Commits the result of a probe, if it is still the one that is wanted.
    async fn commit_result(
        &self,
        run: &Run,
        broker: Uuid,
        (planned, result): (Option<PlannedProbe>, ProbeResult),
    ) -> Result<ProbeStep, Lost> {
        loop {
            let is_named = |state: &BrokerState| state.probe == Some(run.id());
            let RunState::Current(was, state) = self.run_state(run, broker, is_named).await? else {
                return Ok(ProbeStep::Again);
            };
            if planned_probe(&state) != planned {
                return Ok(ProbeStep::Again);
            }
            let event = BreakerEvent::Probed(result.clone());
            let now = self.records.now();
            let Ok(decision) = decide(state.breaker.clone(), event, now, jitter()) else {
                return Ok(ProbeStep::Again);
            };
            let place = DecisionPlace::Probe(run.id());
            let change = StateChange::decided(&self.records, broker, &state, &decision, place);
            let done = self.commit_probe(run, broker, &was, change).await?;
            // Another writer was first; the result may still count.
            if let ProbeStep::Done(_) = done {
                return Ok(done);
            }
        }
    }

    async fn commit_probe(
        &self,
        run: &Run,
        broker: Uuid,
        was: &StoredState,
        change: StateChange,
    ) -> Result<ProbeStep, Lost> {
        let commit = self.with_state(Commit::new(), broker, was, &change);
        match run.commit(commit).await? {
            Ok(()) => {
                self.local
                    .wrote_state(broker, &change.next, self.records.now());
                announce(broker, &change.notices);
                let result = change.again_after.map_or(RunResult::Finished, given_back);
                Ok(ProbeStep::Done(result))
            }
            Err(CommitRejectedError::Stale(_)) => Ok(ProbeStep::Again),
            Err(error @ CommitRejectedError::TooLarge(_)) => {
                tracing::error!(%broker, %error, "the result of a probe cannot be written");
                Ok(ProbeStep::Done(RunResult::Yield(AGAIN_AFTER)))
            }
        }
    }

    /// Reads the state of a broker for a run, which it should name.
    pub(super) async fn run_state(
        &self,
        run: &Run,
        broker: Uuid,
        is_named: impl Fn(&BrokerState) -> bool,
    ) -> Result<RunState, Lost> {
        let key = self.records.keys.broker_state(broker);
        let documents = &self.records.documents;
        let was = documents
            .load_for_run::<Record<BrokerState>>(run, &key)
            .await?;
        Ok(match &was.state {
            Record::Present(state) if is_named(state) => {
                let state = state.clone();
                RunState::Current(was, state)
            }
            Record::Newer(_) => RunState::Newer,
            Record::Present(_) | Record::Absent => RunState::Foreign,
        })
    }
}

/// What a probe is sent for: another one as soon as a person asks for a probe, or replaces the credentials, which requests
/// a sync too.
type PlannedProbe = (OpenBreaker, u64);

fn planned_probe(state: &BrokerState) -> Option<PlannedProbe> {
    match &state.breaker {
        Breaker::Open(open) => Some((open.clone(), state.sync.requested)),
        Breaker::Closed { .. } | Breaker::Paused { .. } => None,
    }
}

/// The entity tag of the known catalog.
pub(super) fn entity_tag(state: &BrokerState) -> Option<EntityTag> {
    EntityTag::try_from(state.entity_tag.clone()?).ok()
}

/// Ends an operation that no broker knows any more.
pub(super) async fn end_foreign(run: &Run) -> Result<RunResult, Lost> {
    let commit = Commit::new()
        .advance(run.id(), Next::Done(Outcome::Cancelled), None, None)
        .write(Write::Unpin(run.id()));
    run.commit(commit).await?.map_err(|_| Lost)?;
    Ok(RunResult::Finished)
}

/// The result of a run whose own commit gave the operation back, to be claimed after this time. The engine finds it when
/// it looks next.
pub(super) fn given_back(_after: Duration) -> RunResult {
    RunResult::Finished
}
