//! Commands about bindings: create, delete, rotate, and those about their intents.

use super::broker_ids::check_binding_id;
use super::command_error::CommandError;
use super::instance_commit::{LoadedInstance, load_instance};
use super::namespaces::active_namespace;
use super::reads::{IntentView, ResourcePage};
use crate::author::Author;
use crate::bind_facts::bind_facts;
use crate::binding_changes::{change_binding, commit_change, decide};
use crate::broker_request::check_author;
use crate::context::PlatformContext;
use crate::lifecycle::binding::{
    BindFacts, BindSpec, Binding, BindingCommand, BindingEventError, BindingReply, CreateRequest,
    Event, RotateRequest, RotationPolicy, TargetResource, Transforms,
};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::{Abandonment, IntentNumber};
use crate::lifecycle::request_key::RequestKey;
use crate::platform::Platform;
use crate::records::{BINDING, NameRecord, Record, ResourceName};
use crate::spec::{ParameterSource, Parameters};
use crate::writes::BindingChange;
use sutler_journal::{Key, List, OperationId, Position};
use sutler_osb::BindingId;
use sutler_records::LoadedDocument;

/// Decisions that may find that another writer was first.
const TRIES_MAX: usize = 20;

/// What a person wants of a binding.
#[derive(Clone, Debug)]
pub struct WantedBinding {
    /// Its name.
    pub name: ResourceName,
    /// Name of the instance.
    pub instance: ResourceName,
    /// Parameters that are written out.
    pub parameters: Parameters,
    /// Secrets with further parameters.
    pub parameter_sources: Vec<ParameterSource>,
    /// What the credentials are for.
    pub target: TargetResource,
    /// How the credentials are delivered.
    pub transforms: Transforms,
    /// When it is rotated.
    pub rotation: Option<RotationPolicy>,
    /// The id that the broker shall know; `None`: a new one.
    pub osb_id: Option<BindingId>,
}

/// What a command led to.
#[derive(Clone, Debug)]
pub struct BindingOutcome {
    /// The binding after it.
    pub binding: Binding,
    /// The answer of the rules.
    pub reply: BindingReply,
}

impl Platform {
    /// Accepts a create of a binding. If its instance is not live yet, it waits for that.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn create_binding(
        &self,
        namespace: &ResourceName,
        wanted: &WantedBinding,
        by: &Author,
        idempotency_key: Option<&RequestKey>,
    ) -> Result<BindingOutcome, CommandError> {
        check_author(by)?;
        active_namespace(&self.context, namespace).await?;
        let context = self.context.as_ref();
        for _ in 0..TRIES_MAX {
            if let Some(outcome) = self
                .exists(namespace, &wanted.name, idempotency_key)
                .await?
            {
                return Ok(outcome);
            }
            let loaded = load_instance(context, namespace, &wanted.instance).await?;
            let registration = &loaded.view.registration;
            if registration.deregistering.is_some() {
                return Err(CommandError::BrokerIsLeaving(registration.name.to_string()));
            }
            if let Some(id) = &wanted.osb_id {
                check_binding_id(context, loaded.instance.broker, id).await?;
            }
            let request = create_request(&loaded, wanted, by, idempotency_key);
            let command = BindingCommand::Create(Box::new(request));
            let event = Event::Command(Box::new(command));
            let decision = decide(context, &loaded.view, None, event)?;
            let uid = decision.next.uid;
            let keys = &context.records.keys;
            let key = keys.binding(namespace.as_str(), loaded.instance.uid, uid);
            let change = BindingChange {
                context,
                key: &key,
                instance: &loaded.instance,
                was: &LoadedDocument::absent(),
                decision: &decision,
                now: context.records.now(),
            };
            let version = loaded.was.version;
            let written = commit_change(&change, |commit| {
                let commit = loaded.view.expect_registered(commit);
                match version {
                    Some(version) => commit.unchanged(loaded.key.clone(), version),
                    None => commit,
                }
            });
            if written.await? {
                return Ok(BindingOutcome {
                    binding: decision.next,
                    reply: decision.reply,
                });
            }
        }
        Err(CommandError::Contended)
    }

    /// What is answered if there is a binding of the name: the same request again, or a conflict.
    async fn exists(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        idempotency_key: Option<&RequestKey>,
    ) -> Result<Option<BindingOutcome>, CommandError> {
        let binding = match self.binding(namespace, name).await {
            Ok(binding) => binding,
            Err(CommandError::Binding(BindingEventError::NotFound)) => return Ok(None),
            Err(error) => return Err(error),
        };
        match binding.accepted_under(idempotency_key)? {
            Some(number) => Ok(Some(BindingOutcome {
                reply: BindingReply::AcceptedBefore(number),
                binding,
            })),
            None => Err(BindingEventError::AlreadyExists.into()),
        }
    }

    /// A binding by its name.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub async fn binding(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
    ) -> Result<Binding, CommandError> {
        Ok(load_binding(&self.context, namespace, name).await?.1)
    }

    /// A page of bindings, of one namespace or of all, by key. Those that are gone are left out.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn bindings(
        &self,
        namespace: Option<&ResourceName>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<ResourcePage<Binding>, CommandError> {
        let records = &self.context.records;
        let prefix = match namespace {
            Some(namespace) => records.keys.all_below(BINDING, namespace.as_str()),
            None => records.keys.all_of(BINDING),
        };
        let page = records
            .list::<Binding>(&List::Prefix(prefix), after, limit)
            .await?;
        let mut page = ResourcePage::from(page);
        page.items.retain(|binding| binding.tombstone.is_none());
        Ok(page)
    }

    /// Intents of a binding, newest first, before an operation.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn binding_intents(
        &self,
        binding: &Binding,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<IntentView>, CommandError> {
        let keys = &self.context.records.keys;
        let lane = keys.binding(&binding.namespace, binding.instance, binding.uid);
        self.intents_of(lane, before, limit).await
    }

    /// Accepts the delete of a binding.
    ///
    /// # Errors
    /// There is none, or it cannot be written.
    pub async fn delete_binding(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        by: &Author,
    ) -> Result<BindingOutcome, CommandError> {
        check_author(by)?;
        let command = |_: &BindFacts| BindingCommand::Delete(by.clone());
        self.change_named(namespace, name, command).await
    }

    /// Takes a delete back, if the broker has not done it.
    ///
    /// # Errors
    /// Nothing is being deleted, or it cannot be written.
    pub async fn undelete_binding(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        by: &Author,
    ) -> Result<BindingOutcome, CommandError> {
        let command = |_: &BindFacts| BindingCommand::Undelete(by.clone());
        self.change_named(namespace, name, command).await
    }

    /// Replaces the credentials of a binding.
    ///
    /// # Errors
    /// It has none yet, or it cannot be written.
    pub async fn rotate_binding(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        by: &Author,
        idempotency_key: Option<&RequestKey>,
    ) -> Result<BindingOutcome, CommandError> {
        check_author(by)?;
        let command = |facts: &BindFacts| {
            BindingCommand::Rotate(RotateRequest {
                by: by.clone(),
                idempotency_key: idempotency_key.cloned(),
                facts: facts.clone(),
            })
        };
        self.change_named(namespace, name, command).await
    }

    /// Ends an intent of a binding that was not sent.
    ///
    /// # Errors
    /// It was sent or has ended, or it cannot be written.
    pub async fn cancel_binding_intent(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        by: &Author,
    ) -> Result<BindingOutcome, CommandError> {
        let command = |_: &BindFacts| BindingCommand::Cancel(number, by.clone());
        self.change_named(namespace, name, command).await
    }

    /// Lets an intent of a binding on hold go on.
    ///
    /// # Errors
    /// It is not on hold, or it cannot be written.
    pub async fn resume_binding_intent(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        by: &Author,
    ) -> Result<BindingOutcome, CommandError> {
        check_author(by)?;
        let command = |facts: &BindFacts| BindingCommand::Resume(number, by.clone(), facts.clone());
        self.change_named(namespace, name, command).await
    }

    /// Repeats an intent of a binding that was rejected or failed.
    ///
    /// # Errors
    /// It has not failed, or it cannot be written.
    pub async fn retry_binding_intent(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        number: IntentNumber,
        by: &Author,
    ) -> Result<BindingOutcome, CommandError> {
        check_author(by)?;
        let command = |facts: &BindFacts| BindingCommand::Retry(number, by.clone(), facts.clone());
        self.change_named(namespace, name, command).await
    }

    /// Ends a binding here; what the broker may have goes to the orphan ledger.
    ///
    /// # Errors
    /// There is none, or it cannot be written.
    pub async fn abandon_binding(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        abandonment: &Abandonment,
    ) -> Result<BindingOutcome, CommandError> {
        let command = |_: &BindFacts| BindingCommand::Abandon(abandonment.clone());
        self.change_named(namespace, name, command).await
    }

    async fn change_named(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        command: impl Fn(&BindFacts) -> BindingCommand,
    ) -> Result<BindingOutcome, CommandError> {
        let context = self.context.as_ref();
        let (key, binding) = load_binding(context, namespace, name).await?;
        let instance = context
            .records
            .keys
            .instance(namespace.as_str(), binding.instance);
        let found = context.records.load::<Instance>(&instance).await?;
        let facts = match found.state.get() {
            Some(instance) => {
                let view = context.brokers.view(instance.broker).await?;
                bind_facts(instance, &view, &binding.spec)
            }
            None => return Err(BindingEventError::NoInstance.into()),
        };
        let event = Event::Command(Box::new(command(&facts)));
        let decision = change_binding(context, &key, event).await?;
        Ok(BindingOutcome {
            binding: decision.next,
            reply: decision.reply,
        })
    }
}

async fn load_binding(
    context: &PlatformContext,
    namespace: &ResourceName,
    name: &ResourceName,
) -> Result<(Key, Binding), CommandError> {
    let records = &context.records;
    let key = records.keys.binding_name(namespace.as_str(), name.as_str());
    let holder = match records.load::<NameRecord>(&key).await?.state {
        Record::Present(holder) => *holder,
        Record::Newer(_) => return Err(CommandError::NewerVersion),
        Record::Absent => return Err(BindingEventError::NotFound.into()),
    };
    let uid = holder.binding.ok_or(BindingEventError::NotFound)?;
    let key = records
        .keys
        .binding(namespace.as_str(), holder.instance, uid);
    match records.load::<Binding>(&key).await?.state {
        Record::Present(binding) => Ok((key, *binding)),
        Record::Newer(_) => Err(CommandError::NewerVersion),
        Record::Absent => Err(BindingEventError::NotFound.into()),
    }
}

fn create_request(
    loaded: &LoadedInstance,
    wanted: &WantedBinding,
    by: &Author,
    idempotency_key: Option<&RequestKey>,
) -> CreateRequest {
    let spec = BindSpec {
        parameters: wanted.parameters.clone(),
        parameter_sources: wanted.parameter_sources.clone(),
        target: wanted.target.clone(),
    };
    CreateRequest {
        namespace: loaded.instance.namespace.clone(),
        instance: loaded.instance.uid,
        name: wanted.name.to_string(),
        facts: bind_facts(&loaded.instance, &loaded.view, &spec),
        spec,
        transforms: wanted.transforms.clone(),
        rotation: wanted.rotation,
        osb_id: wanted.osb_id.clone(),
        by: by.clone(),
        idempotency_key: idempotency_key.cloned(),
    }
}
