//! The next catalog, put together of what stays as it is offered and what is new.
//!
//! What stays is taken over as it is: it is neither read nor checked again, and its copies are known to be
//! written. Its bytes stay where they are, if their neighbours stay too (`plans/sheets.rs`). So a swap costs
//! what changed, and one look at each offering, which is done where nobody's request waits for it.

use super::error::CatalogError;
use super::listing::Listing;
use super::offering::{Entry, Offering, offerings};
use super::sheets::{Pad, Writer};
use super::{Cache, CatalogPreconditions, Offer, Plans, Services, hex};
use crate::resources::PLAN;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use sutler_journal::{Commit, CommitError, Key, List, SealContext};
use sutler_osb::Catalog;
use sutler_records::{Documents, run_blocking};

/// From so many new plans on it is listed which copies there are, instead of asking for each.
const LISTED_FROM: usize = 50;
/// Copies read in one go.
const PAGE: usize = 200;
/// Most copies of one commit, and most bytes of them; a store takes 100 and 1 MB.
const COPIES_MAX: usize = 90;
const COPIES_BYTES_MAX: usize = 400_000;

/// One offering of the next catalog.
#[derive(Clone, Debug)]
pub enum OfferingUpdate {
    /// The one that is offered now under this id.
    Same(String),
    /// Another, or a new one.
    New(Offering),
}

/// The next catalog, and which of its plans are new in it.
pub(super) struct Assembled {
    pub offer: Offer,
    pub new: Vec<(usize, usize)>,
}

/// All offerings of a catalog, as new ones.
pub(super) fn slots_of(
    catalog: &Catalog,
    services: &Services,
    pad: &Pad,
) -> Result<Vec<OfferingUpdate>, CatalogError> {
    let all = offerings(catalog, services, pad)?;
    Ok(all.into_iter().map(OfferingUpdate::New).collect())
}

impl Plans {
    /// Replaces the whole catalog; copies of its plans are written before it is shown.
    pub(crate) async fn replace<'a>(
        &self,
        realm_contexts: impl Iterator<Item = &'a Documents>,
        slots: Vec<OfferingUpdate>,
        footings: CatalogPreconditions,
    ) -> Result<(), CatalogError> {
        let (was, cache) = (self.offer(), self.cache.clone());
        let assembled = run_blocking(move || assemble(&was, slots, cache));
        let assembled = assembled
            .await
            .map_err(|error| CatalogError::Store(error.into()))?;
        let Assembled { mut offer, new } = assembled?;
        offer.stand_on(footings);
        for records in realm_contexts {
            keep_copies(records, &offer, &new).await?;
        }
        let next = Arc::new(offer);
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Writes the copies of all plans now offered.
    pub(crate) async fn keep_all_copies(&self, records: &Documents) -> Result<(), CatalogError> {
        let offer = self.offer();
        keep_copies(records, &offer, offer.listing.plans()).await
    }
}

/// Puts the next catalog together. `was`: the one that is offered now.
pub(super) fn assemble(
    was: &Offer,
    slots: Vec<OfferingUpdate>,
    cache: Arc<Cache>,
) -> Result<Assembled, CatalogError> {
    let stood: Vec<Option<usize>> = slots.iter().map(|slot| stood(was, slot)).collect();
    let mut entries = Vec::with_capacity(slots.len());
    let mut new = Vec::new();
    let mut writer = Writer::after(&was.sheets);
    for (nth, slot) in slots.into_iter().enumerate() {
        let rest = stood.get(nth..).unwrap_or_default();
        let kept = writer.keep(rest);
        let entry = match slot {
            OfferingUpdate::Same(id) => {
                let at = rest.first().copied().flatten().filter(|_| kept);
                let entry = at.and_then(|at| was.listing.get(at)).cloned();
                entry.ok_or(CatalogError::NotOffered(id))?
            }
            // Its JSON is let go of as soon as it is written: all of them at once are as much as the answer.
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
    let sheets = writer.finish();
    let offer = Offer {
        etag: etag(&entries),
        listing: Listing::of(entries)?,
        content: sheets.content(),
        sheets,
        standing: Box::default(),
        cache,
    };
    Ok(Assembled { offer, new })
}

/// Where an offering stands in the answer that is given now, if it says the very same there.
fn stood(was: &Offer, slot: &OfferingUpdate) -> Option<usize> {
    match slot {
        OfferingUpdate::Same(id) => was.listing.service(id),
        OfferingUpdate::New(Offering { entry, .. }) => {
            let nth = was.listing.service(entry.service_id.as_str())?;
            let there = was.listing.get(nth)?;
            Some(nth).filter(|_| there.digest == entry.digest)
        }
    }
}

/// Changes when any byte of the answer does, and by nothing else: replicas that came to the same catalog in
/// other ways say the same.
fn etag(entries: &[Arc<Entry>]) -> String {
    let all = entries.iter().fold(Sha256::new(), |all, entry| {
        // All are of the same length, so none can be taken for parts of others.
        all.chain_update(entry.digest)
    });
    format!("\"{}\"", hex(&all.finalize()[..16]))
}

/// Writes the copies of plans that are not there yet.
async fn keep_copies(
    records: &Documents,
    offer: &Offer,
    plans: &[(usize, usize)],
) -> Result<(), CatalogError> {
    let failed = |error: CommitError| CatalogError::Store(error.into());
    let mut batch = Copies::default();
    let there = match plans.len() >= LISTED_FROM {
        true => Some(all_there(records).await?),
        false => None,
    };
    for &(nth, nth_plan) in plans {
        let entry = offer.listing.get(nth);
        let Some(copied) = entry.and_then(|it| it.plans.get(nth_plan)) else {
            continue;
        };
        let digest = hex(&copied.digest);
        let key = records.key(PLAN, &digest);
        let known = match &there {
            Some(there) => there.contains(&digest),
            None => is_there(records, &key).await?,
        };
        let pinned = match known || batch.digests.contains(&digest) {
            true => None,
            false => offer.pinned(nth, nth_plan),
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

async fn is_there(records: &Documents, key: &Key) -> Result<bool, CatalogError> {
    let found = records.store.get(key).await;
    let found = found.map_err(|error| CatalogError::Store(error.into()))?;
    Ok(found.is_some())
}

/// The digests of all copies that are written.
async fn all_there(records: &Documents) -> Result<HashSet<String>, CatalogError> {
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

/// Copies that are about to be written together.
#[derive(Default)]
struct Copies {
    copies: Vec<(Key, bytes::Bytes)>,
    digests: HashSet<String>,
    bytes: usize,
}

impl Copies {
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
        // Another replica was first with some of the very same copies.
        for one in &self.copies {
            match records.store.commit(&add(Commit::new(), one)).await {
                Ok(()) | Err(CommitError::Stale(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
