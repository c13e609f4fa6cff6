//! Repeats the notice of a settled orphan for what still waits for it: the process may have ended between the commit that
//! settled the row and the notice, or a person has decided about the row.
//!
//! What waits is listed by a term of its own document. An instance says by its ids for which row it waits; the row of a
//! binding is found below the ids that its instance has or had.

use super::listed_keys::ListedKeys;
use super::task_run_error::TaskRunError;
use crate::context::PlatformContext;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::orphan::{Orphan, OrphanKey, WaitingResource};
use crate::orphan_events::notify_waiting;
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
    if let Some((waiting, row)) = found
        && let Some(result) = row.state.result()
    {
        notify_waiting(context, &row.key, &waiting, result).await;
    }
    Ok(())
}

/// The row for which an instance waits.
async fn of_instance(
    context: &PlatformContext,
    key: &Key,
) -> Result<Option<(WaitingResource, Orphan)>, TaskRunError> {
    let records = &context.records;
    let Some(instance) = records.load::<Instance>(key).await?.state.into_inner() else {
        return Ok(None);
    };
    let waiting = WaitingResource::Instance {
        namespace: instance.namespace.clone(),
        uid: instance.uid,
    };
    let Some(awaited) = instance.awaited_orphan() else {
        return Ok(None);
    };
    let row = records.keys.orphan(&OrphanKey {
        broker: instance.broker,
        instance: awaited.clone(),
        binding: None,
    });
    let row = records.load::<OrphanRecord>(&row).await?;
    let row = row.state.into_inner().map(|record| record.orphan);
    Ok(row.map(|row| (waiting, row)))
}

/// The row for which a binding waits: one below the id of its instance at the broker.
async fn of_binding(
    context: &PlatformContext,
    run: &Run,
    key: &Key,
) -> Result<Option<(WaitingResource, Orphan)>, TaskRunError> {
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
        namespace: binding.namespace.clone(),
        instance: binding.instance,
        uid: binding.uid,
    };
    let ids = instance.former_ids.iter().rev();
    for osb_id in std::iter::once(&instance.osb_id).chain(ids) {
        let at = (instance.broker, osb_id);
        if let Some(row) = awaited_below(context, run, at, (&binding, &waiting)).await? {
            return Ok(Some((waiting, row)));
        }
    }
    Ok(None)
}

/// The newest row for which a binding waits, among those of an instance's bindings.
async fn awaited_below(
    context: &PlatformContext,
    run: &Run,
    (broker, instance): (Uuid, &InstanceId),
    (binding, waiting): (&Binding, &WaitingResource),
) -> Result<Option<Orphan>, TaskRunError> {
    let records = &context.records;
    let list = List::Prefix(records.keys.orphans_of(broker, instance));
    let mut newest: Option<Orphan> = None;
    let mut rows = ListedKeys::of(context, run, list);
    while let Some(page) = rows.next_page().await? {
        for key in page {
            let row = records.load::<OrphanRecord>(&key).await?.state;
            let row = row.into_inner().map(|record| record.orphan);
            let is_awaited = |row: &Orphan| {
                let id = row.key.binding.as_ref();
                row.waiting.as_ref() == Some(waiting) && id.is_some_and(|id| binding.waits_for(id))
            };
            let Some(row) = row.filter(is_awaited) else {
                continue;
            };
            if newest.as_ref().is_none_or(|it| it.found <= row.found) {
                newest = Some(row);
            }
        }
    }
    Ok(newest)
}
