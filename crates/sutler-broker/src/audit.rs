//! Who changed what: one event per change, on a target of its own.
//!
//! Every change that the broker accepts, its end, and every verb of the administration is an event
//! with the target [`AUDIT_TARGET`]; whoever runs the program decides where these go. An entry names
//! who was let in, on whose behalf, what was done to what, and what came of it. It holds no secret:
//! of the originating identity only the platform, and digests of the user's name and of the whole. The
//! identity itself is sealed with the operation that the entry names.

use crate::metrics::outcome_word;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use sutler_journal::{OperationId, Outcome};
use sutler_osb::OriginatingIdentity;

/// The target of audit events.
pub const AUDIT_TARGET: &str = "sutler::audit";

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was written down and will be carried out.
    Accepted,
    /// It was refused, and nothing changed.
    Refused,
    /// It was carried out, and ended like this.
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

/// One entry. What does not apply is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditEntry<'a> {
    /// Who was let in.
    pub caller: Option<&'a str>,
    /// On whose behalf.
    pub identity: Option<&'a OriginatingIdentity>,
    /// Which part of the store.
    pub realm: Option<&'a str>,
    /// The instance.
    pub instance: Option<&'a str>,
    /// The binding.
    pub binding: Option<&'a str>,
    /// The operation that does it.
    pub operation: Option<OperationId>,
    /// The request that asked for it.
    pub request_id: Option<&'a str>,
    /// Why, or how much: a sentence without secrets.
    pub note: Option<&'a str>,
}

/// Writes one entry: `verb` is what was done, as a word (`provision`, `purge` …).
pub fn audit(verb: &'static str, outcome: AuditOutcome, entry: &AuditEntry<'_>) {
    if !audits() {
        return;
    }
    let user = entry.identity.and_then(user_of);
    let digest = entry.identity.map(digest_of);
    let operation = entry.operation.map(|id| id.to_string());
    tracing::info!(
        target: AUDIT_TARGET,
        verb,
        outcome = outcome.word(),
        caller = entry.caller,
        platform = entry.identity.map(|it| it.platform.as_str()),
        user_digest = user.as_deref(),
        identity_digest = digest.as_deref(),
        realm = entry.realm,
        instance.id = entry.instance,
        binding.id = entry.binding,
        operation.id = operation.as_deref(),
        request.id = entry.request_id,
        note = entry.note,
        "audit"
    );
}

/// Whether anybody listens.
pub(crate) fn audits() -> bool {
    tracing::enabled!(target: AUDIT_TARGET, tracing::Level::INFO)
}

/// A digest of the user's name: who knows a name finds its lines, who reads lines learns no name.
fn user_of(identity: &OriginatingIdentity) -> Option<String> {
    // Where Cloud Foundry and Kubernetes put it.
    let name = ["user_id", "username", "uid", "user"]
        .into_iter()
        .find_map(|member| identity.value.get(member).and_then(Value::as_str))?;
    Some(digest(name))
}

/// Tells two identities apart without saying what is in them.
fn digest_of(identity: &OriginatingIdentity) -> String {
    digest(&Value::Object(identity.value.clone()).to_string())
}

/// The first 16 digits of what `sha256sum` prints.
fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest[..8].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{digest_of, user_of};
    use sutler_osb::OriginatingIdentity;

    fn identity(value: serde_json::Value) -> OriginatingIdentity {
        let serde_json::Value::Object(value) = value else {
            panic!("an identity is an object");
        };
        OriginatingIdentity {
            platform: "kubernetes".to_owned(),
            value,
        }
    }

    #[test]
    fn who_knows_the_name_of_a_user_finds_its_lines() {
        let given = serde_json::json!({"username": "duke", "groups": ["admin"]});
        // printf %s duke | sha256sum | cut -c1-16
        assert_eq!(
            user_of(&identity(given)).as_deref(),
            Some("f6804460f509a765")
        );
    }

    #[test]
    fn an_identity_without_a_name_has_only_its_digest() {
        let one = identity(serde_json::json!({"groups": ["a"]}));
        let other = identity(serde_json::json!({"groups": ["b"]}));
        assert_eq!(user_of(&one), None);
        assert_ne!(digest_of(&one), digest_of(&other));
    }
}
