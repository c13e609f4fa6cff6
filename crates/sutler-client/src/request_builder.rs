//! Builds the requests of all endpoints from ids and bodies. Pure: the same input gives the same bytes.
//!
//! It sends nothing. [`Client`](crate::Client) builds every request here and sends it at once; a platform that
//! must be able to repeat a request byte for byte builds it, writes it down (`wire/stored_request.rs`), sends it by
//! [`Connection::send`](crate::wire::Connection::send) and decodes the answer with [`decode`](crate::decode).

use crate::call::Incomplete;
use crate::entity_tag::EntityTag;
use crate::operation::{Operation, PlanIds, resource};
use crate::wire::{Method, Request};
use serde::Serialize;
use sutler_osb::{
    API_VERSION_HEADER, BindBody, BindingId, InstanceId, ORIGINATING_IDENTITY_HEADER,
    OriginatingIdentity, ProvisionBody, REQUEST_IDENTITY_HEADER, RequestIdentity, UpdateBody,
};
use uuid::Uuid;

/// Version of the API that requests use (P-001).
const VERSION: &str = "2.17";

/// A body that cannot be written as JSON; the text names no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body cannot be written as JSON ({0}); change it")]
pub struct RequestBodyError(String);

/// Builds requests with the same identities and the same mode.
///
/// The request identity is required, because a generated one would make each request another one.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestBuilder {
    request_identity: String,
    originating_identity: Option<OriginatingIdentity>,
    incomplete: Incomplete,
}

impl RequestBuilder {
    /// Requests with a request identity (P-020), which no user caused, and which may be answered by 202.
    pub fn new(request_identity: &RequestIdentity) -> Self {
        Self::with_identity(request_identity.as_str().to_owned())
    }

    /// The same with a UUID as the request identity, e.g. the id of an operation of the platform.
    pub fn from_uuid(request_identity: Uuid) -> Self {
        Self::with_identity(request_identity.to_string())
    }

    fn with_identity(request_identity: String) -> Self {
        Self {
            request_identity,
            originating_identity: None,
            incomplete: Incomplete::Accepted,
        }
    }

    /// On behalf of a user (P-010).
    #[must_use]
    pub fn on_behalf_of(mut self, user: OriginatingIdentity) -> Self {
        self.originating_identity = Some(user);
        self
    }

    /// With or without `accepts_incomplete` (P-050).
    #[must_use]
    pub fn incomplete(mut self, incomplete: Incomplete) -> Self {
        self.incomplete = incomplete;
        self
    }

    /// `GET /v2/catalog`. With an entity tag, a broker may answer 304 if the catalog is still the same (P-040).
    pub fn catalog(&self, if_none_match: Option<&EntityTag>) -> Request {
        let request = self.read(Request::new(Method::Get, &["v2", "catalog"]));
        match if_none_match {
            Some(tag) => request.header("If-None-Match", tag.as_str()),
            None => request,
        }
    }

    /// `PUT /v2/service_instances/{instance}`: provisions.
    ///
    /// # Errors
    /// The body cannot be written as JSON.
    pub fn provision(
        &self,
        instance: &InstanceId,
        body: &ProvisionBody,
    ) -> Result<Request, RequestBodyError> {
        self.change(resource(Method::Put, instance, None), body)
    }

    /// `GET /v2/service_instances/{instance}`: fetches; `offered` is a hint.
    pub fn fetch_instance(&self, instance: &InstanceId, offered: &PlanIds) -> Request {
        self.read(offered.query(resource(Method::Get, instance, None)))
    }

    /// `PATCH /v2/service_instances/{instance}`: updates.
    ///
    /// # Errors
    /// The body cannot be written as JSON.
    pub fn update(
        &self,
        instance: &InstanceId,
        body: &UpdateBody,
    ) -> Result<Request, RequestBodyError> {
        self.change(resource(Method::Patch, instance, None), body)
    }

    /// `DELETE /v2/service_instances/{instance}`: deprovisions.
    pub fn deprovision(&self, instance: &InstanceId, offered: &PlanIds) -> Request {
        self.delete(offered.query(resource(Method::Delete, instance, None)))
    }

    /// `PUT …/service_bindings/{binding}`: binds or, with a predecessor in the body, rotates.
    ///
    /// # Errors
    /// The body cannot be written as JSON.
    pub fn bind(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        body: &BindBody,
    ) -> Result<Request, RequestBodyError> {
        self.change(resource(Method::Put, instance, Some(binding)), body)
    }

    /// `GET …/service_bindings/{binding}`: fetches; `offered` is a hint.
    pub fn fetch_binding(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        offered: &PlanIds,
    ) -> Request {
        self.read(offered.query(resource(Method::Get, instance, Some(binding))))
    }

    /// `DELETE …/service_bindings/{binding}`: unbinds.
    pub fn unbind(&self, instance: &InstanceId, binding: &BindingId, offered: &PlanIds) -> Request {
        self.delete(offered.query(resource(Method::Delete, instance, Some(binding))))
    }

    /// `GET …/last_operation`, of an instance or of a binding: polls once.
    pub fn poll(&self, operation: &Operation) -> Request {
        self.read(operation.request())
    }

    fn read(&self, request: Request) -> Request {
        self.with_headers(request)
    }

    fn delete(&self, request: Request) -> Request {
        self.with_headers(self.with_incomplete(request))
    }

    fn change(&self, request: Request, body: &impl Serialize) -> Result<Request, RequestBodyError> {
        let bytes = serde_json::to_vec(body).map_err(|it| RequestBodyError(it.to_string()))?;
        Ok(self.with_headers(self.with_incomplete(request).body(bytes)))
    }

    /// Adds `accepts_incomplete` if a 202 is accepted.
    fn with_incomplete(&self, request: Request) -> Request {
        match self.incomplete {
            Incomplete::Accepted => request.query("accepts_incomplete", "true"),
            Incomplete::Unwanted => request,
        }
    }

    /// Adds the headers that every request has.
    fn with_headers(&self, request: Request) -> Request {
        let request = request
            .header(API_VERSION_HEADER, VERSION)
            .header(REQUEST_IDENTITY_HEADER, &self.request_identity)
            .header("Accept", "application/json");
        let request = match &self.originating_identity {
            Some(user) => request.header(ORIGINATING_IDENTITY_HEADER, &user.to_header()),
            None => request,
        };
        match request.body {
            Some(_) => request.header("Content-Type", "application/json"),
            None => request,
        }
    }
}
