//! Probes: `/healthz`, `/readyz` and `/metrics`, without authentication.
//!
//! Readiness comes from a [`Health`], which must return its last known state without waiting. A response
//! is one sentence without names or details, because any client may request it.

use crate::chunked_body::ChunkedBody;
use crate::metrics::{HEALTH, METRICS_PAGE};
use crate::request_context::RequestContext;
use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Response, StatusCode};
use std::sync::Arc;

/// Whether a server can work, and the sentence for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it can work.
    pub ready: bool,
    /// The body of `/readyz`, with a line feed.
    pub sentence: &'static str,
}

/// Source of liveness and readiness.
pub trait Health: Send + Sync + 'static {
    /// The body of `/healthz`, with a line feed: a process that responds is alive.
    fn alive(&self) -> &'static str;

    /// The last known readiness. Must not wait.
    fn readiness(&self) -> Readiness;
}

/// Answers probes.
#[derive(Clone)]
pub struct Probes {
    /// Source of `/healthz` and `/readyz`.
    pub health: Arc<dyn Health>,
    /// Renders the page of metrics.
    pub metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// Whether the page is served at `/metrics`.
    pub public_metrics: bool,
}

impl Probes {
    /// The response, if the path is one of the probes.
    #[must_use]
    pub fn answer(
        &self,
        method: &Method,
        path: &str,
        context: &RequestContext,
    ) -> Option<Response<ChunkedBody>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        match path {
            "/healthz" => {
                context.set_route(&HEALTH);
                Some(self.alive())
            }
            "/readyz" => {
                context.set_route(&HEALTH);
                Some(self.ready())
            }
            "/metrics" if self.public_metrics => self.metrics(context),
            _ => None,
        }
    }

    fn alive(&self) -> Response<ChunkedBody> {
        page(StatusCode::OK, self.health.alive())
    }

    fn ready(&self) -> Response<ChunkedBody> {
        let Readiness { ready, sentence } = self.health.readiness();
        if ready {
            return page(StatusCode::OK, sentence);
        }
        let mut reply = page(StatusCode::SERVICE_UNAVAILABLE, sentence);
        let again = HeaderValue::from_static("1");
        reply.headers_mut().insert(RETRY_AFTER, again);
        reply
    }

    /// The page of metrics, for any path; `None` if there is none.
    #[must_use]
    pub fn metrics(&self, context: &RequestContext) -> Option<Response<ChunkedBody>> {
        let text = self.metrics.as_ref()?();
        context.set_route(&METRICS_PAGE);
        let mut reply = page(StatusCode::OK, text);
        let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        reply.headers_mut().insert(CONTENT_TYPE, format);
        Some(reply)
    }
}

fn page(status: StatusCode, text: impl Into<Bytes>) -> Response<ChunkedBody> {
    let mut reply = Response::new(ChunkedBody::of(text));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

#[cfg(test)]
mod tests {
    use super::{Health, Probes, Readiness};
    use crate::request_context::RequestContext;
    use hyper::{Method, Request, StatusCode};
    use std::sync::Arc;

    struct FixedHealth(bool);

    impl Health for FixedHealth {
        fn alive(&self) -> &'static str {
            "alive\n"
        }

        fn readiness(&self) -> Readiness {
            let sentence = "a sentence\n";
            Readiness {
                ready: self.0,
                sentence,
            }
        }
    }

    fn status(ready: bool, method: &Method, path: &str) -> Option<StatusCode> {
        let probes = Probes {
            health: Arc::new(FixedHealth(ready)),
            metrics: Some(Arc::new(String::new)),
            public_metrics: false,
        };
        let context = RequestContext::begin(&Request::new(()), None);
        let answer = probes.answer(method, path, &context);
        answer.map(|it| it.status())
    }

    #[test]
    fn a_server_that_is_not_ready_is_alive() {
        assert_eq!(status(true, &Method::GET, "/readyz"), Some(StatusCode::OK));
        let unavailable = Some(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(false, &Method::HEAD, "/readyz"), unavailable);
        assert_eq!(
            status(false, &Method::GET, "/healthz"),
            Some(StatusCode::OK)
        );
    }

    #[test]
    fn other_paths_and_methods_are_not_probes() {
        assert_eq!(status(true, &Method::POST, "/readyz"), None);
        assert_eq!(status(true, &Method::GET, "/v2/catalog"), None);
        assert_eq!(status(true, &Method::GET, "/metrics"), None);
    }
}
