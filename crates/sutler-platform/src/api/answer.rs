//! Answers of handlers: a response, or a change that was accepted as an intent and may be waited for.

use super::entity_tag::tag_of_instance;
use super::problem::Problem;
use super::problem_word::ProblemWord;
use super::requested_sync::RequestedSync;
use super::resource_views::{accepted_intent, binding_document, instance_document};
use crate::commands::{BindingOutcome, InstanceOutcome};
use crate::lifecycle::binding::{Binding, BindingReply};
use crate::lifecycle::instance::{Instance, InstanceReply};
use crate::lifecycle::intent::{CancelledBy, IntentEnd, IntentNumber};
use crate::platform::Platform;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use std::fmt::Display;
use std::time::Duration;
use sutler_journal::{Key, OperationId};
use tokio::time::Instant;

/// Intents that are followed, each contained in the next one.
const FOLLOWED_MAX: usize = 64;

/// An answer.
pub(super) enum HandlerAnswer {
    /// A response.
    Ready(Response<Body>),
    /// A change that was accepted. Its caller may wait for its end.
    Accepted(Box<AcceptedChange>),
    /// A sync that was requested. Its caller may wait for it.
    Syncing(Box<RequestedSync>),
}

/// A change that was accepted.
pub(super) struct AcceptedChange {
    /// The resource after that.
    pub resource: ChangedResource,
    /// The intent.
    pub number: IntentNumber,
    /// The status if it succeeds.
    pub success: StatusCode,
}

/// What a change is about.
#[derive(Clone)]
pub(super) enum ChangedResource {
    /// An instance.
    Instance(Box<Instance>),
    /// A binding.
    Binding(Box<Binding>),
}

impl HandlerAnswer {
    /// A JSON document.
    pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Self {
        Self::Ready(json(status, document))
    }

    /// A document with its entity tag.
    pub(super) fn tagged(status: StatusCode, document: &impl Serialize, tag: impl Display) -> Self {
        Self::Ready(tagged(status, document, tag))
    }

    /// Nothing to show.
    pub(super) fn empty() -> Self {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Self::Ready(response)
    }

    /// What a command about an instance led to. `success`: the status once its intent succeeds.
    pub(super) async fn of_instance(
        platform: &Platform,
        outcome: InstanceOutcome,
        success: StatusCode,
    ) -> Result<Self, Problem> {
        let InstanceOutcome { instance, reply } = outcome;
        match reply {
            InstanceReply::Accepted(number)
            | InstanceReply::AcceptedBefore(number)
            | InstanceReply::Joined(number) => Ok(Self::Accepted(Box::new(AcceptedChange {
                resource: ChangedResource::Instance(Box::new(instance)),
                number,
                success,
            }))),
            InstanceReply::Noted => shown_instance(platform, &instance, StatusCode::ACCEPTED).await,
            InstanceReply::Unchanged | InstanceReply::Done | InstanceReply::Nothing => {
                shown_instance(platform, &instance, StatusCode::OK).await
            }
        }
    }

    /// What a command about a binding led to.
    pub(super) async fn of_binding(
        platform: &Platform,
        outcome: BindingOutcome,
        success: StatusCode,
    ) -> Result<Self, Problem> {
        let BindingOutcome { binding, reply } = outcome;
        match reply {
            BindingReply::Accepted(number)
            | BindingReply::AcceptedBefore(number)
            | BindingReply::Joined(number) => Ok(Self::Accepted(Box::new(AcceptedChange {
                resource: ChangedResource::Binding(Box::new(binding)),
                number,
                success,
            }))),
            BindingReply::Noted => shown_binding(platform, &binding, StatusCode::ACCEPTED).await,
            BindingReply::Done | BindingReply::Nothing => {
                shown_binding(platform, &binding, StatusCode::OK).await
            }
        }
    }
}

/// An instance as it is now.
pub(super) async fn shown_instance(
    platform: &Platform,
    instance: &Instance,
    status: StatusCode,
) -> Result<HandlerAnswer, Problem> {
    let document = instance_document(platform, instance).await?;
    Ok(HandlerAnswer::tagged(
        status,
        &document,
        tag_of_instance(instance),
    ))
}

/// A binding as it is now.
pub(super) async fn shown_binding(
    platform: &Platform,
    binding: &Binding,
    status: StatusCode,
) -> Result<HandlerAnswer, Problem> {
    let document = binding_document(platform, binding).await?;
    Ok(HandlerAnswer::json(status, &document))
}

impl AcceptedChange {
    /// The answer to a caller that does not wait: the intent.
    pub(super) async fn pending(&self, platform: &Platform) -> Result<Response<Body>, Problem> {
        let document = accepted_intent(platform, &self.resource, self.number).await?;
        let mut response = json(StatusCode::ACCEPTED, &document);
        if let Ok(location) = HeaderValue::from_str(&self.location()) {
            response.headers_mut().insert(LOCATION, location);
        }
        if let ChangedResource::Instance(instance) = &self.resource {
            let tag = entity_tag(tag_of_instance(instance));
            response.headers_mut().insert(ETAG, tag);
        }
        Ok(response)
    }

    /// The answer to a caller that waits for so long at most.
    pub(super) async fn waited(
        &self,
        platform: &Platform,
        within: Duration,
    ) -> Result<Response<Body>, Problem> {
        let until = Instant::now() + within;
        let mut followed = Self {
            resource: self.resource.clone(),
            ..*self
        };
        for _ in 0..FOLLOWED_MAX {
            let left = until.saturating_duration_since(Instant::now());
            let end = match followed.resource.end_of(followed.number) {
                Some(end) => Some(end),
                None => followed.end(platform, left).await?,
            };
            // It goes on in the intent that contains it.
            if let Some(IntentEnd::Superseded(next)) = end {
                followed.resource = followed.resource.reloaded(platform).await?;
                followed.number = next;
                continue;
            }
            return followed.ended(platform, end).await;
        }
        followed.pending(platform).await
    }

    /// Waits for the end of the intent.
    async fn end(
        &self,
        platform: &Platform,
        within: Duration,
    ) -> Result<Option<IntentEnd>, Problem> {
        let Some((lane, operation)) = self.resource.operation(platform, self.number) else {
            return Ok(None);
        };
        Ok(platform.wait_for_end(&lane, operation, within).await?)
    }

    async fn ended(
        self,
        platform: &Platform,
        end: Option<IntentEnd>,
    ) -> Result<Response<Body>, Problem> {
        match end {
            None => {
                let resource = self.resource.reloaded(platform).await?;
                let change = Self { resource, ..self };
                change.pending(platform).await
            }
            Some(IntentEnd::Succeeded) => {
                let resource = self.resource.reloaded(platform).await?;
                resource.response(platform, self.success).await
            }
            Some(IntentEnd::Rejected(words)) => {
                let detail = "The broker rejected the change, and nothing has changed.";
                let problem = Problem::new(ProblemWord::Rejected, detail);
                Err(problem.with_broker(&words).with_intent(self.number))
            }
            Some(IntentEnd::Failed(words)) => {
                let detail = "The change failed; the intent says what is known of it.";
                let problem = Problem::new(ProblemWord::Failed, detail);
                Err(problem.with_broker(&words).with_intent(self.number))
            }
            Some(IntentEnd::Cancelled(by)) => {
                let problem = Problem::new(ProblemWord::Cancelled, cancellation(&by));
                Err(problem.with_intent(self.number))
            }
            Some(IntentEnd::Superseded(next)) => {
                let detail = format!("Another intent, {next}, contains the change.");
                let problem = Problem::new(ProblemWord::Cancelled, detail);
                Err(problem.with_intent(next))
            }
        }
    }

    /// The path of the intent.
    pub(super) fn location(&self) -> String {
        let number = self.number.0;
        let path = self.resource.path();
        format!("/api/v1/namespaces/{path}/intents/{number}")
    }
}

impl ChangedResource {
    /// The path of the resource below `/namespaces/`.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Instance(instance) => {
                let names = instance.names();
                // A name may go with the end of a change that gives another one; the uid never does.
                let name = match (names.len(), names.first()) {
                    (1, Some(name)) => name.clone(),
                    _ => instance.uid.to_string(),
                };
                format!("{}/instances/{name}", instance.namespace)
            }
            Self::Binding(binding) => format!("{}/bindings/{}", binding.namespace, binding.name),
        }
    }

    /// How an intent ended, if it has and the document knows it.
    fn end_of(&self, number: IntentNumber) -> Option<IntentEnd> {
        match self {
            Self::Instance(instance) => {
                let mut ended = instance.ended.iter();
                ended
                    .find(|it| it.number == number)
                    .map(|it| it.end.clone())
            }
            Self::Binding(binding) => {
                let mut ended = binding.ended.iter();
                ended
                    .find(|it| it.number == number)
                    .map(|it| it.end.clone())
            }
        }
    }

    /// The operation of a pending intent, with its lane.
    pub(super) fn operation(
        &self,
        platform: &Platform,
        number: IntentNumber,
    ) -> Option<(Key, OperationId)> {
        let (key, operation) = match self {
            Self::Instance(it) => (self.key(platform), it.intent(number)?.operation),
            Self::Binding(it) => (self.key(platform), it.intent(number)?.operation),
        };
        Some((key, OperationId(operation.0)))
    }

    fn key(&self, platform: &Platform) -> Key {
        let keys = &platform.records().keys;
        match self {
            Self::Instance(it) => keys.instance(&it.namespace, it.uid),
            Self::Binding(it) => keys.binding(&it.namespace, it.instance, it.uid),
        }
    }

    /// The same resource as it is stored now.
    async fn reloaded(self, platform: &Platform) -> Result<Self, Problem> {
        let records = platform.records();
        let key = self.key(platform);
        match self {
            Self::Instance(instance) => {
                let loaded = records.load::<Instance>(&key).await?.state.into_inner();
                Ok(Self::Instance(loaded.map_or(instance, Box::new)))
            }
            Self::Binding(binding) => {
                let loaded = records.load::<Binding>(&key).await?.state.into_inner();
                Ok(Self::Binding(loaded.map_or(binding, Box::new)))
            }
        }
    }

    async fn response(
        &self,
        platform: &Platform,
        status: StatusCode,
    ) -> Result<Response<Body>, Problem> {
        match self {
            Self::Instance(instance) => {
                let document = instance_document(platform, instance).await?;
                Ok(tagged(status, &document, tag_of_instance(instance)))
            }
            Self::Binding(binding) => {
                let document = binding_document(platform, binding).await?;
                Ok(json(status, &document))
            }
        }
    }
}

fn cancellation(by: &CancelledBy) -> String {
    match by {
        CancelledBy::Person(by) => format!("It was cancelled by {}.", by.username),
        CancelledBy::Delete(number) => format!("It was cancelled by the delete {number}."),
        CancelledBy::Abandon(by) => {
            format!(
                "It was cancelled because {} abandoned the resource.",
                by.username
            )
        }
    }
}

fn entity_tag(tag: impl Display) -> HeaderValue {
    let tag = HeaderValue::from_str(&format!("\"{tag}\""));
    tag.unwrap_or_else(|_| HeaderValue::from_static("\"0\""))
}

/// A JSON response with an entity tag.
pub(super) fn tagged(
    status: StatusCode,
    document: &impl Serialize,
    tag: impl Display,
) -> Response<Body> {
    let mut response = json(status, document);
    response.headers_mut().insert(ETAG, entity_tag(tag));
    response
}

/// A JSON response.
pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_vec(document).expect("our own types serialise");
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
