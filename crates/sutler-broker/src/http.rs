//! The Open Service Broker API of one platform: headers, paths, bodies and statuses.
//!
//! The order of checks is D-06: path, authentication, version, query, body, then those of `requests.rs`. The
//! status of a refusal is chosen in `http/error.rs` only; paths are in `http/route.rs`, the ten endpoints in
//! `http/endpoints.rs`, routes of extensions in `http/extension.rs`.

mod endpoints;
mod error;
mod extension;
mod route;
mod route_labels;

pub use extension::{ExtensionRequest, ExtensionResponse, ExtensionRoutes};
pub use route::Endpoint;
pub(crate) use route::PATHS;
pub(crate) use route_labels::ADMIN;

use crate::requests::{RequestHandler, RequestInfo};
use async_trait::async_trait;
use bytes::Bytes;
use error::ErrorReply;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use hyper::{Request, Response};
use route::{Ids, RouteMatch};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use sutler_journal::catch_panic;
use sutler_osb::{
    API_VERSION_HEADER, ApiVersion, ORIGINATING_IDENTITY_HEADER, OriginatingIdentity, Query,
    REQUEST_IDENTITY_HEADER, RequestIdentity,
};
use sutler_server::metrics::{self, LimitKind};
use sutler_server::{
    Admission, Auth, Caller, CallerPermit, ChunkedBody, Rejection, RequestClass, RequestContext,
    read_body,
};

/// Response of the broker.
pub(crate) type HttpReply = Response<ChunkedBody>;

/// Replaces one of the ten endpoints. Authentication and the version header are checked before; the
/// [`Caller`] is in the request's extensions.
#[async_trait]
pub trait Replacement: Send + Sync + 'static {
    /// Answers a request.
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes>;
}

/// Serves the API of one platform.
pub(crate) struct PlatformApi {
    pub requests: RequestHandler,
    pub auth: Auth,
    pub replaced: Arc<HashMap<Endpoint, Arc<dyn Replacement>>>,
    pub admission: Admission,
    /// Routes of extensions, if any.
    pub extension_routes: OnceLock<Arc<dyn ExtensionRoutes>>,
}

/// A request with parsed headers, path and query.
struct ParsedRequest {
    endpoint: Endpoint,
    ids: Ids,
    query: Query,
    info: RequestInfo,
}

impl PlatformApi {
    /// Answers one request. `at`: end of the platform's prefix in the path. Never fails, never panics.
    pub(crate) async fn handle_request<B>(
        &self,
        request: Request<B>,
        at: usize,
        context: &Arc<RequestContext>,
    ) -> HttpReply
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // B-006: every response repeats the header.
        let name = HeaderName::from_static(REQUEST_IDENTITY_HEADER);
        let identity = request.headers().get(&name).cloned();
        let mut reply = match catch_panic(self.parse_and_execute(request, at, context)).await {
            Ok(executed) => executed.unwrap_or_else(HttpReply::from),
            Err(()) => error::panicked(),
        };
        if let Some(identity) = identity {
            reply.headers_mut().insert(name, identity);
        }
        reply
    }

    /// Parses the head, admits the caller, reads the body, acquires a slot, and calls the endpoint.
    async fn parse_and_execute<B>(
        &self,
        request: Request<B>,
        at: usize,
        context: &Arc<RequestContext>,
    ) -> Result<HttpReply, ErrorReply>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        if let Some(found) = self.match_extension(&parts, at) {
            // Boxed, so that futures of ordinary requests stay small.
            return Box::pin(self.serve_extension(found, parts, body, context)).await;
        }
        let (parsed, permit) = self.parse_head(&parts, at, context).await?;
        let class = parsed.endpoint.class();
        if matches!(class, RequestClass::Change) && self.requests.engine.is_paused() {
            metrics::limited(LimitKind::Draining);
            return Err(ErrorReply::draining());
        }
        let takes_body = parsed.endpoint.takes_body();
        let replaced = self.replaced.get(&parsed.endpoint);
        let mut budget = self.admission.body_budget(&permit);
        let bytes = if takes_body || replaced.is_some() {
            let limits = self.requests.realm_context.settings.body_limits();
            read_body(body, limits, &mut budget).await?
        } else {
            Bytes::new()
        };
        // Acquired after the body, so that a slow sender holds no slot.
        let _slot = self.admission.acquire_slot(class).await?;
        if let Some(replacement) = replaced {
            if let Some(caller) = context.caller() {
                parts.extensions.insert(caller.clone());
            }
            let answered = replacement.answer(Request::from_parts(parts, bytes)).await;
            return Ok(answered.map(ChunkedBody::of));
        }
        if takes_body {
            check_content_type(&parts.headers)?;
        }
        self.call_endpoint(parsed, &bytes, &parts.headers).await
    }

    /// D-06: size, path, authentication, version, identities, query.
    async fn parse_head(
        &self,
        parts: &hyper::http::request::Parts,
        at: usize,
        context: &Arc<RequestContext>,
    ) -> Result<(ParsedRequest, CallerPermit), ErrorReply> {
        self.check_size(parts)?;
        let path = parts.uri.path().get(at..).unwrap_or_default();
        let (endpoint, ids) = match route::route(&parts.method, path) {
            RouteMatch::To(endpoint, ids) => (endpoint, ids),
            RouteMatch::Unknown => return Err(ErrorReply::no_such_path()),
            RouteMatch::OtherMethod(allowed) => {
                self.authenticate(parts, context).await?;
                return Err(ErrorReply::method_not_allowed(allowed));
            }
            RouteMatch::BadId(sentence) => {
                self.authenticate(parts, context).await?;
                self.check_version(&parts.headers)?;
                return Err(ErrorReply::invalid(sentence));
            }
        };
        context.set_route(endpoint.label());
        let (_, permit) = self.authenticate(parts, context).await?;
        self.check_version(&parts.headers)?;
        let query = parts.uri.query().unwrap_or_default();
        let query = match endpoint {
            Endpoint::Deprovision | Endpoint::Unbind => Query::parse_delete(query),
            _ => Query::parse(query),
        };
        let query = query.map_err(|error| ErrorReply::invalid(error.to_string()))?;
        let info = RequestInfo {
            context: Some(context.clone()),
            accepts_incomplete: query.accepts_incomplete,
            identity: originating_identity(&parts.headers)?,
            request_identity: request_identity(&parts.headers)?,
        };
        let parsed = ParsedRequest {
            endpoint,
            ids,
            query,
            info,
        };
        Ok((parsed, permit))
    }

    /// Authenticates the caller (B-010) and counts the request against its limits.
    async fn authenticate(
        &self,
        parts: &hyper::http::request::Parts,
        context: &RequestContext,
    ) -> Result<(Caller, CallerPermit), ErrorReply> {
        let caller = self.auth.admit(&parts.headers, &parts.extensions).await?;
        context.set_caller(&caller);
        let permit = self.admission.admit_caller(&caller.name).await?;
        Ok((caller, permit))
    }

    /// B-001, B-002, B-003: accepts any minor version of the same major version.
    fn check_version(&self, headers: &HeaderMap) -> Result<(), ErrorReply> {
        let Some(value) = headers.get(API_VERSION_HEADER) else {
            return Err(ErrorReply::version_missing(
                self.requests.realm_context.settings.missing_version,
            ));
        };
        let version = value
            .to_str()
            .ok()
            .and_then(|text| text.parse::<ApiVersion>().ok());
        match version {
            Some(version) if version.major == ApiVersion::CURRENT.major => Ok(()),
            Some(_) | None => Err(ErrorReply::version_not_served()),
        }
    }

    /// Checks the length of the URI and the number of headers.
    fn check_size(&self, parts: &hyper::http::request::Parts) -> Result<(), ErrorReply> {
        let limits = self.admission.limits();
        let long = |uri: &hyper::Uri| uri.path_and_query().map_or(0, |it| it.as_str().len());
        if long(&parts.uri) > limits.uri_bytes_max {
            metrics::limited(LimitKind::HeaderSize);
            return Err(ErrorReply::uri_too_long(limits.uri_bytes_max));
        }
        if parts.headers.len() > limits.headers_max {
            metrics::limited(LimitKind::HeaderSize);
            return Err(ErrorReply::too_many_headers(limits.headers_max));
        }
        Ok(())
    }
}

/// B-041, B-042.
fn check_content_type(headers: &HeaderMap) -> Result<(), ErrorReply> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let media = value
        .to_str()
        .ok()
        .and_then(|text| text.split(';').next())
        .unwrap_or_default();
    if media.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ErrorReply::invalid(
        "Content-Type must be application/json.".to_owned(),
    ))
}

/// B-005: the header is optional, but must be valid if present.
fn originating_identity(headers: &HeaderMap) -> Result<Option<OriginatingIdentity>, ErrorReply> {
    let Some(value) = headers.get(ORIGINATING_IDENTITY_HEADER) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let parsed = OriginatingIdentity::parse(text);
    parsed
        .map(Some)
        .map_err(|error| ErrorReply::invalid(error.to_string()))
}

fn request_identity(headers: &HeaderMap) -> Result<Option<RequestIdentity>, ErrorReply> {
    let Some(value) = headers.get(REQUEST_IDENTITY_HEADER) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().to_owned();
    let parsed = RequestIdentity::try_from(text);
    parsed
        .map(Some)
        .map_err(|error| ErrorReply::invalid(error.to_string()))
}

/// Id of a request as sent by the platform, if present and valid.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(REQUEST_IDENTITY_HEADER)?.to_str().ok()?;
    let identity = RequestIdentity::try_from(text.to_owned()).ok()?;
    Some(identity.as_str().to_owned())
}

/// Response to a caller that is not authenticated.
pub(crate) fn rejected(rejection: Rejection) -> HttpReply {
    ErrorReply::from(rejection).into()
}

/// Response for a path of no platform.
pub(crate) fn unknown_platform() -> HttpReply {
    ErrorReply::no_such_path().into()
}
