//! Looks at a whole registry: lists it, and reads what is not known yet, a few items at a time.
//!
//! What is known is not read again. An item that fails hurts no other; a listing that fails ends it all.
//! What is to be done about what was found is not decided here (`plan.rs`).

use crate::digest::Digest;
use crate::fault::{ItemFault, ListFault};
use crate::seam::{Item, Registry, Spec};
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How many items are looked at together, where nothing else is said.
pub const AT_ONCE: usize = 8;
/// How long a listing may take. Pages that trickle in must not hold up what other registries have.
const LIST_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long looking at all items of a listing may take; what is left then is looked at the next time.
const ITEMS_WITHIN: Duration = Duration::from_secs(30 * 60);

/// What a look at a registry found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// One for each item of a complete listing, in its order.
    pub found: Vec<Found>,
}

/// An item that was listed, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The item, with its version where that could be told.
    pub item: Item,
    /// What became of it.
    pub state: State,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is the version that is known: nothing was read.
    Known(Digest),
    /// It was read.
    Read(Spec),
    /// It could not be read.
    Failed(ItemFault),
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
pub async fn gather(
    registry: &dyn Registry,
    known: &(dyn Fn(&Item) -> Option<Digest> + Sync),
    at_once: usize,
) -> Result<Gathered, ListFault> {
    let looks = looks(registry, known, at_once).await?;
    let mut found: Vec<(usize, Found)> = looks.collect().await;
    found.sort_unstable_by_key(|(nth, _)| *nth);
    let found = found.into_iter().map(|(_, found)| found).collect();
    Ok(Gathered { found })
}

/// The same, for registries whose items are too many to be held together: each is handed on once it was looked
/// at, in whatever order.
///
/// # Errors
/// As [`gather`].
pub async fn look_through<'a>(
    registry: &'a dyn Registry,
    known: &'a (dyn Fn(&Item) -> Option<Digest> + Sync),
    at_once: usize,
) -> Result<impl Stream<Item = Found> + Send + 'a, ListFault> {
    let looks = looks(registry, known, at_once).await?;
    Ok(looks.map(|(_, found)| found))
}

/// Looks at everything, a few at a time; each with its place in the listing.
async fn looks<'a>(
    registry: &'a dyn Registry,
    known: &'a (dyn Fn(&Item) -> Option<Digest> + Sync),
    at_once: usize,
) -> Result<impl Stream<Item = (usize, Found)> + Send + 'a, ListFault> {
    let listed = timeout(LIST_WITHIN, registry.list()).await;
    let listed = listed.unwrap_or_else(|_| {
        Err(ListFault::Unreachable(format!(
            "the registry {} gave no whole listing within {LIST_WITHIN:?}: see why it is slow, or list `images`",
            registry.name()
        )))
    });
    let items = listed?.into_items();
    let until = Instant::now() + ITEMS_WITHIN;
    let looks = items.into_iter().enumerate();
    let looks = looks.map(move |(nth, item)| async move {
        let looked = timeout_at(until, look(registry, known, item.clone())).await;
        (nth, looked.unwrap_or_else(|_| too_late(registry, item)))
    });
    // One that is slow holds up nobody but itself.
    Ok(stream::iter(looks).buffer_unordered(at_once.max(1)))
}

/// An item that nobody came to look at.
fn too_late(registry: &dyn Registry, item: Item) -> Found {
    let fault = ItemFault::Transient(format!(
        "{} {item}: the registry took longer than {ITEMS_WITHIN:?} for what came before: it is looked at again \
         at the next refresh",
        registry.name()
    ));
    let state = State::Failed(fault);
    Found { item, state }
}

async fn look(
    registry: &dyn Registry,
    known: &(dyn Fn(&Item) -> Option<Digest> + Sync),
    item: Item,
) -> Found {
    let digest = match &item.digest {
        Some(digest) => Ok(digest.clone()),
        None => registry.look_up(&item).await,
    };
    let digest = match digest {
        Ok(digest) => digest,
        Err(fault) => {
            let state = State::Failed(fault);
            return Found { item, state };
        }
    };
    let item = item.at(digest.clone());
    let state = match known(&item) {
        Some(known) if known == digest => State::Known(digest),
        Some(_) | None => match registry.fetch(&item).await {
            Ok(spec) => State::Read(spec),
            Err(fault) => State::Failed(fault),
        },
    };
    Found { item, state }
}

#[cfg(test)]
mod tests;
