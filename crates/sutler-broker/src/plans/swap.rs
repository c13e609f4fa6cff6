//! The next catalog, put together of what stays as it is offered and what is new.
//!
//! What stays is copied from the answer as it is: it is neither read nor checked again, and its copies are
//! known to be written. So a swap costs what changed, and one pass over the bytes of the answer, which is
//! done where nobody's request waits for it.

use super::offering::{Entry, Offering, offerings};
use super::{Cache, Footings, Offer, Plans, Services, hex};
use crate::broker::BuildError;
use crate::records::{PLAN, Records};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use sutler_journal::{Commit, CommitError, Key, List, Place};
use sutler_osb::{Catalog, CatalogFault, CatalogFaults};

/// From so many new plans on it is listed which copies there are, instead of asking for each.
const LISTED_FROM: usize = 50;
/// Copies read in one go.
const PAGE: usize = 200;
/// Most copies of one commit, and most bytes of them; a store takes 100 and 1 MB.
const COPIES_MAX: usize = 90;
const COPIES_BYTES_MAX: usize = 400_000;

/// One offering of the next catalog.
#[derive(Clone, Debug)]
pub enum Slot {
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
pub(super) fn slots_of(catalog: &Catalog, services: &Services) -> Result<Vec<Slot>, BuildError> {
    let all = offerings(catalog, services)?;
    Ok(all.into_iter().map(Slot::New).collect())
}

impl Plans {
    /// Replaces the whole catalog; copies of its plans are written before it is shown.
    pub(crate) async fn replace<'a>(
        &self,
        shelves: impl Iterator<Item = &'a Records>,
        slots: Vec<Slot>,
        footings: Footings,
    ) -> Result<(), BuildError> {
        let (was, cache) = (self.offer(), self.cache.clone());
        let assembled = tokio::task::spawn_blocking(move || assemble(&was, slots, cache));
        let assembled = assembled
            .await
            .map_err(|error| BuildError::Store(error.into()))?;
        let Assembled { mut offer, new } = assembled?;
        offer.footings = footings;
        for records in shelves {
            keep_copies(records, &offer, &new).await?;
        }
        let next = Arc::new(offer);
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Writes the copies of all plans now offered.
    pub(crate) async fn keep_all_copies(&self, records: &Records) -> Result<(), BuildError> {
        let offer = self.offer();
        let all: Vec<(usize, usize)> = offer.plans.values().copied().collect();
        keep_copies(records, &offer, &all).await
    }
}

/// Puts the next catalog together. `was`: the one that is offered now.
pub(super) fn assemble(
    was: &Offer,
    slots: Vec<Slot>,
    cache: Arc<Cache>,
) -> Result<Assembled, BuildError> {
    let mut offer = Offer {
        cache,
        ..Offer::default()
    };
    let mut names = HashSet::with_capacity(slots.len());
    let mut new = Vec::new();
    let mut body = Vec::with_capacity(size(was, &slots));
    body.extend_from_slice(br#"{"services":["#);
    for (nth, slot) in slots.into_iter().enumerate() {
        if nth > 0 {
            body.push(b',');
        }
        let start = body.len();
        let entry = match slot {
            Slot::Same(id) => {
                let (entry, json) = present(was, &id).ok_or(BuildError::NotOffered(id))?;
                body.extend_from_slice(json);
                entry.clone()
            }
            Slot::New(Offering { entry, json }) => {
                body.extend_from_slice(&json);
                new.extend((0..entry.plans.len()).map(|nth_plan| (nth, nth_plan)));
                entry
            }
        };
        if !names.insert(entry.name.clone()) {
            return Err(twice("name", &entry.name, "B-055"));
        }
        file(&mut offer, entry, start..body.len())?;
    }
    body.extend_from_slice(b"]}");
    offer.etag = format!("\"{}\"", hex(&Sha256::digest(&body)[..16]));
    offer.body = body.into();
    Ok(Assembled { offer, new })
}

/// How long the answer will be: it is large, and is not to be moved while it grows.
fn size(was: &Offer, slots: &[Slot]) -> usize {
    let each = slots.iter().map(|slot| match slot {
        Slot::Same(id) => present(was, id).map_or(0, |(_, json)| json.len()),
        Slot::New(offering) => offering.json.len(),
    });
    each.sum::<usize>() + slots.len() + br#"{"services":[]}"#.len()
}

/// What is offered now under an id.
fn present<'a>(was: &'a Offer, id: &str) -> Option<(&'a Entry, &'a [u8])> {
    let id = sutler_osb::ServiceId::try_from(id.to_owned()).ok()?;
    let (entry, at) = was.entries.get(*was.services.get(&id)?)?;
    Some((entry, was.body.get(at.clone())?))
}

/// Adds an offering, by its ids.
fn file(offer: &mut Offer, entry: Entry, at: Range<usize>) -> Result<(), BuildError> {
    let nth = offer.entries.len();
    let id = entry.service_id.clone();
    if offer.services.insert(id, nth).is_some() {
        return Err(twice("id", entry.service_id.as_str(), "B-056"));
    }
    for (nth_plan, plan) in entry.plans.iter().enumerate() {
        let known = offer.plans.insert(plan.id.clone(), (nth, nth_plan));
        if known.is_some() {
            return Err(twice("plan id", plan.id.as_str(), "B-068"));
        }
    }
    offer.entries.push((entry, at));
    Ok(())
}

/// Offerings are checked one by one; that no two are alike can be seen here only.
fn twice(what: &str, value: &str, rule: &'static str) -> BuildError {
    let fault = CatalogFault {
        path: "services".to_owned(),
        reason: format!("must not have the {what} {value:?} twice"),
        rule,
    };
    BuildError::Catalog(CatalogFaults {
        faults: vec![fault],
        warnings: Vec::new(),
    })
}

/// Writes the copies of plans that are not there yet.
async fn keep_copies(
    records: &Records,
    offer: &Offer,
    plans: &[(usize, usize)],
) -> Result<(), BuildError> {
    let failed = |error: CommitError| BuildError::Store(error.into());
    let mut batch = Copies::default();
    let there = match plans.len() >= LISTED_FROM {
        true => Some(all_there(records).await?),
        false => None,
    };
    for &(nth, nth_plan) in plans {
        let copied = offer
            .entries
            .get(nth)
            .and_then(|(it, _)| it.plans.get(nth_plan));
        let Some(copied) = copied else { continue };
        let key = records.key(PLAN, &copied.digest);
        let known = match &there {
            Some(there) => there.contains(&copied.digest),
            None => is_there(records, &key).await?,
        };
        let pinned = match known || batch.digests.contains(&copied.digest) {
            true => None,
            false => offer.pinned(nth, nth_plan),
        };
        if let Some(pinned) = pinned {
            let body = records.seal(Place::Document(&key), &pinned);
            batch.bytes += body.len();
            batch.digests.insert(copied.digest.clone());
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

async fn is_there(records: &Records, key: &Key) -> Result<bool, BuildError> {
    let found = records.store.get(key).await;
    let found = found.map_err(|error| BuildError::Store(error.into()))?;
    Ok(found.is_some())
}

/// The digests of all copies that are written.
async fn all_there(records: &Records) -> Result<HashSet<String>, BuildError> {
    let list = List::Prefix(Key::prefix(&records.realm, PLAN, &[])?);
    let (mut there, mut after) = (HashSet::new(), None);
    loop {
        let page = records.store.list(&list, after.as_ref(), PAGE).await;
        let page = page.map_err(|error| BuildError::Store(error.into()))?;
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

    async fn write(self, records: &Records) -> Result<(), CommitError> {
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
