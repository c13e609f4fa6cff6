//! Span, log lines, metrics and audit records of operations, and the [`Origin`] kept with each.
//!
//! Nothing here changes an answer. Lines hold ids and words, never a query, a body or a header. Requests
//! are logged by `sutler_server::RequestContext`.

use crate::audit::{AuditEntry, AuditOutcome, audit};
use crate::lifecycle::{Effect, Verb};
use crate::metrics::{self, OperationLabel, outcome_word};
use crate::resources::{BINDING, Request};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_journal::{Key, OperationId, Outcome, Run};
use sutler_server::{RequestContext, TraceParent, join_trace};
use tracing::Span;
use tracing::field::Empty;

/// The request that started an operation. Stored with it, so that a run after a restart has it too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Id of the request: the platform's, else one of the server's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Name of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

impl From<&RequestContext> for Origin {
    fn from(context: &RequestContext) -> Self {
        Self {
            request_id: context.request_id().to_owned(),
            caller: context.caller().map(|caller| caller.name.to_string()),
            trace: context.trace(),
        }
    }
}

/// Logs and counts operations that a commit started.
pub(crate) fn accepted(
    lane: &Key,
    effects: &[Effect],
    request: &Request,
    context: Option<&RequestContext>,
) {
    for effect in effects {
        if let Effect::Start(verb, id) | Effect::StartWaiting(verb, id) = *effect {
            metrics::operation_accepted(verb.into());
            if let Some(context) = context {
                context.set_operation(id.0);
            }
            audit(
                verb.word(),
                AuditOutcome::Accepted,
                &entry(lane, id, request),
            );
        }
    }
}

/// Span of a run: a child of the request that started it, also after a restart.
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
    join_trace(&span, origin.and_then(|it| it.trace.as_ref()));
    span
}

/// Span of a hook.
pub(crate) fn hook_span(run: &Run) -> Span {
    let verb = &run.operation().row.verb;
    tracing::info_span!(target: "sutler::hook", "hook", otel.name = %format_args!("hook {verb}"))
}

/// Logs and counts an operation whose end is committed.
pub(crate) fn ended(run: &Run, verb: Verb, outcome: Outcome, request: Option<&Request>) {
    let row = &run.operation().row;
    let after = age(row.id);
    metrics::operation_ended(OperationLabel::from(verb), outcome, after);
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

/// Time since an operation was accepted, taken from its id.
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
    use super::age;
    use std::time::Duration;
    use sutler_journal::OperationId;

    #[test]
    fn an_operation_that_was_just_accepted_is_young() {
        assert!(age(OperationId::fresh()) < Duration::from_secs(60));
    }
}
