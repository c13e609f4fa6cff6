//! Instances: created, adopted, listed, shown, replaced, changed, deleted. Orders about them are in
//! `instance_orders.rs`.

use crate::api::answer::{HandlerAnswer, shown_instance};
use crate::api::api_call::ApiCall;
use crate::api::bodies::{InstanceBody, InstancePatchBody};
use crate::api::listing;
use crate::api::problem::Problem;
use crate::api::problem_word::ProblemWord;
use crate::api::request_inputs::{Input, RevisionCondition};
use crate::api::resource_views::instance_document;
use crate::api::views::ListPage;
use crate::commands::{ChangeOptions, CommandError, InstanceOutcome, WantedInstance};
use crate::lifecycle::instance::{Instance, InstanceEventError};
use crate::records::{
    BROKER_TERM, INSTANCE, NAME_TERM, NamespaceRecord, ResourceName, STATE_TERM, scoped_value,
};
use axum::http::StatusCode;
use sutler_journal::List;
use uuid::Uuid;

/// Phases that a list can select.
const PHASES: [&str; 5] = ["new", "provisioning", "live", "deleting", "gone"];

pub(in crate::api) async fn create(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.namespace()?;
    let (wanted, options) = whole(call, None)?;
    let create = call.platform.create_instance(&namespace, &wanted, &options);
    answer(call, create.await?, StatusCode::CREATED).await
}

pub(in crate::api) async fn adopt(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.namespace()?;
    let (wanted, options) = whole(call, None)?;
    let outcome = call
        .platform
        .adopt_instance(&namespace, &wanted, &options)
        .await?;
    if options.dry_run {
        return shown_instance(call.platform, &outcome.instance, StatusCode::OK).await;
    }
    shown_instance(call.platform, &outcome.instance, StatusCode::CREATED).await
}

pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.namespace()?;
    let record = call.platform.namespace_of(&namespace).await?;
    let records = call.platform.records();
    let state = call.inputs.filter(Input::State);
    let broker = call.inputs.filter(Input::Broker);
    let broker = match broker {
        None => None,
        Some(text) => Some(broker_uid(call, &namespace, text).await?),
    };
    let list = match (state, broker) {
        (Some(state), _) => {
            let value = scoped_value(namespace.as_str(), phase(state)?);
            listing::with_value(records, INSTANCE, STATE_TERM, &value)
        }
        (None, Some(broker)) => {
            let value = broker.to_string().into_bytes();
            listing::with_value(records, INSTANCE, BROKER_TERM, &value)
        }
        (None, None) => listing::of_namespace(records, INSTANCE, NAME_TERM, namespace.as_str()),
    };
    let found = page(call, &list, (&namespace, &record), broker).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for instance in &found.items {
        items.push(instance_document(call.platform, instance).await?);
    }
    let next = found.next;
    Ok(HandlerAnswer::json(
        StatusCode::OK,
        &ListPage { items, next },
    ))
}

async fn page(
    call: &ApiCall<'_>,
    list: &List,
    (namespace, record): (&ResourceName, &NamespaceRecord),
    broker: Option<Uuid>,
) -> Result<ListPage<Instance>, Problem> {
    let lists_gone = call.inputs.filter(Input::State) == Some("gone");
    let show = |_: &_, instance: &Instance| {
        let passes = instance.namespace == namespace.as_str()
            && broker.is_none_or(|broker| broker == instance.broker)
            && (lists_gone || instance.tombstone.is_none())
            && record.owns(instance.tombstone.as_ref());
        passes.then(|| instance.clone())
    };
    listing::page(call.platform.records(), list, call.inputs, show).await
}

fn phase(word: &str) -> Result<&str, Problem> {
    match PHASES.contains(&word) {
        true => Ok(word),
        false => Err(Problem::invalid(format!(
            "`state` must be one of {}.",
            PHASES.join(", ")
        ))),
    }
}

/// The broker that a filter names: by uid, or by its name in the namespace or for all.
async fn broker_uid(
    call: &ApiCall<'_>,
    namespace: &ResourceName,
    text: &str,
) -> Result<Uuid, Problem> {
    if let Ok(uid) = Uuid::try_parse(text) {
        return Ok(uid);
    }
    let none = || Problem::no_such("broker", text);
    let name = ResourceName::try_from(text).map_err(|_| none())?;
    for scope in [Some(namespace), None] {
        let found = super::brokers::find(call.platform, scope, &name).await?;
        if let Some(registration) = found {
            return Ok(registration.uid);
        }
    }
    Err(none())
}

pub(in crate::api) async fn show(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let instance = call
        .platform
        .instance(&call.namespace()?, &call.name()?)
        .await?;
    shown_instance(call.platform, &instance, StatusCode::OK).await
}

/// Replaces an instance, or creates it if there is none: the request says which of both it wants.
pub(in crate::api) async fn put(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let (wanted, options) = whole(call, Some(&name))?;
    match call.inputs.condition {
        Some(RevisionCondition::Absent) => {
            let outcome = call
                .platform
                .create_instance(&namespace, &wanted, &options)
                .await;
            // The condition says that there must be none.
            let exists = CommandError::Instance(InstanceEventError::AlreadyExists);
            match outcome {
                Ok(outcome) => answer(call, outcome, StatusCode::CREATED).await,
                Err(error) if error.to_string() == exists.to_string() => Err(Problem::new(
                    ProblemWord::RevisionChanged,
                    "An instance of this name exists.",
                )),
                Err(error) => Err(error.into()),
            }
        }
        Some(RevisionCondition::Exactly(_) | RevisionCondition::Any) => {
            let replace = call
                .platform
                .replace_instance(&namespace, &name, &wanted, &options);
            answer(call, replace.await?, StatusCode::OK).await
        }
        None => Err(Problem::new(
            ProblemWord::PreconditionRequired,
            "Send If-Match with the ETag of what you read, or If-None-Match: * to create it.",
        )),
    }
}

pub(in crate::api) async fn patch(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let mut body: InstancePatchBody = call.merge_patch()?;
    let mut options = call.options();
    options.on_failure = body.on_failure.into();
    options.source = call.source(body.source.take())?;
    let patch = body.patch();
    let change = call
        .platform
        .patch_instance(&namespace, &name, &patch, &options);
    answer(call, change.await?, StatusCode::OK).await
}

pub(in crate::api) async fn delete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let cascade = call.inputs.cascade;
    let outcome = call
        .platform
        .delete_instance(&namespace, &name, cascade, call.author)
        .await?;
    HandlerAnswer::of_instance(call.platform, outcome, StatusCode::OK).await
}

/// A whole instance from the body, and the conditions. `name`: from the path, where it has one.
fn whole(
    call: &ApiCall<'_>,
    name: Option<&ResourceName>,
) -> Result<(WantedInstance, ChangeOptions), Problem> {
    let mut body: InstanceBody = call.json()?;
    let name = match name {
        Some(name) => {
            body.check_name(name)?;
            name.clone()
        }
        None => body.required_name()?.clone(),
    };
    let mut options = call.options();
    options.on_failure = body.on_failure.into();
    options.source = call.source(body.source.take())?;
    Ok((body.wanted(name), options))
}

/// What a change led to. One that was only tried shows the instance as it would be.
pub(super) async fn answer(
    call: &ApiCall<'_>,
    outcome: InstanceOutcome,
    success: StatusCode,
) -> Result<HandlerAnswer, Problem> {
    if call.inputs.dry_run {
        let document = instance_document(call.platform, &outcome.instance).await?;
        return Ok(HandlerAnswer::json(StatusCode::OK, &document));
    }
    HandlerAnswer::of_instance(call.platform, outcome, success).await
}
