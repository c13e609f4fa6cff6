//! Paths of whoever builds on this framework, below `/v2` and beside the ten endpoints.
//!
//! Behind the same authentication and the same limits. The version header is not asked for: it belongs to
//! the specification, and these paths do not. What they mean is not known here.

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

/// Most segments of such a path.
const SEGMENTS_MAX: usize = 8;

/// Paths beside those of the specification.
#[async_trait]
pub trait ExtensionRoutes: Send + Sync + 'static {
    /// The methods that a path takes, such as `DELETE, POST`; `None`: there is nothing. `path`: what is
    /// below `/v2`, in its segments.
    fn methods(&self, path: &[String]) -> Option<&'static str>;

    /// Answers a request with one of these methods.
    ///
    /// # Errors
    /// Answered like the error of a hook.
    async fn answer(&self, request: ExtensionRequest) -> Result<ExtensionResponse>;
}

/// A request to such a path.
#[derive(Clone, Debug)]
pub struct ExtensionRequest {
    /// What is to be done there, such as `POST`.
    pub method: String,
    /// What is below `/v2`, in its segments.
    pub path: Vec<String>,
    /// What the body says it is.
    pub content_type: Option<String>,
    /// Read to its end, within the limits of the broker.
    pub body: Bytes,
    /// Who was let in.
    pub caller: Caller,
}

/// What is answered at such a path.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionResponse {
    /// 200, with a body.
    Json(Value),
    /// 204.
    Empty,
    /// 404: what the path names is not there; the sentence says what to do.
    Absent(String),
}

impl BrokerHandle {
    /// Serves these paths from now on, on every platform. The first ones stay.
    pub fn add_routes(&self, paths: Arc<dyn ExtensionRoutes>) {
        for platform in &self.0.platforms {
            let _ = platform.http.extension_routes.set(paths.clone());
        }
    }
}

/// A path that somebody serves.
pub(super) struct ExtensionMatch {
    paths: Arc<dyn ExtensionRoutes>,
    path: Vec<String>,
    methods: &'static str,
}

impl PlatformApi {
    /// Whether somebody serves this path, which is this platform's from byte `at` on.
    pub(super) fn match_extension(&self, parts: &Parts, at: usize) -> Option<ExtensionMatch> {
        let paths = self.extension_routes.get()?;
        let path = parts.uri.path().get(at..)?;
        // The endpoints of the specification are nobody else's.
        let RouteMatch::Nowhere = route::route(&parts.method, path) else {
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

    /// The same order of checks as for the ten endpoints (D-06), without the version.
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
        let (caller, permit) = self.admit(&parts, context).await?;
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

/// What is below `/v2`, each segment decoded; `None`: nobody could serve that.
fn segments(path: &str) -> Option<Vec<String>> {
    let rest = path.trim_start_matches('/').strip_prefix("v2/")?;
    let mut found = Vec::new();
    for segment in rest.split('/') {
        if found.len() == SEGMENTS_MAX {
            return None;
        }
        // Segments are decoded as the ids of the specification are.
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
    fn what_cannot_be_a_path_is_none() {
        let deep = format!("/v2{}", "/a".repeat(9));
        for path in ["/v2", "/v2/", "/v3/apb", "/v2/apb/", "/v2/%FF", &deep] {
            assert_eq!(segments(path), None, "{path}");
        }
    }
}
