//! Follows what other replicas write about brokers, and keeps the engine's queues as breakers and limits demand.
//!
//! One task per process, [`Brokers::follow`]. It reads the feed once a second and carries nothing over from it but names of
//! documents, which it then reads: so it may repeat or begin anew at any time.

use super::Brokers;
use super::feed_end::end_of_feed;
use super::replicas::WRITTEN_EVERY;
use crate::records::{
    BROKER, BROKER_STATE, BrokerRegistration, BrokerState, REALM, REPLICA, TypedRecord,
};
use std::collections::BTreeSet;
use std::time::Duration;
use sutler_journal::{Cursor, Key, Kind, List, Subject};
use sutler_records::RecordError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Time between two reads of the feed: with the work itself, a breaker opens and closes everywhere within two seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Changes that are read at once.
const CHANGES_PER_READ: usize = 500;
/// Documents that are read at once.
const DOCUMENTS_PER_READ: usize = 500;
/// Most reads of the feed before limits are looked at again.
const READS_MAX: usize = 20;
/// Time for the last write of a process that stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What is to be read.
#[derive(Default)]
struct Follower {
    /// Place in the feed; `None`: everything is read first.
    cursor: Option<Cursor>,
    registrations: BTreeSet<Key>,
    states: BTreeSet<Uuid>,
    replicas: bool,
    /// When this process writes next that it lives.
    writes_at: Option<Instant>,
    /// Whether the last look failed: only the first failure of several is logged.
    is_failing: bool,
}

impl Brokers {
    /// Follows the other replicas until it is stopped: caches, breakers, limits and queues, see the head of this file.
    /// While it runs, this process counts as one of the replicas. Runs in a task of its own, once per process.
    pub async fn follow(&self, stop: CancellationToken) {
        let mut follower = Follower::default();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = follower.look(self) => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        let removed = tokio::time::timeout(STOP_WITHIN, self.replicas.remove()).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!("the record of this process was not removed; it is forgotten later");
        }
    }
}

impl Follower {
    async fn look(&mut self, brokers: &Brokers) {
        match self.follow_once(brokers).await {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                if !self.is_failing {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "changes of brokers cannot be read; trying again"
                    );
                }
                self.is_failing = true;
            }
        }
        for broker in brokers.local.relists_due(brokers.records.now()) {
            if let Err(error) = brokers.relist(broker).await {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error,
                    "the catalog is read again later");
            }
        }
        // Limits depend on the clock too, so they are looked at whether or not the store answers.
        brokers.local.refresh(None, brokers.records.now());
    }

    async fn follow_once(&mut self, brokers: &Brokers) -> Result<(), RecordError> {
        self.write_replica(brokers).await?;
        let cursor = match self.cursor.take() {
            Some(cursor) => cursor,
            None => {
                let store = brokers.records.documents.store.as_ref();
                let cursor = end_of_feed(store).await?;
                read_all(brokers).await?;
                self.replicas = true;
                cursor
            }
        };
        self.cursor = Some(cursor.clone());
        self.read_feed(brokers, cursor).await?;
        self.read_documents(brokers).await
    }

    /// Once a minute.
    async fn write_replica(&mut self, brokers: &Brokers) -> Result<(), RecordError> {
        let now = Instant::now();
        if self.writes_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        let documents = &brokers.records.documents;
        documents.clock.set(documents.store.now().await?);
        brokers.replicas.write().await?;
        self.writes_at = Some(now + WRITTEN_EVERY);
        // Others may live no more.
        self.replicas = true;
        Ok(())
    }

    /// Notes which documents have changed.
    async fn read_feed(
        &mut self,
        brokers: &Brokers,
        mut cursor: Cursor,
    ) -> Result<(), RecordError> {
        for _ in 0..READS_MAX {
            let store = &brokers.records.documents.store;
            let read = store.changes(&cursor, CHANGES_PER_READ).await?;
            if read.gap {
                // What is missing may be anything.
                self.cursor = None;
                return Ok(());
            }
            for change in &read.changes {
                match &change.subject {
                    Subject::Put(key) | Subject::Removed(key) => self.note(key),
                    Subject::Operation(_) => {}
                }
            }
            let is_end = read.changes.is_empty();
            cursor = read.next;
            self.cursor = Some(cursor.clone());
            if is_end {
                break;
            }
        }
        Ok(())
    }

    fn note(&mut self, key: &Key) {
        let is = |kind: Kind| key.realm() == REALM && key.kind() == kind.as_str();
        if is(BROKER) {
            self.registrations.insert(key.clone());
        } else if is(BROKER_STATE) {
            self.states.extend(Uuid::try_parse(key.id(0)));
        } else if is(REPLICA) {
            self.replicas = true;
        }
    }

    /// Reads the documents that have changed. What cannot be read now is read with the next look.
    async fn read_documents(&mut self, brokers: &Brokers) -> Result<(), RecordError> {
        self.states.extend(brokers.local.take_written_states());
        while let Some(key) = self.registrations.first().cloned() {
            skip_unreadable(read_registration(brokers, &key).await)?;
            self.registrations.remove(&key);
        }
        while let Some(broker) = self.states.first().copied() {
            skip_unreadable(read_state(brokers, broker).await)?;
            self.states.remove(&broker);
        }
        if self.replicas {
            let live = brokers.replicas.count_live().await?;
            brokers.local.refresh(Some(live), brokers.records.now());
            self.replicas = false;
        }
        Ok(())
    }
}

/// Reads all brokers, and forgets those that are not registered.
async fn read_all(brokers: &Brokers) -> Result<(), RecordError> {
    let ReadDocuments {
        found: registered,
        unreadable,
    } = all::<BrokerRegistration>(brokers, BROKER).await?;
    let states = all::<BrokerState>(brokers, BROKER_STATE).await?.found;
    let now = brokers.records.now();
    let known: BTreeSet<Uuid> = registered.iter().map(|(_, it)| it.uid).collect();
    for (broker, key) in brokers.local.known() {
        if !known.contains(&broker) && !unreadable.contains(&key) {
            forget(brokers, broker);
        }
    }
    for (key, registration) in &registered {
        brokers.local.saw_registration(key, registration, now);
    }
    let by_broker = states.iter().filter_map(|(key, state)| {
        let broker = Uuid::try_parse(key.id(0)).ok()?;
        Some((broker, state))
    });
    for (broker, state) in by_broker {
        brokers.local.saw_state(broker, state, now);
    }
    Ok(())
}

/// Documents of a kind.
struct ReadDocuments<T> {
    /// Those that this version can read.
    found: Vec<(Key, T)>,
    /// Keys of those that cannot be opened.
    unreadable: BTreeSet<Key>,
}

/// All documents of a kind. One that cannot be opened hides no other one.
async fn all<T: TypedRecord>(
    brokers: &Brokers,
    kind: Kind,
) -> Result<ReadDocuments<T>, RecordError> {
    let records = &brokers.records;
    let list = List::Prefix(records.keys.all_of(kind));
    let mut read = ReadDocuments {
        found: Vec::new(),
        unreadable: BTreeSet::new(),
    };
    let mut after = None;
    loop {
        // To the end: nothing would be sent to a broker that is left out, and registrations have a quota.
        let store = &records.documents.store;
        let page = store
            .list(&list, after.as_ref(), DOCUMENTS_PER_READ)
            .await?;
        for document in page.documents {
            match records.open(&document) {
                Ok(Some(contents)) => read.found.push((document.key, contents)),
                Ok(None) => {}
                Err(error) => {
                    skip_unreadable(Err(error))?;
                    read.unreadable.insert(document.key);
                }
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(read),
        }
    }
}

/// Reads a registration. What a newer version wrote is left to processes of that version.
async fn read_registration(brokers: &Brokers, key: &Key) -> Result<(), RecordError> {
    let found = brokers.registration_at(key).await?;
    let uid = found.as_ref().map(|it| it.registration.uid);
    for (broker, at) in brokers.local.known() {
        if at == *key && Some(broker) != uid {
            forget(brokers, broker);
        }
    }
    let Some(found) = found else { return Ok(()) };
    let registration = &found.registration;
    let is_new = !brokers.local.knows(registration.uid);
    let now = brokers.records.now();
    brokers.local.saw_registration(key, registration, now);
    match is_new {
        true => read_state(brokers, registration.uid).await,
        false => Ok(()),
    }
}

/// Reads the state of a broker whose registration is known; the others are read with their registrations.
async fn read_state(brokers: &Brokers, broker: Uuid) -> Result<(), RecordError> {
    if let Some(state) = brokers.state(broker).await? {
        let now = brokers.records.now();
        brokers.local.saw_state(broker, &state, now);
    }
    Ok(())
}

fn forget(brokers: &Brokers, broker: Uuid) {
    brokers.local.forget(broker);
    brokers.cache.forget(broker);
}

/// Passes only errors on after which it is worth reading again.
fn skip_unreadable(read: Result<(), RecordError>) -> Result<(), RecordError> {
    match read {
        Err(error @ (RecordError::Seal(_) | RecordError::Form(_))) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a document of a broker cannot be opened; it is left as it was known"
            );
            Ok(())
        }
        other => other,
    }
}
