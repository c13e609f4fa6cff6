//! Proof at the start that the key ring is the right one for the store.

use crate::broker::BuildError;
use crate::records::{RecordError, Records};
use sutler_journal::{Commit, CommitError, Document, Kind, SealContext};

/// Where the key ring is proved to be the right one.
pub(crate) const META: Kind = Kind::new("meta");
pub(crate) const CANARY: &str = "canary";
/// What is written to see whether the store takes writes again.
pub(crate) const PROBE: &str = "probe";

/// Opens a known text, so that a wrong key ring is found now and not with the first request.
pub(crate) async fn prove_keys(records: &Records) -> Result<(), BuildError> {
    let key = records.key(META, CANARY);
    let place = SealContext::Document(&key);
    for _ in 0..2 {
        let found = records
            .store
            .get(&key)
            .await
            .map_err(|e| BuildError::Store(e.into()))?;
        if let Some(document) = found {
            records.keys.open(place, &document.body)?;
            return Ok(());
        }
        let body = records.keys.seal(place, b"the right keys");
        let commit = Commit::new().insert(key.clone(), Vec::new(), body);
        match records.store.commit(&commit).await {
            Ok(()) => return Ok(()),
            // Another replica was first: open what it wrote.
            Err(CommitError::Stale(_)) => {}
            Err(error) => return Err(BuildError::Store(error.into())),
        }
    }
    Ok(())
}

/// Whether what is in a realm was sealed by these keys. Nothing is written.
pub(crate) async fn knows_keys(records: &Records) -> Result<bool, RecordError> {
    let key = records.key(META, CANARY);
    let found = records.store.get(&key).await?;
    let opens = |it: &Document| {
        records
            .keys
            .open(SealContext::Document(&key), &it.body)
            .is_ok()
    };
    Ok(found.as_ref().is_some_and(opens))
}
