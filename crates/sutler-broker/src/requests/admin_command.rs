//! Runs commands of operators: reads, decides, and commits together with the audit entry.
//!
//! Commands are decided in `lifecycle/`. Every command leaves an audit entry, even a refused one. Authorisation is
//! checked before (`admin/`); started operations are run by `executor.rs`.

use super::{AuditNote, RequestError, RequestHandler, RequestInfo, TRIES, draft, too_contended};
use crate::audit::{AuditAction, AuditSubject, TrailEntry, log_entry};
use crate::lifecycle::admin_command::{AdminCommand, FailedOperation, FailedUpdate};
use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Change, Instance, parent};
use crate::lifecycle::{Decision, Effect, Reply, Verb};
use crate::resources::{Request, RequestBody, ResourceKeys as _};
use std::sync::Arc;
use sutler_journal::{Key, Operation, OperationId, Outcome, State, StoreError, Version};
use sutler_osb::{BindingId, InstanceId};
use sutler_records::{Actor, AuditResult};
use sutler_records::{LoadedDocument, RecordError, Resource};
use sutler_server::RequestContext;

/// Kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Retry,
    Cancel,
    Abandon,
    Purge,
}

impl CommandKind {
    pub(crate) const ALL: [Self; 4] = [Self::Retry, Self::Cancel, Self::Abandon, Self::Purge];

    pub(crate) fn word(self) -> &'static str {
        self.action().word()
    }

    fn action(self) -> AuditAction {
        match self {
            Self::Retry => AuditAction::Retry,
            Self::Cancel => AuditAction::Cancel,
            Self::Abandon => AuditAction::Abandon,
            Self::Purge => AuditAction::Purge,
        }
    }

    fn past_tense(self) -> &'static str {
        match self {
            Self::Retry => "Retried",
            Self::Cancel => "Cancelled",
            Self::Abandon => "Abandoned",
            Self::Purge => "Purged",
        }
    }
}

/// A command, with the operator and the reason.
#[derive(Clone, Debug)]
pub(crate) struct CommandRequest {
    pub command: CommandKind,
    pub by: Actor,
    /// Context of its request; `None` if the broker itself gives the command.
    pub context: Option<Arc<RequestContext>>,
}

/// Result of a command.
#[derive(Clone, Debug)]
pub(crate) struct CommandResult {
    pub entry: TrailEntry,
    /// State of the resource after the command.
    pub lifecycle: &'static str,
}

/// The last operation, if it failed, and its request.
type LastFailed = Option<(FailedOperation, Request)>;

impl RequestHandler {
    /// Runs a command for an instance. A purge deletes its bindings too.
    pub(crate) async fn order_instance(
        &self,
        id: &InstanceId,
        command_request: &CommandRequest,
    ) -> Result<CommandResult, RequestError> {
        if command_request.command == CommandKind::Purge {
            return self.purge_instance(id, command_request).await;
        }
        self.run_audited(id, command_request).await
    }

    /// Runs a command for an instance and audits a refusal. A purge is not finished by it.
    pub(super) async fn run_audited(
        &self,
        id: &InstanceId,
        command_request: &CommandRequest,
    ) -> Result<CommandResult, RequestError> {
        let key = self.realm_context.records.instance_key(id);
        let result = self.run_instance_command(id, &key, command_request).await;
        self.audit_refusal(&key, command_request, result).await
    }

    /// Runs a command for a binding.
    pub(crate) async fn order_binding(
        &self,
        instance: &InstanceId,
        id: &BindingId,
        command_request: &CommandRequest,
    ) -> Result<CommandResult, RequestError> {
        let key = self.realm_context.records.binding_key(instance, id);
        let result = self
            .run_binding_command(instance, &key, command_request)
            .await;
        self.audit_refusal(&key, command_request, result).await
    }

    async fn run_instance_command(
        &self,
        id: &InstanceId,
        key: &Key,
        command_request: &CommandRequest,
    ) -> Result<CommandResult, RequestError> {
        for _ in 0..TRIES {
            let was = self.realm_context.records.load::<Instance>(key).await?;
            let failed = self
                .failed(command_request.command, was.state.last(), Some(id), &was)
                .await?;
            let (command, request) = lifecycle_command(command_request.command, failed);
            let new = OperationId::fresh();
            let decision =
                instance::decide(was.state.clone(), instance::Event::Command { command, new })?;
            let lifecycle = decision.next.lifecycle();
            let carried = self
                .commit_command(key, &was, decision, command_request, request, None)
                .await?;
            if let Some(entry) = carried {
                return Ok(CommandResult { entry, lifecycle });
            }
        }
        Err(too_contended())
    }

    async fn run_binding_command(
        &self,
        instance: &InstanceId,
        key: &Key,
        command_request: &CommandRequest,
    ) -> Result<CommandResult, RequestError> {
        let records = &self.realm_context.records;
        let instance_key = records.instance_key(instance);
        for _ in 0..TRIES {
            let above = records.load::<Instance>(&instance_key).await?;
            let was = records.load::<Binding>(key).await?;
            let none = LoadedDocument::<Instance>::absent();
            let failed = self
                .failed(command_request.command, was.state.last(), None, &none)
                .await?;
            let (command, request) = lifecycle_command(command_request.command, failed);
            let event = binding::Event::Command {
                command,
                parent: parent(&above.state).1,
                new: OperationId::fresh(),
            };
            let decision = binding::decide(was.state.clone(), event)?;
            let lifecycle = decision.next.lifecycle();
            // A retry must not run while the instance is being changed.
            let reads = above
                .version
                .filter(|_| command_request.command == CommandKind::Retry)
                .map(|version| (instance_key.clone(), version));
            let carried = self
                .commit_command(key, &was, decision, command_request, request, reads)
                .await?;
            if let Some(entry) = carried {
                return Ok(CommandResult { entry, lifecycle });
            }
        }
        Err(too_contended())
    }

    /// Commits a decision with its audit entry. `None`: another writer was first.
    pub(super) async fn commit_command<S: Resource>(
        &self,
        key: &Key,
        was: &LoadedDocument<S>,
        mut decision: Decision<S>,
        command_request: &CommandRequest,
        request: Option<Request>,
        reads: Option<(Key, Version)>,
    ) -> Result<Option<TrailEntry>, RequestError> {
        self.skip_finished(&mut decision.effects).await?;
        let changes = !decision.effects.is_empty() || decision.next != was.state;
        let (outcome, operation) = match decision.reply {
            Reply::Started(id, _) => (AuditResult::Started, Some(id)),
            Reply::Joined(id) => (AuditResult::Done, Some(id)),
            Reply::AlreadyDone => (AuditResult::NothingToDo, None),
            Reply::Nothing => (AuditResult::Done, None),
        };
        let action = command_request.command.action();
        let entry = TrailEntry::new(action, AuditSubject::of(key), &command_request.by, outcome)
            .with_operation(operation);
        if !changes {
            self.file(&entry).await?;
            return Ok(Some(entry));
        }
        let info = RequestInfo::broker(command_request.context.clone());
        let body = RequestBody::Named(command_request.command.word());
        let mut draft = draft(body, &info);
        if let Some(request) = request {
            draft.request = Arc::new(request);
        }
        let (audit, body) = entry.sealed(&self.realm_context.records);
        draft.note = Some(AuditNote {
            key: audit,
            body,
            ended: end_description(command_request),
        });
        let committed = self
            .commit_and_start(key, was, decision, &draft, reads)
            .await?;
        if committed.is_some() {
            log_entry(&entry, self.realm_context.records.realm.as_str());
        }
        Ok(committed.map(|_| entry))
    }

    /// Drops the ends of operations that are finished or deleted, so that the document that refers to them can still
    /// be corrected. A run of them in this process, whose last read may be on its way, does not go on.
    async fn skip_finished(&self, effects: &mut Vec<Effect>) -> Result<(), StoreError> {
        let mut dead = Vec::new();
        for effect in effects.iter() {
            if let Effect::End(id) = *effect {
                let found = self.realm_context.records.store.operation(id).await?;
                if found.is_none_or(|it| matches!(it.row.state, State::Done(_))) {
                    self.engine.notify_ended(id);
                    dead.push(id);
                }
            }
        }
        effects.retain(|effect| !matches!(effect, Effect::End(id) if dead.contains(id)));
        Ok(())
    }

    /// The last failed operation, if the command is a retry.
    async fn failed(
        &self,
        command: CommandKind,
        last: Option<OperationId>,
        instance: Option<&InstanceId>,
        was: &LoadedDocument<Instance>,
    ) -> Result<LastFailed, RequestError> {
        let (CommandKind::Retry, Some(last)) = (command, last) else {
            return Ok(None);
        };
        let records = &self.realm_context.records;
        let Some(operation) = records.store.operation(last).await? else {
            return Ok(None);
        };
        let Some(verb) = verb_that_failed(&operation) else {
            return Ok(None);
        };
        let request = records.open_request::<Request>(&operation)?;
        if !request.body.fits(verb) {
            return Ok(None);
        }
        let failed = match verb {
            Verb::Provision | Verb::Bind => FailedOperation::Create,
            Verb::Deprovision | Verb::Unbind => FailedOperation::Delete,
            Verb::Update => {
                let change = request.body.change().map_err(RecordError::Form)?;
                let dashboard_url = self.dashboard_after(instance, was, &change).await?;
                FailedOperation::Update(Box::new(FailedUpdate {
                    change,
                    dashboard_url,
                }))
            }
        };
        Ok(Some((failed, request)))
    }

    async fn dashboard_after(
        &self,
        id: Option<&InstanceId>,
        was: &LoadedDocument<Instance>,
        change: &Change,
    ) -> Result<Option<String>, RequestError> {
        let (Some(id), Some(instance_data)) = (id, was.state.data()) else {
            return Ok(None);
        };
        let (_, service) = self.realm_context.served(&instance_data.spec.plan).await?;
        Ok(service.dashboard_url(id, &instance_data.spec.changed_by(change)))
    }

    /// Writes the audit entry of a refused command.
    pub(super) async fn audit_refusal(
        &self,
        key: &Key,
        command_request: &CommandRequest,
        result: Result<CommandResult, RequestError>,
    ) -> Result<CommandResult, RequestError> {
        if let Err(RequestError::Refused(refusal)) = &result {
            let (action, on) = (command_request.command.action(), AuditSubject::of(key));
            let entry = TrailEntry::new(action, on, &command_request.by, AuditResult::Refused)
                .with_message(refusal.to_string());
            self.file(&entry).await?;
        }
        result
    }

    /// Writes an audit entry that belongs to no other change.
    pub(crate) async fn file(&self, entry: &TrailEntry) -> Result<(), RequestError> {
        let records = &self.realm_context.records;
        let written = entry.write(records).await;
        written.map_err(|error| RequestError::Unavailable(error.into()))?;
        log_entry(entry, records.realm.as_str());
        Ok(())
    }
}

fn lifecycle_command(command: CommandKind, failed: LastFailed) -> (AdminCommand, Option<Request>) {
    let command = match command {
        CommandKind::Retry => {
            let (failed, request) = failed.unzip();
            return (AdminCommand::Retry { failed }, request);
        }
        CommandKind::Cancel => AdminCommand::Cancel,
        CommandKind::Abandon => AdminCommand::Abandon,
        CommandKind::Purge => AdminCommand::Purge,
    };
    (command, None)
}

fn verb_that_failed(operation: &Operation) -> Option<Verb> {
    match operation.row.state {
        State::Done(Outcome::Failed | Outcome::Cancelled) => Verb::of(&operation.row.verb),
        State::Done(Outcome::Succeeded) | State::Waiting | State::Ready | State::Running => None,
    }
}

/// Description for polls of an operation that a command ended.
fn end_description(command_request: &CommandRequest) -> String {
    let Actor { who, reason } = &command_request.by;
    let past = command_request.command.past_tense();
    if reason.is_empty() {
        format!("{past} by the operator {who}.")
    } else {
        format!("{past} by the operator {who}: {reason}")
    }
}
