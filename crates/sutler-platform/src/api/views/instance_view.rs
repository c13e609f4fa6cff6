//! A service instance as it is shown: what the broker confirmed, what it will be, and every change between the two.

use super::catalog_names::CatalogNames;
use super::intent_view::IntentDocument;
use super::spec_view::{SpecView, shown_path};
use super::{AbandonmentView, AuthorView, ConditionView, TombstoneView, http_link};
use crate::catalog::KnownCatalog;
use crate::lifecycle::breaker::{OpenCause, SendingStop, StopReason};
use crate::lifecycle::instance::{Conditions, Deletion, Exposure, Instance, Origin, Source};
use crate::lifecycle::intent::IntentNumber;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use sutler_osb::{InstanceId, InstanceMetadata};
use uuid::Uuid;

/// What belongs to an instance besides its document.
#[derive(Clone, Copy, Default)]
pub(crate) struct InstanceContext<'a> {
    /// Name of the broker, if it is registered.
    pub broker: Option<&'a str>,
    /// Its catalog.
    pub catalog: Option<&'a KnownCatalog>,
    /// Why nothing is sent to it, if nothing is.
    pub stop: Option<&'a SendingStop>,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceView {
    name: String,
    namespace: String,
    uid: Uuid,
    broker: NamedId,
    class: NamedId,
    external_id: InstanceId,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    former_external_ids: Vec<InstanceId>,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceView>,
    phase: &'static str,
    conditions: InstanceConditions,
    usable: bool,
    protected: bool,
    generation: u64,
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<IntentNumber>,
    /// What the broker acknowledged.
    confirmed: Option<ConfirmedView>,
    /// What is shown: the confirmed specification with the pending intents that count.
    spec: SpecView,
    /// The last intent behind each path that differs from what is confirmed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    changed_by: BTreeMap<String, IntentNumber>,
    /// Updates that may have been applied or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uncertain: Vec<IntentNumber>,
    pending: Vec<IntentDocument>,
    /// Newest first.
    ended: Vec<IntentDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion: Option<DeletionView>,
    /// Why nothing is sent to the broker, while something waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for_broker: Option<StopView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tombstone: Option<TombstoneView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<AbandonmentView>,
}

/// Something with a name for people and an id.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct NamedId {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct InstanceConditions {
    ready: ConditionView,
    synced: ConditionView,
    stalled: ConditionView,
    deleting: ConditionView,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfirmedView {
    spec: SpecView,
    #[serde(skip_serializing_if = "Option::is_none")]
    dashboard_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<InstanceMetadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SourceView {
    object: String,
    uid: String,
    generation: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeletionView {
    intent: IntentNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    cascade_by: Option<AuthorView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undelete_by: Option<AuthorView>,
}

/// Why nothing is sent to a broker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct StopView {
    since: Timestamp,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<AuthorView>,
}

impl StopView {
    pub(super) fn of(stop: &SendingStop) -> Self {
        let (reason, by) = match &stop.reason {
            StopReason::Open(OpenCause::Silence) => ("silence", None),
            StopReason::Open(OpenCause::Unauthorized) => ("unauthorized", None),
            StopReason::Paused(by) => ("paused", Some(AuthorView::of(by))),
        };
        Self {
            since: stop.since,
            reason,
            by,
        }
    }
}

impl InstanceView {
    pub(crate) fn of(instance: &Instance, context: InstanceContext<'_>) -> Self {
        let names = CatalogNames::of(context.catalog, &instance.service);
        let projection = instance.projection();
        let changed = projection.authors_of.iter();
        let changed = changed.map(|(path, number)| (shown_path(path), *number));
        let pending = instance.pending.iter();
        let ended = instance.ended.iter().rev();
        let is_waiting = !instance.pending.is_empty();
        Self {
            name: projection.spec.name.clone(),
            namespace: instance.namespace.clone(),
            uid: instance.uid,
            broker: NamedId {
                id: instance.broker.to_string(),
                name: context.broker.map(str::to_owned),
            },
            class: NamedId {
                id: instance.service.as_str().to_owned(),
                name: names.known_class().map(str::to_owned),
            },
            external_id: instance.osb_id.clone(),
            former_external_ids: instance.former_ids.clone(),
            origin: match instance.origin {
                Origin::Created => "created",
                Origin::Adopted => "adopted",
            },
            source: instance.source.as_ref().map(SourceView::of),
            phase: instance.phase().word(),
            conditions: InstanceConditions::of(&instance.conditions()),
            usable: instance.usable,
            protected: instance.protected,
            generation: instance.generation,
            revision: instance.revision,
            applied: instance.applied,
            confirmed: ConfirmedView::of(instance, names),
            spec: SpecView::of(&projection.spec, names),
            changed_by: changed.collect(),
            uncertain: match &instance.exposure {
                Exposure::Uncertain(numbers) => numbers.clone(),
                Exposure::Nothing
                | Exposure::MayExist
                | Exposure::Confirmed
                | Exposure::OnLedger => Vec::new(),
            },
            pending: pending
                .map(|it| IntentDocument::of_instance(it, names))
                .collect(),
            ended: ended
                .map(|it| IntentDocument::of_ended_instance(it, names))
                .collect(),
            deletion: instance.deletion.as_ref().map(DeletionView::of),
            waits_for_broker: context.stop.filter(|_| is_waiting).map(StopView::of),
            tombstone: instance.tombstone.as_ref().map(TombstoneView::of),
            abandoned: instance.abandoned.as_ref().map(AbandonmentView::of),
        }
    }
}

impl InstanceConditions {
    fn of(conditions: &Conditions) -> Self {
        Self {
            ready: ConditionView::of(&conditions.ready),
            synced: ConditionView::of(&conditions.synced),
            stalled: ConditionView::of(&conditions.stalled),
            deleting: ConditionView::of(&conditions.deleting),
        }
    }
}

impl ConfirmedView {
    fn of(instance: &Instance, names: CatalogNames<'_>) -> Option<Self> {
        let confirmed = instance.confirmed()?;
        let dashboard = http_link(confirmed.dashboard_url.as_deref());
        Some(Self {
            spec: SpecView::of(&confirmed.spec, names),
            dashboard_url: dashboard.map(str::to_owned),
            metadata: confirmed.metadata.clone(),
        })
    }
}

impl SourceView {
    fn of(source: &Source) -> Self {
        Self {
            object: source.object.clone(),
            uid: source.uid.clone(),
            generation: source.generation,
        }
    }
}

impl DeletionView {
    fn of(deletion: &Deletion) -> Self {
        Self {
            intent: deletion.number,
            cascade_by: deletion.cascade.as_ref().map(AuthorView::of),
            undelete_by: deletion.undelete.as_ref().map(AuthorView::of),
        }
    }
}
