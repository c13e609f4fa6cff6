//! Scan of all instances, for extensions that hold resources on their behalf.
//!
//! A service may have to keep resources while instances need them, such as the version of the program that created
//! them. Only the records show which instances exist. Reads every instance: for infrequent tasks.

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

/// Visits all instances that are not deleted, of every realm that these keys seal, with the plan and the author's
/// state of each. An instance that is moved to another plan, or to another copy of it, is visited with both.
pub(crate) async fn each_instance(
    documents: &Documents,
    catalog: &LiveCatalog,
    mut visit: impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send,
) -> Result<(), ReadInstancesError> {
    let to_error = |error: RecordError| ReadInstancesError(error.into());
    let realms = realms_with_same_keys(documents).await.map_err(to_error)?;
    for documents in realms {
        let visited = each_of(&documents, catalog, &mut visit).await;
        visited.map_err(to_error)?;
    }
    Ok(())
}

async fn each_of(
    records: &Documents,
    catalog: &LiveCatalog,
    visit: &mut (impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send),
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
                    visit(&plan.pinned, instance_data.state.as_ref());
                }
            }
        }
        at = page.next;
        if at.is_none() {
            return Ok(());
        }
    }
}
