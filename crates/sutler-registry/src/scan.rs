//! Scans a whole registry: lists it and reads unknown items, a few at a time.
//!
//! Known versions are not read again. A failed item does not affect others; a failed listing ends the scan.
//! What a refresh does with the result is decided in `reconcile.rs`.

use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use crate::registry::{Item, Registry, Spec};
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Default number of items that are scanned concurrently.
pub const CONCURRENT_ITEMS: usize = 8;
/// Maximum time of a listing. Slow pages must not delay other registries.
const LIST_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Maximum time for all items of a listing; the rest is scanned by the next refresh.
const ITEMS_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Result of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanResult {
    /// One entry for each item of a complete listing, in its order.
    pub items: Vec<ScannedItem>,
}

/// A listed item and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedItem {
    /// Item, with its version if that is known.
    pub item: Item,
    /// State.
    pub state: ItemState,
}

/// State of a scanned item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// The version is known already: nothing was read.
    Known(Digest),
    /// The item was read.
    Read(Spec),
    /// The item could not be read.
    Failed(ItemError),
}

/// Scans a whole registry. `known` returns the known version of an item, which is then not read again; `at_once` is
/// the number of items that are scanned concurrently.
///
/// # Guarantees
/// A known, unchanged item costs at most one look-up, and none if the listing contains versions.
///
/// # Errors
/// There is no complete listing; no item was scanned.
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

/// As [`scan`], for registries with too many items to hold in memory: yields each item once it is scanned, in any
/// order.
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

/// Scans all items, a few at a time; each result has its index in the listing.
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
    // Unordered, so that a slow item delays no other.
    Ok(stream::iter(results).buffer_unordered(at_once.max(1)))
}

/// State of an item that was not reached in time.
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
