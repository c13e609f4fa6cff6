//! Deregisters brokers: marks the registration, looks for instances, then removes everything or takes the mark back.
//!
//! # Flow
//! 1. *Mark.* From this commit on nothing new is created: commits that create something of a broker expect its
//!    registration unchanged ([`BrokerView::expect_registered`](super::BrokerView::expect_registered)).
//! 2. *Look.* Every instance that was committed before the mark is found, and then every row of the orphan ledger: a row
//!    is written with the last commit of what it is about. If there is one, the mark is taken back.
//! 3. *Decide.* One commit writes to the state that the broker is removed. It replaces the registration too, so a mark that
//!    another writer wants to take back at the same time stays. Nothing takes the decision back. The operation of syncs
//!    loses its claim, so no item is written any more, and is due a few minutes later to go on here if this process ends.
//! 4. *Remove* the items in batches, and with the last commit registration, state and operations.
//!
//! The next deregister request, or the operation of syncs, continues from there.
//!
//! A broker that is deregistered with everything that it has is marked with the person who wants that, and that mark is not
//! taken back: `periodic/broker_abandonment.rs` gives up what is found, and then comes here.

use super::Brokers;
use super::breaker_effects::StateChange;
use super::command_error::{BrokerCommandError, RemainingInstances, RemainingOrphans};
use super::state_change::{StoredState, TRIES};
use super::stored_registration::StoredRegistration;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::Abandonment;
use crate::records::{
    BROKER_TERM, BrokerState, INSTANCE, ORPHAN, OrphanRecord, Record, SERVICE_OFFERING,
    SERVICE_PLAN,
};
use jiff::Timestamp;
use std::time::Duration;
use sutler_journal::{
    Commit, Document, Due, List, Lost, Next, Outcome, RunResult, WRITES_MAX, Write,
};
use uuid::Uuid;

/// After this time the operation of syncs goes on with a deregistration that was begun.
const RESUME_AFTER: Duration = Duration::from_secs(5 * 60);
/// Wait before the operation of syncs looks at a deregistration again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Most instances, and rows of the ledger, that are counted for the answer.
const COUNTED_MAX: usize = 1_000;
/// Instances whose names are in the answer.
const NAMES_MAX: usize = 5;
/// Instances, rows of the ledger, and items of a catalog, that are read at once.
const PER_READ: usize = 100;
/// Items that are removed at once.
const ITEMS_PER_COMMIT: usize = WRITES_MAX - 10;

impl Brokers {
    /// Deregisters a broker without instances and without open rows of the orphan ledger.
    ///
    /// # Errors
    /// It has some; see [`BrokerCommandError`]. After `Unavailable`, what was begun goes on a few minutes later.
    pub async fn deregister(&self, broker: Uuid) -> Result<(), BrokerCommandError> {
        for _ in 0..TRIES {
            let Some(found) = self.registration(broker).await? else {
                return Err(BrokerCommandError::NoBroker);
            };
            if found.registration.deregistering.is_none() {
                // Whether or not it was first: it is read again.
                self.set_mark(&found, Some(self.records.now())).await?;
                continue;
            }
            if self.finish_deregistration(&found).await? {
                return Ok(());
            }
        }
        Err(self.contended().await)
    }

    /// Marks a broker that is deregistered with everything that it has. From then on nothing new is created there.
    ///
    /// # Errors
    /// See [`BrokerCommandError`].
    pub(crate) async fn mark_abandoned(
        &self,
        broker: Uuid,
        abandonment: &Abandonment,
    ) -> Result<(), BrokerCommandError> {
        for _ in 0..TRIES {
            let Some(found) = self.registration(broker).await? else {
                return Err(BrokerCommandError::NoBroker);
            };
            let was = self.stored_state(broker).await?;
            let mut state = match &was.state {
                Record::Present(state) => state.as_ref().clone(),
                Record::Absent => BrokerState::default(),
                Record::Newer(_) => return Err(BrokerCommandError::NewerForm),
            };
            if state.abandonment.is_some() || state.removal.is_some() {
                return Ok(());
            }
            state.abandonment = Some(abandonment.clone());
            let mut next = found.registration.clone();
            next.deregistering.get_or_insert(self.records.now());
            let documents = &self.records.documents;
            let next = Record::of(next);
            let commit = documents.put(Commit::new(), &found.key, &found.document(), &next);
            let change = StateChange::of(state);
            let commit = self.with_state(commit, broker, &was, &change);
            if self.commit(commit).await? {
                return Ok(());
            }
        }
        Err(self.contended().await)
    }

    /// Goes on with a deregistration that was begun a while ago, from the operation of syncs.
    pub(super) async fn resume_deregistration(
        &self,
        broker: Uuid,
        since: Timestamp,
    ) -> Result<RunResult, Lost> {
        let age = since.duration_until(self.records.now());
        if Duration::try_from(age).unwrap_or_default() < RESUME_AFTER {
            return Ok(RunResult::Yield(LOOK_AGAIN_AFTER));
        }
        match self.deregister(broker).await {
            // The operation has ended, or was given back.
            Ok(()) => Ok(RunResult::Finished),
            // The mark was taken back, unless what is left is being given up.
            Err(BrokerCommandError::HasInstances(_) | BrokerCommandError::HasOrphans(_)) => {
                let is_marked = self
                    .view(broker)
                    .await
                    .is_ok_and(|view| view.registration.deregistering.is_some());
                Ok(RunResult::Yield(match is_marked {
                    true => LOOK_AGAIN_AFTER,
                    false => Duration::ZERO,
                }))
            }
            Err(error) => {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error,
                    "a deregistration that was begun is finished later");
                Ok(RunResult::Yield(LOOK_AGAIN_AFTER))
            }
        }
    }

    /// Sets the mark of a registration, or takes it back. Returns whether no other writer was first.
    async fn set_mark(
        &self,
        found: &StoredRegistration,
        mark: Option<Timestamp>,
    ) -> Result<bool, BrokerCommandError> {
        let mut next = found.registration.clone();
        next.deregistering = mark;
        let documents = &self.records.documents;
        let next = Record::of(next);
        let commit = documents.put(Commit::new(), &found.key, &found.document(), &next);
        self.commit(commit).await
    }

    /// Finishes the deregistration of a marked broker. `false`: another writer was first; read it again.
    async fn finish_deregistration(
        &self,
        found: &StoredRegistration,
    ) -> Result<bool, BrokerCommandError> {
        let broker = found.registration.uid;
        let was = self.stored_state(broker).await?;
        let state = match &was.state {
            Record::Present(state) => state.clone(),
            Record::Absent => Box::default(),
            Record::Newer(_) => return Err(BrokerCommandError::NewerForm),
        };
        if state.removal.is_none() {
            if let Some(refusal) = self.refusal(broker).await? {
                if state.abandonment.is_some() {
                    return Err(refusal);
                }
                return match self.set_mark(found, None).await? {
                    true => Err(refusal),
                    false => Ok(false),
                };
            }
            self.decide_removal(found, &was, *state).await?;
            // The registration has another version now.
            return Ok(false);
        }
        self.remove_items(broker).await?;
        let is_removed = self.remove_broker(found, &was, &state).await?;
        if is_removed {
            self.local.forget(broker);
            self.cache.forget(broker);
        }
        Ok(is_removed)
    }

    /// Decides that a broker is removed. From then on no sync writes items.
    async fn decide_removal(
        &self,
        found: &StoredRegistration,
        was: &StoredState,
        mut state: BrokerState,
    ) -> Result<bool, BrokerCommandError> {
        let broker = found.registration.uid;
        state.removal = Some(self.records.now());
        let mut change = StateChange::of(state);
        if let Some(sync) = change.next.sync.operation {
            change.advance(sync, Next::Ready(Due::In(RESUME_AFTER)));
        }
        let documents = &self.records.documents;
        let unchanged = Record::of(found.registration.clone());
        let commit = documents.put(Commit::new(), &found.key, &found.document(), &unchanged);
        let commit = self.with_state(commit, broker, was, &change);
        self.commit(commit).await
    }

    /// Removes the items of a catalog.
    async fn remove_items(&self, broker: Uuid) -> Result<(), BrokerCommandError> {
        let (records, store) = (&self.records, &self.records.documents.store);
        // Plans first: there is no plan without its offering.
        for kind in [SERVICE_PLAN, SERVICE_OFFERING] {
            let list = List::Prefix(records.keys.all_below(kind, &broker.to_string()));
            loop {
                let page = store.list(&list, None, ITEMS_PER_COMMIT).await?;
                if page.documents.is_empty() {
                    break;
                }
                let keys = page.documents.into_iter().map(|it| Write::Remove(it.key));
                let commit = keys.fold(Commit::new(), Commit::write);
                if !self.commit(commit).await? {
                    return Err(self.contended().await);
                }
            }
        }
        Ok(())
    }

    /// Removes registration and state, and ends the operations of syncs and of the probe.
    async fn remove_broker(
        &self,
        found: &StoredRegistration,
        was: &StoredState,
        state: &BrokerState,
    ) -> Result<bool, BrokerCommandError> {
        let broker = found.registration.uid;
        let mut commit = Commit::new().remove(found.key.clone(), found.version);
        if let Some(version) = was.version {
            commit = commit.remove(self.records.keys.broker_state(broker), version);
        }
        let operations = [state.probe, state.sync.operation];
        for operation in operations.into_iter().flatten() {
            let done = Next::Done(Outcome::Cancelled);
            commit = commit
                .advance(operation, done, None, None)
                .write(Write::Unpin(operation));
        }
        self.commit(commit).await
    }

    /// Why a broker cannot be removed now, if so.
    async fn refusal(
        &self,
        broker: Uuid,
    ) -> Result<Option<BrokerCommandError>, BrokerCommandError> {
        let instances = self.remaining_instances(broker).await?;
        if instances.count > 0 {
            return Ok(Some(BrokerCommandError::HasInstances(instances)));
        }
        let orphans = self.remaining_orphans(broker).await?;
        Ok((orphans.count > 0).then_some(BrokerCommandError::HasOrphans(orphans)))
    }

    /// Counts the rows of the ledger about a broker that are neither deleted nor forgotten, nor left to a person because
    /// the broker leaves. What a newer version wrote counts.
    async fn remaining_orphans(
        &self,
        broker: Uuid,
    ) -> Result<RemainingOrphans, BrokerCommandError> {
        let records = &self.records;
        let list = List::Prefix(records.keys.all_below(ORPHAN, &broker.to_string()));
        let mut remaining = RemainingOrphans::default();
        let mut after = None;
        loop {
            let store = &records.documents.store;
            let page = store.list(&list, after.as_ref(), PER_READ).await?;
            for document in &page.documents {
                let row = records.open::<OrphanRecord>(document)?;
                let needs_broker = row.is_none_or(|row| row.orphan.state.needs_broker());
                remaining.count += usize::from(needs_broker);
            }
            match page.next {
                None => {
                    remaining.is_complete = true;
                    return Ok(remaining);
                }
                Some(_) if remaining.count >= COUNTED_MAX => return Ok(remaining),
                Some(next) => after = Some(next),
            }
        }
    }

    /// Counts the instances of a broker that are not gone.
    async fn remaining_instances(
        &self,
        broker: Uuid,
    ) -> Result<RemainingInstances, BrokerCommandError> {
        let records = &self.records;
        let (realm, value) = (records.keys.realm(), broker.to_string());
        let list = List::term(realm, INSTANCE, BROKER_TERM, value.as_bytes());
        let mut remaining = RemainingInstances::default();
        let mut after = None;
        loop {
            let store = &records.documents.store;
            let page = store.list(&list, after.as_ref(), PER_READ).await?;
            for document in &page.documents {
                let Some(name) = self.name_of_remaining(document)? else {
                    continue;
                };
                remaining.count += 1;
                if remaining.first.len() < NAMES_MAX {
                    remaining.first.push(name);
                }
            }
            match page.next {
                None => {
                    remaining.is_complete = true;
                    return Ok(remaining);
                }
                Some(_) if remaining.count >= COUNTED_MAX => return Ok(remaining),
                Some(next) => after = Some(next),
            }
        }
    }

    /// The name of an instance that is not gone. What a newer version wrote counts, by its uid.
    fn name_of_remaining(&self, document: &Document) -> Result<Option<String>, BrokerCommandError> {
        let instance = self.records.open::<Instance>(document)?;
        Ok(match instance {
            Some(instance) if instance.tombstone.is_some() => None,
            Some(instance) => {
                let name = &instance.basis.spec().name;
                Some(format!("{}/{name}", instance.namespace))
            }
            None => {
                let key = &document.key;
                Some(format!("{}/{}", key.id(0), key.id(1)))
            }
        })
    }
}
