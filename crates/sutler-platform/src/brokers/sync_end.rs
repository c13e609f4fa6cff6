//! How a sync ends: what the state of the broker says then, and when the next one begins. Pure.

use super::breaker_effects::StateChange;
use super::chance::shortened;
use crate::catalog::SyncFaults;
use crate::records::BrokerState;
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::EntityTag;
use sutler_journal::OperationId;

/// Wait before a catalog is read again that could not be read, unless the broker says another time.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How a sync ended.
#[derive(Clone, Debug)]
pub(super) enum SyncEnd {
    /// The catalog could not be read or used: the known one stays as it is.
    Failed {
        /// A sentence for operators.
        failure: String,
        /// When the broker wants to be asked again, if it says so.
        after: Option<Duration>,
    },
    /// The catalog is the known one.
    NotModified,
    /// The catalog was read, and its usable items were written.
    Read {
        /// Items that are not usable.
        faults: SyncFaults,
        /// The tag of the catalog.
        entity_tag: Option<EntityTag>,
    },
}

/// What a sync that ends knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncFacts {
    /// Its operation.
    pub(super) operation: OperationId,
    /// Number of the last request before it began.
    pub(super) serving: u64,
    /// Time between two syncs.
    pub(super) relist_every: Duration,
    /// The present time.
    pub(super) now: Timestamp,
    /// A number by chance.
    pub(super) jitter: u32,
}

/// The last change of a sync: of the state, and of the operation, which makes the next sync.
pub(super) fn end_of_sync(state: &BrokerState, end: SyncEnd, facts: SyncFacts) -> StateChange {
    let mut next = state.clone();
    let sync = &mut next.sync;
    sync.served = sync.served.max(facts.serving);
    let is_requested = sync.requested > facts.serving;
    let relist_after = shortened(facts.relist_every, facts.jitter);
    let mut after = relist_after;
    match end {
        SyncEnd::Failed {
            failure,
            after: wanted,
        } => {
            sync.failure = Some(failure);
            let again = wanted.unwrap_or_default().max(READ_AGAIN_AFTER);
            after = shortened(again, facts.jitter).min(relist_after);
        }
        SyncEnd::NotModified => {
            sync.failure = None;
            sync.read_at = Some(facts.now);
        }
        SyncEnd::Read { faults, entity_tag } => {
            sync.failure = None;
            sync.read_at = Some(facts.now);
            sync.faults = faults;
            // Who asked meanwhile may have changed the address: nothing of this catalog is the reason not to read it.
            let tag = entity_tag.filter(|_| !is_requested);
            next.entity_tag = tag.map(String::from);
        }
    }
    let mut change = StateChange::of(next);
    let after = if is_requested { Duration::ZERO } else { after };
    change.give_back(facts.operation, after);
    change
}

#[cfg(test)]
mod tests {
    use super::{SyncEnd, SyncFacts, end_of_sync};
    use crate::catalog::SyncFaults;
    use crate::records::BrokerState;
    use jiff::Timestamp;
    use std::time::Duration;
    use sutler_journal::OperationId;

    fn facts() -> SyncFacts {
        SyncFacts {
            operation: OperationId::fresh(),
            serving: 1,
            relist_every: minutes(15),
            now: Timestamp::from_second(1_000).expect("a moment"),
            jitter: 0,
        }
    }

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    fn state(requested: u64) -> BrokerState {
        let mut state = BrokerState::default();
        state.sync.requested = requested;
        state.entity_tag = Some("old".to_owned());
        state.sync.faults.omitted = 7;
        state
    }

    fn read() -> SyncEnd {
        SyncEnd::Read {
            faults: SyncFaults::default(),
            entity_tag: "new".to_owned().try_into().ok(),
        }
    }

    fn failed(after: Option<Duration>) -> SyncEnd {
        let failure = "no".to_owned();
        SyncEnd::Failed { failure, after }
    }

    fn after(end: SyncEnd) -> Option<Duration> {
        end_of_sync(&state(1), end, facts()).again_after
    }

    #[test]
    fn the_next_sync_is_at_its_time_and_after_a_failure_sooner() {
        assert_eq!(after(read()), Some(minutes(15)));
        assert_eq!(after(SyncEnd::NotModified), Some(minutes(15)));
        assert_eq!(after(failed(None)), Some(minutes(1)));
        assert_eq!(after(failed(Some(minutes(0)))), Some(minutes(1)));
        assert_eq!(after(failed(Some(minutes(4)))), Some(minutes(4)));
        assert_eq!(after(failed(Some(Duration::MAX))), Some(minutes(15)));
    }

    #[test]
    fn a_failed_read_changes_nothing_but_what_is_said_of_it() {
        let mut next = end_of_sync(&state(1), failed(None), facts()).next;
        assert_eq!(next.sync.failure.take().as_deref(), Some("no"));
        assert_eq!(next.sync.served, 1);
        next.sync.served = 0;
        assert_eq!(next, state(1));
    }

    #[test]
    fn a_catalog_that_is_not_modified_keeps_its_tag_and_its_faults() {
        let next = end_of_sync(&state(1), SyncEnd::NotModified, facts()).next;
        assert_eq!(next.entity_tag.as_deref(), Some("old"));
        assert_eq!(next.sync.faults.omitted, 7);
        assert_eq!(next.sync.read_at, Some(facts().now));
    }

    #[test]
    fn a_request_that_came_meanwhile_is_served_at_once_with_a_whole_catalog() {
        let change = end_of_sync(&state(2), read(), facts());
        assert_eq!(change.again_after, Some(Duration::ZERO));
        assert_eq!(change.next.sync.served, 1);
        assert_eq!(change.next.entity_tag, None);
        let change = end_of_sync(&state(1), read(), facts());
        assert_eq!(change.next.entity_tag.as_deref(), Some("new"));
    }
}
