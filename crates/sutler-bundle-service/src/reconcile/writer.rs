//! Writes the result of a refresh in batches, each consistent by itself.
//!
//! Versions are written first, as they are read, so that at most one batch of them is in memory; then the specs
//! that name them; last the registries, together with the next generation. If only registries changed, that is one
//! commit. Readers learn from the generation what may have changed (`Generation`).

use super::records::{
    Generation, REGISTRIES, RegistryRecords, SPECS, SpecRecord, VERSIONS, VersionRecord, id_of,
    put_generation,
};
use std::collections::BTreeSet;
use sutler_broker::{BATCH_BYTES_MAX, BATCH_WRITES_MAX, Batch, Revision, TaskContext, TaskResult};
use sutler_registry::{KnownRegistry, SpecName};

/// Writes records in batches, each consistent by itself.
pub(super) struct Writer<'a> {
    task: &'a TaskContext,
    generation: Generation,
    revision: Option<Revision>,
    specs_changed: bool,
    /// Another process wrote: nothing more is written.
    stale: bool,
    batch: Option<Batch<'a>>,
    /// Versions of the next batch, and their total size.
    versions: Vec<(String, VersionRecord)>,
    bytes: usize,
    /// All versions that were written or are queued.
    written: BTreeSet<String>,
    registries: Vec<(String, Option<Revision>, KnownRegistry)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(task: &'a TaskContext, records: &RegistryRecords) -> Self {
        let generation = records.generation.as_ref();
        let value = generation.map(|it| it.value).unwrap_or_default();
        Self {
            task,
            generation: value,
            revision: generation.map(|it| it.revision),
            // An earlier refresh was interrupted: its specs become part of the next generation.
            specs_changed: value.dirty,
            stale: false,
            batch: None,
            versions: Vec::new(),
            bytes: 0,
            written: BTreeSet::new(),
            registries: Vec::new(),
        }
    }

    /// Writes a version that a spec is about to name.
    pub(super) async fn put_version(
        &mut self,
        digest: &str,
        record: &VersionRecord,
    ) -> TaskResult<()> {
        if self.stale || !self.written.insert(digest.to_owned()) {
            return Ok(());
        }
        let bytes = record.manifest.len();
        let full = self.versions.len() >= BATCH_WRITES_MAX;
        if full || self.bytes + bytes > BATCH_BYTES_MAX / 2 {
            self.write_versions().await?;
        }
        if !self.generation.filling && !self.generation.dirty {
            let filling = Generation {
                filling: true,
                ..self.generation
            };
            self.enter(filling).await?;
        }
        self.bytes += bytes;
        self.versions.push((digest.to_owned(), record.clone()));
        Ok(())
    }

    /// Writes a spec; its version was put before.
    pub(super) async fn put_spec(
        &mut self,
        name: &SpecName,
        was: Option<Revision>,
        record: &SpecRecord,
    ) -> TaskResult<()> {
        self.write_versions().await?;
        if !self.generation.dirty {
            let dirty = Generation {
                dirty: true,
                ..self.generation
            };
            self.enter(dirty).await?;
        }
        if self.stale {
            return Ok(());
        }
        self.specs_changed = true;
        let batch = self.batch.take().unwrap_or_else(|| self.task.batch());
        let batch = batch.put(SPECS, &id_of(name), was, record);
        match batch.is_full() {
            true => self.commit(batch).await,
            false => {
                self.batch = Some(batch);
                Ok(())
            }
        }
    }

    /// Queues a registry, which is written at the end.
    pub(super) fn put_registry(&mut self, name: &str, was: Option<Revision>, known: KnownRegistry) {
        self.registries.push((name.to_owned(), was, known));
    }

    /// Completes the generation, if anything was written. Returns whether everything was.
    pub(super) async fn end(mut self) -> TaskResult<bool> {
        self.write_versions().await?;
        if let Some(batch) = self.batch.take() {
            self.commit(batch).await?;
        }
        let begun = self.generation.filling || self.generation.dirty;
        if self.stale || (!begun && self.registries.is_empty()) {
            return Ok(!self.stale);
        }
        let mut batch = self.task.batch();
        for (name, was, known) in std::mem::take(&mut self.registries) {
            if batch.is_full() {
                self.commit(batch).await?;
                batch = self.task.batch();
            }
            batch = batch.put(REGISTRIES, &name, was, &known);
        }
        let next = self.generation.next(self.specs_changed);
        if !self.stale {
            self.commit(put_generation(batch, self.revision, next))
                .await?;
        }
        Ok(!self.stale)
    }

    /// Writes the queued versions. An existing version is written again, so that a concurrent deletion conflicts.
    async fn write_versions(&mut self) -> TaskResult<()> {
        let versions = std::mem::take(&mut self.versions);
        self.bytes = 0;
        if self.stale || versions.is_empty() {
            return Ok(());
        }
        let each = versions.iter();
        let new = each.fold(self.task.batch(), |batch, (digest, record)| {
            batch.put(VERSIONS, digest, None, record)
        });
        if self.task.write(new).await? {
            return Ok(());
        }
        let mut batch = self.task.batch();
        for (digest, record) in &versions {
            let there = self
                .task
                .collections()
                .get::<VersionRecord>(VERSIONS, digest);
            let was = there.await?.map(|it| it.revision);
            batch = batch.put(VERSIONS, digest, was, record);
        }
        self.commit(batch).await
    }

    async fn enter(&mut self, next: Generation) -> TaskResult<()> {
        let batch = put_generation(self.task.batch(), self.revision, next);
        let revision = batch.revision();
        self.commit(batch).await?;
        (self.generation, self.revision) = (next, Some(revision));
        Ok(())
    }

    async fn commit(&mut self, batch: Batch<'a>) -> TaskResult<()> {
        self.stale |= !self.task.write(batch).await?;
        Ok(())
    }
}
