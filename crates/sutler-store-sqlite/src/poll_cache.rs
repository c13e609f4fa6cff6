//! Cache of poll results, valid until the operation changes.
//!
//! Platforms poll repeatedly. One process owns the file, so an entry stays valid until that process
//! writes to its operation: the writer removes it before the write is acknowledged. Only found
//! operations are cached, never absent ones. This cache affects only speed: without an entry the
//! operation is read (`lists.rs`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use sutler_journal::{Key, OperationId, PolledOperation};

/// Shards with a lock each, so that polls do not wait for each other.
const PARTS: usize = 16;
/// Entries in one shard; a full shard is cleared. All of them together take a few MB.
const PART_MAX: usize = 1024;
/// Longer details are read each time.
const DETAIL_BYTES_MAX: usize = 1024;

type PollMap = HashMap<OperationId, (Key, PolledOperation)>;

/// Operations that one group of the writer changed.
#[derive(Default)]
pub(crate) struct TouchedOperations {
    operations: Vec<OperationId>,
    all: bool,
}

impl TouchedOperations {
    /// Adds one operation.
    pub(crate) fn one(&mut self, id: OperationId) {
        self.operations.push(id);
    }

    /// Records that any operation may have changed.
    pub(crate) fn all(&mut self) {
        self.all = true;
    }
}

/// The cached poll results.
#[derive(Default)]
pub(crate) struct PollCache {
    parts: [Mutex<PollMap>; PARTS],
    /// Increases before entries are removed. A result read under an older number is not cached.
    generation: AtomicU64,
}

impl PollCache {
    /// The cached result.
    pub(crate) fn find(&self, lane: &Key, id: OperationId) -> Option<PolledOperation> {
        let part = self.part(id);
        let (of, polled) = part.get(&id)?;
        (of == lane).then(|| polled.clone())
    }

    /// Must be read before the operation, and passed to [`PollCache::keep`] with the result.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Caches a result, unless the generation has changed.
    pub(crate) fn keep(
        &self,
        lane: &Key,
        id: OperationId,
        polled: &PolledOperation,
        generation: u64,
    ) {
        if polled.detail.len() > DETAIL_BYTES_MAX {
            return;
        }
        let mut part = self.part(id);
        if self.generation() != generation {
            return;
        }
        if part.len() >= PART_MAX {
            part.clear();
        }
        part.insert(id, (lane.clone(), polled.clone()));
    }

    /// Removes changed operations. Later polls read them from the file.
    pub(crate) fn invalidate(&self, touched: &mut TouchedOperations) {
        if touched.operations.is_empty() && !touched.all {
            return;
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        if std::mem::take(&mut touched.all) {
            for part in &self.parts {
                lock(part).clear();
            }
        }
        for id in touched.operations.drain(..) {
            self.part(id).remove(&id);
        }
    }

    fn part(&self, id: OperationId) -> MutexGuard<'_, PollMap> {
        // The last byte of an id is random.
        let last = usize::from(id.0.as_bytes()[15]);
        lock(&self.parts[last % PARTS])
    }
}

fn lock(part: &Mutex<PollMap>) -> MutexGuard<'_, PollMap> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{PART_MAX, PARTS, PollCache, TouchedOperations};
    use bytes::Bytes;
    use std::borrow::Cow;
    use sutler_journal::{Key, Kind, OperationId, Outcome, PolledOperation, Realm, State};

    fn lane(id: &str) -> Key {
        Key::new(&Realm::new("broker").unwrap(), Kind::new("instance"), &[id]).unwrap()
    }

    fn polled(state: State) -> PolledOperation {
        PolledOperation {
            state,
            verb: Cow::Borrowed("provision"),
            detail: Bytes::new(),
        }
    }

    #[test]
    fn a_result_is_cached_for_its_lane_until_the_operation_changes() {
        let (polls, id) = (PollCache::default(), OperationId::fresh());
        polls.keep(&lane("a"), id, &polled(State::Running), polls.generation());
        assert_eq!(polls.find(&lane("a"), id), Some(polled(State::Running)));
        assert_eq!(polls.find(&lane("b"), id), None);
        let mut touched = TouchedOperations::default();
        touched.one(id);
        polls.invalidate(&mut touched);
        assert_eq!(polls.find(&lane("a"), id), None);
    }

    #[test]
    fn a_result_read_before_a_write_is_not_cached_after_it() {
        let (polls, id) = (PollCache::default(), OperationId::fresh());
        let before = polls.generation();
        let mut touched = TouchedOperations::default();
        touched.one(id);
        polls.invalidate(&mut touched);
        polls.keep(&lane("a"), id, &polled(State::Running), before);
        assert_eq!(polls.find(&lane("a"), id), None);
        let done = polled(State::Done(Outcome::Succeeded));
        polls.keep(&lane("a"), id, &done, polls.generation());
        assert_eq!(polls.find(&lane("a"), id), Some(done));
    }

    #[test]
    fn the_cache_is_bounded() {
        let polls = PollCache::default();
        for _ in 0..3 * PARTS * PART_MAX {
            let id = OperationId::fresh();
            polls.keep(&lane("a"), id, &polled(State::Running), polls.generation());
        }
        let kept: usize = polls
            .parts
            .iter()
            .map(|part| part.lock().unwrap().len())
            .sum();
        assert!(kept <= PARTS * PART_MAX, "{kept}");
        let mut touched = TouchedOperations::default();
        touched.all();
        polls.invalidate(&mut touched);
        assert!(
            polls
                .parts
                .iter()
                .all(|part| part.lock().unwrap().is_empty())
        );
    }
}
