//! `GET /version`: what answers here.

use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::problem::Problem;
use axum::http::StatusCode;
use serde::Serialize;

/// What answers here.
#[derive(Serialize)]
struct VersionDocument {
    version: &'static str,
    api: &'static str,
}

/// Answers without asking who wants to know.
pub(in crate::api) async fn show(_: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let document = VersionDocument {
        version: env!("CARGO_PKG_VERSION"),
        api: "v1",
    };
    Ok(HandlerAnswer::json(StatusCode::OK, &document))
}
