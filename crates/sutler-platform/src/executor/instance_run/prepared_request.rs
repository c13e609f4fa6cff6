//! What the turn of an intent needs before it is decided: its request, or why there is none.
//!
//! A request is built once and kept with the operation: a repeated attempt sends the same bytes. Secrets are read here, at
//! the first attempt, and nowhere else.

use super::answer::plan_ids;
use super::{InstanceRun, bindings};
use crate::broker_request::{
    ContextUpdates, InstanceValues, ResentField, UpdateKind, UpdateOutcome, UpdateRequest,
    provision_body, update_body,
};
use crate::brokers::BrokerView;
use crate::executor::request_material::{Obstacle, RequestMaterial, request_builder};
use crate::executor::run_error::RunError;
use crate::lifecycle::instance::{Exposure, Instance, IntentChange, PendingIntent, PreparedTurn};
use crate::lifecycle::intent::{IntentCause, IntentState};
use crate::records::PreparedRequest;
use crate::spec::{Spec, SpecPatch};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use sutler_client::RequestBuilder;
use sutler_client::wire::Request;
use sutler_osb::NonEmptyText;

/// A request that can be sent, or that there is nothing to send.
enum BuiltRequest {
    Request(Request),
    NothingToDo,
}

impl InstanceRun<'_> {
    /// What is known when the operation has its turn.
    pub(super) async fn prepare(
        &mut self,
        instance: &Instance,
        intent: &PendingIntent,
        view: &BrokerView,
    ) -> Result<PreparedTurn, RunError> {
        match (&intent.state, &intent.change) {
            (IntentState::Sending { .. }, _) => return Ok(PreparedTurn::TakenOver),
            (IntentState::Queued { .. }, IntentChange::Delete) => {
                let found = bindings::find(self.context, instance, intent).await?;
                if let Some(found) = found {
                    return Ok(PreparedTurn::Bindings(found));
                }
            }
            (IntentState::Queued { .. }, IntentChange::Local(_)) => return Ok(PreparedTurn::Ready),
            (IntentState::Queued { .. }, _) => {}
            (
                IntentState::OnHold(_)
                | IntentState::Suspended
                | IntentState::Unknown { .. }
                | IntentState::Polling { .. },
                _,
            ) => return Ok(PreparedTurn::Ready),
        }
        if self.own.progress.prepared.is_some() {
            return Ok(PreparedTurn::Ready);
        }
        let built = match self.build(instance, intent, view).await? {
            Ok(BuiltRequest::Request(request)) => request,
            Ok(BuiltRequest::NothingToDo) => return Ok(PreparedTurn::NothingToDo),
            Err(Obstacle::Unresolved(sentence)) => return Ok(PreparedTurn::Unresolved(sentence)),
            Err(Obstacle::Unfit(sentences)) => return Ok(PreparedTurn::Unfit(sentences)),
        };
        match PreparedRequest::of(&built) {
            Ok(prepared) => {
                self.own.progress.digest = Some(prepared.digest());
                self.own.progress.prepared = Some(prepared);
                Ok(PreparedTurn::Ready)
            }
            Err(error) => Ok(PreparedTurn::Unfit(vec![error.to_string()])),
        }
    }

    async fn build(
        &mut self,
        instance: &Instance,
        intent: &PendingIntent,
        view: &BrokerView,
    ) -> Result<Result<BuiltRequest, Obstacle>, RunError> {
        let builder = request_builder(intent.operation, &intent.author, view);
        if intent.change.is_delete() {
            let request = builder.deprovision(&instance.osb_id, &plan_ids(instance));
            return Ok(Ok(BuiltRequest::Request(request)));
        }
        let material = match self.material(instance, intent).await? {
            Ok(material) => material,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        self.read_secrets = material.read_secrets();
        Ok(match &intent.change {
            IntentChange::Update(patch) => {
                build_update(instance, (intent, patch), view, &material, &builder)
            }
            IntentChange::Provision | IntentChange::Local(_) | IntentChange::Delete => {
                build_provision(instance, view, &material, &builder)
            }
        })
    }

    async fn material(
        &self,
        instance: &Instance,
        intent: &PendingIntent,
    ) -> Result<Result<RequestMaterial, Obstacle>, RunError> {
        let spec = instance.basis.spec();
        let changed = intent.change.patch().map(|patch| spec.apply(patch));
        let specs = [Some(spec), changed.as_ref()];
        let sources = specs
            .into_iter()
            .flatten()
            .flat_map(|it| &it.parameter_sources);
        RequestMaterial::read(self.context, &instance.namespace, sources).await
    }
}

fn build_provision(
    instance: &Instance,
    view: &BrokerView,
    material: &RequestMaterial,
    builder: &RequestBuilder,
) -> Result<BuiltRequest, Obstacle> {
    let spec = instance.basis.spec();
    let resolved = resolve(spec, material)?;
    if let Some(schemas) = view.catalog.schemas(&instance.service, &spec.plan) {
        schemas
            .check_provision(&resolved)
            .map_err(Obstacle::unfit)?;
    }
    let name = text(&spec.name)?;
    let namespace = material.namespace(view)?;
    let values = values(spec, &resolved, &name);
    let body = provision_body(&instance.service, &values, &namespace);
    let request = builder.provision(&instance.osb_id, &body);
    request.map(BuiltRequest::Request).map_err(Obstacle::unfit)
}

fn build_update(
    instance: &Instance,
    (intent, patch): (&PendingIntent, &SpecPatch),
    view: &BrokerView,
    material: &RequestMaterial,
    builder: &RequestBuilder,
) -> Result<BuiltRequest, Obstacle> {
    let before = instance.basis.spec();
    let after = before.apply(patch);
    let resolved = resolve(&after, material)?;
    // What the broker has of secrets that are gone is not known: it is compared without them.
    let resolved_before =
        resolve(before, material).unwrap_or_else(|_| before.parameters.as_map().clone());
    if let Some(schemas) = view.catalog.schemas(&instance.service, &after.plan)
        && patch.changes_parameters()
    {
        schemas.check_update(&resolved).map_err(Obstacle::unfit)?;
    }
    let (name_before, name_after) = (text(&before.name)?, text(&after.name)?);
    let namespace = material.namespace(view)?;
    let plan = view.catalog.plan(&instance.service, &before.plan);
    let update = UpdateRequest {
        service_id: &instance.service,
        context_updates: match &plan {
            Some(plan) => ContextUpdates::of(plan),
            None => ContextUpdates::NotAllowed,
        },
        update_parameters: view.registration.options.update_parameters,
        kind: match patch.is_empty() && intent.cause != IntentCause::SecretChange {
            true => UpdateKind::Touch,
            false => UpdateKind::Change,
        },
        before: values(before, &resolved_before, &name_before),
        after: values(&after, &resolved, &name_after),
        resent: &resent(instance, intent, &after, &resolved),
        namespace,
    };
    match update_body(&update) {
        UpdateOutcome::NothingToDo => Ok(BuiltRequest::NothingToDo),
        UpdateOutcome::Send(body) => {
            let request = builder.update(&instance.osb_id, &body);
            request.map(BuiltRequest::Request).map_err(Obstacle::unfit)
        }
    }
}

/// What is sent though it may not differ: what an uncertain update touched, and what came from secrets that changed.
fn resent(
    instance: &Instance,
    intent: &PendingIntent,
    after: &Spec,
    resolved: &Map<String, Value>,
) -> BTreeSet<ResentField> {
    let mut resent = BTreeSet::new();
    if let Exposure::Uncertain(numbers) = &instance.exposure {
        let ended = instance.ended.iter();
        let touched = ended.filter(|it| numbers.contains(&it.number));
        for patch in touched.filter_map(|it| it.change.patch()) {
            resent.extend(fields_of(patch));
        }
    }
    let secrets_may_differ = match intent.cause {
        IntentCause::SecretChange => true,
        // The intent that it repeats may have been caused by the change of a secret.
        IntentCause::Retry(_) | IntentCause::Resume(_) => intent
            .change
            .patch()
            .is_some_and(|it| it.is_empty() || it.parameter_sources.is_some()),
        IntentCause::User
        | IntentCause::Rollback(_)
        | IntentCause::AutoRetry(_)
        | IntentCause::Cascade => intent
            .change
            .patch()
            .is_some_and(|it| it.parameter_sources.is_some()),
    };
    if secrets_may_differ {
        let inline = after.parameters.as_map();
        let of_secrets = resolved.keys().filter(|key| !inline.contains_key(*key));
        resent.extend(of_secrets.cloned().map(ResentField::Parameter));
    }
    resent
}

fn fields_of(patch: &SpecPatch) -> Vec<ResentField> {
    let mut fields = Vec::new();
    if patch.changes_plan() {
        fields.push(ResentField::Plan);
    }
    if patch.maintenance_version.is_some() {
        fields.push(ResentField::MaintenanceVersion);
    }
    let keys = patch.parameters.as_map().keys();
    fields.extend(keys.cloned().map(ResentField::Parameter));
    fields
}

fn resolve(spec: &Spec, material: &RequestMaterial) -> Result<Map<String, Value>, Obstacle> {
    material.resolve(spec.parameters.as_map(), &spec.parameter_sources)
}

fn values<'a>(
    spec: &'a Spec,
    parameters: &'a Map<String, Value>,
    name: &'a NonEmptyText,
) -> InstanceValues<'a> {
    InstanceValues {
        plan_id: &spec.plan,
        maintenance_version: spec.maintenance_version.as_deref(),
        parameters,
        name,
        annotations: &spec.annotations,
    }
}

fn text(name: &str) -> Result<NonEmptyText, Obstacle> {
    NonEmptyText::try_from(name.to_owned()).map_err(Obstacle::unfit)
}
