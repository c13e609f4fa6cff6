//! A row of the orphan ledger as it is shown, and its id in paths.

use super::AuthorView;
use super::intent_view::BrokerWords;
use crate::lifecycle::orphan::{
    AttemptOutcome, DeleteStage, OperatorReason, Orphan, OrphanAttempt, OrphanCause, OrphanKey,
    OrphanState, WaitingResource,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use std::fmt;
use sutler_osb::{BindingId, InstanceId, PlanId, ServiceId};
use uuid::Uuid;

/// The id of a row in paths: uid of the broker, and the ids that the broker knows, in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrphanId(pub OrphanKey);

impl OrphanId {
    /// The row that a path names.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let broker = Uuid::try_parse(parts.next()?).ok()?;
        let mut decoded = || -> Option<Option<String>> {
            let Some(part) = parts.next() else {
                return Some(None);
            };
            let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
            String::from_utf8(bytes).ok().map(Some)
        };
        let instance = InstanceId::try_from(decoded()??).ok()?;
        let binding = decoded()?.map(BindingId::try_from).transpose().ok()?;
        let key = OrphanKey {
            broker,
            instance,
            binding,
        };
        parts.next().is_none().then_some(Self(key))
    }
}

impl fmt::Display for OrphanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = |id: &str| URL_SAFE_NO_PAD.encode(id);
        write!(f, "{}.{}", self.0.broker, encoded(self.0.instance.as_str()))?;
        match &self.0.binding {
            Some(binding) => write!(f, ".{}", encoded(binding.as_str())),
            None => Ok(()),
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrphanView {
    id: String,
    broker: Uuid,
    external_instance: InstanceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_binding: Option<BindingId>,
    class: ServiceId,
    plan: PlanId,
    cause: &'static str,
    found: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<AuthorView>,
    /// What waits for its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<WaitingView>,
    #[serde(flatten)]
    state: OrphanStateView,
    tries: u32,
    waits: u32,
    /// Attempts so far.
    attempts: u64,
    /// The first and the last ones.
    attempt_log: Vec<OrphanAttemptView>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct WaitingView {
    kind: &'static str,
    namespace: String,
    uid: Uuid,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct OrphanStateView {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten_by: Option<AuthorView>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct OrphanAttemptView {
    number: u64,
    times: u64,
    ended: Timestamp,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerWords>,
}

impl OrphanView {
    pub(crate) fn of(orphan: &Orphan) -> Self {
        let log = &orphan.attempts;
        let attempts = log.first.iter().chain(&log.last);
        Self {
            id: OrphanId(orphan.key.clone()).to_string(),
            broker: orphan.key.broker,
            external_instance: orphan.key.instance.clone(),
            external_binding: orphan.key.binding.clone(),
            class: orphan.service_id.clone(),
            plan: orphan.plan_id.clone(),
            cause: cause(orphan.cause),
            found: orphan.found,
            by: orphan.by.as_ref().map(AuthorView::of),
            waiting: orphan.waiting.as_ref().map(WaitingView::of),
            state: OrphanStateView::of(&orphan.state),
            tries: orphan.round.tries,
            waits: orphan.round.waits,
            attempts: log.total,
            attempt_log: attempts.map(OrphanAttemptView::of).collect(),
        }
    }
}

fn cause(cause: OrphanCause) -> &'static str {
    match cause {
        OrphanCause::FailedCreate => "failed_create",
        OrphanCause::DoubtfulCreate => "doubtful_create",
        OrphanCause::UnusableBinding => "unusable_binding",
        OrphanCause::Abandoned => "abandoned",
        OrphanCause::LateCreate => "late_create",
    }
}

impl WaitingView {
    fn of(waiting: &WaitingResource) -> Self {
        let (kind, namespace, uid) = match waiting {
            WaitingResource::Instance { namespace, uid } => ("instance", namespace, uid),
            WaitingResource::Binding { namespace, uid, .. } => ("binding", namespace, uid),
        };
        Self {
            kind,
            namespace: namespace.clone(),
            uid: *uid,
        }
    }
}

impl OrphanStateView {
    fn of(state: &OrphanState) -> Self {
        let view = Self {
            state: state.word(),
            ..Self::default()
        };
        match state {
            OrphanState::Due { at } => Self {
                next: Some(*at),
                ..view
            },
            OrphanState::InFlight { sent, stage } => Self {
                since: Some(*sent),
                stage: Some(match stage {
                    DeleteStage::Sending => "sending",
                    DeleteStage::Unknown { .. } => "unknown",
                    DeleteStage::Polling { .. } => "polling",
                }),
                ..view
            },
            OrphanState::NeedsOperator { since, reason } => Self {
                since: Some(*since),
                reason: Some(operator_reason(*reason).to_owned()),
                ..view
            },
            OrphanState::Deferred => view,
            OrphanState::Done { at } => Self {
                since: Some(*at),
                ..view
            },
            OrphanState::Forgotten { at, by, reason } => Self {
                since: Some(*at),
                reason: Some(reason.as_str().to_owned()),
                forgotten_by: Some(AuthorView::of(by)),
                ..view
            },
        }
    }
}

fn operator_reason(reason: OperatorReason) -> &'static str {
    match reason {
        OperatorReason::TriesUsedUp => "tries_used_up",
        OperatorReason::AlwaysBusy => "always_busy",
        OperatorReason::BrokerGone => "broker_gone",
    }
}

impl OrphanAttemptView {
    fn of(attempt: &OrphanAttempt) -> Self {
        Self {
            number: attempt.number,
            times: attempt.times,
            ended: attempt.ended,
            outcome: match attempt.outcome {
                AttemptOutcome::Deleted => "deleted",
                AttemptOutcome::TooEarly => "too_early",
                AttemptOutcome::Rejected => "rejected",
                AttemptOutcome::BrokerError => "broker_error",
                AttemptOutcome::StillThere => "still_there",
                AttemptOutcome::NoProof => "no_proof",
                AttemptOutcome::Unknown => "unknown",
                AttemptOutcome::Interrupted => "interrupted",
                AttemptOutcome::Later => "later",
                AttemptOutcome::NotSent => "not_sent",
                AttemptOutcome::Unauthorized => "unauthorized",
            },
            broker: attempt.statement.as_ref().map(BrokerWords::of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OrphanId;
    use crate::lifecycle::orphan::OrphanKey;
    use uuid::Uuid;

    #[test]
    fn an_id_is_read_as_it_is_written_and_fits_into_a_path() {
        for binding in [None, Some("b.c:d/e")] {
            let id = OrphanId(OrphanKey {
                broker: Uuid::from_u128(7),
                instance: "a/b é".try_into().expect("an id"),
                binding: binding.map(|it| it.try_into().expect("an id")),
            });
            let text = id.to_string();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            assert!(text.chars().all(is_plain), "{text}");
            assert_eq!(OrphanId::parse(&text), Some(id));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let broker = Uuid::nil();
        for text in [
            String::new(),
            broker.to_string(),
            format!("{broker}."),
            format!("{broker}.!"),
            format!("{broker}.YQ.YQ.YQ"),
            "x.YQ".to_owned(),
        ] {
            assert_eq!(OrphanId::parse(&text), None, "{text}");
        }
    }
}
