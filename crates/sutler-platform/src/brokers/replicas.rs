//! The processes of the platform: each process renews its record once a minute.
//!
//! They share the limits of brokers by their number (`local_brokers.rs`), and operators see which build runs where.

use super::BrokersSettings;
use super::command_error::is_written;
use crate::platform_records::PlatformRecords;
use crate::records::{REPLICA, Record, ReplicaRecord};
use jiff::Timestamp;
use std::time::Duration;
use sutler_journal::{Commit, List, OperationId, SealContext, Version, Write, commit_until_known};
use sutler_records::RecordError;

/// Time between two writes of a process.
pub(super) const WRITTEN_EVERY: Duration = Duration::from_secs(60);
/// A process that wrote so lately lives: it may miss two of three writes.
pub const LIVE_WITHIN: Duration = Duration::from_secs(3 * 60);
/// A process that has not written for so long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
/// Most processes that are read.
const REPLICAS_MAX: usize = 1_000;

/// The processes.
pub struct Replicas {
    records: PlatformRecords,
    own: ReplicaRecord,
}

impl Replicas {
    /// The processes, of which this is one.
    pub(super) fn new(records: PlatformRecords, settings: BrokersSettings) -> Self {
        let now = records.now();
        let own = ReplicaRecord {
            id: OperationId::fresh().0,
            name: settings.replica_name,
            version: settings.version,
            started: now,
            written: now,
        };
        Self { records, own }
    }

    /// All processes that have written lately, live or not.
    ///
    /// # Errors
    /// The store does not answer, or a record cannot be opened.
    pub async fn list(&self) -> Result<Vec<ReplicaRecord>, RecordError> {
        let read = self.read().await?;
        Ok(read.into_iter().map(|(record, _)| record).collect())
    }

    /// Writes that this process lives.
    pub(super) async fn write(&self) -> Result<(), RecordError> {
        let key = self.records.keys.replica(self.own.id);
        let record = Record::of(ReplicaRecord {
            written: self.records.now(),
            ..self.own.clone()
        });
        let documents = &self.records.documents;
        let body = documents.seal(SealContext::Document(&key), &record);
        let terms = documents.terms_of(&key, &record);
        let commit = Commit::new().write(Write::Put { key, terms, body });
        self.commit(&commit).await
    }

    /// Removes the record of this process, which stops.
    pub(super) async fn remove(&self) -> Result<(), RecordError> {
        let key = self.records.keys.replica(self.own.id);
        self.commit(&Commit::new().write(Write::Remove(key))).await
    }

    /// Number of processes that live, this one included. Forgets those that have not written for long.
    pub(super) async fn count_live(&self) -> Result<u32, RecordError> {
        let now = self.records.now();
        let mut others: u32 = 0;
        for (record, version) in self.read().await? {
            let silent = silent_for(&record, now);
            if record.id == self.own.id {
                continue;
            }
            if silent < LIVE_WITHIN {
                others = others.saturating_add(1);
            } else if silent > FORGOTTEN_AFTER {
                let key = self.records.keys.replica(record.id);
                self.commit(&Commit::new().remove(key, version)).await?;
            }
        }
        Ok(others.saturating_add(1))
    }

    async fn read(&self) -> Result<Vec<(ReplicaRecord, Version)>, RecordError> {
        let list = List::Prefix(self.records.keys.all_of(REPLICA));
        let store = &self.records.documents.store;
        let page = store.list(&list, None, REPLICAS_MAX).await?;
        let mut found = Vec::with_capacity(page.documents.len());
        for document in page.documents {
            if let Some(record) = self.records.open::<ReplicaRecord>(&document)? {
                found.push((record, document.version));
            }
        }
        Ok(found)
    }

    /// Commits; if another writer was first, that is as good.
    async fn commit(&self, commit: &Commit) -> Result<(), RecordError> {
        let store = self.records.documents.store.as_ref();
        is_written(commit_until_known(store, commit).await)?;
        Ok(())
    }
}

fn silent_for(record: &ReplicaRecord, now: Timestamp) -> Duration {
    Duration::try_from(record.written.duration_until(now)).unwrap_or_default()
}
