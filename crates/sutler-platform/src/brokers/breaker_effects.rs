//! Turns a decision of the breaker into the next state of its broker and the writes of operations. Decides nothing.

use super::probe_run::PROBE_VERB;
use super::sync_run::SYNC_VERB;
use crate::lifecycle::breaker::{BreakerDecision, BreakerEffect, BreakerNotice, OpenCause};
use crate::lifecycle::intent::IntentNumber;
use crate::platform_records::PlatformRecords;
use crate::records::{BrokerState, IntentRequest, platform_queue};
use bytes::Bytes;
use std::time::Duration;
use sutler_journal::{Due, Key, NewOperation, Next, OperationId, Outcome, Start, Write};
use uuid::Uuid;

/// Who carries out a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecisionPlace {
    /// The run of this operation, which is the probe.
    Probe(OperationId),
    /// Anybody else.
    Elsewhere,
}

/// The next state of a broker, and writes that belong into the same commit.
#[derive(Clone, Debug)]
pub(super) struct StateChange {
    /// The next state.
    pub(super) next: BrokerState,
    /// Writes of operations.
    pub(super) writes: Vec<Write>,
    /// When the operation of the run that commits this is claimed again, if it is given back.
    pub(super) again_after: Option<Duration>,
    /// What operators are informed of, after the commit.
    pub(super) notices: Vec<BreakerNotice>,
}

impl StateChange {
    /// A change without writes of operations.
    pub(super) fn of(next: BrokerState) -> Self {
        Self {
            next,
            writes: Vec::new(),
            again_after: None,
            notices: Vec::new(),
        }
    }

    /// The state with a decision of its breaker carried out.
    pub(super) fn decided(
        records: &PlatformRecords,
        broker: Uuid,
        state: &BrokerState,
        decision: &BreakerDecision,
        place: DecisionPlace,
    ) -> Self {
        let mut change = Self::of(BrokerState {
            breaker: decision.next.clone(),
            ..state.clone()
        });
        for effect in &decision.effects {
            match *effect {
                // The limit of the queue follows from the state, here and elsewhere.
                BreakerEffect::CloseQueue => {}
                // What the broker offers may have changed while the breaker was open.
                BreakerEffect::OpenQueue => change.request_sync(records, broker),
                BreakerEffect::StartProbe(after) => change.start_probe(records, broker, after),
                // Its run sends it before it decides again.
                BreakerEffect::SendProbe => {}
                BreakerEffect::ProbeAfter(after) => match (place, change.next.probe) {
                    (DecisionPlace::Probe(id), _) => change.give_back(id, after),
                    // Probes are brought forward, never put off, by another writer.
                    (DecisionPlace::Elsewhere, Some(id)) => change.writes.push(Write::Wake(id)),
                    (DecisionPlace::Elsewhere, None) => change.start_probe(records, broker, after),
                },
                BreakerEffect::EndProbe => change.end_probe(place),
                BreakerEffect::Announce(notice) => change.notices.push(notice),
            }
        }
        change
    }

    /// Requests a sync: the operation that syncs is woken, or started if there is none.
    pub(super) fn request_sync(&mut self, records: &PlatformRecords, broker: Uuid) {
        let sync = &mut self.next.sync;
        sync.requested = sync.requested.saturating_add(1);
        match sync.operation {
            Some(id) => self.writes.push(Write::Wake(id)),
            None => {
                let lane = records.keys.catalog_sync(broker);
                let new = new_operation(records, lane, SYNC_VERB, Duration::ZERO);
                sync.operation = Some(new.id);
                self.writes.push(Write::Start(new));
            }
        }
    }

    fn start_probe(&mut self, records: &PlatformRecords, broker: Uuid, after: Duration) {
        let lane = records.keys.broker_state(broker);
        let new = new_operation(records, lane, PROBE_VERB, after);
        self.next.probe = Some(new.id);
        self.writes.push(Write::Start(new));
    }

    /// Ends the probe; that the state does not name it any more unpins it.
    fn end_probe(&mut self, place: DecisionPlace) {
        let named = self.next.probe.take();
        let (id, outcome) = match place {
            DecisionPlace::Probe(id) => (Some(id), Outcome::Succeeded),
            DecisionPlace::Elsewhere => (named, Outcome::Cancelled),
        };
        if let Some(id) = id {
            self.advance(id, Next::Done(outcome));
        }
    }

    /// Gives the operation of the present run back.
    pub(super) fn give_back(&mut self, operation: OperationId, after: Duration) {
        self.again_after = Some(after);
        self.advance(operation, Next::Ready(due(after)));
    }

    pub(super) fn advance(&mut self, operation: OperationId, next: Next) {
        self.writes.push(Write::Advance {
            operation,
            next,
            detail: None,
            progress: None,
        });
    }
}

/// When an operation may be claimed.
pub(super) fn due(after: Duration) -> Due {
    match after {
        Duration::ZERO => Due::Now,
        after => Due::In(after),
    }
}

/// An operation that no person asked for.
fn new_operation(
    records: &PlatformRecords,
    lane: Key,
    verb: &'static str,
    after: Duration,
) -> NewOperation {
    let id = OperationId::fresh();
    let request = IntentRequest {
        number: IntentNumber::default(),
        author: None,
        verb: verb.to_owned(),
        patch: None,
        stands_on: Vec::new(),
        accepted: records.now(),
    };
    NewOperation {
        id,
        lane,
        verb,
        queue: platform_queue(),
        start: Start::Ready(due(after)),
        detail: Bytes::new(),
        request: records.documents.seal_request(id, &request),
    }
}

/// Informs operators.
pub(super) fn announce(broker: Uuid, notices: &[BreakerNotice]) {
    for notice in notices {
        match notice {
            BreakerNotice::Open(OpenCause::Silence) => {
                tracing::warn!(%broker, "nothing is sent to the broker: it does not answer");
            }
            BreakerNotice::Open(OpenCause::Unauthorized) => {
                tracing::warn!(%broker, "nothing is sent to the broker: it refuses the credentials; replace them");
            }
            BreakerNotice::Closed => tracing::info!(%broker, "the broker answers again"),
            BreakerNotice::Paused => tracing::info!(%broker, "a person paused the broker"),
            BreakerNotice::Resumed => {
                tracing::info!(%broker, "a person ended the pause of the broker")
            }
        }
    }
}
