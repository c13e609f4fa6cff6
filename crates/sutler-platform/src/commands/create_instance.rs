//! Creates an instance, or takes over one that the broker has already.

use super::broker_ids::free_instance_id;
use super::change_options::{ChangeOptions, WantedInstance};
use super::command_error::CommandError;
use super::instance_commit::{InstanceOutcome, commit_decision, load_instance, outcome};
use super::namespaces::active_namespace;
use super::plan_search::{FoundPlan, find_plan};
use crate::broker_request::{NamespaceContext, check_author};
use crate::context::PlatformContext;
use crate::executor::decide_instance;
use crate::lifecycle::instance::{
    ChangeFacts, CreateRequest, Event, Instance, InstanceCommand, InstanceEventError, InstanceReply,
};
use crate::platform::Platform;
use crate::preflight::{
    PlanFacts, PreflightFacts, PreflightRequest, ProvisionCheck, RequestedParameters,
    RequestedPlan, Violation, preflight,
};
use crate::records::{NamespaceRecord, Record, ResourceName};
use crate::spec::Spec;
use crate::writes::InstanceChange;
use sutler_journal::Commit;
use sutler_records::LoadedDocument;

/// Whether the broker has the instance already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CreateKind {
    Create,
    Adopt,
}

impl Platform {
    /// Accepts a create of an instance.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn create_instance(
        &self,
        namespace: &ResourceName,
        wanted: &WantedInstance,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        create(
            &self.context,
            namespace,
            wanted,
            options,
            CreateKind::Create,
        )
        .await
    }

    /// Takes over an instance that the broker has already, under the id that it knows.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn adopt_instance(
        &self,
        namespace: &ResourceName,
        wanted: &WantedInstance,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        if wanted.osb_id.is_none() {
            return Err(CommandError::Invalid {
                pointer: "/externalId",
                sentence: "name the id under which the broker knows the instance".to_owned(),
            });
        }
        create(&self.context, namespace, wanted, options, CreateKind::Adopt).await
    }
}

async fn create(
    context: &PlatformContext,
    namespace: &ResourceName,
    wanted: &WantedInstance,
    options: &ChangeOptions,
    kind: CreateKind,
) -> Result<InstanceOutcome, CommandError> {
    check_author(&options.author)?;
    if let Some(outcome) = exists_already(context, namespace, wanted, options).await? {
        return Ok(outcome);
    }
    let (record, namespace_read) = active_namespace(context, namespace).await?;
    let found = usable_plan(context, (namespace, &record), wanted).await?;
    let registration = &found.view.registration;
    let ledger = match &wanted.osb_id {
        Some(id) => Some(free_instance_id(context, registration.uid, id).await?),
        None => None,
    };
    let request = create_request(namespace, wanted, options, &found);
    let command = match kind {
        CreateKind::Create => InstanceCommand::Create(request),
        CreateKind::Adopt => InstanceCommand::Adopt(request),
    };
    let now = context.records.now();
    let event = Event::Command(Box::new(command));
    let decision = decide_instance(context, &found.view, None, event)?;
    let uid = decision.next.uid;
    let key = context.records.keys.instance(namespace.as_str(), uid);
    let was: LoadedDocument<Record<Instance>> = LoadedDocument::absent();
    let (service, plan) = (&found.key.service_id, &found.key.plan_id);
    let plan_key = context
        .records
        .keys
        .service_plan(registration.uid, service, plan);
    let change = InstanceChange {
        context,
        broker: &found.view,
        key: &key,
        was: &was,
        decision: &decision,
        now,
    };
    // Nothing of what was read may change until the create is accepted.
    let expect = |commit: Commit| {
        let (namespace, read) = namespace_read;
        let commit = found
            .view
            .expect_registered(commit.unchanged(namespace, read));
        let commit = match ledger {
            Some(row) => row.expect(commit),
            None => commit,
        };
        match found.view.catalog.plan_version(&found.key) {
            Some(version) => commit.unchanged(plan_key, version),
            None => commit,
        }
    };
    if options.dry_run || commit_decision(&change, expect).await? {
        return Ok(outcome(decision));
    }
    match exists_already(context, namespace, wanted, options).await? {
        Some(outcome) => Ok(outcome),
        None => Err(CommandError::Contended),
    }
}

/// The plan that is wanted, of a broker at which something may be created for the namespace.
async fn usable_plan(
    context: &PlatformContext,
    (namespace, record): (&ResourceName, &NamespaceRecord),
    wanted: &WantedInstance,
) -> Result<FoundPlan, CommandError> {
    let names = (wanted.class.as_str(), wanted.plan.as_str());
    let broker = wanted.broker.as_ref();
    let found = find_plan(context, (namespace, record), broker, names).await?;
    let Some(found) = found else {
        return Err(refused(not_found(wanted)));
    };
    let violations = violations(&found, wanted);
    if !violations.is_empty() {
        return Err(refused(violations));
    }
    check_profile(&found, record)?;
    let registration = &found.view.registration;
    if registration.deregistering.is_some() {
        return Err(CommandError::BrokerIsLeaving(registration.name.to_string()));
    }
    Ok(found)
}

/// What is answered if there is an instance of the name: the same request again, or a conflict.
async fn exists_already(
    context: &PlatformContext,
    namespace: &ResourceName,
    wanted: &WantedInstance,
    options: &ChangeOptions,
) -> Result<Option<InstanceOutcome>, CommandError> {
    let instance = match load_instance(context, namespace, &wanted.name).await {
        Ok(loaded) => loaded.instance,
        Err(CommandError::Instance(InstanceEventError::NotFound)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = instance.accepted_under(&options.request())?;
    match number {
        Some(number) => Ok(Some(InstanceOutcome {
            reply: InstanceReply::AcceptedBefore(number),
            instance,
        })),
        None => Err(InstanceEventError::AlreadyExists.into()),
    }
}

fn create_request(
    namespace: &ResourceName,
    wanted: &WantedInstance,
    options: &ChangeOptions,
    found: &FoundPlan,
) -> CreateRequest {
    CreateRequest {
        namespace: namespace.to_string(),
        broker: found.view.registration.uid,
        service: found.key.service_id.clone(),
        spec: wanted_spec(wanted, found),
        osb_id: wanted.osb_id.clone(),
        source: options.source.clone(),
        facts: ChangeFacts {
            request: options.request(),
            violations: Vec::new(),
            catalog_revision: found.view.state.catalog_revision,
        },
    }
}

/// What is wanted, with the ids of the plan and its maintenance version.
pub(super) fn wanted_spec(wanted: &WantedInstance, found: &FoundPlan) -> Spec {
    let version = wanted.maintenance_version.clone();
    Spec {
        plan: found.key.plan_id.clone(),
        maintenance_version: version
            .or_else(|| found.plan.maintenance_version().map(str::to_owned)),
        parameters: wanted.parameters.clone(),
        parameter_sources: wanted.parameter_sources.clone(),
        labels: wanted.labels.clone(),
        annotations: wanted.annotations.clone(),
        name: wanted.name.to_string(),
    }
}

fn violations(found: &FoundPlan, wanted: &WantedInstance) -> Vec<Violation> {
    let schemas = found
        .view
        .catalog
        .schemas(&found.key.service_id, &found.key.plan_id)
        .unwrap_or_default();
    let plan = match found.is_removed {
        true => RequestedPlan::Removed(&found.plan),
        false => RequestedPlan::Offered(PlanFacts {
            plan: &found.plan,
            schemas: &schemas,
        }),
    };
    let check = ProvisionCheck {
        plan,
        maintenance_version: wanted.maintenance_version.as_deref(),
        parameters: match wanted.parameter_sources.is_empty() {
            true => RequestedParameters::Inline(wanted.parameters.as_map()),
            false => RequestedParameters::WithSecrets,
        },
    };
    let options = &found.view.registration.options;
    let facts = PreflightFacts {
        allowed_permissions: &options.allowed_permissions,
    };
    preflight(&PreflightRequest::Provision(check), &facts)
}

fn not_found(wanted: &WantedInstance) -> Vec<Violation> {
    let check = ProvisionCheck {
        plan: RequestedPlan::NotFound {
            service: &wanted.class,
            plan: &wanted.plan,
        },
        maintenance_version: None,
        parameters: RequestedParameters::WithSecrets,
    };
    let facts = PreflightFacts {
        allowed_permissions: &[],
    };
    preflight(&PreflightRequest::Provision(check), &facts)
}

pub(super) fn refused(violations: Vec<Violation>) -> CommandError {
    InstanceEventError::Violations(violations).into()
}

/// Whether the namespace has what the broker's profile demands.
fn check_profile(found: &FoundPlan, namespace: &NamespaceRecord) -> Result<(), CommandError> {
    let profile = found.view.registration.profile;
    match NamespaceContext::new(profile, &namespace.facts) {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::Invalid {
            pointer: "/namespace",
            sentence: error.to_string(),
        }),
    }
}
