//! Check at the start that the key ring opens the documents of a realm.
//!
//! A known text is sealed once in each realm. A wrong key ring is then found before the first request.

use crate::{Documents, RecordError};
use sutler_journal::{
    Commit, CommitError, Document, Key, Kind, SealContext, SealError, StoreError,
};

const META: Kind = Kind::new("meta");
const CANARY: &str = "canary";
const PROBE: &str = "probe";

/// Why the keys could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyKeysError {
    /// The store does not answer.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The store does not write.
    #[error(transparent)]
    Write(CommitError),
    /// The key ring does not open the realm.
    #[error(transparent)]
    Keys(#[from] SealError),
}

impl Documents {
    /// Key of the document that the key ring is verified with.
    #[must_use]
    pub fn key_check_key(&self) -> Key {
        self.key(META, CANARY)
    }

    /// Key of the document that is written to probe whether the store accepts writes again.
    #[must_use]
    pub fn write_probe_key(&self) -> Key {
        self.key(META, PROBE)
    }
}

/// Whether a document is the one that probes writes of its realm.
#[must_use]
pub fn is_write_probe(key: &Key) -> bool {
    key.kind() == META.as_str() && key.id(0) == PROBE
}

/// Opens the known text of a realm, or seals it in a new realm.
///
/// # Errors
/// See [`VerifyKeysError`].
pub async fn verify_keys(documents: &Documents) -> Result<(), VerifyKeysError> {
    let key = documents.key_check_key();
    let place = SealContext::Document(&key);
    for _ in 0..2 {
        if let Some(document) = documents.store.get(&key).await? {
            documents.keys.open(place, &document.body)?;
            return Ok(());
        }
        let body = documents.keys.seal(place, b"the right keys");
        let commit = Commit::new().insert(key.clone(), Vec::new(), body);
        match documents.store.commit(&commit).await {
            Ok(()) => return Ok(()),
            // Another replica was first: open its text.
            Err(CommitError::Stale(_)) => {}
            Err(error) => return Err(VerifyKeysError::Write(error)),
        }
    }
    Ok(())
}

/// Whether these keys open the documents of a realm. Nothing is written.
///
/// # Errors
/// The store does not answer.
pub async fn keys_match(documents: &Documents) -> Result<bool, RecordError> {
    let key = documents.key_check_key();
    let found = documents.store.get(&key).await?;
    let opens = |it: &Document| {
        let place = SealContext::Document(&key);
        documents.keys.open(place, &it.body).is_ok()
    };
    Ok(found.as_ref().is_some_and(opens))
}
