//! Deletes an instance, takes that back, or gives the instance up.

use super::command_error::CommandError;
use super::instance_commit::{InstanceOutcome, TRIES_MAX, load_instance, try_change};
use crate::author::Author;
use crate::broker_request::check_author;
use crate::executor::bindings_of;
use crate::instance_events::abandonments::abandon_bindings;
use crate::lifecycle::instance::{Event, InstanceCommand};
use crate::lifecycle::intent::Abandonment;
use crate::platform::Platform;
use crate::records::ResourceName;

/// Names of bindings that a refusal shows.
const NAMES_SHOWN: usize = 20;

impl Platform {
    /// Accepts the delete of an instance; with its bindings if `cascade`.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn delete_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        cascade: bool,
        by: &Author,
    ) -> Result<InstanceOutcome, CommandError> {
        check_author(by)?;
        let context = self.context.as_ref();
        for _ in 0..TRIES_MAX {
            let loaded = load_instance(context, namespace, name).await?;
            let bindings = bindings_of(context, &loaded.instance).await?;
            let names = bindings.into_iter().map(|(_, binding)| binding.name);
            let command = InstanceCommand::Delete {
                by: by.clone(),
                cascade,
                bindings: names.take(NAMES_SHOWN).collect(),
            };
            let event = Event::Command(Box::new(command));
            if let Some(outcome) = try_change(context, &loaded, event, false).await? {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }

    /// Takes a delete back, if the broker has not done it.
    ///
    /// # Errors
    /// Nothing is being deleted, or it cannot be written.
    pub async fn undelete_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        by: &Author,
    ) -> Result<InstanceOutcome, CommandError> {
        let command = || InstanceCommand::Undelete(by.clone());
        self.obey(namespace, name, command).await
    }

    /// Refuses deletes of an instance, or takes that back.
    ///
    /// # Errors
    /// There is no such instance, or it cannot be written.
    pub async fn protect_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        on: bool,
    ) -> Result<InstanceOutcome, CommandError> {
        self.obey(namespace, name, || InstanceCommand::Protect(on))
            .await
    }

    /// Forgets an instance here; what the broker may have goes to the orphan ledger. Its bindings are given up before it,
    /// and once more after it: one that was accepted meanwhile may have been bound. None is accepted after that.
    ///
    /// # Errors
    /// There is no such instance, or it cannot be written.
    pub async fn abandon_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        abandonment: &Abandonment,
    ) -> Result<InstanceOutcome, CommandError> {
        let loaded = load_instance(&self.context, namespace, name).await?;
        abandon_bindings(&self.context, &loaded.instance, abandonment).await?;
        let command = || InstanceCommand::Abandon(abandonment.clone());
        let outcome = self.obey(namespace, name, command).await?;
        abandon_bindings(&self.context, &outcome.instance, abandonment).await?;
        Ok(outcome)
    }

    /// A command that needs nothing but the instance.
    pub(super) async fn obey(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        command: impl Fn() -> InstanceCommand,
    ) -> Result<InstanceOutcome, CommandError> {
        for _ in 0..TRIES_MAX {
            let loaded = load_instance(&self.context, namespace, name).await?;
            let event = Event::Command(Box::new(command()));
            if let Some(outcome) = try_change(&self.context, &loaded, event, false).await? {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }
}
