//! Audit log: one event per change, on its own tracing target. The program chooses the output.
//!
//! A line names caller, verb, subject and outcome. It holds no secret: identities are passed as digests.
//! The trail of operators' commands in the store is in `audit.rs`.

use sutler_journal::{OperationId, Outcome};

/// Target of the events.
pub const AUDIT_TARGET: &str = "sutler::audit";

/// Outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was committed and will be carried out.
    Accepted,
    /// It was refused, and nothing changed.
    Refused,
    /// It was carried out and ended with this outcome.
    Ended(Outcome),
}

impl AuditOutcome {
    fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Ended(outcome) => outcome_word(outcome),
        }
    }
}

/// Name of an outcome in logs and metrics.
#[must_use]
pub fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    }
}

/// Fields of one line. A field that does not apply is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditLine<'a> {
    /// Authenticated caller.
    pub caller: Option<&'a str>,
    /// Platform of the originating identity.
    pub platform: Option<&'a str>,
    /// Digest of the name of the originating user.
    pub user_digest: Option<&'a str>,
    /// Digest of the originating identity.
    pub identity_digest: Option<&'a str>,
    /// Realm of the resource.
    pub realm: Option<&'a str>,
    /// Service instance.
    pub instance: Option<&'a str>,
    /// Service binding.
    pub binding: Option<&'a str>,
    /// Operation that carries the change out.
    pub operation: Option<OperationId>,
    /// Id of the request.
    pub request_id: Option<&'a str>,
    /// Free text without secrets.
    pub note: Option<&'a str>,
}

/// Writes one line. `verb`: the name of the change (`provision`, `purge` …).
pub fn log_audit(verb: &'static str, outcome: AuditOutcome, line: &AuditLine<'_>) {
    let operation = line.operation.map(|id| id.to_string());
    tracing::info!(
        target: AUDIT_TARGET,
        verb,
        outcome = outcome.word(),
        caller = line.caller,
        platform = line.platform,
        user_digest = line.user_digest,
        identity_digest = line.identity_digest,
        realm = line.realm,
        instance.id = line.instance,
        binding.id = line.binding,
        operation.id = operation.as_deref(),
        request.id = line.request_id,
        note = line.note,
        "audit"
    );
}

/// Whether any subscriber takes audit events.
#[must_use]
pub fn audit_enabled() -> bool {
    tracing::enabled!(target: AUDIT_TARGET, tracing::Level::INFO)
}
