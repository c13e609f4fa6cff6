//! Gives up an instance with its bindings: they end here, and what the broker may have goes to the orphan ledger.

use crate::binding_changes::{BindingChangeError, change_binding};
use crate::context::PlatformContext;
use crate::executor::bindings_of;
use crate::instance_events::{InstanceChangeError, change_instance};
use crate::lifecycle::binding::{self, BindingCommand, BindingEventError};
use crate::lifecycle::instance::{self, Instance, InstanceCommand, InstanceEventError};
use crate::lifecycle::intent::Abandonment;
use crate::records::Record;
use sutler_journal::Key;

/// Rounds of giving up bindings: each gives up a page of them.
const ROUNDS_MAX: usize = 1_000;

/// Gives up all bindings of an instance.
///
/// # Errors
/// One cannot be written, or new ones come again and again.
pub(crate) async fn abandon_bindings(
    context: &PlatformContext,
    instance: &Instance,
    abandonment: &Abandonment,
) -> Result<(), BindingChangeError> {
    for _ in 0..ROUNDS_MAX {
        let bindings = bindings_of(context, instance).await?;
        if bindings.is_empty() {
            return Ok(());
        }
        for (key, _) in bindings {
            let command = BindingCommand::Abandon(abandonment.clone());
            let event = binding::Event::Command(Box::new(command));
            match change_binding(context, &key, event).await {
                Ok(_) | Err(BindingChangeError::Refused(BindingEventError::Gone)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Err(BindingChangeError::Contended)
}

/// Why an instance is not given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AbandonError {
    /// Its document is not written.
    #[error(transparent)]
    Instance(#[from] InstanceChangeError),
    /// That of a binding is not.
    #[error(transparent)]
    Binding(#[from] BindingChangeError),
}

/// Gives up the instance with a key, whatever of it is given up already. Its bindings are given up before it, and once more
/// after it: one that was accepted meanwhile may have been bound. None is accepted after that.
///
/// # Errors
/// See [`AbandonError`].
pub(crate) async fn abandon_instance(
    context: &PlatformContext,
    key: &Key,
    abandonment: &Abandonment,
) -> Result<(), AbandonError> {
    let found = context.records.load::<Instance>(key).await;
    let instance = match found.map_err(InstanceChangeError::from)?.state {
        Record::Present(instance) => *instance,
        Record::Newer(_) => return Err(InstanceChangeError::NewerVersion.into()),
        Record::Absent => return Ok(()),
    };
    abandon_bindings(context, &instance, abandonment).await?;
    if instance.tombstone.is_some() {
        return Ok(());
    }
    let command = InstanceCommand::Abandon(abandonment.clone());
    let event = instance::Event::Command(Box::new(command));
    match change_instance(context, key, |_, _| event.clone()).await {
        Ok(_) | Err(InstanceChangeError::Refused(InstanceEventError::Gone)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(abandon_bindings(context, &instance, abandonment).await?)
}
