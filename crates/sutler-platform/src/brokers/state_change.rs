//! Replaces the state of a broker by compare-and-set, from outside of its operations.
//!
//! A change is decided anew if another writer was first. Runs of operations commit under their claim instead
//! (`probe_run.rs`, `sync_run.rs`).

use super::Brokers;
use super::breaker_effects::{DecisionPlace, StateChange, announce};
use super::chance::jitter;
use super::command_error::{BrokerCommandError, is_written};
use crate::lifecycle::breaker::{BreakerEvent, BreakerReply, decide};
use crate::records::{BrokerState, Record};
use sutler_journal::copy::{check_usable, expect_not_moved};
use sutler_journal::{Commit, commit_until_known};
use sutler_records::{LoadedDocument, RecordError};
use uuid::Uuid;

/// Attempts to commit while other writers are first.
pub(super) const TRIES: u32 = 32;

/// A state as it was read.
pub(super) type StoredState = LoadedDocument<Record<BrokerState>>;

impl Brokers {
    /// Lets the breaker of a broker decide on an event, and commits what it decides.
    pub(super) async fn breaker_event(
        &self,
        broker: Uuid,
        event: BreakerEvent,
    ) -> Result<BreakerReply, BrokerCommandError> {
        let records = &self.records;
        self.change_state(broker, |state| {
            let now = records.now();
            let decision = decide(state.breaker.clone(), event.clone(), now, jitter())?;
            let place = DecisionPlace::Elsewhere;
            let change = StateChange::decided(records, broker, state, &decision, place);
            Ok((change, decision.reply))
        })
        .await
    }

    /// Replaces the state of a broker. `change` may be called several times; nothing is written if nothing changes.
    pub(super) async fn change_state<R>(
        &self,
        broker: Uuid,
        change: impl Fn(&BrokerState) -> Result<(StateChange, R), BrokerCommandError>,
    ) -> Result<R, BrokerCommandError> {
        let key = self.records.keys.broker_state(broker);
        for _ in 0..TRIES {
            let was = self.records.load::<BrokerState>(&key).await?;
            let (change, reply) = change(readable(&was)?)?;
            if was.state.get() == Some(&change.next) && change.writes.is_empty() {
                return Ok(reply);
            }
            let commit = self.with_state(Commit::new(), broker, &was, &change);
            if self.commit(commit).await? {
                self.local
                    .wrote_state(broker, &change.next, self.records.now());
                announce(broker, &change.notices);
                return Ok(reply);
            }
        }
        Err(self.contended().await)
    }

    /// Adds the next state of a broker to a commit, and the writes that belong to it.
    pub(super) fn with_state(
        &self,
        commit: Commit,
        broker: Uuid,
        was: &StoredState,
        change: &StateChange,
    ) -> Commit {
        let key = self.records.keys.broker_state(broker);
        let next = Record::of(change.next.clone());
        let commit = self.records.documents.put(commit, &key, was, &next);
        change.writes.iter().cloned().fold(commit, Commit::write)
    }

    /// Commits. `false`: another writer was first.
    pub(super) async fn commit(&self, commit: Commit) -> Result<bool, BrokerCommandError> {
        // This process may hold no lease, which would keep a copy of the store from being finished.
        let commit = expect_not_moved(commit);
        commit.check().map_err(BrokerCommandError::TooLarge)?;
        let store = self.records.documents.store.as_ref();
        Ok(is_written(commit_until_known(store, &commit).await)?)
    }

    /// The error after too many attempts: the store may have been moved.
    pub(super) async fn contended(&self) -> BrokerCommandError {
        let store = self.records.documents.store.as_ref();
        match check_usable(store).await {
            Ok(()) => BrokerCommandError::Contended,
            Err(error) => {
                let sentence = "the store is not in use any more";
                sutler_journal::StoreError::caused(sentence, error).into()
            }
        }
    }
}

/// The state, if there is one that this version can read.
pub(super) fn readable(was: &StoredState) -> Result<&BrokerState, BrokerCommandError> {
    match &was.state {
        Record::Present(state) => Ok(state),
        Record::Absent => Err(BrokerCommandError::NoBroker),
        Record::Newer(_) => Err(BrokerCommandError::NewerForm),
    }
}

impl Brokers {
    /// Reads the state of a broker, for a commit that replaces it together with other documents.
    pub(super) async fn stored_state(&self, broker: Uuid) -> Result<StoredState, RecordError> {
        let key = self.records.keys.broker_state(broker);
        self.records.load::<BrokerState>(&key).await
    }
}
