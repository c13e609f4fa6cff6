//! The bindings of an instance: deleted before it, and woken when it is live.

use crate::author::Author;
use crate::binding_changes::apply_to_binding;
use crate::context::PlatformContext;
use crate::lifecycle::binding::{Binding, BindingCommand, Event, IntentCause, IntentChange};
use crate::lifecycle::instance::{BindingsFound, Instance, PendingIntent};
use crate::lifecycle::intent::IntentEnd;
use crate::records::{BINDING, WAITS_TERM};
use sutler_journal::{Key, List};
use sutler_records::RecordError;

/// Bindings of one instance that are read at once. A delete goes on with the rest in its next turn.
const BINDINGS_PAGE: usize = 200;

/// Bindings that must be deleted before their instance; `None`: there are none.
pub(super) async fn find(
    context: &PlatformContext,
    instance: &Instance,
    delete: &PendingIntent,
) -> Result<Option<BindingsFound>, RecordError> {
    let bindings = bindings_of(context, instance).await?;
    let stuck = bindings
        .iter()
        .find(|(_, binding)| is_stuck(binding, delete));
    Ok(match (stuck, bindings.is_empty()) {
        (Some((_, binding)), _) => Some(BindingsFound::Stuck(binding.name.clone())),
        (None, false) => Some(BindingsFound::Left),
        (None, true) => None,
    })
}

/// Whether the delete of the binding that this delete of the instance caused has failed.
fn is_stuck(binding: &Binding, delete: &PendingIntent) -> bool {
    if binding.deletion.is_some() {
        return false;
    }
    binding.ended.iter().any(|ended| {
        let has_failed = matches!(ended.end, IntentEnd::Rejected(_) | IntentEnd::Failed(_));
        let is_cascade = ended.cause == IntentCause::Cascade;
        let is_delete = ended.change == IntentChange::Delete;
        is_delete && is_cascade && has_failed && ended.at >= delete.accepted
    })
}

/// Starts the delete of each binding, in the name of the person who deletes the instance.
pub(super) async fn unbind_all(context: &PlatformContext, instance: &Instance, by: &Author) {
    let bindings = match bindings_of(context, instance).await {
        Ok(bindings) => bindings,
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the bindings of an instance cannot be listed"
            );
            return;
        }
    };
    for (key, binding) in bindings {
        if binding.deletion.is_none() {
            let command = BindingCommand::Cascade(by.clone());
            apply_to_binding(context, &key, Event::Command(Box::new(command))).await;
        }
    }
}

/// Wakes the bindings that wait for the instance. Those that are missed read it again within a minute.
pub(super) async fn wake_waiting(context: &PlatformContext, instance: &Instance) {
    let records = &context.records;
    let uid = instance.uid.to_string();
    let list = List::term(records.keys.realm(), BINDING, WAITS_TERM, uid.as_bytes());
    let Ok(page) = records.list::<Binding>(&list, None, BINDINGS_PAGE).await else {
        return;
    };
    for (key, _) in page.items {
        apply_to_binding(context, &key, Event::InstanceLive).await;
    }
}

/// The bindings of an instance that are not gone.
pub(crate) async fn bindings_of(
    context: &PlatformContext,
    instance: &Instance,
) -> Result<Vec<(Key, Binding)>, RecordError> {
    let records = &context.records;
    let uid = instance.uid.to_string();
    let term = crate::records::INSTANCE_TERM;
    let list = List::term(records.keys.realm(), BINDING, term, uid.as_bytes());
    let page = records.list::<Binding>(&list, None, BINDINGS_PAGE).await?;
    Ok(page.items)
}
