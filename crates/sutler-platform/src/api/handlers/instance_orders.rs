//! Orders about instances: undelete, rollback, touch, protect, abandon.

use super::instances::answer;
use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::problem::Problem;
use crate::lifecycle::intent::{Abandonment, IntentNumber};
use axum::http::StatusCode;

pub(in crate::api) async fn undelete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    call.order()?;
    let outcome = call
        .platform
        .undelete_instance(&namespace, &name, call.author)
        .await?;
    HandlerAnswer::of_instance(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn rollback(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let number = call.order()?.seq;
    let number = number.ok_or_else(|| {
        Problem::invalid_field("/seq", "must be the number of the intent to go back to")
    })?;
    let options = call.options();
    let rollback =
        call.platform
            .rollback_instance(&namespace, &name, IntentNumber(number), &options);
    answer(call, rollback.await?, StatusCode::OK).await
}

pub(in crate::api) async fn touch(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    call.order()?;
    let options = call.options();
    let touch = call.platform.touch_instance(&namespace, &name, &options);
    answer(call, touch.await?, StatusCode::OK).await
}

pub(in crate::api) async fn protect(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let is_protected = call.order()?.protected.unwrap_or(true);
    let outcome = call
        .platform
        .protect_instance(&namespace, &name, is_protected)
        .await?;
    HandlerAnswer::of_instance(call.platform, outcome, StatusCode::OK).await
}

pub(in crate::api) async fn abandon(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let abandonment = Abandonment {
        by: call.author.clone(),
        reason: Some(call.order()?.required_reason()?.to_owned()),
    };
    let outcome = call
        .platform
        .abandon_instance(&namespace, &name, &abandonment)
        .await?;
    HandlerAnswer::of_instance(call.platform, outcome, StatusCode::OK).await
}
