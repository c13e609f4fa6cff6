//! Secrets of a namespace: their values are written, and never answered.

use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::bodies::SecretBody;
use crate::api::page_cursor::cursor;
use crate::api::problem::Problem;
use crate::api::views::{ListPage, SecretView};
use axum::http::StatusCode;

pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.namespace()?;
    call.platform.namespace_of(&namespace).await?;
    let after = call.inputs.position()?;
    let limit = call.inputs.limit;
    let page = call
        .platform
        .secrets(&namespace, after.as_ref(), limit)
        .await?;
    let items = page.items.iter();
    let shown = ListPage {
        items: items
            .map(|secret| SecretView::of(namespace.as_str(), secret))
            .collect(),
        next: page.next.as_ref().map(cursor),
    };
    Ok(HandlerAnswer::json(StatusCode::OK, &shown))
}

pub(in crate::api) async fn put(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let wanted = call.json::<SecretBody>()?.wanted()?;
    let secret = call
        .platform
        .put_secret(&namespace, &name, &wanted, call.author)
        .await?;
    let status = match secret.revision {
        1 => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let view = SecretView::of(namespace.as_str(), &secret);
    Ok(HandlerAnswer::tagged(status, &view, secret.revision))
}

pub(in crate::api) async fn show(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    let secret = call.platform.secret(&namespace, &name).await?;
    let view = SecretView::of(namespace.as_str(), &secret);
    Ok(HandlerAnswer::tagged(
        StatusCode::OK,
        &view,
        secret.revision,
    ))
}

pub(in crate::api) async fn delete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let (namespace, name) = (call.namespace()?, call.name()?);
    call.platform.delete_secret(&namespace, &name).await?;
    Ok(HandlerAnswer::empty())
}
