//! Views of instances, bindings and intents with what must be read for them: the broker, its catalog, the journal.

use super::answer::ChangedResource;
use super::problem::Problem;
use super::problem_word::ProblemWord;
use super::views::{
    BindingContext, BindingView, CatalogNames, InstanceContext, InstanceView, IntentDocument,
};
use crate::brokers::{BrokerView, BrokerViewError};
use crate::commands::IntentView as JournalIntent;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::IntentNumber;
use crate::platform::Platform;
use std::sync::Arc;
use sutler_journal::OperationId;
use uuid::Uuid;

/// Intents that are read at a time to find one by its number.
const INTENTS_PAGE: usize = 10;
/// Intents that are read at most to find one by its number.
const INTENTS_READ_MAX: usize = 1_000;

/// An instance with the names of its catalog.
pub(super) async fn instance_document(
    platform: &Platform,
    instance: &Instance,
) -> Result<InstanceView, Problem> {
    let broker = broker_of(platform, instance.broker).await?;
    let stop = broker.as_ref().and_then(|it| it.state.breaker.stop());
    let context = InstanceContext {
        broker: broker.as_ref().map(|it| it.registration.name.as_str()),
        catalog: broker.as_ref().map(|it| it.catalog.known()),
        stop: stop.as_ref(),
    };
    Ok(InstanceView::of(instance, context))
}

/// A binding with the name of its instance.
pub(super) async fn binding_document(
    platform: &Platform,
    binding: &Binding,
) -> Result<BindingView, Problem> {
    let records = platform.records();
    let key = records.keys.instance(&binding.namespace, binding.instance);
    let instance = records.load::<Instance>(&key).await?.state.into_inner();
    let name = instance.map(|it| it.projection().spec.name);
    let context = BindingContext {
        instance: name.as_deref(),
    };
    Ok(BindingView::of(binding, context))
}

/// An intent that was accepted, as its resource knows it; the journal is asked only for one that has ended.
pub(super) async fn accepted_intent(
    platform: &Platform,
    resource: &ChangedResource,
    number: IntentNumber,
) -> Result<IntentDocument, Problem> {
    match known_intent(platform, resource, number).await? {
        Some(document) if document.has_operation() => Ok(document),
        Some(_) | None => intent_document(platform, resource, number).await,
    }
}

/// One intent with everything that is known of it: the document of its resource has its state, the journal what was sent.
pub(super) async fn intent_document(
    platform: &Platform,
    resource: &ChangedResource,
    number: IntentNumber,
) -> Result<IntentDocument, Problem> {
    let known = known_intent(platform, resource, number).await?;
    let journal = journal_intent(platform, resource, number).await?;
    match (known, journal) {
        (Some(known), Some(journal)) => Ok(known.with_journal(&journal)),
        (Some(known), None) => Ok(known),
        (None, Some(journal)) => of_journal(platform, resource, &journal).await,
        (None, None) => Err(Problem::no_such("intent", &number.0.to_string())),
    }
}

/// What the document of a resource knows of an intent.
async fn known_intent(
    platform: &Platform,
    resource: &ChangedResource,
    number: IntentNumber,
) -> Result<Option<IntentDocument>, Problem> {
    match resource {
        ChangedResource::Instance(instance) => {
            let broker = broker_of(platform, instance.broker).await?;
            let catalog = broker.as_ref().map(|it| it.catalog.known());
            let names = CatalogNames::of(catalog, &instance.service);
            let pending = instance.intent(number);
            let pending = pending.map(|it| IntentDocument::of_instance(it, names));
            let ended = || instance.ended.iter().find(|it| it.number == number);
            let ended = || ended().map(|it| IntentDocument::of_ended_instance(it, names));
            Ok(pending.or_else(ended))
        }
        ChangedResource::Binding(binding) => {
            let pending = binding.intent(number).map(IntentDocument::of_binding);
            let ended = || binding.ended.iter().find(|it| it.number == number);
            let ended = || ended().map(IntentDocument::of_ended_binding);
            Ok(pending.or_else(ended))
        }
    }
}

/// An intent as the journal has it. The newest are looked at first, at most [`INTENTS_READ_MAX`].
async fn journal_intent(
    platform: &Platform,
    resource: &ChangedResource,
    number: IntentNumber,
) -> Result<Option<JournalIntent>, Problem> {
    let accepted = match resource {
        ChangedResource::Instance(instance) => instance.generation,
        ChangedResource::Binding(binding) => binding.accepted,
    };
    if number.0 == 0 || number.0 > accepted {
        return Ok(None);
    }
    let mut before = None;
    for _ in 0..INTENTS_READ_MAX / INTENTS_PAGE {
        let page = intents_before(platform, resource, before, INTENTS_PAGE).await?;
        before = page.last().map(|it| it.operation);
        let is_last = page.len() < INTENTS_PAGE;
        let found = page.into_iter().find(|it| it.request.number == number);
        if found.is_some() || is_last {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Intents of a resource, newest first.
pub(super) async fn intents_before(
    platform: &Platform,
    resource: &ChangedResource,
    before: Option<OperationId>,
    limit: usize,
) -> Result<Vec<JournalIntent>, Problem> {
    let page = match resource {
        ChangedResource::Instance(instance) => platform.intents(instance, before, limit).await?,
        ChangedResource::Binding(binding) => {
            platform.binding_intents(binding, before, limit).await?
        }
    };
    Ok(page)
}

/// An intent of the journal, with what its resource knows of it.
pub(super) async fn of_journal(
    platform: &Platform,
    resource: &ChangedResource,
    intent: &JournalIntent,
) -> Result<IntentDocument, Problem> {
    let known = known_intent(platform, resource, intent.request.number).await?;
    if let Some(known) = known {
        return Ok(known.with_journal(intent));
    }
    match resource {
        ChangedResource::Instance(instance) => {
            let broker = broker_of(platform, instance.broker).await?;
            let catalog = broker.as_ref().map(|it| it.catalog.known());
            let names = CatalogNames::of(catalog, &instance.service);
            Ok(IntentDocument::of_journal(intent, Some(names)))
        }
        ChangedResource::Binding(_) => Ok(IntentDocument::of_journal(intent, None)),
    }
}

/// A broker; `None` if it is not registered any more.
pub(super) async fn broker_of(
    platform: &Platform,
    broker: Uuid,
) -> Result<Option<Arc<BrokerView>>, Problem> {
    match platform.brokers().view(broker).await {
        Ok(view) => Ok(Some(view)),
        Err(BrokerViewError::NotRegistered(_)) => Ok(None),
        Err(error @ BrokerViewError::NewerForm(_)) => {
            Err(Problem::new(ProblemWord::NewerVersion, error.to_string()))
        }
        Err(BrokerViewError::Record(error)) => Err(error.into()),
    }
}
