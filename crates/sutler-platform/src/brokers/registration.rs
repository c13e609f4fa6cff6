//! Registers brokers and changes their registrations.

use super::Brokers;
use super::breaker_effects::{DecisionPlace, StateChange, announce};
use super::broker_definition::{BrokerDefinition, invalid, is_same_connection};
use super::chance::jitter;
use super::command_error::BrokerCommandError;
use super::state_change::{StoredState, TRIES, readable};
use super::stored_registration::StoredRegistration;
use crate::author::Author;
use crate::catalog::BrokerScope;
use crate::lifecycle::breaker::{BreakerEvent, decide};
use crate::records::{
    BrokerRegistration, BrokerState, NamespaceRecord, NamespaceState, Record, ResourceName,
};
use sutler_journal::{Commit, OperationId};
use sutler_records::LoadedDocument;
use uuid::Uuid;

/// Most brokers of one namespace: its owners register them, and each costs the platform reads, places and memory. Owners who
/// register several at the same moment may exceed it by those.
const OF_NAMESPACE_MAX: usize = 20;

impl Brokers {
    /// Registers a broker for all namespaces (`None`) or for one, and starts the first sync of its catalog.
    ///
    /// # Guarantees
    /// The name is unique in its scope. Address, credentials, certificates and egress rules fit each other as far as that
    /// is known without sending anything. A namespace exists, and is not being deleted, when its broker is committed.
    ///
    /// # Errors
    /// See [`BrokerCommandError`].
    pub async fn register(
        &self,
        scope: Option<&ResourceName>,
        name: &ResourceName,
        definition: BrokerDefinition,
        by: &Author,
    ) -> Result<BrokerRegistration, BrokerCommandError> {
        let broker_scope = scope.map_or(BrokerScope::AllNamespaces, |namespace| {
            BrokerScope::Namespace(namespace.as_str().to_owned())
        });
        definition.check(&broker_scope)?;
        let registration = BrokerRegistration {
            uid: OperationId::fresh().0,
            name: name.clone(),
            scope: broker_scope,
            url: definition.url,
            authentication: definition.authentication,
            tls: definition.tls,
            profile: definition.profile,
            restrictions: definition.restrictions,
            access: definition.access,
            limits: definition.limits,
            options: definition.options,
            revision: 1,
            created: self.records.now(),
            created_by: by.clone(),
            deregistering: None,
        };
        self.check_connection(&registration)?;
        self.check_quota(scope).await?;
        for _ in 0..TRIES {
            let commit = self.expect_namespace(Commit::new(), scope).await?;
            if self
                .commit_registration(commit, scope, &registration)
                .await?
            {
                return Ok(registration);
            }
            if self.find(scope, name).await?.is_some() {
                return Err(BrokerCommandError::NameTaken);
            }
        }
        Err(self.contended().await)
    }

    /// Checks that the namespace may have one more broker.
    async fn check_quota(&self, scope: Option<&ResourceName>) -> Result<(), BrokerCommandError> {
        if scope.is_none() {
            return Ok(());
        }
        let found = self.list(Some(scope), None, OF_NAMESPACE_MAX).await?;
        match found.items.len() >= OF_NAMESPACE_MAX {
            true => Err(BrokerCommandError::TooManyBrokers(OF_NAMESPACE_MAX)),
            false => Ok(()),
        }
    }

    async fn commit_registration(
        &self,
        commit: Commit,
        scope: Option<&ResourceName>,
        registration: &BrokerRegistration,
    ) -> Result<bool, BrokerCommandError> {
        let (records, broker) = (&self.records, registration.uid);
        let key = records.keys.broker(scope, &registration.name);
        let mut change = StateChange::of(BrokerState::default());
        change.request_sync(records, broker);
        let absent = LoadedDocument::absent();
        let next = Record::of(registration.clone());
        let commit = records.documents.put(commit, &key, &absent, &next);
        let commit = self.with_state(commit, broker, &StoredState::absent(), &change);
        let is_written = self.commit(commit).await?;
        if is_written {
            let now = records.now();
            self.cache.keep_registration(broker, &key);
            self.local.saw_registration(&key, registration, now);
            self.local.wrote_state(broker, &change.next, now);
        }
        Ok(is_written)
    }

    /// Replaces what is written about a broker, all of it. With a revision: only if it is still that one.
    ///
    /// If address, credentials or TLS settings change, what was counted before counts no more, an open breaker is probed
    /// at once, and the whole catalog is read again.
    ///
    /// # Errors
    /// See [`BrokerCommandError`].
    pub async fn update(
        &self,
        broker: Uuid,
        revision: Option<u64>,
        definition: BrokerDefinition,
    ) -> Result<BrokerRegistration, BrokerCommandError> {
        for _ in 0..TRIES {
            let found = self.registration(broker).await?;
            let found = found.ok_or(BrokerCommandError::NoBroker)?;
            let present = &found.registration;
            definition.check(&present.scope)?;
            if present.deregistering.is_some() {
                return Err(BrokerCommandError::Deregistering);
            }
            if revision.is_some_and(|revision| revision != present.revision) {
                return Err(BrokerCommandError::OtherRevision(present.revision));
            }
            if definition == BrokerDefinition::of(present) {
                return Ok(found.registration);
            }
            let mut next = present.clone();
            definition.clone().write_to(&mut next);
            next.revision += 1;
            self.check_connection(&next)?;
            if self.commit_update(&found, &next).await? {
                return Ok(next);
            }
        }
        Err(self.contended().await)
    }

    async fn commit_update(
        &self,
        found: &StoredRegistration,
        next: &BrokerRegistration,
    ) -> Result<bool, BrokerCommandError> {
        let (records, broker) = (&self.records, next.uid);
        let document = Record::of(next.clone());
        let documents = &records.documents;
        let commit = documents.put(Commit::new(), &found.key, &found.document(), &document);
        let was = self.stored_state(broker).await?;
        let change = self.change_after_update(&found.registration, next, readable(&was)?)?;
        let commit = match &change {
            Some(change) => self.with_state(commit, broker, &was, change),
            None => commit,
        };
        let is_written = self.commit(commit).await?;
        if is_written {
            let now = records.now();
            self.local.saw_registration(&found.key, next, now);
            if let Some(change) = change {
                self.local.wrote_state(broker, &change.next, now);
                announce(broker, &change.notices);
            }
        }
        Ok(is_written)
    }

    /// What an update changes in the state of its broker.
    fn change_after_update(
        &self,
        before: &BrokerRegistration,
        next: &BrokerRegistration,
        state: &BrokerState,
    ) -> Result<Option<StateChange>, BrokerCommandError> {
        let (records, broker) = (&self.records, next.uid);
        let mut change = if is_same_connection(before, next) {
            if before.limits.relist_every == next.limits.relist_every {
                return Ok(None);
            }
            StateChange::of(state.clone())
        } else {
            let event = BreakerEvent::NewCredentials;
            let decision = decide(state.breaker.clone(), event, records.now(), jitter())?;
            let place = DecisionPlace::Elsewhere;
            let mut change = StateChange::decided(records, broker, state, &decision, place);
            // The tag is that of another address, or of what other credentials are shown.
            change.next.entity_tag = None;
            change
        };
        change.request_sync(records, broker);
        Ok(Some(change))
    }

    fn check_connection(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<(), BrokerCommandError> {
        match self.connector.connect(registration) {
            Ok(_) => Ok(()),
            Err(error) => Err(invalid("/url", error.to_string())),
        }
    }

    /// Adds to a commit that its namespace exists and is not being deleted.
    async fn expect_namespace(
        &self,
        commit: Commit,
        scope: Option<&ResourceName>,
    ) -> Result<Commit, BrokerCommandError> {
        let Some(name) = scope else {
            return Ok(commit);
        };
        let key = self.records.keys.namespace(name);
        let loaded = self.records.load::<NamespaceRecord>(&key).await?;
        match (&loaded.state, loaded.version) {
            (Record::Newer(_), _) => Err(BrokerCommandError::NewerForm),
            (Record::Absent, _) | (Record::Present(_), None) => {
                Err(BrokerCommandError::NoNamespace)
            }
            (Record::Present(namespace), Some(version)) => match namespace.state {
                NamespaceState::Active => Ok(commit.unchanged(key, version)),
                NamespaceState::Deleting(_) => Err(BrokerCommandError::NamespaceIsDeleting),
            },
        }
    }
}
