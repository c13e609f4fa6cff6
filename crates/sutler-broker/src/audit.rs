//! Who changed what: one event per change, on a target of its own.
//!
//! Every change that the broker accepts, its end, and every verb of the administration is an event
//! with the target [`AUDIT_TARGET`]; whoever runs the program decides where these go. An entry names
//! who was let in, on whose behalf, what was done to what, and what came of it. It holds no secret:
//! of the originating identity only the platform, the name of the user, and a digest of the rest.

use crate::measure::outcome_word;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use sutler_journal::{OperationId, Outcome};
use sutler_osb::OriginatingIdentity;

/// The target of audit events.
pub const AUDIT_TARGET: &str = "sutler::audit";

/// Longest name of a user that is written, in characters.
const USER_CHARS_MAX: usize = 256;

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
    if !tracing::enabled!(target: AUDIT_TARGET, tracing::Level::INFO) {
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
        user = user.as_deref(),
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

/// The user's name: where Cloud Foundry and Kubernetes put it.
fn user_of(identity: &OriginatingIdentity) -> Option<String> {
    let name = ["user_id", "username", "uid", "user"]
        .into_iter()
        .find_map(|member| identity.value.get(member).and_then(Value::as_str))?;
    let visible = name.chars().filter(|character| !character.is_control());
    Some(visible.take(USER_CHARS_MAX).collect())
}

/// Tells two identities apart without saying what is in them.
fn digest_of(identity: &OriginatingIdentity) -> String {
    let value = Value::Object(identity.value.clone()).to_string();
    let digest = Sha256::digest(value.as_bytes());
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
    fn the_user_is_named_and_nothing_else_of_the_identity() {
        let given =
            serde_json::json!({"username": "duke\n", "groups": ["admin"], "extra": {"t": 1}});
        let identity = identity(given);
        assert_eq!(user_of(&identity).as_deref(), Some("duke"));
        assert_eq!(digest_of(&identity).len(), 16);
    }

    #[test]
    fn an_identity_without_a_name_has_only_its_digest() {
        let one = identity(serde_json::json!({"groups": ["a"]}));
        let other = identity(serde_json::json!({"groups": ["b"]}));
        assert_eq!(user_of(&one), None);
        assert_ne!(digest_of(&one), digest_of(&other));
    }
}
