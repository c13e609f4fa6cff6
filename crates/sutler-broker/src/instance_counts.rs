//! Instances of all realms of a store, also of platforms that are not configured now: they may be configured again.

use crate::resources::{INSTANCE, NEXT_PLAN_TERM, PLAN_TERM};
use std::sync::Arc;
use sutler_journal::{List, Realm, Store};
use sutler_records::{COLLECTIONS_REALM, Collections, CollectionsError, realms};

/// Every realm that may have instances, configured or not, at one time.
pub struct InstanceCounts {
    store: Arc<dyn Store>,
    realms: Vec<Realm>,
}

impl InstanceCounts {
    /// The realms of the store that holds these collections.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn read(collections: &Collections) -> Result<Self, CollectionsError> {
        let store = collections.documents().store.clone();
        let mut realms = realms(store.as_ref()).await?;
        realms.retain(|it| it.as_str() != COLLECTIONS_REALM);
        Ok(Self { store, realms })
    }

    /// Whether any realm has an instance of one of these plans, in any state, or one that is being moved to
    /// one of them.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn have_instance_of<'a>(
        &self,
        plans: impl IntoIterator<Item = &'a str>,
    ) -> Result<bool, CollectionsError> {
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
