//! What instances hold on to outside the broker, told to whoever keeps it for them.
//!
//! A service may keep something for as long as instances need it, such as the version of a program that made
//! them. Only the records say which those are. Reads everything: for work that comes round rarely.

use crate::broker::Running;
use crate::lifecycle::AuthorState;
use crate::lifecycle::instance::Instance;
use crate::plans::Plans;
use crate::realms::neighbours;
use crate::records::{INSTANCE, RecordError, Records};
use sutler_journal::{Key, List, SealContext};
use sutler_osb::PinnedPlan;

/// Records read at a time.
const CHUNK: usize = 200;

/// The records cannot be read now.
#[derive(Debug, thiserror::Error)]
#[error("the records of instances cannot be read; see whether the store answers: {0}")]
pub struct Unread(#[source] Box<dyn std::error::Error + Send + Sync>);

impl Running {
    /// Goes through all instances that are not gone, of every platform, configured or not: the plan of each, and
    /// what its service remembers of it. One that is being given another plan, or another copy of it, is seen with
    /// both.
    ///
    /// # Errors
    /// The store does not answer, or a record cannot be opened: then not all were seen.
    pub async fn each_instance(
        &self,
        mut see: impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send,
    ) -> Result<(), Unread> {
        let unread = |error: RecordError| Unread(error.into());
        let Some(stock) = self.0.stocks().next() else {
            return Ok(());
        };
        for records in neighbours(&stock.records).await.map_err(unread)? {
            let seen = each_of(&records, &stock.plans, &mut see).await;
            seen.map_err(unread)?;
        }
        Ok(())
    }
}

async fn each_of(
    records: &Records,
    plans: &Plans,
    see: &mut (impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send),
) -> Result<(), RecordError> {
    let list = List::Prefix(Key::prefix(&records.realm, INSTANCE, &[]).unwrap_or_default());
    let mut at = None;
    loop {
        let page = records.store.list(&list, at.as_ref(), CHUNK).await?;
        for document in page.documents {
            let place = SealContext::Document(&document.key);
            let (instance, _) = records.open::<Instance>(place, &document.body)?;
            // Without a copy of a plan nothing was begun yet.
            if let Some(thing) = instance.thing().filter(|it| !it.spec.plan.is_empty()) {
                // One that is being updated may come to need another, and still need its own.
                let next = match &instance {
                    Instance::Updating { change, .. } => change.plan.as_ref().map(|it| &it.1),
                    _ => None,
                };
                for copy in [Some(&thing.spec.plan), next].into_iter().flatten() {
                    let plan = plans.pinned(records, copy).await?;
                    see(&plan.pinned, thing.state.as_ref());
                }
            }
        }
        at = page.next;
        if at.is_none() {
            return Ok(());
        }
    }
}
