//! Notifies the resource of the result of its orphan.
//!
//! In a commit of its own: the row and what waits for it are documents of two lanes. A notice that is lost is repeated by
//! `periodic/settled_orphans.rs`; one that comes twice changes nothing.

use crate::binding_changes::apply_to_binding;
use crate::context::PlatformContext;
use crate::instance_events::apply_to_instance;
use crate::lifecycle::orphan::{OrphanKey, OrphanResult, WaitingResource};
use crate::lifecycle::{binding, instance};

/// Notifies what waits for an orphan. The notice names the orphan: what waits may wait for another one by then.
pub(crate) async fn notify_waiting(
    context: &PlatformContext,
    orphan: &OrphanKey,
    waiting: &WaitingResource,
    result: OrphanResult,
) {
    let keys = &context.records.keys;
    match waiting {
        WaitingResource::Instance { namespace, uid } => {
            let key = keys.instance(namespace, *uid);
            let event = instance::Event::OrphanSettled(orphan.instance.clone(), result);
            apply_to_instance(context, &key, event).await;
        }
        WaitingResource::Binding {
            namespace,
            instance,
            uid,
        } => {
            let Some(orphan) = &orphan.binding else {
                return;
            };
            let key = keys.binding(namespace, *instance, *uid);
            let event = binding::Event::OrphanSettled(orphan.clone(), result);
            apply_to_binding(context, &key, event).await;
        }
    }
}
