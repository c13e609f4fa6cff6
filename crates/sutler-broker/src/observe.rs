//! What is seen of a request and of an operation: a span, a line at its end, numbers, the audit.
//!
//! Around the work and never in it: nothing here changes an answer. A request is seen from the front
//! on ([`request()`]); what is learnt on the way (route, caller, operation) is noted by small functions
//! that need no argument passed along. Lines hold ids and words, never a query, a body or a header.

use crate::audit::{AuditEntry, AuditOutcome, audit};
use crate::lifecycle::{Effect, Verb};
use crate::measure::{self, OperationLabel, RequestTimer, Route, outcome_word};
use crate::records::{BINDING, Request};
use crate::trace::{self, TraceParent};
use hyper::header::HeaderMap;
use hyper::{Method, Response};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_journal::{Key, OperationId, Outcome, Run};
use sutler_osb::{REQUEST_IDENTITY_HEADER, RequestIdentity};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

/// The request that an operation goes back to: kept with it, so that a run after a restart still
/// knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The request's id: the platform's, else one of ours.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Who was let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The trace it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// What is known of the request that is being answered.
struct Seen {
    timer: RequestTimer,
    origin: Origin,
    operation: Option<OperationId>,
    method: Method,
}

tokio::task_local! {
    static SEEN: RefCell<Option<Seen>>;
}

/// A request whose head has arrived.
pub(crate) struct Begun {
    span: Span,
    seen: Seen,
}

/// A request has arrived.
pub(crate) fn begin<B>(request: &hyper::Request<B>) -> Begun {
    let method = request.method().clone();
    let request_id = request_id(request.headers());
    let given = TraceParent::of(request.headers());
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
    trace::join(&span, given.as_ref());
    let seen = Seen {
        timer: measure::request_began(),
        origin: Origin {
            request_id,
            caller: None,
            trace: given,
        },
        operation: None,
        method,
    };
    Begun { span, seen }
}

/// Has a request answered, and says afterwards what it was.
pub(crate) async fn request<W, R>(begun: Begun, work: W) -> Response<R>
where
    W: Future<Output = Response<R>>,
{
    let Begun { span, seen } = begun;
    let told = async move {
        let reply = work.await;
        SEEN.with(|seen| tell(seen.take(), reply.status().as_u16()));
        reply
    };
    SEEN.scope(RefCell::new(Some(seen)), told)
        .instrument(span)
        .await
}

/// One line for one request.
fn tell(seen: Option<Seen>, status: u16) {
    let Some(seen) = seen else { return };
    let route = seen.timer.route();
    let span = Span::current();
    if !span.is_disabled() {
        if route == Route::Nowhere {
            name(&span, &seen.method, route);
        }
        span.record("http.response.status_code", status);
        if status >= 500 {
            span.record("otel.status_code", "ERROR");
        }
    }
    let took = seen.timer.answered(status);
    let duration_ms = milliseconds(took);
    match route {
        Route::Health | Route::Metrics => {
            tracing::debug!(target: "sutler::request", duration_ms, "answered");
        }
        _ if status >= 500 => {
            tracing::warn!(target: "sutler::request", duration_ms, "answered with an error");
        }
        _ => tracing::info!(target: "sutler::request", duration_ms, "answered"),
    }
}

/// Where the request goes is known.
pub(crate) fn routed(route: Route) {
    with_seen(|seen| {
        seen.timer.routed(route);
        name(&Span::current(), &seen.method, route);
    });
}

/// A span has its name before anything is made a child of it: later it could not be changed.
fn name(span: &Span, method: &Method, route: Route) {
    if !span.is_disabled() {
        span.record("http.route", route.template());
        span.record("otel.name", format!("{method} {}", route.template()));
    }
}

/// Who sent it is known.
pub(crate) fn admitted(caller: &str) {
    with_seen(|seen| {
        Span::current().record("caller", caller);
        seen.origin.caller = Some(caller.to_owned());
    });
}

/// The operation that answers it is known.
pub(crate) fn concerns(operation: OperationId) {
    // Outside a request the current span is another one.
    with_seen(|seen| {
        let span = Span::current();
        if seen.operation.replace(operation) != Some(operation) && !span.is_disabled() {
            span.record("operation.id", tracing::field::display(operation));
        }
    });
}

/// The request that is being answered, as its operation will keep it.
pub(crate) fn origin() -> Origin {
    let mut origin = Origin::default();
    with_seen(|seen| {
        origin = seen.origin.clone();
        origin.trace = trace::onward(&Span::current(), origin.trace.take());
    });
    origin
}

fn with_seen(note: impl FnOnce(&mut Seen)) {
    // Outside a request there is nothing to note.
    let _ = SEEN.try_with(|seen| {
        if let Some(seen) = seen.borrow_mut().as_mut() {
            note(seen);
        }
    });
}

/// The platform's name for the request, else a fresh one: the process's own number and a count.
fn request_id(headers: &HeaderMap) -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| uuid::Uuid::new_v4().as_u64_pair().0);
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let given = headers
        .get(REQUEST_IDENTITY_HEADER)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| RequestIdentity::try_from(text.to_owned()).ok());
    given.map_or_else(
        || {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            format!("{:016x}-{count:x}", *PROCESS)
        },
        |identity| identity.as_str().to_owned(),
    )
}

/// Operations were written down.
pub(crate) fn accepted(lane: &Key, effects: &[Effect], request: &Request) {
    for effect in effects {
        if let Effect::Start(verb, id) | Effect::StartWaiting(verb, id) = *effect {
            measure::operation_accepted(verb.into());
            concerns(id);
            audit(
                verb.word(),
                AuditOutcome::Accepted,
                &entry(lane, id, request),
            );
        }
    }
}

/// The span of a run: a child of the request that asked for it, also after a restart.
pub(crate) fn operation_span(run: &Run, request: Option<&Request>) -> Span {
    let row = &run.operation().row;
    let origin = request.map(|request| &request.origin);
    let span = tracing::info_span!(
        target: "sutler::operation",
        "operation",
        otel.name = &*row.verb,
        otel.status_code = Empty,
        operation.id = %row.id,
        kind = &*row.verb,
        attempt = row.attempt,
        instance.id = row.lane.id(0),
        binding.id = binding_of(&row.lane),
        request.id = origin.map(|it| it.request_id.as_str()),
        caller = origin.and_then(|it| it.caller.as_deref()),
    );
    trace::join(&span, origin.and_then(|it| it.trace.as_ref()));
    span
}

/// The span of the author's own code.
pub(crate) fn hook_span(run: &Run) -> Span {
    let verb = &run.operation().row.verb;
    tracing::info_span!(target: "sutler::hook", "hook", otel.name = %format_args!("hook {verb}"))
}

/// An operation ended, and that is committed.
pub(crate) fn ended(run: &Run, verb: Verb, outcome: Outcome, request: Option<&Request>) {
    let row = &run.operation().row;
    let after = age(row.id);
    measure::operation_ended(OperationLabel::from(verb), outcome, after);
    let duration_ms = milliseconds(after);
    let word = outcome_word(outcome);
    tracing::info!(target: "sutler::operation", outcome = word, duration_ms, "ended");
    if outcome != Outcome::Succeeded {
        Span::current().record("otel.status_code", "ERROR");
    }
    let outcome = AuditOutcome::Ended(outcome);
    match request {
        Some(request) => audit(verb.word(), outcome, &entry(&row.lane, row.id, request)),
        None => {
            let entry = AuditEntry {
                instance: Some(row.lane.id(0)),
                binding: binding_of(&row.lane),
                operation: Some(row.id),
                ..AuditEntry::default()
            };
            audit(verb.word(), outcome, &entry);
        }
    }
}

fn entry<'a>(lane: &'a Key, operation: OperationId, request: &'a Request) -> AuditEntry<'a> {
    AuditEntry {
        caller: request.origin.caller.as_deref(),
        identity: request.identity.as_ref(),
        realm: Some(lane.realm()),
        instance: Some(lane.id(0)),
        binding: binding_of(lane),
        operation: Some(operation),
        request_id: Some(request.origin.request_id.as_str()).filter(|id| !id.is_empty()),
        note: None,
    }
}

fn binding_of(lane: &Key) -> Option<&str> {
    (lane.kind() == BINDING.as_str()).then(|| lane.id(1))
}

/// How long ago an operation was accepted: its id says when.
pub(crate) fn age(id: OperationId) -> Duration {
    let accepted = id.0.get_timestamp().map_or(Duration::ZERO, |time| {
        let (seconds, nanoseconds) = time.to_unix();
        Duration::new(seconds, nanoseconds)
    });
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(accepted)
}

fn milliseconds(time: Duration) -> f64 {
    // A line of a log needs no more than microseconds.
    let microseconds = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    f64::from(microseconds) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::{age, request_id};
    use hyper::header::{HeaderMap, HeaderValue};
    use std::time::Duration;
    use sutler_journal::OperationId;
    use sutler_osb::REQUEST_IDENTITY_HEADER;

    #[test]
    fn a_request_keeps_the_name_the_platform_gave_it() {
        let mut headers = HeaderMap::new();
        headers.insert(
            REQUEST_IDENTITY_HEADER,
            HeaderValue::from_static("e26cee84-6b38"),
        );
        assert_eq!(request_id(&headers), "e26cee84-6b38");
    }

    #[test]
    fn a_request_without_a_name_gets_one_of_its_own() {
        let headers = HeaderMap::new();
        let (one, other) = (request_id(&headers), request_id(&headers));
        assert_ne!(one, other);
        assert_eq!(one[..17], other[..17]);
    }

    #[test]
    fn an_operation_that_was_just_accepted_is_young() {
        assert!(age(OperationId::fresh()) < Duration::from_secs(60));
    }
}
