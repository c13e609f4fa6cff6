//! Audit of the broker: a log line per change, and the entries of operators' commands in the trail.
//!
//! Every change that the broker accepts, its end, and every command of an operator is an event with the
//! target [`AUDIT_TARGET`]; the program chooses the output. A line contains no secret: of the originating
//! identity only the platform, and digests of the user's name and of the whole. The identity itself is
//! sealed with the operation that the line names. Sealing of entries: `sutler_records`.

use crate::resources::BINDING;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use sutler_journal::{Key, OperationId, Outcome};
use sutler_osb::OriginatingIdentity;
pub(crate) use sutler_records::audit_enabled;
pub use sutler_records::{AUDIT_TARGET, AuditOutcome};
use sutler_records::{AuditLine, AuditRecord, AuditResult, log_audit};

/// One entry. Fields that do not apply are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditEntry<'a> {
    /// Authenticated caller.
    pub caller: Option<&'a str>,
    /// Originating identity.
    pub identity: Option<&'a OriginatingIdentity>,
    /// Realm of the store.
    pub realm: Option<&'a str>,
    /// The instance.
    pub instance: Option<&'a str>,
    /// The binding.
    pub binding: Option<&'a str>,
    /// Id of the operation.
    pub operation: Option<OperationId>,
    /// Id of the request.
    pub request_id: Option<&'a str>,
    /// Reason or amount: a sentence without secrets.
    pub note: Option<&'a str>,
}

/// Writes one line. `verb`: the name of the change (`provision`, `purge` …).
pub fn audit(verb: &'static str, outcome: AuditOutcome, entry: &AuditEntry<'_>) {
    if !audit_enabled() {
        return;
    }
    let user = entry.identity.and_then(user_of);
    let digest = entry.identity.map(digest_of);
    let line = AuditLine {
        caller: entry.caller,
        platform: entry.identity.map(|it| it.platform.as_str()),
        user_digest: user.as_deref(),
        identity_digest: digest.as_deref(),
        realm: entry.realm,
        instance: entry.instance,
        binding: entry.binding,
        operation: entry.operation,
        request_id: entry.request_id,
        note: entry.note,
    };
    log_audit(verb, outcome, &line);
}

/// Command of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditAction {
    Retry,
    Cancel,
    Abandon,
    Purge,
    Drain,
    Resume,
    Export,
    Import,
    Backup,
    Rekey,
    /// A command of an extension.
    #[serde(rename = "order")]
    ExtensionCommand,
}

impl AuditAction {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Abandon => "abandon",
            Self::Purge => "purge",
            Self::Drain => "drain",
            Self::Resume => "resume",
            Self::Export => "export",
            Self::Import => "import",
            Self::Backup => "backup",
            Self::Rekey => "rekey",
            Self::ExtensionCommand => "order",
        }
    }
}

/// Subject of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditSubject {
    /// `instance`, `binding` or `broker`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<String>,
}

impl AuditSubject {
    /// The broker as a whole.
    pub(crate) fn broker() -> Self {
        Self {
            kind: "broker".to_owned(),
            instance_id: None,
            binding_id: None,
        }
    }

    /// The resource with this key.
    pub(crate) fn of(key: &Key) -> Self {
        let binding = key.kind() == BINDING.as_str();
        Self {
            kind: key.kind().to_owned(),
            instance_id: Some(key.id(0).to_owned()),
            binding_id: binding.then(|| key.id(1).to_owned()),
        }
    }
}

/// Entry of the audit trail.
pub(crate) type TrailEntry = AuditRecord<AuditAction, AuditSubject>;

/// Logs an entry that was written.
pub(crate) fn log_entry(entry: &TrailEntry, realm: &str) {
    let outcome = match entry.outcome {
        AuditResult::Started => AuditOutcome::Accepted,
        AuditResult::Done | AuditResult::NothingToDo => AuditOutcome::Ended(Outcome::Succeeded),
        AuditResult::Refused => AuditOutcome::Refused,
    };
    let note = entry.note();
    let line = AuditEntry {
        caller: Some(&entry.who),
        realm: Some(realm),
        instance: entry.on.instance_id.as_deref(),
        binding: entry.on.binding_id.as_deref(),
        operation: entry.operation,
        note: note.as_deref(),
        ..AuditEntry::default()
    };
    audit(entry.verb.word(), outcome, &line);
}

/// Digest of the user's name: lines can be found by name, but do not reveal it.
fn user_of(identity: &OriginatingIdentity) -> Option<String> {
    // Fields of Cloud Foundry and Kubernetes.
    let name = ["user_id", "username", "uid", "user"]
        .into_iter()
        .find_map(|member| identity.value.get(member).and_then(Value::as_str))?;
    Some(digest(name))
}

/// Digest of a whole identity, to distinguish identities without revealing them.
fn digest_of(identity: &OriginatingIdentity) -> String {
    digest(&Value::Object(identity.value.clone()).to_string())
}

/// First 16 hex digits of the SHA-256.
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
    fn audit_lines_are_found_by_the_digest_of_the_user_name() {
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
