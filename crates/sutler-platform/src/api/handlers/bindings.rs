//! Bindings: created, listed, shown, deleted, rotated, abandoned; and their credentials, for those who may read them.

use crate::api::answer::{HandlerAnswer, shown_binding};
use crate::api::api_call::ApiCall;
use crate::api::bodies::BindingBody;
use crate::api::listing;
use crate::api::problem::Problem;
use crate::api::problem_word::ProblemWord;
use crate::api::request_inputs::Input;
use crate::api::resource_views::binding_document;
use crate::api::views::ListPage;
use crate::credentials::delivered_credentials;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::intent::Abandonment;
use crate::records::{BINDING, INSTANCE_TERM, NAME_TERM, ResourceName, STATE_TERM, scoped_value};
use axum::http::StatusCode;
use sutler_journal::List;

/// Phases that a list can select.
const PHASES: [&str; 5] = ["new", "binding", "bound", "deleting", "gone"];

pub(in crate::api) async fn create(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.namespace()?;
    let wanted = call.json::<BindingBody>()?.wanted()?;
    let key = call.request_key();
    let key = key.as_ref();
    let outcome = call
        .platform
        .create_binding(&namespace, &wanted, call.author, key)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::CREATED).await
}

pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.namespace()?;
    let record = call.platform.namespace_of(&namespace).await?;
    let list = selected(call, &namespace).await?;
    let state = call.inputs.filter(Input::State);
    let show = |_: &_, binding: &Binding| {
        let is_selected = match state {
            Some(state) => binding.phase().word() == state,
            None => binding.tombstone.is_none(),
        };
        let is_own = record.owns(binding.tombstone.as_ref());
        let passes = binding.namespace == namespace.as_str() && is_selected && is_own;
        passes.then(|| binding.clone())
    };
    let found = listing::page(call.platform.records(), &list, call.inputs, show).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for binding in &found.items {
        items.push(binding_document(call.platform, binding).await?);
    }
    let next = found.next;
    Ok(HandlerAnswer::json(
        StatusCode::OK,
        &ListPage { items, next },
    ))
}

/// The index that selects most.
async fn selected(call: &ApiCall<'_>, namespace: &ResourceName) -> Result<List, Problem> {
    let records = call.platform.records();
    let state = call.inputs.filter(Input::State);
    if let Some(state) = state.filter(|state| !PHASES.contains(state)) {
        let phases = PHASES.join(", ");
        let detail = format!("`state` must be one of {phases}, not {state}.");
        return Err(Problem::invalid(detail));
    }
    if let Some(instance) = call.inputs.filter(Input::Instance) {
        let none = |_| Problem::no_such("instance", instance);
        let name = ResourceName::try_from(instance).map_err(none)?;
        let instance = call.platform.instance(namespace, &name).await?;
        let value = instance.uid.to_string().into_bytes();
        return Ok(listing::with_value(records, BINDING, INSTANCE_TERM, &value));
    }
    Ok(match state {
        Some(state) => {
            let value = scoped_value(namespace.as_str(), state);
            listing::with_value(records, BINDING, STATE_TERM, &value)
        }
        None => listing::of_namespace(records, BINDING, NAME_TERM, namespace.as_str()),
    })
}

pub(in crate::api) async fn show(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let binding = call.platform.binding(&namespace, &name).await?;
    shown_binding(call.platform, &binding, StatusCode::OK).await
}

pub(in crate::api) async fn delete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let outcome = call
        .platform
        .delete_binding(&namespace, &name, call.author)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn undelete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    call.order()?;
    let outcome = call
        .platform
        .undelete_binding(&namespace, &name, call.author)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn rotate(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    call.order()?;
    let key = call.request_key();
    let key = key.as_ref();
    let outcome = call
        .platform
        .rotate_binding(&namespace, &name, call.author, key)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn abandon(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let abandonment = Abandonment {
        by: call.author.clone(),
        reason: Some(call.order()?.required_reason()?.to_owned()),
    };
    let outcome = call
        .platform
        .abandon_binding(&namespace, &name, &abandonment)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

/// The credentials of the current generation, as the transforms deliver them.
pub(in crate::api) async fn credentials(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let binding = call.platform.binding(&namespace, &name).await?;
    let delivered = delivered_credentials(&binding)
        .map_err(|error| Problem::new(ProblemWord::WrongState, error.to_string()))?;
    Ok(HandlerAnswer::json(StatusCode::OK, &delivered))
}
