//! Audit trail: sealed entries about commands of operators, written in the same commit as the change.
//!
//! The name of an entry begins with the inverted time, so that a list by name has the newest first.
//! Actions and subjects belong to the crate above. The same entry as a log line: `audit_log.rs`.

use crate::{Documents, RecordError};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sutler_journal::{
    Commit, CommitError, Key, Kind, OperationId, SealContext, StoreTime, commit_until_known,
    wall_clock,
};

/// How much longer entries are kept than requested: they are named by the clock of their writer, which may be behind
/// the clock of the store.
pub const AUDIT_CLOCK_MARGIN: Duration = Duration::from_secs(24 * 3600);

/// Kind of the entries.
pub const AUDIT: Kind = Kind::new("audit");

/// Author of a command and its reason.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Name of the operator.
    pub who: String,
    /// Reason; may be empty.
    pub reason: String,
}

impl Actor {
    /// An actor with an empty reason.
    #[must_use]
    pub fn without_reason(who: String) -> Self {
        let reason = String::new();
        Self { who, reason }
    }
}

/// Result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditResult {
    /// An operation was started, or a command whose end has an entry of its own.
    Started,
    /// The command was carried out.
    Done,
    /// There was nothing to change.
    NothingToDo,
    /// Not carried out, or not to the end; the message has the reason.
    Refused,
}

impl AuditResult {
    /// Name in stored entries.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Done => "done",
            Self::NothingToDo => "nothing_to_do",
            Self::Refused => "refused",
        }
    }
}

/// One entry of the trail. `A`: the actions, `S`: the subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord<A, S> {
    /// Name in the trail.
    pub id: String,
    /// Time, in milliseconds since 1970.
    pub at_ms: u64,
    /// Operator.
    pub who: String,
    /// Action.
    pub verb: A,
    /// Subject of the action.
    pub on: S,
    /// Reason of the operator.
    pub reason: String,
    /// Result.
    pub outcome: AuditResult,
    /// Operation that the action concerned or started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Further text, such as the reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl<A: Serialize + DeserializeOwned, S: Serialize + DeserializeOwned> AuditRecord<A, S> {
    /// An entry of this moment.
    pub fn new(action: A, subject: S, by: &Actor, outcome: AuditResult) -> Self {
        Self {
            id: name(OperationId::fresh()),
            at_ms: now_ms(),
            who: by.who.clone(),
            verb: action,
            on: subject,
            reason: by.reason.clone(),
            outcome,
            operation: None,
            message: None,
        }
    }

    /// Sets the operation.
    #[must_use]
    pub fn with_operation(mut self, operation: Option<OperationId>) -> Self {
        self.operation = operation;
        self
    }

    /// Sets the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Reason and message in one text, if there is any.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let texts = [Some(self.reason.as_str()), self.message.as_deref()];
        let texts: Vec<&str> = texts
            .into_iter()
            .flatten()
            .filter(|it| !it.is_empty())
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Key and sealed content.
    #[must_use]
    pub fn sealed(&self, documents: &Documents) -> (Key, Bytes) {
        let key = documents.key(AUDIT, &self.id);
        let body = documents.seal(SealContext::Document(&key), self);
        (key, body)
    }

    /// Writes the entry by itself, for a command that changed no document.
    ///
    /// # Errors
    /// The store does not write.
    pub async fn write(&self, documents: &Documents) -> Result<(), CommitError> {
        let (key, body) = self.sealed(documents);
        let commit = Commit::new().insert(key, Vec::new(), body);
        commit_until_known(documents.store.as_ref(), &commit).await
    }

    /// Opens a stored entry.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(documents: &Documents, key: &Key, body: &[u8]) -> Result<Self, RecordError> {
        documents
            .open(SealContext::Document(key), body)
            .map(|(entry, _)| entry)
    }
}

/// Now, in milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(wall_clock().as_millis()).unwrap_or(u64::MAX)
}

/// Name of an entry, made of an id that grows with time: sorts before all older ones.
fn name(unique: OperationId) -> String {
    format!("{:032x}", !unique.0.as_u128())
}

/// Sorts before the name of every entry of this time or before. Ids begin with 48 bits of time.
fn older_than(at_ms: u64) -> String {
    format!("{:012x}", !at_ms & 0xffff_ffff_ffff)
}

/// A name that sorts before all entries that are older than `kept`, with [`AUDIT_CLOCK_MARGIN`], at a time of the store,
/// and after all that are to be kept. At the beginning of time nothing is old.
#[must_use]
pub fn name_of_oldest_kept(now: StoreTime, kept: Duration) -> String {
    let oldest = now.minus(kept.saturating_add(AUDIT_CLOCK_MARGIN));
    older_than(u64::try_from(oldest.0 / 1000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{AUDIT_CLOCK_MARGIN, name, name_of_oldest_kept};
    use std::time::Duration;
    use sutler_journal::{OperationId, StoreTime};
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
    fn kept_entries_sort_before_the_limit_and_old_ones_after_it() {
        let now = StoreTime(10_000_000).plus(AUDIT_CLOCK_MARGIN);
        let limit = name_of_oldest_kept(now, Duration::from_secs(5));
        assert!(name(at(6_000, 1)) < limit);
        assert!(name(at(4_999, 1)) > limit);
    }

    #[test]
    fn every_entry_is_kept_if_the_time_of_the_store_is_unknown() {
        let limit = name_of_oldest_kept(StoreTime::default(), Duration::ZERO);
        assert!(name(at(1, 1)) < limit);
    }
}
