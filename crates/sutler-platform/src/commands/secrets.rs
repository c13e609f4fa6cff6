//! Secrets of a namespace: their values are written and never returned.

use super::command_error::CommandError;
use super::namespaces::{active_namespace, written};
use super::reads::ResourcePage;
use crate::author::Author;
use crate::platform::Platform;
use crate::records::{Record, ResourceName, SECRET, SECRET_BYTES_MAX, SecretRecord, SecretUse};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use sutler_journal::{Commit, List, Position};

/// Writes that may find that another writer was first.
const TRIES_MAX: usize = 20;

/// Keys and values of a secret. `Debug` shows the keys only.
#[derive(Clone, Default)]
pub struct WantedSecret(pub BTreeMap<String, Vec<u8>>);

impl fmt::Debug for WantedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What is shown of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSummary {
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<String>,
    /// Number of its contents.
    pub revision: u64,
    /// When it was changed last.
    pub changed: Timestamp,
    /// Who did that.
    pub changed_by: Author,
}

impl Platform {
    /// Creates a secret or replaces its contents.
    ///
    /// # Errors
    /// It is too large, or it cannot be written.
    pub async fn put_secret(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        wanted: &WantedSecret,
        by: &Author,
    ) -> Result<SecretSummary, CommandError> {
        let bytes = wanted.0.iter().map(|(key, value)| key.len() + value.len());
        if bytes.sum::<usize>() > SECRET_BYTES_MAX {
            return Err(CommandError::Invalid {
                pointer: "/values",
                sentence: format!("a secret has at most {SECRET_BYTES_MAX} bytes"),
            });
        }
        let records = &self.context.records;
        let key = records.keys.secret(namespace.as_str(), name.as_str());
        for _ in 0..TRIES_MAX {
            let (_, (namespace_key, read)) = active_namespace(&self.context, namespace).await?;
            let was = records.load::<SecretRecord>(&key).await?;
            let revision = match &was.state {
                Record::Newer(_) => return Err(CommandError::NewerVersion),
                Record::Absent => 0,
                Record::Present(before) if before.values == wanted.0 => {
                    return Ok(summary(name.as_str(), before));
                }
                Record::Present(before) => before.revision,
            };
            let next = SecretRecord {
                values: wanted.0.clone(),
                revision: revision + 1,
                changed: records.now(),
                changed_by: by.clone(),
            };
            let commit = Commit::new().unchanged(namespace_key, read);
            let record = Record::of(next.clone());
            let commit = records.documents.put(commit, &key, &was, &record);
            if written(&self.context, commit).await? {
                return Ok(summary(name.as_str(), &next));
            }
        }
        Err(CommandError::Contended)
    }

    /// What is shown of a secret.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub async fn secret(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
    ) -> Result<SecretSummary, CommandError> {
        let records = &self.context.records;
        let key = records.keys.secret(namespace.as_str(), name.as_str());
        match records.load::<SecretRecord>(&key).await?.state {
            Record::Present(secret) => Ok(summary(name.as_str(), &secret)),
            Record::Newer(_) => Err(CommandError::NewerVersion),
            Record::Absent => Err(CommandError::NoSecret(name.to_string())),
        }
    }

    /// A page of the secrets of a namespace, by name.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn secrets(
        &self,
        namespace: &ResourceName,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<ResourcePage<SecretSummary>, CommandError> {
        let records = &self.context.records;
        let list = List::Prefix(records.keys.all_below(SECRET, namespace.as_str()));
        let page = records.list::<SecretRecord>(&list, after, limit).await?;
        let items = page.items.iter().map(|(key, it)| summary(key.id(1), it));
        Ok(ResourcePage {
            items: items.collect(),
            next: page.next,
        })
    }

    /// Deletes a secret that no instance and no binding uses. One that begins to use it meanwhile waits on hold for a new
    /// one.
    ///
    /// # Errors
    /// Instances or bindings use it, there is none, or it cannot be written.
    pub async fn delete_secret(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
    ) -> Result<(), CommandError> {
        let records = &self.context.records;
        let key = records.keys.secret(namespace.as_str(), name.as_str());
        let was = records.load::<SecretRecord>(&key).await?;
        let Some(version) = was.version else {
            return Err(CommandError::NoSecret(name.to_string()));
        };
        let uses = records
            .keys
            .uses_of_secret(namespace.as_str(), name.as_str());
        let uses = records
            .list::<SecretUse>(&List::Prefix(uses), None, 1)
            .await?;
        if !uses.items.is_empty() {
            return Err(CommandError::SecretInUse(name.to_string()));
        }
        match written(&self.context, Commit::new().remove(key, version)).await? {
            true => Ok(()),
            false => Err(CommandError::Contended),
        }
    }
}

fn summary(name: &str, secret: &SecretRecord) -> SecretSummary {
    SecretSummary {
        name: name.to_owned(),
        keys: secret.values.keys().cloned().collect(),
        revision: secret.revision,
        changed: secret.changed,
        changed_by: secret.changed_by.clone(),
    }
}
