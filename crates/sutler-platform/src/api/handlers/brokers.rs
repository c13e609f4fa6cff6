//! Brokers: registered, shown, changed, deregistered, operated. One file for those of all namespaces and those of one.

use crate::api::access::Permission;
use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::bodies::BrokerBody;
use crate::api::entity_tag::tag_of_broker;
use crate::api::page_cursor::cursor;
use crate::api::problem::Problem;
use crate::api::problem_word::ProblemWord;
use crate::api::request_inputs::RevisionCondition;
use crate::api::requested_sync::RequestedSync;
use crate::api::views::{BrokerDocument, ListPage};
use crate::brokers::BrokerCommandError;
use crate::commands::AbandonProgress;
use crate::lifecycle::breaker::BreakerReply;
use crate::lifecycle::intent::Abandonment;
use crate::platform::Platform;
use crate::records::{BrokerRegistration, ResourceName};
use axum::http::StatusCode;
use serde_json::{Map, Value};

/// A broker of all namespaces (`None`) or of one.
pub(super) async fn find(
    platform: &Platform,
    scope: Option<&ResourceName>,
    name: &ResourceName,
) -> Result<Option<BrokerRegistration>, Problem> {
    Ok(platform.brokers().find(scope, name).await?)
}

/// The namespace of the brokers in the path, if it names one.
async fn scope(call: &ApiCall<'_>) -> Result<Option<ResourceName>, Problem> {
    if call.names.get("ns").is_empty() {
        return Ok(None);
    }
    let namespace = call.namespace()?;
    call.platform.namespace_of(&namespace).await?;
    Ok(Some(namespace))
}

async fn registration(call: &ApiCall<'_>) -> Result<BrokerRegistration, Problem> {
    let (scope, name) = (scope(call).await?, call.name()?);
    let found = find(call.platform, scope.as_ref(), &name).await?;
    found.ok_or_else(|| Problem::no_such("broker", name.as_str()))
}

async fn document(
    platform: &Platform,
    registration: &BrokerRegistration,
) -> Result<BrokerDocument, Problem> {
    let state = platform.brokers().state(registration.uid).await?;
    let state = state.unwrap_or_default();
    Ok(BrokerDocument::of(registration, &state))
}

async fn shown(
    call: &ApiCall<'_>,
    registration: &BrokerRegistration,
    status: StatusCode,
) -> Result<HandlerAnswer, Problem> {
    let document = document(call.platform, registration).await?;
    Ok(HandlerAnswer::tagged(
        status,
        &document,
        tag_of_broker(registration),
    ))
}

pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let scope = scope(call).await?;
    let after = call.inputs.position()?;
    let page = call
        .platform
        .brokers()
        .list(Some(scope.as_ref()), after.as_ref(), call.inputs.limit)
        .await?;
    let mut items = Vec::with_capacity(page.items.len());
    for (_, registration) in &page.items {
        items.push(document(call.platform, registration).await?);
    }
    let next = page.next.as_ref().map(cursor);
    Ok(HandlerAnswer::json(
        StatusCode::OK,
        &ListPage { items, next },
    ))
}

pub(in crate::api) async fn show(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let registration = registration(call).await?;
    shown(call, &registration, StatusCode::OK).await
}

/// Registers a broker, or replaces all that is written about it.
pub(in crate::api) async fn put(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (scope, name) = (scope(call).await?, call.name()?);
    let body: BrokerBody = call.json()?;
    let definition = body.definition()?;
    let present = find(call.platform, scope.as_ref(), &name).await?;
    let brokers = call.platform.brokers();
    match (present, call.inputs.condition) {
        (Some(_), Some(RevisionCondition::Absent)) => {
            let detail = "A broker of this name is registered.";
            Err(Problem::new(ProblemWord::RevisionChanged, detail))
        }
        (None, Some(RevisionCondition::Exactly(_) | RevisionCondition::Any)) => {
            Err(Problem::no_such("broker", name.as_str()))
        }
        (Some(present), Some(_) | None) => {
            let revision = call.revision_of(present.uid)?;
            let updated = brokers.update(present.uid, revision, definition).await?;
            shown(call, &updated, StatusCode::OK).await
        }
        (None, Some(RevisionCondition::Absent) | None) => {
            let registered = brokers
                .register(scope.as_ref(), &name, definition, call.author)
                .await?;
            shown(call, &registered, StatusCode::CREATED).await
        }
    }
}

/// Changes what a merge patch names. Without a condition it is one on what was read here, so no change of another
/// operator is lost.
pub(in crate::api) async fn patch(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let present = registration(call).await?;
    let patch: Map<String, Value> = call.merge_patch()?;
    let body = BrokerBody::of(&present).patched(&patch)?;
    let revision = call.revision_of(present.uid)?.unwrap_or(present.revision);
    let updated = call
        .platform
        .brokers()
        .update(present.uid, Some(revision), body.definition()?)
        .await?;
    shown(call, &updated, StatusCode::OK).await
}

/// Deregisters a broker. With `abandon` also one that has instances: that is to give up what it may have of them, and needs
/// that permission besides, and a reason.
pub(in crate::api) async fn delete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    if call.inputs.abandon {
        return abandon(call).await;
    }
    let present = registration(call).await?;
    call.platform.brokers().deregister(present.uid).await?;
    Ok(HandlerAnswer::empty())
}

async fn abandon(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.require(Permission::Abandon)?;
    let abandonment = Abandonment {
        by: call.author.clone(),
        reason: Some(call.order()?.required_reason()?.to_owned()),
    };
    let present = registration(call).await?;
    let abandoned = call.platform.abandon_broker(present.uid, &abandonment);
    match abandoned.await? {
        AbandonProgress::Finished => Ok(HandlerAnswer::empty()),
        AbandonProgress::GoesOn => shown(call, &present, StatusCode::ACCEPTED).await,
    }
}

/// Reads the catalog again.
pub(in crate::api) async fn sync(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.order()?;
    let registration = registration(call).await?;
    let number = call.platform.brokers().sync(registration.uid).await?;
    Ok(HandlerAnswer::Syncing(Box::new(RequestedSync {
        registration,
        number,
    })))
}

pub(in crate::api) async fn pause(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.order()?;
    let present = registration(call).await?;
    let paused = call
        .platform
        .brokers()
        .pause(present.uid, call.author.clone());
    ordered(call, &present, paused.await).await
}

pub(in crate::api) async fn resume(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.order()?;
    let present = registration(call).await?;
    let resumed = call.platform.brokers().resume(present.uid).await;
    ordered(call, &present, resumed).await
}

pub(in crate::api) async fn probe(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.order()?;
    let present = registration(call).await?;
    let probed = call.platform.brokers().probe(present.uid).await;
    ordered(call, &present, probed).await
}

async fn ordered(
    call: &ApiCall<'_>,
    registration: &BrokerRegistration,
    reply: Result<BreakerReply, BrokerCommandError>,
) -> Result<HandlerAnswer, Problem> {
    let status = match reply? {
        BreakerReply::Accepted => StatusCode::ACCEPTED,
        BreakerReply::Unchanged | BreakerReply::Nothing => StatusCode::OK,
    };
    shown(call, registration, status).await
}
