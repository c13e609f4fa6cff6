//! Looks at a whole registry: lists it, and reads what is not known yet, a few items at a time.
//!
//! What is known is not read again. An item that fails hurts no other; a listing that fails ends it all.
//! What is to be done about what was found is not decided here (`plan.rs`).

use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use crate::registry::{Item, Registry, Spec};
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How many items are looked at together, where nothing else is said.
pub const CONCURRENT_ITEMS: usize = 8;
/// How long a listing may take. Pages that trickle in must not hold up what other registries have.
const LIST_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long looking at all items of a listing may take; what is left then is looked at the next time.
const ITEMS_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// What a look at a registry found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanResult {
    /// One for each item of a complete listing, in its order.
    pub items: Vec<ScannedItem>,
}

/// An item that was listed, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedItem {
    /// The item, with its version where that could be told.
    pub item: Item,
    /// What became of it.
    pub state: ItemState,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// It is the version that is known: nothing was read.
    Known(Digest),
    /// It was read.
    Read(Spec),
    /// It could not be read.
    Failed(ItemError),
}

/// Looks at a whole registry. `known` says which version of an item is known already, so that it need not be
/// read; `at_once` is how many items are looked at together.
///
/// # Guarantees
/// An item that is known and did not change costs one look-up at most, and none where the listing says its
/// version.
///
/// # Errors
/// There is no complete listing; no item was looked at.
pub async fn scan(
    registry: &dyn Registry,
    known: &(dyn Fn(&Item) -> Option<Digest> + Sync),
    at_once: usize,
) -> Result<ScanResult, ListError> {
    let results = scan_each(registry, known, at_once).await?;
    let mut scanned: Vec<(usize, ScannedItem)> = results.collect().await;
    scanned.sort_unstable_by_key(|(nth, _)| *nth);
    let items = scanned.into_iter().map(|(_, item)| item).collect();
    Ok(ScanResult { items })
}

/// The same, for registries whose items are too many to be held together: each is handed on once it was looked
/// at, in whatever order.
///
/// # Errors
/// As [`scan`].
pub async fn scan_items<'a>(
    registry: &'a dyn Registry,
    known: &'a (dyn Fn(&Item) -> Option<Digest> + Sync),
    at_once: usize,
) -> Result<impl Stream<Item = ScannedItem> + Send + 'a, ListError> {
    let results = scan_each(registry, known, at_once).await?;
    Ok(results.map(|(_, scanned)| scanned))
}

/// Looks at everything, a few at a time; each with its place in the listing.
async fn scan_each<'a>(
    registry: &'a dyn Registry,
    known: &'a (dyn Fn(&Item) -> Option<Digest> + Sync),
    at_once: usize,
) -> Result<impl Stream<Item = (usize, ScannedItem)> + Send + 'a, ListError> {
    let listed = timeout(LIST_TIMEOUT, registry.list()).await;
    let listed = listed.unwrap_or_else(|_| {
        Err(ListError::Unreachable(format!(
            "the registry {} gave no whole listing within {LIST_TIMEOUT:?}: see why it is slow, or list `images`",
            registry.name()
        )))
    });
    let items = listed?.into_items();
    let until = Instant::now() + ITEMS_TIMEOUT;
    let results = items.into_iter().enumerate();
    let results = results.map(move |(nth, item)| async move {
        let scanned = timeout_at(until, scan_one(registry, known, item.clone())).await;
        (nth, scanned.unwrap_or_else(|_| out_of_time(registry, item)))
    });
    // One that is slow holds up nobody but itself.
    Ok(stream::iter(results).buffer_unordered(at_once.max(1)))
}

/// An item that nobody came to look at.
fn out_of_time(registry: &dyn Registry, item: Item) -> ScannedItem {
    let fault = ItemError::Transient(format!(
        "{} {item}: the registry took longer than {ITEMS_TIMEOUT:?} for what came before: it is looked at again \
         at the next refresh",
        registry.name()
    ));
    let state = ItemState::Failed(fault);
    ScannedItem { item, state }
}

async fn scan_one(
    registry: &dyn Registry,
    known: &(dyn Fn(&Item) -> Option<Digest> + Sync),
    item: Item,
) -> ScannedItem {
    let digest = match &item.digest {
        Some(digest) => Ok(digest.clone()),
        None => registry.look_up(&item).await,
    };
    let digest = match digest {
        Ok(digest) => digest,
        Err(fault) => {
            let state = ItemState::Failed(fault);
            return ScannedItem { item, state };
        }
    };
    let item = item.at(digest.clone());
    let state = match known(&item) {
        Some(known) if known == digest => ItemState::Known(digest),
        Some(_) | None => match registry.fetch(&item).await {
            Ok(spec) => ItemState::Read(spec),
            Err(fault) => ItemState::Failed(fault),
        },
    };
    ScannedItem { item, state }
}

#[cfg(test)]
mod tests;
