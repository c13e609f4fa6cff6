//! Namespaces.

use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::bodies::NamespaceBody;
use crate::api::listing;
use crate::api::problem::Problem;
use crate::api::views::NamespaceView;
use crate::commands::WantedNamespace;
use crate::records::{NAMESPACE, NamespaceRecord};
use axum::http::StatusCode;
use sutler_journal::List;

pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let records = call.platform.records();
    let all = List::Prefix(records.keys.all_of(NAMESPACE));
    let show = |_: &_, namespace: &NamespaceRecord| Some(NamespaceView::of(namespace));
    let page = listing::page(records, &all, call.inputs, show).await?;
    Ok(HandlerAnswer::json(StatusCode::OK, &page))
}

pub(in crate::api) async fn put(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let name = call.namespace()?;
    let wanted = WantedNamespace::from(call.json::<NamespaceBody>()?);
    let (namespace, is_new) = call.platform.put_namespace(&name, &wanted).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(HandlerAnswer::json(status, &NamespaceView::of(&namespace)))
}

pub(in crate::api) async fn show(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let namespace = call.platform.namespace_of(&call.namespace()?).await?;
    Ok(HandlerAnswer::json(
        StatusCode::OK,
        &NamespaceView::of(&namespace),
    ))
}

pub(in crate::api) async fn delete(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.platform.delete_namespace(&call.namespace()?).await?;
    Ok(HandlerAnswer::empty())
}
