//! Which realms a store has. Whoever decides what nobody needs any more must count the instances of all of
//! them, also of platforms that are not configured now: they may come back.

use crate::canary::knows_keys;
use crate::ledger::{LEDGER_REALM, Ledger, LedgerFault};
use crate::records::{INSTANCE, NEXT_PLAN_TERM, PLAN_TERM, RecordError, Records};
use std::sync::Arc;
use sutler_journal::{List, Realm, Store, StoreError};

/// All realms of a store, in order. Costs one look for each, however much is in it.
pub(crate) async fn realms(store: &dyn Store) -> Result<Vec<Realm>, StoreError> {
    let mut realms: Vec<Realm> = Vec::new();
    let mut from = Vec::new();
    loop {
        let found = store.scan_documents(&from, 1).await?;
        let Some(filed) = found.first() else {
            return Ok(realms);
        };
        let name = filed.document.key.realm();
        // Everything else of this realm lies before this place.
        from = [name.as_bytes(), &[1]].concat();
        // A key has a realm of its own making: there is no other name in it.
        realms.extend(Realm::new(name).ok());
    }
}

/// The records of every realm that has the same keys as these; others belong to another broker.
pub(crate) async fn neighbours(of: &Records) -> Result<Vec<Records>, RecordError> {
    let mut all = Vec::new();
    for realm in realms(of.store.as_ref()).await? {
        let records = Records {
            store: of.store.clone(),
            keys: of.keys.clone(),
            realm,
        };
        if knows_keys(&records).await? {
            all.push(records);
        }
    }
    Ok(all)
}

/// Everybody who may have instances, configured or not, at one moment.
pub struct Tenants {
    store: Arc<dyn Store>,
    realms: Vec<Realm>,
}

impl Ledger {
    /// Everybody who may have instances now.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn tenants(&self) -> Result<Tenants, LedgerFault> {
        let store = self.records.store.clone();
        let mut realms = realms(store.as_ref()).await?;
        realms.retain(|it| it.as_str() != LEDGER_REALM);
        Ok(Tenants { store, realms })
    }
}

impl Tenants {
    /// Whether any of them has an instance of one of these plans, in whatever state, or one that is being moved to
    /// one of them.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn have_instance_of<'a>(
        &self,
        plans: impl IntoIterator<Item = &'a str>,
    ) -> Result<bool, LedgerFault> {
        for plan in plans {
            for realm in &self.realms {
                for term in [PLAN_TERM, NEXT_PLAN_TERM] {
                    let list = List::term(realm, INSTANCE, term, plan.as_bytes());
                    let page = self.store.list(&list, None, 1).await?;
                    if !page.documents.is_empty() {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::realms;
    use sutler_journal::{Commit, Key, Kind, MemoryStore, Realm, Store as _};

    const KIND: Kind = Kind::new("thing");

    #[tokio::test]
    async fn every_realm_is_found_once_whatever_it_is_called() {
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
