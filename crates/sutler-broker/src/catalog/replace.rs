//! Builds the next catalog from offerings that stay and offerings that are new.
//!
//! An offering that stays is neither parsed nor checked again, and its plan copies are already stored. Its bytes
//! are reused if their neighbours stay too (`catalog/body_chunks.rs`). So a replacement costs as much as the
//! changes, plus one visit of each offering, on a thread that serves no requests.

use super::body_chunks::{ChunkBuffer, ChunkWriter};
use super::error::CatalogError;
use super::index::CatalogIndex;
use super::offering::{Offering, OfferingEntry, offerings};
use super::{CatalogPreconditions, CatalogSnapshot, LiveCatalog, PlanCache, Services, hex};
use crate::resources::PLAN;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use sutler_journal::{Commit, CommitError, Key, List, SealContext};
use sutler_osb::Catalog;
use sutler_records::{Documents, run_blocking};

/// Number of new plans from which the stored copies are listed instead of looked up one by one.
const LISTED_FROM: usize = 50;
/// Copies listed at a time.
const PAGE: usize = 200;
/// Maximum copies and bytes of one commit; a store accepts 100 and 1 MB.
const COPIES_MAX: usize = 90;
const COPIES_BYTES_MAX: usize = 400_000;

/// One offering of the next catalog.
#[derive(Clone, Debug)]
pub enum OfferingUpdate {
    /// Keeps the offering with this id.
    Same(String),
    /// Adds an offering, or replaces the one with its id.
    New(Offering),
}

/// The next catalog, and the positions of its new plans.
pub(super) struct NextCatalog {
    pub snapshot: CatalogSnapshot,
    pub new: Vec<(usize, usize)>,
}

/// All offerings of a catalog, as new ones.
pub(super) fn updates_of(
    catalog: &Catalog,
    services: &Services,
    buffer: &ChunkBuffer,
) -> Result<Vec<OfferingUpdate>, CatalogError> {
    let all = offerings(catalog, services, buffer)?;
    Ok(all.into_iter().map(OfferingUpdate::New).collect())
}

impl LiveCatalog {
    /// Replaces the whole catalog; copies of its plans are stored before it is published.
    pub(crate) async fn replace<'a>(
        &self,
        realm_contexts: impl Iterator<Item = &'a Documents>,
        updates: Vec<OfferingUpdate>,
        preconditions: CatalogPreconditions,
    ) -> Result<(), CatalogError> {
        let (was, cache) = (self.snapshot(), self.cache.clone());
        let next = run_blocking(move || assemble(&was, updates, cache));
        let next = next
            .await
            .map_err(|error| CatalogError::Store(error.into()))?;
        let NextCatalog { mut snapshot, new } = next?;
        snapshot.set_preconditions(preconditions);
        for records in realm_contexts {
            store_copies(records, &snapshot, &new).await?;
        }
        let next = Arc::new(snapshot);
        *self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Stores the copies of all plans in the current catalog.
    pub(crate) async fn store_all_copies(&self, records: &Documents) -> Result<(), CatalogError> {
        let snapshot = self.snapshot();
        store_copies(records, &snapshot, snapshot.index.plans()).await
    }
}

/// Builds the next catalog. `was`: the current one.
pub(super) fn assemble(
    was: &CatalogSnapshot,
    updates: Vec<OfferingUpdate>,
    cache: Arc<PlanCache>,
) -> Result<NextCatalog, CatalogError> {
    let positions: Vec<Option<usize>> =
        updates.iter().map(|update| position(was, update)).collect();
    let mut entries = Vec::with_capacity(updates.len());
    let mut new = Vec::new();
    let mut writer = ChunkWriter::after(&was.chunks);
    for (nth, update) in updates.into_iter().enumerate() {
        let rest = positions.get(nth..).unwrap_or_default();
        let kept = writer.keep(rest);
        let entry = match update {
            OfferingUpdate::Same(id) => {
                let at = rest.first().copied().flatten().filter(|_| kept);
                let entry = at.and_then(|at| was.index.get(at)).cloned();
                entry.ok_or(CatalogError::NotOffered(id))?
            }
            // Its JSON is freed as soon as it is written: all of them together are as large as the body.
            OfferingUpdate::New(Offering { entry, json }) => {
                if !kept {
                    writer.write(&json);
                }
                new.extend((0..entry.plans.len()).map(|nth_plan| (nth, nth_plan)));
                entry
            }
        };
        entries.push(entry);
    }
    let chunks = writer.finish();
    let snapshot = CatalogSnapshot {
        etag: etag(&entries),
        index: CatalogIndex::of(entries)?,
        content: chunks.content(),
        chunks,
        preconditions: Box::default(),
        cache,
    };
    Ok(NextCatalog { snapshot, new })
}

/// Position of an offering in the current body, if it is identical there.
fn position(was: &CatalogSnapshot, update: &OfferingUpdate) -> Option<usize> {
    match update {
        OfferingUpdate::Same(id) => was.index.service(id),
        OfferingUpdate::New(Offering { entry, .. }) => {
            let nth = was.index.service(entry.service_id.as_str())?;
            let there = was.index.get(nth)?;
            Some(nth).filter(|_| there.digest == entry.digest)
        }
    }
}

/// Depends on the bytes of the body only: replicas that reached the same catalog in different ways return the
/// same tag.
fn etag(entries: &[Arc<OfferingEntry>]) -> String {
    let all = entries.iter().fold(Sha256::new(), |all, entry| {
        // All digests have the same length, so their concatenation is unambiguous.
        all.chain_update(entry.digest)
    });
    format!("\"{}\"", hex(&all.finalize()[..16]))
}

/// Stores the copies of plans that are not stored yet.
async fn store_copies(
    records: &Documents,
    snapshot: &CatalogSnapshot,
    plans: &[(usize, usize)],
) -> Result<(), CatalogError> {
    let failed = |error: CommitError| CatalogError::Store(error.into());
    let mut batch = PlanCopyBatch::default();
    let there = match plans.len() >= LISTED_FROM {
        true => Some(stored_digests(records).await?),
        false => None,
    };
    for &(nth, nth_plan) in plans {
        let entry = snapshot.index.get(nth);
        let Some(copy) = entry.and_then(|it| it.plans.get(nth_plan)) else {
            continue;
        };
        let digest = hex(&copy.digest);
        let key = records.key(PLAN, &digest);
        let known = match &there {
            Some(there) => there.contains(&digest),
            None => is_stored(records, &key).await?,
        };
        let pinned = match known || batch.digests.contains(&digest) {
            true => None,
            false => snapshot.pinned(nth, nth_plan),
        };
        if let Some(pinned) = pinned {
            let body = records.seal(SealContext::Document(&key), &pinned);
            batch.bytes += body.len();
            batch.digests.insert(digest);
            batch.copies.push((key, body));
        }
        if batch.is_full() {
            std::mem::take(&mut batch)
                .write(records)
                .await
                .map_err(failed)?;
        }
    }
    batch.write(records).await.map_err(failed)
}

async fn is_stored(records: &Documents, key: &Key) -> Result<bool, CatalogError> {
    let found = records.store.get(key).await;
    let found = found.map_err(|error| CatalogError::Store(error.into()))?;
    Ok(found.is_some())
}

/// Digests of all stored copies.
async fn stored_digests(records: &Documents) -> Result<HashSet<String>, CatalogError> {
    let list = List::Prefix(Key::prefix(&records.realm, PLAN, &[])?);
    let (mut there, mut after) = (HashSet::new(), None);
    loop {
        let page = records.store.list(&list, after.as_ref(), PAGE).await;
        let page = page.map_err(|error| CatalogError::Store(error.into()))?;
        there.extend(page.documents.iter().map(|it| it.key.id(0).to_owned()));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(there),
        }
    }
}

/// Copies to be stored in one commit.
#[derive(Default)]
struct PlanCopyBatch {
    copies: Vec<(Key, bytes::Bytes)>,
    digests: HashSet<String>,
    bytes: usize,
}

impl PlanCopyBatch {
    fn is_full(&self) -> bool {
        self.copies.len() >= COPIES_MAX || self.bytes >= COPIES_BYTES_MAX
    }

    async fn write(self, records: &Documents) -> Result<(), CommitError> {
        let add = |commit: Commit, (key, body): &(Key, bytes::Bytes)| {
            commit.insert(key.clone(), Vec::new(), body.clone())
        };
        if self.copies.is_empty() {
            return Ok(());
        }
        let all = self.copies.iter().fold(Commit::new(), add);
        match records.store.commit(&all).await {
            Err(CommitError::Stale(_)) => {}
            written => return written,
        }
        // Another replica stored some of the same copies first.
        for one in &self.copies {
            match records.store.commit(&add(Commit::new(), one)).await {
                Ok(()) | Err(CommitError::Stale(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
