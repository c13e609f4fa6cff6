//! Namespaces: created, changed, deleted when they are empty.

use super::command_error::CommandError;
use super::reads::ResourcePage;
use crate::broker_request::{Annotations, CloudFoundryLocation, Namespace};
use crate::context::{PlatformContext, fresh_uuid};
use crate::lifecycle::instance::Instance;
use crate::platform::Platform;
use crate::records::{
    BrokerRegistration, INSTANCE, NAMESPACE, NamespaceRecord, NamespaceState, Record, ResourceName,
    SECRET, SecretRecord,
};
use std::collections::BTreeMap;
use sutler_journal::{Commit, CommitError, Key, List, Position, Version, commit_until_known};
use sutler_osb::NonEmptyText;

/// Writes that may find that another writer was first.
const TRIES_MAX: usize = 20;
/// Instances that are looked at for one that is not gone.
const INSTANCES_PAGE: usize = 500;

/// What a person wants of a namespace.
#[derive(Clone, Debug, Default)]
pub struct WantedNamespace {
    /// Labels, for the visibility of plans.
    pub labels: BTreeMap<String, String>,
    /// Annotations, which brokers see.
    pub annotations: Annotations,
    /// Id of the cluster that it belongs to; `None`: that of the platform.
    pub cluster_id: Option<NonEmptyText>,
    /// Organization and space that it stands for on Cloud Foundry.
    pub cloud_foundry: Option<CloudFoundryLocation>,
}

impl Platform {
    /// Creates a namespace or replaces what is known of it. Returns it, and whether it is new.
    ///
    /// # Errors
    /// It is being deleted, or it cannot be written.
    pub async fn put_namespace(
        &self,
        name: &ResourceName,
        wanted: &WantedNamespace,
    ) -> Result<(NamespaceRecord, bool), CommandError> {
        let records = &self.context.records;
        let key = records.keys.namespace(name);
        for _ in 0..TRIES_MAX {
            let was = records.load::<NamespaceRecord>(&key).await?;
            let before = match &was.state {
                Record::Newer(_) => return Err(CommandError::NewerVersion),
                Record::Absent => None,
                Record::Present(before) => Some(before.as_ref()),
            };
            if before.is_some_and(|it| it.state != NamespaceState::Active) {
                return Err(CommandError::NamespaceIsDeleting(name.to_string()));
            }
            let next = self.namespace(name, wanted, before)?;
            let record = Record::of(next.clone());
            let commit = records.documents.put(Commit::new(), &key, &was, &record);
            if written(&self.context, commit).await? {
                return Ok((next, was.version.is_none()));
            }
        }
        Err(CommandError::Contended)
    }

    fn namespace(
        &self,
        name: &ResourceName,
        wanted: &WantedNamespace,
        before: Option<&NamespaceRecord>,
    ) -> Result<NamespaceRecord, CommandError> {
        let text = |text: String| {
            NonEmptyText::try_from(text).map_err(|error| CommandError::Invalid {
                pointer: "/name",
                sentence: error.to_string(),
            })
        };
        let uid = match before {
            Some(before) => before.facts.uid.clone(),
            None => text(fresh_uuid().to_string())?,
        };
        let cluster_id = wanted.cluster_id.clone();
        Ok(NamespaceRecord {
            facts: Namespace {
                name: text(name.to_string())?,
                uid,
                cluster_id: cluster_id.unwrap_or_else(|| self.cluster_id.clone()),
                annotations: wanted.annotations.clone(),
                cloud_foundry: wanted.cloud_foundry.clone(),
            },
            labels: wanted.labels.clone(),
            created: before.map_or_else(|| self.context.records.now(), |it| it.created),
            state: NamespaceState::Active,
        })
    }

    /// A namespace, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn namespace_of(&self, name: &ResourceName) -> Result<NamespaceRecord, CommandError> {
        namespace_record(&self.context, name).await
    }

    /// A page of all namespaces, by name.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn namespaces(
        &self,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<ResourcePage<NamespaceRecord>, CommandError> {
        let records = &self.context.records;
        let list = List::Prefix(records.keys.all_of(NAMESPACE));
        let page = records.list::<NamespaceRecord>(&list, after, limit).await?;
        Ok(page.into())
    }

    /// Deletes a namespace without instances, secrets and brokers of its own: marks it, so that nothing is created any more, looks, and
    /// removes it or takes the mark back.
    ///
    /// # Errors
    /// It is not empty, there is none, or it cannot be written.
    pub async fn delete_namespace(&self, name: &ResourceName) -> Result<(), CommandError> {
        let records = &self.context.records;
        let key = records.keys.namespace(name);
        for _ in 0..TRIES_MAX {
            let was = records.load::<NamespaceRecord>(&key).await?;
            let (Some(before), Some(version)) = (was.state.get().cloned(), was.version) else {
                return Err(CommandError::NoNamespace(name.to_string()));
            };
            let mut marked = before.clone();
            marked.state = NamespaceState::Deleting(records.now());
            let commit = Commit::new();
            let mark = records
                .documents
                .put(commit, &key, &was, &Record::of(marked));
            let marked_version = Version(mark.id());
            debug_assert_ne!(version, marked_version);
            if !written(&self.context, mark).await? {
                continue;
            }
            let is_empty = is_empty(&self.context, name).await?;
            let finish = match is_empty {
                true => Commit::new().remove(key.clone(), marked_version),
                false => {
                    let terms = Vec::new();
                    let sealed = sutler_journal::SealContext::Document(&key);
                    // Also if another process set the mark, and ended before it took it back.
                    let active = NamespaceRecord {
                        state: NamespaceState::Active,
                        ..before
                    };
                    let body = records.documents.seal(sealed, &Record::of(active));
                    Commit::new().replace(key.clone(), marked_version, terms, body)
                }
            };
            if written(&self.context, finish).await? {
                return match is_empty {
                    true => Ok(()),
                    false => Err(CommandError::NamespaceInUse(name.to_string())),
                };
            }
        }
        Err(CommandError::Contended)
    }
}

/// Whether a namespace has no instance that is not gone, no secret, and no broker of its own.
async fn is_empty(context: &PlatformContext, name: &ResourceName) -> Result<bool, CommandError> {
    let records = &context.records;
    let secrets = List::Prefix(records.keys.all_below(SECRET, name.as_str()));
    let page = records.list::<SecretRecord>(&secrets, None, 1).await?;
    if !page.items.is_empty() {
        return Ok(false);
    }
    let brokers = List::Prefix(records.keys.brokers_of(Some(name)));
    let page = records
        .list::<BrokerRegistration>(&brokers, None, 1)
        .await?;
    if !page.items.is_empty() || page.next.is_some() {
        return Ok(false);
    }
    let list = List::Prefix(records.keys.all_below(INSTANCE, name.as_str()));
    let mut after = None;
    loop {
        let page = records
            .list::<Instance>(&list, after.as_ref(), INSTANCES_PAGE)
            .await?;
        if page
            .items
            .iter()
            .any(|(_, instance)| instance.tombstone.is_none())
        {
            return Ok(false);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(true),
        }
    }
}

/// A namespace.
///
/// # Errors
/// There is none, or it cannot be read.
pub(super) async fn namespace_record(
    context: &PlatformContext,
    name: &ResourceName,
) -> Result<NamespaceRecord, CommandError> {
    let key = context.records.keys.namespace(name);
    match context.records.load::<NamespaceRecord>(&key).await?.state {
        Record::Present(namespace) => Ok(*namespace),
        Record::Newer(_) => Err(CommandError::NewerVersion),
        Record::Absent => Err(CommandError::NoNamespace(name.to_string())),
    }
}

/// A namespace in which something may be created, with the version that must not change until it is.
///
/// # Errors
/// There is none, it is being deleted, or it cannot be read.
pub(super) async fn active_namespace(
    context: &PlatformContext,
    name: &ResourceName,
) -> Result<(NamespaceRecord, (Key, Version)), CommandError> {
    let key = context.records.keys.namespace(name);
    let was = context.records.load::<NamespaceRecord>(&key).await?;
    let (state, version) = (was.state, was.version);
    let namespace = match state {
        Record::Present(namespace) => *namespace,
        Record::Newer(_) => return Err(CommandError::NewerVersion),
        Record::Absent => return Err(CommandError::NoNamespace(name.to_string())),
    };
    match (namespace.state, version) {
        (NamespaceState::Active, Some(version)) => Ok((namespace, (key, version))),
        (NamespaceState::Active, None) => Err(CommandError::NoNamespace(name.to_string())),
        (NamespaceState::Deleting(_), _) => {
            Err(CommandError::NamespaceIsDeleting(name.to_string()))
        }
    }
}

/// Whether a commit was written; `false`: another writer was first.
///
/// # Errors
/// It cannot be written, or is too large.
pub(super) async fn written(
    context: &PlatformContext,
    commit: Commit,
) -> Result<bool, CommandError> {
    commit.check().map_err(CommandError::TooLarge)?;
    let store = context.records.documents.store.as_ref();
    match commit_until_known(store, &commit).await {
        Ok(()) => Ok(true),
        Err(CommitError::Stale(_)) => Ok(false),
        Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
    }
}
