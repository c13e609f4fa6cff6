//! The context of one request: id, caller, trace, route and span, passed as a value.
//!
//! Created when the head of a request arrives and passed down to all code that handles it. When the
//! response is ready, [`RequestContext::observe`] writes the line of the request log and counts the
//! request. Lines hold ids and words, never a query, a body or a header. Logs of operations are written
//! by the crates that have operations.

use crate::auth::Caller;
use crate::metrics::{NOWHERE, RequestTimer, Route, request_began};
use crate::trace::{self, TraceParent};
use hyper::{Method, Response};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

/// Context of a request that is being answered.
pub struct RequestContext {
    request_id: String,
    trace: Option<TraceParent>,
    method: Method,
    span: Span,
    caller: OnceLock<Caller>,
    route: Mutex<&'static Route>,
    operation: Mutex<Option<Uuid>>,
}

impl RequestContext {
    /// Context of a request whose head has arrived. `request_id`: the id from the sender; generated if it is
    /// `None`.
    pub fn begin<B>(request: &hyper::Request<B>, request_id: Option<String>) -> Arc<Self> {
        let method = request.method().clone();
        let request_id = request_id.unwrap_or_else(fresh_request_id);
        let trace = TraceParent::of(request.headers());
        let span = tracing::info_span!(
            target: "sutler::request",
            "request",
            otel.name = Empty,
            otel.kind = "server",
            otel.status_code = Empty,
            http.request.method = method.as_str(),
            http.route = Empty,
            http.response.status_code = Empty,
            request.id = %request_id,
            caller = Empty,
            operation.id = Empty,
        );
        trace::join_trace(&span, trace.as_ref());
        Arc::new(Self {
            request_id,
            trace,
            method,
            span,
            caller: OnceLock::new(),
            route: Mutex::new(&NOWHERE),
            operation: Mutex::new(None),
        })
    }

    /// Answers the request in its span, then logs and counts it. A request whose future is dropped
    /// before is counted as disconnected.
    pub async fn observe<W, R>(self: &Arc<Self>, work: W) -> Response<R>
    where
        W: Future<Output = Response<R>>,
    {
        let timer = request_began(self.clone());
        let observed = async move {
            let reply = work.await;
            self.log(timer, reply.status().as_u16());
            reply
        };
        observed.instrument(self.span.clone()).await
    }

    /// One line for one request.
    fn log(&self, timer: RequestTimer, status: u16) {
        let route = self.route();
        if !self.span.is_disabled() {
            if std::ptr::eq(route, &raw const NOWHERE) {
                self.name_span(route);
            }
            self.span.record("http.response.status_code", status);
            if status >= 500 {
                self.span.record("otel.status_code", "ERROR");
            }
        }
        let duration_ms = milliseconds(timer.answered(status));
        if route.is_quiet() {
            tracing::debug!(target: "sutler::request", duration_ms, "answered");
        } else if status >= 500 {
            tracing::warn!(target: "sutler::request", duration_ms, "answered with an error");
        } else {
            tracing::info!(target: "sutler::request", duration_ms, "answered");
        }
    }

    /// Id of the request: the sender's, else a generated one.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The authenticated caller, once it is known.
    #[must_use]
    pub fn caller(&self) -> Option<&Caller> {
        self.caller.get()
    }

    /// The trace context that work started by this request should carry.
    #[must_use]
    pub fn trace(&self) -> Option<TraceParent> {
        trace::onward(&self.span, self.trace.clone())
    }

    /// The span of the request.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// The route of the request, as far as it is known.
    #[must_use]
    pub fn route(&self) -> &'static Route {
        *self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the route. Call it before child spans are opened: the span's name cannot change later.
    pub fn set_route(&self, route: &'static Route) {
        *self.route.lock().unwrap_or_else(PoisonError::into_inner) = route;
        self.name_span(route);
    }

    fn name_span(&self, route: &Route) {
        if !self.span.is_disabled() {
            let template = route.template();
            self.span.record("http.route", template);
            self.span
                .record("otel.name", format!("{} {template}", self.method));
        }
    }

    /// Sets the authenticated caller. The first one stays.
    pub fn set_caller(&self, caller: &Caller) {
        self.span.record("caller", &*caller.name);
        let _ = self.caller.set(caller.clone());
    }

    /// Sets the operation that answers the request.
    pub fn set_operation(&self, id: Uuid) {
        let mut operation = self
            .operation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if operation.replace(id) != Some(id) && !self.span.is_disabled() {
            let id = tracing::field::display(id.as_hyphenated());
            self.span.record("operation.id", id);
        }
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("request_id", &self.request_id)
            .field("caller", &self.caller.get())
            .finish_non_exhaustive()
    }
}

/// An id of the process and a count.
fn fresh_request_id() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}-{count:x}", *PROCESS)
}

fn milliseconds(time: Duration) -> f64 {
    // Microseconds are precise enough for a log.
    let microseconds = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::RequestContext;
    use crate::auth::{AuthMethod, Caller};
    use hyper::Request;

    fn request_id(given: Option<&str>) -> String {
        let context = RequestContext::begin(&Request::new(()), given.map(str::to_owned));
        context.request_id().to_owned()
    }

    #[test]
    fn a_request_keeps_the_id_of_its_sender() {
        assert_eq!(request_id(Some("e26cee84-6b38")), "e26cee84-6b38");
    }

    #[test]
    fn a_request_without_an_id_gets_one() {
        let (one, other) = (request_id(None), request_id(None));
        assert_ne!(one, other);
        assert_eq!(one[..17], other[..17]);
    }

    #[test]
    fn a_context_knows_its_caller_once_it_is_set() {
        let context = RequestContext::begin(&Request::new(()), None);
        assert_eq!(context.caller(), None);
        let caller = Caller::new("u", AuthMethod::Basic);
        context.set_caller(&caller);
        assert_eq!(context.caller(), Some(&caller));
    }
}
