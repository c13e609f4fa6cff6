//! Routes of extensions below `/v2`, in addition to the ten endpoints.
//!
//! They have the same authentication and limits. The version header is not required, because these paths are
//! not part of the specification. Their meaning is defined by the extension.

use super::error::{ErrorReply, json};
use super::route::{self, RouteMatch};
use super::route_labels::EXTENSION;
use super::{HttpReply, PlatformApi};
use crate::broker::BrokerHandle;
use crate::error::Result;
use async_trait::async_trait;
use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use sutler_osb::ServiceId;
use sutler_server::metrics::{self, LimitKind};
use sutler_server::{Caller, ChunkedBody, RequestClass, RequestContext, read_body};

/// Maximum segments of such a path.
const SEGMENTS_MAX: usize = 8;

/// Routes in addition to those of the specification.
#[async_trait]
pub trait ExtensionRoutes: Send + Sync + 'static {
    /// Methods of a path, such as `DELETE, POST`; `None` if there is no such route. `path`: segments below
    /// `/v2`.
    fn methods(&self, path: &[String]) -> Option<&'static str>;

    /// Handles a request with one of these methods.
    ///
    /// # Errors
    /// Mapped to a response like the error of a hook.
    async fn answer(&self, request: ExtensionRequest) -> Result<ExtensionResponse>;
}

/// Request to a route of an extension.
#[derive(Clone, Debug)]
pub struct ExtensionRequest {
    /// HTTP method, such as `POST`.
    pub method: String,
    /// Segments of the path below `/v2`.
    pub path: Vec<String>,
    /// `Content-Type` of the body.
    pub content_type: Option<String>,
    /// Complete body, within the limits of the broker.
    pub body: Bytes,
    /// Authenticated caller.
    pub caller: Caller,
}

/// Response of a route of an extension.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionResponse {
    /// 200, with a body.
    Json(Value),
    /// 204.
    Empty,
    /// 404, with a sentence of advice.
    Absent(String),
}

impl BrokerHandle {
    /// Adds routes to every platform. Only the first call has an effect.
    pub fn add_routes(&self, paths: Arc<dyn ExtensionRoutes>) {
        for platform in &self.0.platforms {
            let _ = platform.http.extension_routes.set(paths.clone());
        }
    }
}

/// A matched route of an extension.
pub(super) struct ExtensionMatch {
    paths: Arc<dyn ExtensionRoutes>,
    path: Vec<String>,
    methods: &'static str,
}

impl PlatformApi {
    /// Finds the route of an extension. `at`: end of the platform's prefix in the path.
    pub(super) fn match_extension(&self, parts: &Parts, at: usize) -> Option<ExtensionMatch> {
        let paths = self.extension_routes.get()?;
        let path = parts.uri.path().get(at..)?;
        // Extensions cannot replace endpoints of the specification.
        let RouteMatch::Unknown = route::route(&parts.method, path) else {
            return None;
        };
        let path = segments(path)?;
        let methods = paths.methods(&path)?;
        Some(ExtensionMatch {
            paths: paths.clone(),
            path,
            methods,
        })
    }

    /// Serves the route, with the checks of the ten endpoints in the same order (D-06), without the version.
    pub(super) async fn serve_extension<B>(
        &self,
        found: ExtensionMatch,
        parts: Parts,
        body: B,
        context: &RequestContext,
    ) -> std::result::Result<HttpReply, ErrorReply>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.check_size(&parts)?;
        context.set_route(&EXTENSION);
        let (caller, permit) = self.authenticate(&parts, context).await?;
        let mut methods = found.methods.split(", ");
        if !methods.any(|it| it == parts.method.as_str()) {
            return Err(ErrorReply::method_not_allowed(found.methods));
        }
        if self.requests.engine.is_paused() {
            metrics::limited(LimitKind::Draining);
            return Err(ErrorReply::draining());
        }
        let mut budget = self.admission.body_budget(&permit);
        let limits = self.requests.realm_context.settings.body_limits();
        let bytes = read_body(body, limits, &mut budget).await?;
        let _slot = self.admission.acquire_slot(RequestClass::Change).await?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|it| Some(it.to_str().ok()?.to_owned()));
        let request = ExtensionRequest {
            method: parts.method.to_string(),
            path: found.path,
            content_type,
            body: bytes,
            caller,
        };
        let answered = found.paths.answer(request).await;
        Ok(match answered.map_err(ErrorReply::from)? {
            ExtensionResponse::Json(body) => json(StatusCode::OK, &body),
            ExtensionResponse::Empty => {
                let mut reply = Response::new(ChunkedBody::default());
                *reply.status_mut() = StatusCode::NO_CONTENT;
                reply
            }
            ExtensionResponse::Absent(sentence) => return Err(ErrorReply::absent(sentence)),
        })
    }
}

/// Decoded segments below `/v2`; `None` if the path is not valid for an extension.
fn segments(path: &str) -> Option<Vec<String>> {
    let rest = path.trim_start_matches('/').strip_prefix("v2/")?;
    let mut found = Vec::new();
    for segment in rest.split('/') {
        if found.len() == SEGMENTS_MAX {
            return None;
        }
        // Decoded like the ids of the specification.
        found.push(ServiceId::from_path_segment(segment).ok()?.into());
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::segments;

    #[test]
    fn segments_are_decoded_after_the_path_is_split() {
        let found = segments("//v2/apb/a%2Fb").expect("a path");
        assert_eq!(found, ["apb", "a/b"]);
    }

    #[test]
    fn invalid_paths_have_no_segments() {
        let deep = format!("/v2{}", "/a".repeat(9));
        for path in ["/v2", "/v2/", "/v3/apb", "/v2/apb/", "/v2/%FF", &deep] {
            assert_eq!(segments(path), None, "{path}");
        }
    }
}
