//! The wire: headers, paths, bodies and statuses around the desk.
//!
//! The order of checks is D-06: path, authentication, version, query, body, then the desk's. Which
//! status a refusal has is decided in `http/error.rs` and nowhere else; paths are in `http/route.rs`,
//! the ten endpoints in `http/endpoints.rs`, what others serve beside them in `http/extension.rs`.

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
use sutler_osb::{
    API_VERSION_HEADER, ApiVersion, ORIGINATING_IDENTITY_HEADER, OriginatingIdentity, Query,
    REQUEST_IDENTITY_HEADER, RequestIdentity,
};
use sutler_server::metrics::{self, LimitKind};
use sutler_server::{
    Admission, Auth, Caller, CallerPermit, ChunkedBody, Rejection, RequestClass, RequestContext,
    read_body,
};

/// What the broker answers with.
pub(crate) type HttpReply = Response<ChunkedBody>;

/// An endpoint of the author's own in place of one of the ten. Authentication and the version
/// header were checked before; the [`Caller`] is in the request's extensions.
#[async_trait]
pub trait Replacement: Send + Sync + 'static {
    /// Answers a request.
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes>;
}

/// One platform of the broker as a function of requests.
pub(crate) struct PlatformApi {
    pub requests: RequestHandler,
    pub auth: Auth,
    pub replaced: Arc<HashMap<Endpoint, Arc<dyn Replacement>>>,
    pub admission: Admission,
    /// Paths beside the ten endpoints, where there are any.
    pub extension_routes: OnceLock<Arc<dyn ExtensionRoutes>>,
}

/// A request whose headers, path and query were understood.
struct ParsedRequest {
    endpoint: Endpoint,
    ids: Ids,
    query: Query,
    info: RequestInfo,
}

impl PlatformApi {
    /// Answers one request, whose path is this platform's from byte `at` on. Never fails, never
    /// panics.
    pub(crate) async fn handle<B>(
        &self,
        request: Request<B>,
        at: usize,
        context: &Arc<RequestContext>,
    ) -> HttpReply
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // B-006: the same header comes back, whatever the answer.
        let name = HeaderName::from_static(REQUEST_IDENTITY_HEADER);
        let identity = request.headers().get(&name).cloned();
        let answered = sutler_journal::catch_panic(self.answer(request, at, context)).await;
        let mut reply = answered.unwrap_or_else(|()| error::panicked());
        if let Some(identity) = identity {
            reply.headers_mut().insert(name, identity);
        }
        reply
    }

    async fn answer<B>(
        &self,
        request: Request<B>,
        at: usize,
        context: &Arc<RequestContext>,
    ) -> HttpReply
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        if let Some(found) = self.match_extension(&parts, at) {
            // Boxed: what platforms ask for should not carry its size around.
            let answered = Box::pin(self.serve_extension(found, parts, body, context)).await;
            return answered.unwrap_or_else(HttpReply::from);
        }
        let answered = match self.parse_head(&parts, at, context).await {
            Ok((parsed, permit)) => self.execute(parsed, parts, body, &permit).await,
            Err(answer) => Err(answer),
        };
        answered.unwrap_or_else(HttpReply::from)
    }

    /// Reads the body, takes a place, and serves.
    async fn execute<B>(
        &self,
        parsed: ParsedRequest,
        mut parts: hyper::http::request::Parts,
        body: B,
        permit: &CallerPermit,
    ) -> Result<HttpReply, ErrorReply>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if matches!(parsed.endpoint.class(), RequestClass::Change)
            && self.requests.engine.is_paused()
        {
            metrics::limited(LimitKind::Draining);
            return Err(ErrorReply::draining());
        }
        let takes_body = parsed.endpoint.takes_body();
        let replaced = self.replaced.get(&parsed.endpoint);
        let mut budget = self.admission.body_budget(permit);
        let bytes = if takes_body || replaced.is_some() {
            let limits = self.requests.realm_context.settings.body_limits();
            read_body(body, limits, &mut budget).await?
        } else {
            Bytes::new()
        };
        // Only now: who sends slowly holds no place.
        let _slot = self.admission.acquire_slot(parsed.endpoint.class()).await?;
        if let Some(replacement) = replaced {
            let context = parsed.info.context.as_deref();
            if let Some(caller) = context.and_then(RequestContext::caller) {
                parts.extensions.insert(caller.clone());
            }
            let answered = replacement.answer(Request::from_parts(parts, bytes)).await;
            return Ok(answered.map(ChunkedBody::of));
        }
        if takes_body {
            check_content_type(&parts.headers)?;
        }
        self.serve(parsed, &bytes, &parts.headers).await
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
            RouteMatch::Nowhere => return Err(ErrorReply::no_such_path()),
            RouteMatch::OtherMethod(allowed) => {
                self.admit(parts, context).await?;
                return Err(ErrorReply::method_not_allowed(allowed));
            }
            RouteMatch::BadId(sentence) => {
                self.admit(parts, context).await?;
                self.check_version(&parts.headers)?;
                return Err(ErrorReply::invalid(sentence));
            }
        };
        context.set_route(endpoint.label());
        let (_, permit) = self.admit(parts, context).await?;
        self.check_version(&parts.headers)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default())
            .map_err(|error| ErrorReply::invalid(error.to_string()))?;
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

    /// B-010, and its caller's share of what is worked on.
    async fn admit(
        &self,
        parts: &hyper::http::request::Parts,
        context: &RequestContext,
    ) -> Result<(Caller, CallerPermit), ErrorReply> {
        let caller = self.auth.admit(&parts.headers, &parts.extensions).await?;
        context.set_caller(&caller);
        let permit = self.admission.admit_caller(&caller.name).await?;
        Ok((caller, permit))
    }

    /// B-001, B-002, B-003: any minor version of ours will do.
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

    /// What is too much of, before anything is looked at.
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

/// B-005: absence is fine, nonsense is not.
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

/// The platform's id of a request, if it gave one that can be used.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(REQUEST_IDENTITY_HEADER)?.to_str().ok()?;
    let identity = RequestIdentity::try_from(text.to_owned()).ok()?;
    Some(identity.as_str().to_owned())
}

/// What somebody is answered who is not let in.
pub(crate) fn rejected(rejection: Rejection) -> HttpReply {
    ErrorReply::from(rejection).into()
}

/// What is answered where no platform is.
pub(crate) fn nowhere() -> HttpReply {
    ErrorReply::no_such_path().into()
}
