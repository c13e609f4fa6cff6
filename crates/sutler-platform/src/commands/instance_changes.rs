//! Changes of an instance that exists: patch, replace, apply, touch.

use super::change_options::{ChangeOptions, InstancePatch, WantedInstance};
use super::command_error::CommandError;
use super::create_instance::{refused, wanted_spec};
use super::instance_commit::{
    InstanceOutcome, LoadedInstance, TRIES_MAX, load_for_change, try_change,
};
use super::namespaces::namespace_record;
use super::plan_search::{FoundPlan, plan_of_broker};
use crate::broker_request::check_author;
use crate::context::PlatformContext;
use crate::lifecycle::instance::{ChangeFacts, Event, Instance, InstanceCommand};
use crate::platform::Platform;
use crate::preflight::{
    ContextChange, PlanFacts, PreflightFacts, PreflightRequest, RequestedParameters, RequestedPlan,
    UpdateCheck, Violation, preflight,
};
use crate::records::{NameRecord, Record, ResourceName};
use crate::spec::{self, Spec, SpecPatch};
use serde_json::Map;

impl Platform {
    /// Accepts a change of what the patch names.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn patch_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        patch: &InstancePatch,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        check_author(&options.author)?;
        let context = self.context.as_ref();
        for _ in 0..TRIES_MAX {
            let loaded = load_for_change(context, namespace, name, options).await?;
            let shown = loaded.instance.projection().spec;
            let found = match &patch.plan {
                Some(plan) => Some(named_plan(context, namespace, &loaded, None, plan).await?),
                None => None,
            };
            let patch = spec_patch(patch, found.as_ref());
            let wanted = shown.apply(&patch);
            check_name(context, namespace, &loaded.instance, &wanted).await?;
            let facts = facts(options, &loaded, &wanted, found.as_ref());
            let command = InstanceCommand::Patch(patch, facts);
            let event = Event::Command(Box::new(command));
            if let Some(outcome) = try_change(context, &loaded, event, options.dry_run).await? {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }

    /// Accepts a change that makes the specification equal to this one.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn replace_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        wanted: &WantedInstance,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        check_author(&options.author)?;
        let context = self.context.as_ref();
        for _ in 0..TRIES_MAX {
            let loaded = load_for_change(context, namespace, name, options).await?;
            let (spec, facts) = whole_spec(context, namespace, &loaded, wanted, options).await?;
            let event = Event::Command(Box::new(InstanceCommand::Replace(spec, facts)));
            if let Some(outcome) = try_change(context, &loaded, event, options.dry_run).await? {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }

    /// Accepts what a manager changed in its own specification since it applied it last.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn apply_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        (manager, wanted): (&str, &WantedInstance),
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        check_author(&options.author)?;
        let context = self.context.as_ref();
        for _ in 0..TRIES_MAX {
            let loaded = load_for_change(context, namespace, name, options).await?;
            let (spec, facts) = whole_spec(context, namespace, &loaded, wanted, options).await?;
            let command = InstanceCommand::Apply(manager.to_owned(), spec, facts);
            let event = Event::Command(Box::new(command));
            if let Some(outcome) = try_change(context, &loaded, event, options.dry_run).await? {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }

    /// Accepts an update without a difference: the broker is asked to look again.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn touch_instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
        options: &ChangeOptions,
    ) -> Result<InstanceOutcome, CommandError> {
        check_author(&options.author)?;
        let context = self.context.as_ref();
        for _ in 0..TRIES_MAX {
            let loaded = load_for_change(context, namespace, name, options).await?;
            let facts = facts_without_difference(options, &loaded);
            let event = Event::Command(Box::new(InstanceCommand::Touch(facts)));
            if let Some(outcome) = try_change(context, &loaded, event, options.dry_run).await? {
                return Ok(outcome);
            }
        }
        Err(CommandError::Contended)
    }
}

/// What is known of a change that names nothing new.
pub(super) fn facts_without_difference(
    options: &ChangeOptions,
    loaded: &LoadedInstance,
) -> ChangeFacts {
    ChangeFacts {
        request: options.request(),
        violations: Vec::new(),
        catalog_revision: loaded.view.state.catalog_revision,
    }
}

async fn whole_spec(
    context: &PlatformContext,
    namespace: &ResourceName,
    loaded: &LoadedInstance,
    wanted: &WantedInstance,
    options: &ChangeOptions,
) -> Result<(Spec, ChangeFacts), CommandError> {
    let class = Some(wanted.class.as_str());
    let found = named_plan(context, namespace, loaded, class, &wanted.plan).await?;
    let spec = wanted_spec(wanted, &found);
    check_name(context, namespace, &loaded.instance, &spec).await?;
    let facts = facts(options, loaded, &spec, Some(&found));
    Ok((spec, facts))
}

/// A plan of the instance's broker by its name. The offering is the one of the instance, unless a person names one.
async fn named_plan(
    context: &PlatformContext,
    namespace: &ResourceName,
    loaded: &LoadedInstance,
    class: Option<&str>,
    plan: &str,
) -> Result<FoundPlan, CommandError> {
    let record = namespace_record(context, namespace).await?;
    let own_class = loaded.instance.service.as_str();
    let class = class.unwrap_or(own_class);
    let view = loaded.view.clone();
    plan_of_broker(view, (namespace, &record), class, plan).ok_or_else(|| {
        let requested = RequestedPlan::NotFound {
            service: class,
            plan,
        };
        refused(update_violations(
            loaded,
            Some(requested),
            None,
            ContextChange::Unchanged,
        ))
    })
}

fn spec_patch(patch: &InstancePatch, found: Option<&FoundPlan>) -> SpecPatch {
    let version = patch.maintenance_version.clone();
    // With the plan the maintenance version changes, unless the person names one.
    let of_plan = || found.map(|it| it.plan.maintenance_version().map(str::to_owned));
    SpecPatch {
        plan: found.map(|it| it.key.plan_id.clone()),
        maintenance_version: version.or_else(of_plan),
        parameters: patch.parameters.clone(),
        parameter_sources: patch.parameter_sources.clone(),
        labels: patch.labels.clone(),
        annotations: patch.annotations.clone(),
        name: patch.name.as_ref().map(ResourceName::to_string),
    }
}

/// Whether another instance has the name.
async fn check_name(
    context: &PlatformContext,
    namespace: &ResourceName,
    instance: &Instance,
    wanted: &Spec,
) -> Result<(), CommandError> {
    if instance.names().contains(&wanted.name) {
        return Ok(());
    }
    let records = &context.records;
    let key = records.keys.instance_name(namespace.as_str(), &wanted.name);
    match records.load::<NameRecord>(&key).await?.state {
        Record::Absent => Ok(()),
        Record::Present(_) | Record::Newer(_) => Err(CommandError::NameTaken(wanted.name.clone())),
    }
}

fn facts(
    options: &ChangeOptions,
    loaded: &LoadedInstance,
    wanted: &Spec,
    found: Option<&FoundPlan>,
) -> ChangeFacts {
    let shown = loaded.instance.projection().spec;
    let difference = spec::diff(&shown, wanted);
    let schemas = found.and_then(|it| {
        let catalog = &it.view.catalog;
        catalog.schemas(&it.key.service_id, &it.key.plan_id)
    });
    let schemas = schemas.unwrap_or_default();
    let requested = found
        .filter(|_| difference.plan.is_some())
        .map(|it| match it.is_removed {
            true => RequestedPlan::Removed(&it.plan),
            false => RequestedPlan::Offered(PlanFacts {
                plan: &it.plan,
                schemas: &schemas,
            }),
        });
    let context_change = match difference.name.is_some() {
        true => ContextChange::Changed,
        false => ContextChange::Unchanged,
    };
    let is_local = difference.is_local();
    let wanted = (!is_local).then_some((wanted, &difference));
    let violations = match is_local && context_change == ContextChange::Unchanged {
        true => Vec::new(),
        false => update_violations(loaded, requested, wanted, context_change),
    };
    ChangeFacts {
        violations,
        ..facts_without_difference(options, loaded)
    }
}

fn update_violations(
    loaded: &LoadedInstance,
    plan: Option<RequestedPlan<'_>>,
    wanted: Option<(&Spec, &SpecPatch)>,
    context: ContextChange,
) -> Vec<Violation> {
    let instance = &loaded.instance;
    let shown = instance.projection().spec;
    let catalog = &loaded.view.catalog;
    let Some(current) = catalog.plan(&instance.service, &shown.plan) else {
        return Vec::new();
    };
    let schemas = catalog
        .schemas(&instance.service, &shown.plan)
        .unwrap_or_default();
    let changed = wanted.map(|(wanted, difference)| {
        let keys = difference.parameters.as_map().keys();
        let wanted = wanted.parameters.as_map();
        let values = keys.filter_map(|key| Some((key.clone(), wanted.get(key)?.clone())));
        values.collect::<Map<_, _>>()
    });
    let with_secrets = wanted.is_some_and(|(wanted, _)| !wanted.parameter_sources.is_empty());
    let version = wanted.and_then(|(_, difference)| difference.maintenance_version.as_ref());
    let version = version.and_then(Option::as_deref);
    let check = UpdateCheck {
        current: PlanFacts {
            plan: &current,
            schemas: &schemas,
        },
        plan,
        // The version of a new plan is that of the catalog.
        maintenance_version: version.filter(|_| plan.is_none()),
        parameters: match (&changed, with_secrets) {
            (Some(_), true) => Some(RequestedParameters::WithSecrets),
            (Some(changed), false) if !changed.is_empty() => {
                Some(RequestedParameters::Inline(changed))
            }
            (Some(_) | None, _) => None,
        },
        context: match wanted {
            Some(_) => context,
            // A name that is sent to no broker is a local change.
            None => ContextChange::Unchanged,
        },
    };
    let options = &loaded.view.registration.options;
    let facts = PreflightFacts {
        allowed_permissions: &options.allowed_permissions,
    };
    preflight(&PreflightRequest::Update(check), &facts)
}
