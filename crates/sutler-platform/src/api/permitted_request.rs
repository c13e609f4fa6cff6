//! A request that its author may ask and whose inputs and body were read: what is left is to answer it, and to write its
//! line in the audit.
//!
//! It borrows nothing. A change is answered in a task of its own: a client that goes away while the change is committed
//! takes neither the change nor its line with it. The task holds the share of the caller's limits until the change is
//! answered: a caller that disconnects at once can begin no more changes at a time than one that waits.

use super::access::AccessSettings;
use super::answer::HandlerAnswer;
use super::api_call::ApiCall;
use super::api_route::{ApiRoute, RouteMethod};
use super::audit_line::{AuditedRequest, audit};
use super::path_pattern::PathNames;
use super::problem::Problem;
use super::request_inputs::RequestInputs;
use crate::author::Author;
use crate::platform::Platform;
use crate::records::ResourceName;
use axum::http::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;
use std::sync::Arc;
use sutler_journal::catch_panic;
use sutler_server::{Admission, CallerPermit, RequestClass};
use tracing::Instrument as _;

/// A request that may be answered.
pub(super) struct PermittedRequest {
    pub platform: Platform,
    pub access: Arc<AccessSettings>,
    pub admission: Arc<Admission>,
    pub route: &'static ApiRoute,
    pub names: PathNames,
    pub author: Author,
    /// Its share of the limits of its caller; none without a caller.
    pub permit: Option<CallerPermit>,
    pub request_id: String,
    pub inputs: RequestInputs,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A body with a name, whatever else it has.
#[derive(Deserialize)]
struct NamedBody {
    name: ResourceName,
}

impl PermittedRequest {
    /// Takes a place and calls the handler. Gives the share of the caller's limits back, for a request that goes on to
    /// wait.
    pub(super) async fn answer(self) -> (Result<HandlerAnswer, Problem>, Option<CallerPermit>) {
        match self.route.method.is_read() {
            true => self.audited().await,
            false => {
                let answered = tokio::spawn(self.audited().in_current_span());
                let panicked = |_| (Err(Problem::panicked()), None);
                answered.await.unwrap_or_else(panicked)
            }
        }
    }

    async fn audited(mut self) -> (Result<HandlerAnswer, Problem>, Option<CallerPermit>) {
        let answered = catch_panic(self.handled()).await;
        let answered = answered.unwrap_or_else(|()| Err(Problem::panicked()));
        let outcome = answered.as_ref().map(|answer| (answer, &self.platform));
        audit(&self.audited_request(), outcome);
        (answered, self.permit.take())
    }

    async fn handled(&self) -> Result<HandlerAnswer, Problem> {
        let class = match self.route.method.is_read() {
            true => RequestClass::Read,
            false => RequestClass::Change,
        };
        // Taken after the body, so that a slow sender holds no place.
        let _slot = self.admission.acquire_slot(class).await?;
        let call = ApiCall {
            platform: &self.platform,
            access: &self.access,
            author: &self.author,
            route: self.route.name,
            names: &self.names,
            inputs: &self.inputs,
            headers: &self.headers,
            body: &self.body,
            creates_by_name: self.route.method == RouteMethod::Put,
        };
        (self.route.handler)(&call).await
    }

    fn audited_request(&self) -> AuditedRequest<'_> {
        AuditedRequest {
            created: self.created(),
            is_dry_run: self.inputs.dry_run,
            ..AuditedRequest::new(self.route, &self.author, &self.names, &self.request_id)
        }
    }

    /// The name of what the request creates, if its body has it and not its path.
    fn created(&self) -> Option<ResourceName> {
        let is_in_path = !self.names.get("name").is_empty();
        if self.route.method != RouteMethod::Post || is_in_path {
            return None;
        }
        let body: Option<NamedBody> = serde_json::from_slice(&self.body).ok();
        body.map(|body| body.name)
    }
}
