//! Seals a whole store with the current key of a ring, while brokers use it, so that older keys can be removed.
//!
//! A pass reads every document, operation and log chunk, and seals again those of an older key
//! (`rekey/store_pass.rs`, `rekey/reseal.rs`). The key of a record is written in front of it, so nothing has to be
//! remembered: after an interruption the next run skips finished records. Passes are repeated until one finds nothing to
//! do, which is the proof, at most five times. [`key_usage`] counts the records of each key and changes nothing.
//! Design: `docs/adr/0016-…`. Not here: the keys themselves (`seal.rs`) and their file (`key_file.rs`).

mod reseal;
mod store_pass;
#[cfg(test)]
mod tests;

use crate::document::IndexedDocument;
use crate::inspect::next_documents;
use crate::seal::{KeyId, KeyRing, SealContext};
use crate::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use store_pass::{Pass, PassResult};
use tokio::sync::watch;

/// Maximum passes. More than two are needed only if others still write with an older key.
const PASSES_MAX: u32 = 5;

/// Records by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Documents.
    pub documents: u64,
    /// Operations: each once, whatever number of its parts is meant.
    pub operations: u64,
    /// Chunks of logs.
    pub log_chunks: u64,
}

impl RecordCounts {
    /// The sum.
    pub fn total(self) -> u64 {
        self.documents + self.operations + self.log_chunks
    }

    fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.operations += other.operations;
        self.log_chunks += other.log_chunks;
    }
}

/// Records of each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// By key. An operation whose parts have different keys counts for each of them.
    pub by_key: BTreeMap<KeyId, RecordCounts>,
    /// Everything that was read.
    pub seen: RecordCounts,
    /// Number of records with a part that names no key: they are damaged.
    pub damaged: u64,
}

impl KeyUsage {
    /// The records of a key.
    pub fn of(&self, key: &KeyId) -> RecordCounts {
        self.by_key.get(key).copied().unwrap_or_default()
    }
}

/// A record that stays as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RekeyFailure {
    /// Readable name of the record.
    pub record: String,
    /// Why it was not sealed again.
    pub reason: String,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RekeyProgress {
    /// Number of the pass, from 1.
    pub pass: u32,
    /// Read in this pass.
    pub seen: RecordCounts,
    /// Sealed again in all passes.
    pub resealed: RecordCounts,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RekeyReport {
    /// Read in the last pass.
    pub seen: RecordCounts,
    /// Sealed again in all passes.
    pub resealed: RecordCounts,
    /// Records that still have an older key.
    pub left: BTreeMap<KeyId, RecordCounts>,
    /// The last pass found nothing to do.
    pub settled: bool,
    /// Records that cannot be sealed again; at most twenty.
    pub failures: Vec<RekeyFailure>,
    /// Number of all of them.
    pub failed: u64,
}

impl RekeyReport {
    /// Whether no record needs an older key.
    pub fn is_complete(&self) -> bool {
        self.settled && self.left.is_empty() && self.failed == 0
    }
}

/// Number of records in a store that a pass reads, for its progress; chunks of logs are not known before.
///
/// # Errors
/// The store did not answer.
pub async fn expected_records(store: &dyn Store) -> Result<u64, StoreError> {
    let (info, stats) = (store.info().await?, store.stats().await?);
    Ok(info.documents + stats.live + stats.terminal)
}

/// Counts the records of each key. Reads the whole store; nothing is opened or changed.
///
/// # Errors
/// The store did not answer.
pub async fn key_usage(
    store: &Arc<dyn Store>,
    progress: &watch::Sender<RekeyProgress>,
) -> Result<KeyUsage, StoreError> {
    let counted = Pass::new(store, None, progress).run().await?;
    Ok(counted.usage)
}

/// Whether a document of the store is sealed with the current key of a ring and opens with it. An empty store and
/// one of other keys have none, also if those keys have the same ids.
///
/// # Errors
/// The store did not answer.
pub async fn has_documents_of(store: &dyn Store, keys: &KeyRing) -> Result<bool, StoreError> {
    let current = keys.current();
    let opens = |it: &IndexedDocument| {
        let (key, body) = (&it.document.key, &it.document.body);
        KeyId::of_sealed(body).is_ok_and(|id| id == current)
            && keys.open(SealContext::Document(key), body).is_ok()
    };
    let mut from = Some(Vec::new());
    while let Some(start) = from {
        let (page, next) = next_documents(store, &start).await?;
        if page.iter().any(opens) {
            return Ok(true);
        }
        from = next;
    }
    Ok(false)
}

/// Seals everything with the current key of a ring.
///
/// # Errors
/// The store did not answer. Everything that was sealed until then stays so, and another run continues.
pub async fn rekey(
    store: &Arc<dyn Store>,
    keys: &Arc<KeyRing>,
    progress: &watch::Sender<RekeyProgress>,
) -> Result<RekeyReport, StoreError> {
    let mut report = RekeyReport::default();
    for pass in 1..=PASSES_MAX {
        progress.send_modify(|it| {
            it.pass = pass;
            it.seen = RecordCounts::default();
        });
        let done = Pass::new(store, Some(keys), progress).run().await?;
        report.resealed.add(done.resealed);
        let settled = done.resealed.total() == 0 && done.contended == 0;
        report = RekeyReport {
            settled,
            resealed: report.resealed,
            ..summary(done, &keys.current())
        };
        if settled {
            break;
        }
    }
    Ok(report)
}

fn summary(done: PassResult, current: &KeyId) -> RekeyReport {
    let mut left = done.usage.by_key;
    left.remove(current);
    RekeyReport {
        seen: done.usage.seen,
        left,
        failures: done.failures,
        failed: done.failed,
        ..RekeyReport::default()
    }
}
