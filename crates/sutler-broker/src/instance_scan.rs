//! Scan of all instances, for extensions that hold resources on their behalf.
//!
//! A service may have to keep something for as long as instances need it, such as the version of a program that
//! created them. Only the records show which instances exist. Reads every instance: for infrequent tasks.

use crate::catalog::LiveCatalog;
use crate::lifecycle::AuthorState;
use crate::lifecycle::instance::Instance;
use crate::resources::INSTANCE;
use sutler_journal::{Key, List, SealContext};
use sutler_osb::PinnedPlan;
use sutler_records::{Documents, RecordError, realms_with_same_keys};

/// Documents read at a time.
const CHUNK: usize = 200;

/// The instances cannot be read now.
#[derive(Debug, thiserror::Error)]
#[error("the records of instances cannot be read; see whether the store answers: {0}")]
pub struct ReadInstancesError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Visits all instances that are not gone, of every realm that these keys seal: the plan of each, and the
/// state of its author. One that is moved to another plan, or to another copy of it, is visited with both.
pub(crate) async fn each_instance(
    documents: &Documents,
    catalog: &LiveCatalog,
    mut see: impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send,
) -> Result<(), ReadInstancesError> {
    let unread = |error: RecordError| ReadInstancesError(error.into());
    let realms = realms_with_same_keys(documents).await.map_err(unread)?;
    for documents in realms {
        let seen = each_of(&documents, catalog, &mut see).await;
        seen.map_err(unread)?;
    }
    Ok(())
}

async fn each_of(
    records: &Documents,
    catalog: &LiveCatalog,
    see: &mut (impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send),
) -> Result<(), RecordError> {
    let list = List::Prefix(Key::prefix(&records.realm, INSTANCE, &[]).unwrap_or_default());
    let mut at = None;
    loop {
        let page = records.store.list(&list, at.as_ref(), CHUNK).await?;
        for document in page.documents {
            let place = SealContext::Document(&document.key);
            let (instance, _) = records.open::<Instance>(place, &document.body)?;
            // Without a plan copy, nothing was started yet.
            if let Some(instance_data) = instance.data().filter(|it| !it.spec.plan.is_empty()) {
                // During an update an instance may need both the new copy and its own.
                let next = match &instance {
                    Instance::Updating { change, .. } => change.plan.as_ref().map(|it| &it.1),
                    _ => None,
                };
                for copy in [Some(&instance_data.spec.plan), next].into_iter().flatten() {
                    let plan = catalog.pinned(records, copy).await?;
                    see(&plan.pinned, instance_data.state.as_ref());
                }
            }
        }
        at = page.next;
        if at.is_none() {
            return Ok(());
        }
    }
}
