//! Intents of instances and of bindings: listed, shown, cancelled, resumed, retried.

use super::instances::answer;
use crate::api::answer::{ChangedResource, HandlerAnswer};
use crate::api::api_call::ApiCall;
use crate::api::problem::Problem;
use crate::api::request_inputs::unknown_cursor;
use crate::api::resource_views::{intent_document, intents_before, of_journal};
use crate::api::views::ListPage;
use crate::author::Author;
use crate::lifecycle::intent::IntentNumber;
use axum::http::StatusCode;
use sutler_journal::OperationId;

pub(in crate::api) async fn list_of_instance(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    list(call, instance(call).await?).await
}

pub(in crate::api) async fn list_of_binding(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    list(call, binding(call).await?).await
}

pub(in crate::api) async fn show_of_instance(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    show(call, instance(call).await?).await
}

pub(in crate::api) async fn show_of_binding(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    show(call, binding(call).await?).await
}

async fn instance(call: &ApiCall<'_>) -> Result<ChangedResource, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let instance = call.platform.instance(&namespace, &name).await?;
    Ok(ChangedResource::Instance(Box::new(instance)))
}

async fn binding(call: &ApiCall<'_>) -> Result<ChangedResource, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let binding = call.platform.binding(&namespace, &name).await?;
    Ok(ChangedResource::Binding(Box::new(binding)))
}

/// Newest first; the cursor is the operation of the last one.
async fn list(call: &ApiCall<'_>, resource: ChangedResource) -> Result<HandlerAnswer, Problem> {
    let before = call.inputs.after();
    let before = before
        .map(|text| OperationId::parse(text).ok_or_else(unknown_cursor))
        .transpose()?;
    let limit = call.inputs.limit;
    let found = intents_before(call.platform, &resource, before, limit).await?;
    let last = found.last().map(|it| it.operation.to_string());
    let next = last.filter(|_| found.len() >= limit);
    let mut items = Vec::with_capacity(found.len());
    for intent in &found {
        items.push(of_journal(call.platform, &resource, intent).await?);
    }
    Ok(HandlerAnswer::json(
        StatusCode::OK,
        &ListPage { items, next },
    ))
}

async fn show(call: &ApiCall<'_>, resource: ChangedResource) -> Result<HandlerAnswer, Problem> {
    let number = call.number()?;
    let document = intent_document(call.platform, &resource, number).await?;
    Ok(HandlerAnswer::json(StatusCode::OK, &document))
}

pub(in crate::api) async fn cancel_of_instance(
    call: &ApiCall<'_>,
) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = own_intent(call, &instance(call).await?)?;
    let outcome = call
        .platform
        .cancel_intent(&namespace, &name, number, call.author)
        .await?;
    HandlerAnswer::of_instance(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn resume_of_instance(
    call: &ApiCall<'_>,
) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = own_intent(call, &instance(call).await?)?;
    let options = call.options();
    let resume = call
        .platform
        .resume_intent(&namespace, &name, number, &options);
    answer(call, resume.await?, StatusCode::OK).await
}

pub(in crate::api) async fn retry_of_instance(
    call: &ApiCall<'_>,
) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = own_intent(call, &instance(call).await?)?;
    let options = call.options();
    let retry = call
        .platform
        .retry_intent(&namespace, &name, number, &options);
    answer(call, retry.await?, StatusCode::OK).await
}

pub(in crate::api) async fn cancel_of_binding(
    call: &ApiCall<'_>,
) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = own_intent(call, &binding(call).await?)?;
    let outcome = call
        .platform
        .cancel_binding_intent(&namespace, &name, number, call.author)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn resume_of_binding(
    call: &ApiCall<'_>,
) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = own_intent(call, &binding(call).await?)?;
    let outcome = call
        .platform
        .resume_binding_intent(&namespace, &name, number, call.author)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn retry_of_binding(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = own_intent(call, &binding(call).await?)?;
    let outcome = call
        .platform
        .retry_binding_intent(&namespace, &name, number, call.author)
        .await?;
    HandlerAnswer::of_binding(call.platform, outcome, StatusCode::OK).await
}

/// The intent in the path, if it is the caller's own or the caller may manage those of others. The author of an intent
/// never changes, so the command that follows is about the same one.
fn own_intent(call: &ApiCall<'_>, resource: &ChangedResource) -> Result<IntentNumber, Problem> {
    call.order()?;
    let number = call.number()?;
    call.require_own(author_of(resource, number))?;
    Ok(number)
}

/// The author of an intent that the resource still knows.
fn author_of(resource: &ChangedResource, number: IntentNumber) -> Option<&Author> {
    match resource {
        ChangedResource::Instance(instance) => {
            let ended = instance.ended.iter().find(|it| it.number == number);
            let pending = instance.intent(number).map(|it| &it.author);
            pending.or(ended.map(|it| &it.author))
        }
        ChangedResource::Binding(binding) => {
            let ended = binding.ended.iter().find(|it| it.number == number);
            let pending = binding.intent(number).map(|it| &it.author);
            pending.or(ended.map(|it| &it.author))
        }
    }
}
