//! Repeats the notice of a settled orphan for what still waits for it: the process may have ended between the commit that
//! settled the row and the notice, or a person has decided about the row.
//!
//! What waits is listed by a term of its own document; its row of the ledger is found by the ids that it has or had.

use super::listed_keys::ListedKeys;
use super::task_run_error::TaskRunError;
use crate::context::PlatformContext;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::orphan::{Orphan, OrphanKey, OrphanResult, WaitingResource};
use crate::orphan_notice::notify_waiting;
use crate::records::{BINDING, INSTANCE, ORPHAN_TERM, OrphanRecord, WAITS_FOR_ORPHAN};
use sutler_journal::{Key, Kind, List, Run};
use sutler_osb::InstanceId;
use uuid::Uuid;

/// Repeats the notices that are missing.
///
/// # Errors
/// The store does not answer, or the claim was lost.
pub(super) async fn repeat_notices(
    context: &PlatformContext,
    run: &Run,
) -> Result<(), TaskRunError> {
    for kind in [INSTANCE, BINDING] {
        let mut waiting = ListedKeys::of(context, run, waiting_of(context, kind));
        while let Some(page) = waiting.next_page().await? {
            for key in page {
                match notify(context, run, &key).await {
                    Ok(()) => {}
                    Err(TaskRunError::Lost(lost)) => return Err(lost.into()),
                    Err(TaskRunError::Record(error)) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "it is not known whether an orphan is settled that a resource waits for"
                    ),
                }
            }
        }
    }
    Ok(())
}

/// The documents of a kind that wait for an orphan.
fn waiting_of(context: &PlatformContext, kind: Kind) -> List {
    let realm = context.records.keys.realm();
    List::term(realm, kind, ORPHAN_TERM, WAITS_FOR_ORPHAN)
}

async fn notify(context: &PlatformContext, run: &Run, key: &Key) -> Result<(), TaskRunError> {
    let found = match key.kind() == INSTANCE.as_str() {
        true => of_instance(context, key).await?,
        false => of_binding(context, run, key).await?,
    };
    if let Some((waiting, result)) = found {
        notify_waiting(context, &waiting, result).await;
    }
    Ok(())
}

/// The settled row for which an instance waits: that of an id which it has or had.
async fn of_instance(
    context: &PlatformContext,
    key: &Key,
) -> Result<Option<(WaitingResource, OrphanResult)>, TaskRunError> {
    let records = &context.records;
    let Some(instance) = records.load::<Instance>(key).await?.state.into_inner() else {
        return Ok(None);
    };
    let waiting = WaitingResource::Instance {
        namespace: instance.namespace.clone(),
        uid: instance.uid,
    };
    // The newest id first: it is that of the last create.
    let ids = instance.former_ids.iter().rev();
    for osb_id in std::iter::once(&instance.osb_id).chain(ids) {
        let row = records.keys.orphan(&OrphanKey {
            broker: instance.broker,
            instance: osb_id.clone(),
            binding: None,
        });
        let row = records.load::<OrphanRecord>(&row).await?;
        let Some(row) = row.state.into_inner() else {
            continue;
        };
        if row.orphan.waiting.as_ref() == Some(&waiting) {
            return Ok(row.orphan.state.result().map(|result| (waiting, result)));
        }
    }
    Ok(None)
}

/// The settled row for which a binding waits: one below the id of its instance at the broker.
async fn of_binding(
    context: &PlatformContext,
    run: &Run,
    key: &Key,
) -> Result<Option<(WaitingResource, OrphanResult)>, TaskRunError> {
    let records = &context.records;
    let Some(binding) = records.load::<Binding>(key).await?.state.into_inner() else {
        return Ok(None);
    };
    let instance = records.keys.instance(&binding.namespace, binding.instance);
    let Some(instance) = records
        .load::<Instance>(&instance)
        .await?
        .state
        .into_inner()
    else {
        return Ok(None);
    };
    let waiting = WaitingResource::Binding {
        namespace: binding.namespace,
        instance: binding.instance,
        uid: binding.uid,
    };
    let ids = instance.former_ids.iter().rev();
    for osb_id in std::iter::once(&instance.osb_id).chain(ids) {
        let at = (instance.broker, osb_id);
        if let Some(result) = settled_below(context, run, at, &waiting).await? {
            return Ok(Some((waiting, result)));
        }
    }
    Ok(None)
}

/// How the newest row was settled for which a binding waits, among those of an instance's bindings. Nothing if one of its
/// rows is not settled.
async fn settled_below(
    context: &PlatformContext,
    run: &Run,
    (broker, instance): (Uuid, &InstanceId),
    waiting: &WaitingResource,
) -> Result<Option<OrphanResult>, TaskRunError> {
    let records = &context.records;
    let list = List::Prefix(records.keys.orphans_of(broker, instance));
    let mut newest: Option<Orphan> = None;
    let mut rows = ListedKeys::of(context, run, list);
    while let Some(page) = rows.next_page().await? {
        for key in page {
            let row = records.load::<OrphanRecord>(&key).await?.state;
            let row = row.into_inner().map(|record| record.orphan);
            let Some(row) = row.filter(|row| row.waiting.as_ref() == Some(waiting)) else {
                continue;
            };
            if newest.as_ref().is_none_or(|it| it.found <= row.found) {
                newest = Some(row);
            }
        }
    }
    Ok(newest.and_then(|row| row.state.result()))
}
