//! Commands about intents of an instance: cancel, resume, retry, rollback.

use super::change_options::ChangeOptions;
use super::command_error::CommandError;
use super::instance_changes::facts_without_difference;
use super::instance_commit::{InstanceOutcome, TRIES_MAX, load_for_change, try_change};
use crate::author::Author;
use crate::broker_request::check_author;
use crate::lifecycle::instance::{ChangeFacts, Event, InstanceCommand};
use crate::lifecycle::intent::IntentNumber;
use crate::platform::Platform;
use crate::records::ResourceName;

impl Platform {
    /// Ends an intent that was not sent.
    ///
    /// # Errors
    /// It was sent or has ended, or it cannot be written.
    pub async fn cancel_intent(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        by: &Author,
    ) -> Result<InstanceOutcome, CommandError> {
        let command = || InstanceCommand::Cancel(number, by.clone());
        self.obey(namespace, name, command).await
    }

    /// Lets an intent on hold go on, at the end of the queue, in the name of who asks for it.
    ///
    /// # Errors
    /// It is not on hold, or it cannot be written.
    pub async fn resume_intent(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        let command = |facts| InstanceCommand::Resume(number, facts);
        self.repeat(namespace, name, options, command).await
    }

    /// Repeats an intent that was rejected or failed, in the name of who asks for it.
    ///
    /// # Errors
    /// It has not failed, or it cannot be written.
    pub async fn retry_intent(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        let command = |facts| InstanceCommand::Retry(number, facts);
        self.repeat(namespace, name, options, command).await
    }

    /// Goes back to the specification that an intent confirmed.
    ///
    /// # Errors
    /// It is not kept any more, or it cannot be written.
    pub async fn rollback_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        let command = |facts| InstanceCommand::Rollback(number, facts);
        self.repeat(namespace, name, options, command).await
    }

    async fn repeat(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        options: &ChangeOptions,
        command: impl Fn(ChangeFacts) -> InstanceCommand,
    ) -> Result<InstanceOutcome, CommandError> {
        check_author(&options.author)?;
        for _ in 0..TRIES_MAX {
            let loaded = load_for_change(&self.context, namespace, name, options).await?;
            let facts = facts_without_difference(options, &loaded);
            let event = Event::Command(Box::new(command(facts)));
            if let Some(outcome) =
                try_change(&self.context, &loaded, event, options.dry_run).await?
            {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }
}
