//! Findings of a check, with messages for operators: the problem and the remedy.

use crate::key::Key;
use crate::operation::OperationId;
use crate::printable::printable;
use std::fmt;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Normal after a crash or during work, and worth knowing.
    Notice,
    /// An inconsistency that must not occur.
    Fault,
}

/// An inconsistency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A document points to an operation that does not exist.
    NoOperation(Key, OperationId),
    /// A document points to an operation that a sweep may delete.
    Unpinned(Key, OperationId),
    /// An operation has not ended, and the document of its lane does not point to it.
    NoDocument(Key, OperationId),
    /// An operation is pinned although no document points to it: it is never swept.
    PinnedInVain(Key, OperationId),
    /// Two operations of one lane run at the same time.
    TwoRun(Key, OperationId, OperationId),
    /// The terms of a document differ from those of its content: lists do not find it by its content.
    Misfiled(Key),
    /// A document refers to one that does not exist.
    NoDocumentReferredTo(Key, Key),
    /// A document refers to one that must refer back and does not.
    NotReferredBack(Key, Key),
    /// A document cannot be opened.
    SealedDocument(Key, String),
    /// An operation cannot be opened.
    SealedOperation(OperationId, String),
    /// Number of records of a realm that no reader of this build knows.
    UnknownRealm(String, u64),
    /// Number of logs without an operation.
    StrayLogs(u64),
    /// Number of operations running under expired leases.
    Abandoned(u64),
    /// The store is the target of a copy that is not finished.
    UnfinishedCopy,
    /// The store was moved to the named one.
    Moved(String),
    /// Number of findings that are not listed.
    AndMore(u64),
}

impl Finding {
    /// Severity.
    pub fn verdict(&self) -> Severity {
        match self {
            Self::NoOperation(..)
            | Self::Unpinned(..)
            | Self::NoDocument(..)
            | Self::TwoRun(..)
            | Self::Misfiled(_)
            | Self::NoDocumentReferredTo(..)
            | Self::NotReferredBack(..)
            | Self::SealedDocument(..)
            | Self::SealedOperation(..)
            | Self::AndMore(_) => Severity::Fault,
            Self::PinnedInVain(..)
            | Self::UnknownRealm(..)
            | Self::StrayLogs(_)
            | Self::Abandoned(_)
            | Self::UnfinishedCopy
            | Self::Moved(_) => Severity::Notice,
        }
    }

    /// Machine-readable name.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoOperation(..) => "operation_missing",
            Self::Unpinned(..) => "operation_unpinned",
            Self::NoDocument(..) => "operation_unreferenced",
            Self::PinnedInVain(..) => "operation_pinned_in_vain",
            Self::TwoRun(..) => "two_running",
            Self::Misfiled(_) => "terms_do_not_fit",
            Self::NoDocumentReferredTo(..) => "document_missing",
            Self::NotReferredBack(..) => "document_not_referred_to",
            Self::SealedDocument(..) => "document_sealed",
            Self::SealedOperation(..) => "operation_sealed",
            Self::UnknownRealm(..) => "realm_unknown",
            Self::StrayLogs(_) => "stray_logs",
            Self::Abandoned(_) => "lease_over",
            Self::UnfinishedCopy => "copy_unfinished",
            Self::Moved(_) => "moved",
            Self::AndMore(_) => "and_more",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOperation(key, id) => write!(
                f,
                "{} points to operation {id}, which is not there: purge it, or restore a backup",
                name(key)
            ),
            Self::Unpinned(key, id) => write!(
                f,
                "{} points to operation {id}, which clean-up may take: restore a backup, or let it end",
                name(key)
            ),
            Self::NoDocument(key, id) => write!(
                f,
                "operation {id} has not ended, and {} does not point to it: abandon it",
                name(key)
            ),
            Self::PinnedInVain(key, id) => write!(
                f,
                "operation {id} of {} is kept though nothing points to it: it only takes room",
                name(key)
            ),
            Self::TwoRun(key, one, other) => write!(
                f,
                "operations {one} and {other} of {} run at the same time: abandon the later one",
                name(key)
            ),
            Self::Misfiled(key) => write!(
                f,
                "{} is not listed under what it is: the next change of it puts that right",
                name(key)
            ),
            Self::NoDocumentReferredTo(from, to) => write_reference(f, (from, to), "is not there"),
            Self::NotReferredBack(from, to) => {
                write_reference(f, (from, to), "belongs to something else")
            }
            Self::SealedDocument(key, reason) => {
                write!(f, "{} cannot be opened: {reason}", name(key))
            }
            Self::SealedOperation(id, reason) => {
                write!(f, "operation {id} cannot be opened: {reason}")
            }
            Self::UnknownRealm(realm, count) => write!(
                f,
                "{count} records of realm {} are not known to this build and were not opened: check them with the program that wrote them",
                printable(realm)
            ),
            Self::StrayLogs(count) => {
                write!(
                    f,
                    "{count} logs belong to no operation: they only take room"
                )
            }
            Self::Abandoned(count) => write!(
                f,
                "{count} operations run under leases that ran out: a broker takes them over"
            ),
            Self::UnfinishedCopy => write!(
                f,
                "a copy into this store is not finished: run `sutler store copy` again"
            ),
            Self::Moved(to) => write!(
                f,
                "this store was moved to {to}: brokers refuse it until `sutler store reopen`"
            ),
            Self::AndMore(count) => write!(f, "{count} more were found: put these right first"),
        }
    }
}

fn write_reference(
    f: &mut fmt::Formatter<'_>,
    (from, to): (&Key, &Key),
    fault: &str,
) -> fmt::Result {
    let (from, to) = (name(from), name(to));
    write!(f, "{from} refers to {to}, which {fault}: restore a backup")
}

/// A readable form of a key.
pub(crate) fn name(key: &Key) -> String {
    let ids = [key.id(0), key.id(1), key.id(2)];
    let ids = ids.into_iter().filter(|id| !id.is_empty());
    let ids: Vec<String> = ids.map(printable).collect();
    let (kind, realm) = (printable(key.kind()), printable(key.realm()));
    format!("{kind} {} of realm {realm}", ids.join("/"))
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Documents that were read.
    pub documents: u64,
    /// Operations that were read.
    pub operations: u64,
    /// Inconsistencies, faults first.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// Whether there is any finding of severity `Fault`.
    pub fn has_faults(&self) -> bool {
        let fault = |it: &Finding| it.verdict() == Severity::Fault;
        self.findings.iter().any(fault)
    }
}
