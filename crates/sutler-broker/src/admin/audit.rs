//! The audit trail: who ordered what, when, on what, why, and what came of it.
//!
//! An entry is a sealed document of its own kind, written in the same commit as what it tells of. Its
//! name begins with the time counted backwards, so that a plain list by name has the newest first. The
//! same is said as an event (`audit.rs` of the crate), for logs.

use crate::audit::{AuditEntry, AuditOutcome, audit};
use crate::records::{RecordError, Records};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_journal::{Key, Kind, OperationId, Outcome, SealContext};

/// What audit entries are kept under.
pub(crate) const AUDIT: Kind = Kind::new("audit");

/// What can be ordered, all in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Deed {
    Retry,
    Cancel,
    Abandon,
    Purge,
    Drain,
    Resume,
    Export,
    Import,
    Backup,
    /// An order of whoever builds on the framework.
    Order,
}

impl Deed {
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
            Self::Order => "order",
        }
    }
}

/// Who ordered it, and why.
#[derive(Clone, Debug)]
pub(crate) struct By {
    pub who: String,
    pub reason: String,
}

impl By {
    /// Somebody who gave no reason.
    pub(crate) fn wordless(who: String) -> Self {
        let reason = String::new();
        Self { who, reason }
    }
}

/// What an order was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// `instance`, `binding` or `broker`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<String>,
}

impl Subject {
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
        let binding = key.kind() == crate::records::BINDING.as_str();
        Self {
            kind: key.kind().to_owned(),
            instance_id: Some(key.id(0).to_owned()),
            binding_id: binding.then(|| key.id(1).to_owned()),
        }
    }
}

/// What came of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Came {
    /// An operation was started for it.
    Started,
    /// It is done.
    Done,
    /// It was so already.
    NothingToDo,
    /// It changed nothing, and its sentence says why.
    Refused,
}

impl Came {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Done => "done",
            Self::NothingToDo => "nothing_to_do",
            Self::Refused => "refused",
        }
    }
}

/// One line of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its name in the trail.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who.
    pub who: String,
    /// What was ordered.
    pub verb: Deed,
    /// On what.
    pub on: Subject,
    /// Why, as they said.
    pub reason: String,
    /// What came of it.
    pub outcome: Came,
    /// The operation it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// What else there is to say, such as why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Entry {
    /// A fresh one.
    pub(crate) fn new(verb: Deed, on: Subject, by: &By, outcome: Came) -> Self {
        let at_ms = now_ms();
        Self {
            id: name(OperationId::fresh()),
            at_ms,
            who: by.who.clone(),
            verb,
            on,
            reason: by.reason.clone(),
            outcome,
            operation: None,
            message: None,
        }
    }

    /// With the operation it was about.
    pub(crate) fn about(mut self, operation: Option<OperationId>) -> Self {
        self.operation = operation;
        self
    }

    /// With what else there is to say.
    pub(crate) fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Where it is kept, and its sealed content.
    pub(crate) fn sealed(&self, records: &Records) -> (Key, Bytes) {
        let key = records.key(AUDIT, &self.id);
        let body = records.seal(SealContext::Document(&key), self);
        (key, body)
    }

    /// Reads one back.
    pub(crate) fn open(records: &Records, key: &Key, body: &[u8]) -> Result<Self, RecordError> {
        records
            .open(SealContext::Document(key), body)
            .map(|(entry, _)| entry)
    }

    /// Says it where logs are kept.
    pub(crate) fn tell(&self, realm: &str) {
        let outcome = match self.outcome {
            Came::Started => AuditOutcome::Accepted,
            Came::Done | Came::NothingToDo => AuditOutcome::Ended(Outcome::Succeeded),
            Came::Refused => AuditOutcome::Refused,
        };
        let words = [Some(self.reason.as_str()), self.message.as_deref()];
        let said: Vec<&str> = words
            .into_iter()
            .flatten()
            .filter(|it| !it.is_empty())
            .collect();
        let note = said.join("; ");
        let entry = AuditEntry {
            caller: Some(&self.who),
            realm: Some(realm),
            instance: self.on.instance_id.as_deref(),
            binding: self.on.binding_id.as_deref(),
            operation: self.operation,
            note: Some(note.as_str()).filter(|it| !it.is_empty()),
            ..AuditEntry::default()
        };
        audit(self.verb.word(), outcome, &entry);
    }
}

/// Now, in milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The name of an entry, made of an id that grows with time: sorts before all that are older.
fn name(unique: OperationId) -> String {
    format!("{:032x}", !unique.0.as_u128())
}

/// Sorts before the name of every entry that is as old or older. Ids begin with 48 bits of time.
fn older_than(at_ms: u64) -> String {
    format!("{:012x}", !at_ms & 0xffff_ffff_ffff)
}

/// A name that sorts before all entries older than `kept`, and after all that are to be kept.
pub(crate) fn name_of_oldest_kept(kept: Duration) -> String {
    oldest_kept(now_ms(), kept)
}

fn oldest_kept(now_ms: u64, kept: Duration) -> String {
    let kept = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
    older_than(now_ms.saturating_sub(kept))
}

#[cfg(test)]
mod tests {
    use super::{name, oldest_kept};
    use std::time::Duration;
    use sutler_journal::OperationId;
    use uuid::Uuid;

    fn at(ms: u128, number: u128) -> OperationId {
        OperationId(Uuid::from_u128((ms << 80) | (7 << 76) | number))
    }

    #[test]
    fn a_list_by_name_has_the_newest_first() {
        assert!(name(at(2_000, 1)) < name(at(1_000, 9)));
        assert!(
            name(at(2_000, 2)) < name(at(2_000, 1)),
            "of one moment, too"
        );
        assert!(name(OperationId::fresh()) < name(at(2_000, 1)));
    }

    #[test]
    fn what_is_kept_sorts_before_the_limit_and_what_is_not_after_it() {
        let limit = oldest_kept(10_000, Duration::from_secs(5));
        assert!(name(at(6_000, 1)) < limit);
        assert!(name(at(4_999, 1)) > limit);
    }
}
