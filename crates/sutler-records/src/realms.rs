//! The realms of a store, and those whose documents the same keys seal.
//!
//! Counts over all realms include realms that are not configured now: they may be configured again.

use crate::key_check::keys_match;
use crate::{Documents, RecordError};
use sutler_journal::{Realm, Store, StoreError};

/// All realms of a store, in order. Costs one read per realm, whatever its size.
///
/// # Errors
/// The store does not answer.
pub async fn realms(store: &dyn Store) -> Result<Vec<Realm>, StoreError> {
    let mut realms: Vec<Realm> = Vec::new();
    let mut from = Vec::new();
    loop {
        let found = store.scan_documents(&from, 1).await?;
        let Some(filed) = found.first() else {
            return Ok(realms);
        };
        let name = filed.document.key.realm();
        // All other keys of this realm sort before this one.
        from = [name.as_bytes(), &[1]].concat();
        // The realm of a stored key is a valid name.
        realms.extend(Realm::new(name).ok());
    }
}

/// The documents of every realm that has the same keys as these. The others belong to another program.
///
/// # Errors
/// The store does not answer.
pub async fn realms_with_same_keys(of: &Documents) -> Result<Vec<Documents>, RecordError> {
    let mut all = Vec::new();
    for realm in realms(of.store.as_ref()).await? {
        let documents = Documents {
            store: of.store.clone(),
            keys: of.keys.clone(),
            realm,
            clock: of.clock.clone(),
        };
        if keys_match(&documents).await? {
            all.push(documents);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::realms;
    use sutler_journal::{Commit, Key, Kind, MemoryStore, Realm, Store as _};

    const KIND: Kind = Kind::new("thing");

    #[tokio::test]
    async fn every_realm_is_found_once_under_any_name() {
        let store = MemoryStore::new();
        let names = ["a", "a/b", "a\u{1}", "b", "sutler:ledger"];
        assert!(realms(&store).await.expect("the store answers").is_empty());
        for name in names {
            let realm = Realm::new(name).expect("a name");
            for id in ["1", "2"] {
                let key = Key::new(&realm, KIND, &[id]).expect("a key");
                let commit = Commit::new().insert(key, Vec::new(), "x".into());
                store.commit(&commit).await.expect("it is written");
            }
        }
        let found = realms(&store).await.expect("the store answers");
        let mut found: Vec<&str> = found.iter().map(Realm::as_str).collect();
        found.sort_unstable();
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
