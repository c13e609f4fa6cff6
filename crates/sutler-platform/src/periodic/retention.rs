//! Removes what is past its retention: ended operations, tombstones, orphans that are deleted, the old end of the feed.
//!
//! Operations are swept only if no document refers to them. The tombstone of an instance stays as long as it has bindings.

use super::listed_keys::ListedKeys;
use super::task_run_error::TaskRunError;
use crate::context::PlatformContext;
use crate::executor::bindings_of;
use crate::lifecycle::instance::Instance;
use crate::records::{
    BINDING, BROKER_STATE, CATALOG_SYNC, GONE_TERM, INSTANCE, ORPHAN, moment_value,
};
use std::time::Duration;
use sutler_journal::{Commit, Key, Kind, List, Run, StoreTime};
use sutler_records::{Retention, SINGLETON};

/// How long runs of periodic tasks are kept after their end. There are some in every minute.
const PERIODIC_OPERATIONS_KEPT: Duration = Duration::from_secs(3600);
/// How long probes of brokers and reads of catalogs are kept after their end.
const BROKER_OPERATIONS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Removes what is old.
///
/// # Errors
/// The store does not answer, or the claim was lost.
pub(super) async fn remove_old(context: &PlatformContext, run: &Run) -> Result<(), TaskRunError> {
    let kept = &context.retention;
    let documents = context.records.documents.as_ref();
    let retention = Retention { documents, run };
    let ages = [
        (SINGLETON, PERIODIC_OPERATIONS_KEPT),
        (BROKER_STATE, BROKER_OPERATIONS_KEPT),
        (CATALOG_SYNC, BROKER_OPERATIONS_KEPT),
        (INSTANCE, kept.journal),
        (BINDING, kept.journal),
        (ORPHAN, kept.journal),
    ];
    let mut removed = 0;
    for (kind, age) in ages {
        removed += retention.sweep_operations(kind, None, age).await?;
    }
    removed += retention.sweep_feed(kept.feed).await?;
    let now = retention.now().await?;
    let bindings = gone(context, BINDING, now.minus(kept.tombstones));
    removed += retention.remove_listed(&bindings, None).await?;
    removed += remove_instances(context, run, now.minus(kept.tombstones)).await?;
    let orphans = gone(context, ORPHAN, now.minus(kept.orphans));
    removed += retention.remove_listed(&orphans, None).await?;
    tracing::debug!(removed, "what is past its retention is removed");
    Ok(())
}

/// Documents of a kind that ended before a moment.
fn gone(context: &PlatformContext, kind: Kind, before: StoreTime) -> List {
    let StoreTime(micros) = before;
    List::Term {
        realm: context.records.keys.realm().clone(),
        kind,
        name: GONE_TERM,
        from: Vec::new(),
        to: moment_value(micros),
    }
}

/// Removes old tombstones of instances without bindings.
async fn remove_instances(
    context: &PlatformContext,
    run: &Run,
    gone_before: StoreTime,
) -> Result<u64, TaskRunError> {
    let mut removed = 0;
    let mut old = ListedKeys::of(context, run, gone(context, INSTANCE, gone_before));
    while let Some(page) = old.next_page().await? {
        for key in page {
            match remove_instance(context, run, key).await {
                Ok(is_removed) => removed += u64::from(is_removed),
                Err(TaskRunError::Lost(lost)) => return Err(lost.into()),
                Err(TaskRunError::Record(error)) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the tombstone of an instance cannot be read or removed; it stays"
                ),
            }
        }
    }
    Ok(removed)
}

async fn remove_instance(
    context: &PlatformContext,
    run: &Run,
    key: Key,
) -> Result<bool, TaskRunError> {
    let was = context.records.load::<Instance>(&key).await?;
    let (Some(instance), Some(version)) = (was.state.get(), was.version) else {
        return Ok(false);
    };
    if instance.tombstone.is_none() || !bindings_of(context, instance).await?.is_empty() {
        return Ok(false);
    }
    // Stale: the document was written again and stays.
    let removed = run.commit(Commit::new().remove(key, version)).await?;
    Ok(removed.is_ok())
}
