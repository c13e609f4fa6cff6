//! A service binding as it is shown: its generations and intents. Credentials are never part of it.

use super::instance_view::NamedId;
use super::intent_view::IntentDocument;
use super::{AbandonmentView, AuthorView, ConditionView, TombstoneView};
use crate::api::time_span::TimeSpan;
use crate::lifecycle::binding::{
    AddedValue, Binding, Conditions, Deletion, FailedRotations, Generation, GenerationPhase,
    RotationPolicy, TargetResource, Transform,
};
use crate::lifecycle::intent::IntentNumber;
use crate::spec::ParameterSource;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sutler_osb::BindingId;
use uuid::Uuid;

/// What belongs to a binding besides its document.
#[derive(Clone, Copy, Default)]
pub(crate) struct BindingContext<'a> {
    /// Name of the instance, if it is known.
    pub instance: Option<&'a str>,
}

/// A binding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BindingView {
    name: String,
    namespace: String,
    uid: Uuid,
    instance: NamedId,
    author: AuthorView,
    phase: &'static str,
    conditions: BindingConditions,
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters_from: Vec<ParameterSource>,
    target: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transforms: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<RotationView>,
    generations: Vec<GenerationView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_rotations: Option<FailedRotationsView>,
    generation: u64,
    pending: Vec<IntentDocument>,
    /// Newest first.
    ended: Vec<IntentDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion: Option<BindingDeletionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tombstone: Option<TombstoneView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<AbandonmentView>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct BindingConditions {
    ready: ConditionView,
    stalled: ConditionView,
    rotating: ConditionView,
    deleting: ConditionView,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct RotationView {
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<TimeSpan>,
    overlap: TimeSpan,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationView {
    external_id: BindingId,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_before: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailedRotationsView {
    count: u32,
    again_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BindingDeletionView {
    intent: IntentNumber,
    #[serde(skip_serializing_if = "Option::is_none")]
    undelete_by: Option<AuthorView>,
}

impl BindingView {
    pub(crate) fn of(binding: &Binding, context: BindingContext<'_>) -> Self {
        let (target, route) = match &binding.spec.target {
            TargetResource::Credentials => ("credentials", None),
            TargetResource::Application => ("application", None),
            TargetResource::Route(route) => ("route", Some(route.as_str().to_owned())),
        };
        let pending = binding.pending.iter();
        let ended = binding.ended.iter().rev();
        let generations = binding.generations.iter();
        Self {
            name: binding.name.clone(),
            namespace: binding.namespace.clone(),
            uid: binding.uid,
            instance: NamedId {
                id: binding.instance.to_string(),
                name: context.instance.map(str::to_owned),
            },
            author: AuthorView::of(&binding.author),
            phase: binding.phase().word(),
            conditions: BindingConditions::of(&binding.conditions()),
            parameters: binding.spec.parameters.as_map().clone(),
            parameters_from: binding.spec.parameter_sources.clone(),
            target,
            route,
            transforms: binding
                .transforms
                .as_slice()
                .iter()
                .map(transform)
                .collect(),
            rotation: binding.rotation.as_ref().map(RotationView::of),
            generations: generations
                .map(|it| GenerationView::of(binding, it))
                .collect(),
            failed_rotations: binding
                .failed_rotations
                .as_ref()
                .map(FailedRotationsView::of),
            generation: binding.accepted,
            pending: pending.map(IntentDocument::of_binding).collect(),
            ended: ended.map(IntentDocument::of_ended_binding).collect(),
            deletion: binding.deletion.as_ref().map(BindingDeletionView::of),
            tombstone: binding.tombstone.as_ref().map(TombstoneView::of),
            abandoned: binding.abandoned.as_ref().map(AbandonmentView::of),
        }
    }
}

/// A step of the delivery. A fixed value is not shown: it may be a secret.
fn transform(transform: &Transform) -> Value {
    match transform {
        Transform::Rename { from, to } => json!({"rename": {"from": from, "to": to}}),
        Transform::Remove(key) => json!({ "remove": key }),
        Transform::Add(added) => match &added.value {
            AddedValue::Fixed(_) => json!({"add": {"key": added.key}}),
            AddedValue::Copied(path) => {
                json!({"add": {"key": added.key, "jsonPath": path.as_str()}})
            }
        },
    }
}

impl BindingConditions {
    fn of(conditions: &Conditions) -> Self {
        Self {
            ready: ConditionView::of(&conditions.ready),
            stalled: ConditionView::of(&conditions.stalled),
            rotating: ConditionView::of(&conditions.rotating),
            deleting: ConditionView::of(&conditions.deleting),
        }
    }
}

impl RotationView {
    fn of(policy: &RotationPolicy) -> Self {
        Self {
            every: policy.every().map(TimeSpan),
            overlap: TimeSpan(policy.overlap()),
        }
    }
}

impl GenerationView {
    fn of(binding: &Binding, generation: &Generation) -> Self {
        let phase = match binding.generation_phase(&generation.osb_id) {
            Some(GenerationPhase::Current) => "current",
            Some(GenerationPhase::Retiring(_)) => "retiring",
            Some(GenerationPhase::Unbinding) => "unbinding",
            Some(GenerationPhase::Binding) | None => "binding",
        };
        let bound = generation.bound();
        Self {
            external_id: generation.osb_id.clone(),
            phase,
            bound_at: bound.map(|it| it.bound_at),
            expires_at: bound.and_then(|it| it.expires_at),
            renew_before: bound.and_then(|it| it.renew_before),
            retires_at: generation.retirement().map(|it| it.until),
        }
    }
}

impl FailedRotationsView {
    fn of(failed: &FailedRotations) -> Self {
        Self {
            count: failed.count,
            again_at: failed.again_at,
        }
    }
}

impl BindingDeletionView {
    fn of(deletion: &Deletion) -> Self {
        Self {
            intent: deletion.number,
            undelete_by: deletion.undelete.as_ref().map(AuthorView::of),
        }
    }
}
