//! Bodies of provisions and updates, and the ids of deprovisions and polls.
//!
//! Keeps P-033 (context and organization ids on provision, none in `previous_values`), P-053 and P-120 (ids of polls and
//! deletes), P-070, P-071, P-091 (context alone only where it is allowed), P-092, P-093, D-14. Not here: which parameters
//! change (`parameter_difference.rs`), whether an update is allowed at all (`preflight`), and bytes (`sutler-client`).

use super::parameter_difference::{ResentField, UpdateParameters, parameter_difference};
use super::profile::NamespaceContext;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use sutler_client::PlanIds;
use sutler_osb::{
    Context, MaintenanceInfo, NonEmptyText, Parameters, PinnedPlan, PlanId, PreviousValues,
    ProvisionBody, ServiceId, UpdateBody,
};

/// What a broker knows of an instance, before or after an intent. Not `Debug`: parameters hold secrets.
#[derive(Clone, Copy)]
pub struct InstanceValues<'a> {
    /// The plan.
    pub plan_id: &'a PlanId,
    /// The maintenance version, if the plan has one.
    pub maintenance_version: Option<&'a str>,
    /// The parameters, with those of secrets.
    pub parameters: &'a Map<String, Value>,
    /// The name.
    pub name: &'a NonEmptyText,
    /// The annotations.
    pub annotations: &'a BTreeMap<String, String>,
}

/// The body of a provision. Parameters are left out if there are none.
pub fn provision_body(
    service_id: &ServiceId,
    values: &InstanceValues<'_>,
    namespace: &NamespaceContext<'_>,
) -> ProvisionBody {
    let parameters = values.parameters;
    ProvisionBody {
        service_id: service_id.clone(),
        plan_id: values.plan_id.clone(),
        organization_guid: namespace.organization_guid().clone(),
        space_guid: namespace.space_guid().clone(),
        context: Some(namespace.of_instance(values.name, values.annotations)),
        parameters: (!parameters.is_empty()).then(|| Parameters(parameters.clone())),
        maintenance_info: values.maintenance_version.map(MaintenanceInfo::of_version),
    }
}

/// Why an update is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateKind {
    /// To change something.
    Change,
    /// To make the broker look at the instance; sent though nothing changes.
    Touch,
}

/// Whether an offering accepts updates that contain nothing but the context (P-091).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextUpdates {
    /// It does.
    Allowed,
    /// It does not.
    NotAllowed,
}

impl ContextUpdates {
    /// What the offering of a plan says.
    pub fn of(plan: &PinnedPlan) -> Self {
        match plan.allow_context_updates {
            true => Self::Allowed,
            false => Self::NotAllowed,
        }
    }
}

/// An update of one intent.
#[derive(Clone, Copy)]
pub struct UpdateRequest<'a> {
    /// The offering.
    pub service_id: &'a ServiceId,
    /// Whether the offering accepts the context alone.
    pub context_updates: ContextUpdates,
    /// How the broker reads parameters.
    pub update_parameters: UpdateParameters,
    /// Why it is sent.
    pub kind: UpdateKind,
    /// The confirmed state.
    pub before: InstanceValues<'a>,
    /// The confirmed state with the intent.
    pub after: InstanceValues<'a>,
    /// What is sent though it does not change.
    pub resent: &'a BTreeSet<ResentField>,
    /// The namespace now.
    pub namespace: NamespaceContext<'a>,
}

/// Result of building an update.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateOutcome {
    /// This body is sent.
    Send(Box<UpdateBody>),
    /// The broker is not asked: it has everything, or what changes does not concern it.
    NothingToDo,
}

/// The body of an update: only what this intent changes, and always the current context.
///
/// If nothing but the context changes, the update is sent only where the offering allows that. A touch is always sent,
/// without the context where the offering does not allow it alone.
pub fn update_body(update: &UpdateRequest<'_>) -> UpdateOutcome {
    let (before, after) = (&update.before, &update.after);
    let plan_id = changed_plan(update);
    let maintenance_version = changed_maintenance_version(update);
    let parameters = parameter_difference(
        update.update_parameters,
        before.parameters,
        after.parameters,
        update.resent,
    );
    let changes_instance =
        plan_id.is_some() || maintenance_version.is_some() || parameters.is_some();
    let context = match due_context(update, changes_instance) {
        DueContext::Sent(context) => Some(context),
        DueContext::LeftOut => None,
        DueContext::NothingToDo => return UpdateOutcome::NothingToDo,
    };
    UpdateOutcome::Send(Box::new(UpdateBody {
        service_id: update.service_id.clone(),
        plan_id: plan_id.cloned(),
        context,
        parameters,
        previous_values: Some(PreviousValues {
            plan_id: Some(before.plan_id.clone()),
            maintenance_info: before.maintenance_version.map(MaintenanceInfo::of_version),
            ..PreviousValues::default()
        }),
        maintenance_info: maintenance_version.map(MaintenanceInfo::of_version),
    }))
}

/// The context of an update, or that there is nothing to send it with.
enum DueContext {
    Sent(Context),
    LeftOut,
    NothingToDo,
}

fn due_context(update: &UpdateRequest<'_>, changes_instance: bool) -> DueContext {
    let context_of = |values: &InstanceValues<'_>| {
        let namespace = &update.namespace;
        namespace.of_instance(values.name, values.annotations)
    };
    let context = context_of(&update.after);
    if changes_instance {
        return DueContext::Sent(context);
    }
    match (update.kind, update.context_updates) {
        (UpdateKind::Touch, ContextUpdates::Allowed) => DueContext::Sent(context),
        (UpdateKind::Touch, ContextUpdates::NotAllowed) => DueContext::LeftOut,
        (UpdateKind::Change, ContextUpdates::Allowed) if context != context_of(&update.before) => {
            DueContext::Sent(context)
        }
        (UpdateKind::Change, ContextUpdates::Allowed | ContextUpdates::NotAllowed) => {
            DueContext::NothingToDo
        }
    }
}

fn changed_plan<'a>(update: &UpdateRequest<'a>) -> Option<&'a PlanId> {
    let is_due =
        update.after.plan_id != update.before.plan_id || update.resent.contains(&ResentField::Plan);
    is_due.then_some(update.after.plan_id)
}

/// The version to upgrade to. A version cannot be removed, so `None` after the intent changes nothing.
fn changed_maintenance_version<'a>(update: &UpdateRequest<'a>) -> Option<&'a str> {
    let is_due = update.after.maintenance_version != update.before.maintenance_version
        || update.resent.contains(&ResentField::MaintenanceVersion);
    update.after.maintenance_version.filter(|_| is_due)
}

/// Ids of a deprovision (P-120) and of the polls of any operation on an instance (P-053): those that are confirmed, which
/// are those before an update, or those of the attempted create if nothing is confirmed.
pub fn instance_ids(confirmed: Option<&PlanIds>, attempted: &PlanIds) -> PlanIds {
    confirmed.unwrap_or(attempted).clone()
}
