//! A registered broker as it is shown: how it is registered, whether anything is sent to it, its last sync.
//!
//! Credentials are never shown; of certificates and keys, only whether there are any.

use super::instance_view::StopView;
use super::intent_view::BrokerWords;
use super::{AbandonmentView, AuthorView};
use crate::api::bodies::{BrokerLimitsBody, BrokerOptionsBody};
use crate::broker_request::Profile;
use crate::catalog::{AccessRules, BrokerScope, CatalogRestrictions, FaultOutcome, SyncFault};
use crate::lifecycle::breaker::Breaker;
use crate::records::{
    BrokerAuthentication, BrokerRegistration, BrokerState, BrokerTls, SyncStatus,
};
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

/// A broker.
#[derive(Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BrokerDocument {
    name: String,
    /// The namespace that it serves; absent if it serves all.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    uid: Uuid,
    url: String,
    auth: BrokerAuthView,
    tls: BrokerTlsView,
    profile: Profile,
    restrictions: CatalogRestrictions,
    access: AccessRules,
    limits: BrokerLimitsBody,
    options: BrokerOptionsBody,
    revision: u64,
    created: Timestamp,
    created_by: AuthorView,
    #[serde(skip_serializing_if = "Option::is_none")]
    deregistering_since: Option<Timestamp>,
    /// Who deregisters it with everything that it has, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<AbandonmentView>,
    breaker: BreakerView,
    sync: SyncView,
    /// When the broker said last that it takes one operation per instance at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    serialized_since: Option<Timestamp>,
}

/// The way to authenticate, without what is secret of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum BrokerAuthView {
    None,
    Basic {
        username: String,
    },
    Bearer {},
    #[serde(rename = "oauth2", rename_all = "camelCase")]
    ClientCredentials {
        token_url: String,
        client_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokerTlsView {
    has_ca: bool,
    has_client_identity: bool,
    insecure_skip_verify: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BreakerView {
    state: &'static str,
    #[serde(flatten)]
    stop: Option<StopView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_probes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_probe: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerWords>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncView {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    catalog_revision: u64,
    /// Whether a sync is requested and not done.
    requested: bool,
    faults: Vec<SyncFaultView>,
    /// Faults that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more_faults: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SyncFaultView {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    reason: String,
    rule: String,
    outcome: &'static str,
}

impl BrokerDocument {
    pub(crate) fn of(registration: &BrokerRegistration, state: &BrokerState) -> Self {
        Self {
            name: registration.name.as_str().to_owned(),
            namespace: match &registration.scope {
                BrokerScope::AllNamespaces => None,
                BrokerScope::Namespace(name) => Some(name.clone()),
            },
            uid: registration.uid,
            url: registration.url.clone(),
            auth: BrokerAuthView::of(&registration.authentication),
            tls: BrokerTlsView::of(&registration.tls),
            profile: registration.profile,
            restrictions: registration.restrictions.clone(),
            access: registration.access.clone(),
            limits: BrokerLimitsBody::of(&registration.limits),
            options: BrokerOptionsBody::of(&registration.options),
            revision: registration.revision,
            created: registration.created,
            created_by: AuthorView::of(&registration.created_by),
            deregistering_since: registration.deregistering,
            abandoned: state.abandonment.as_ref().map(AbandonmentView::of),
            breaker: BreakerView::of(&state.breaker),
            sync: SyncView::of(&state.sync, state.catalog_revision),
            serialized_since: state.serialization.map(|it| it.last_conflict),
        }
    }
}

impl BrokerAuthView {
    fn of(authentication: &BrokerAuthentication) -> Self {
        match authentication {
            BrokerAuthentication::None => Self::None,
            BrokerAuthentication::Basic { username, .. } => Self::Basic {
                username: username.clone(),
            },
            BrokerAuthentication::Bearer { .. } => Self::Bearer {},
            BrokerAuthentication::ClientCredentials {
                token_url,
                client_id,
                scope,
                ..
            } => Self::ClientCredentials {
                token_url: token_url.clone(),
                client_id: client_id.clone(),
                scope: scope.clone(),
            },
        }
    }
}

impl BrokerTlsView {
    fn of(tls: &BrokerTls) -> Self {
        Self {
            has_ca: tls.ca_pem.is_some(),
            has_client_identity: tls.client_pem.is_some(),
            insecure_skip_verify: tls.insecure_skip_verify,
        }
    }
}

impl BreakerView {
    fn of(breaker: &Breaker) -> Self {
        let open = match breaker {
            Breaker::Closed { .. } => None,
            Breaker::Open(open) => Some(open),
            Breaker::Paused { open, .. } => open.as_ref(),
        };
        Self {
            state: match breaker {
                Breaker::Closed { .. } => "closed",
                Breaker::Open(_) => "open",
                Breaker::Paused { .. } => "paused",
            },
            stop: breaker.stop().as_ref().map(StopView::of),
            failed_probes: open.map(|it| it.failed_probes),
            next_probe: open.map(|it| it.next_probe),
            broker: open.and_then(|it| it.last.as_ref()).map(BrokerWords::of),
        }
    }
}

impl SyncView {
    fn of(status: &SyncStatus, catalog_revision: u64) -> Self {
        Self {
            read_at: status.read_at,
            failure: status.failure.clone(),
            catalog_revision,
            requested: status.requested > status.served,
            faults: status.faults.listed.iter().map(SyncFaultView::of).collect(),
            more_faults: status.faults.omitted,
        }
    }
}

impl SyncFaultView {
    fn of(fault: &SyncFault) -> Self {
        Self {
            path: fault.path.clone(),
            item: fault.item.clone(),
            reason: fault.reason.clone(),
            rule: fault.rule.clone(),
            outcome: match fault.outcome {
                FaultOutcome::NotOffered => "not_offered",
                FaultOutcome::LastVersionStays => "last_version_stays",
            },
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
