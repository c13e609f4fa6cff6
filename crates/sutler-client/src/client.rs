//! The typed client: all ten endpoints, each one request and one reply.
//!
//! It sends requests and decodes answers; `poll_loop.rs` polls, `classify.rs` interprets, and the caller
//! retries. Every request carries the version, a request identity and, if a user caused it, the
//! originating identity.

use crate::call::{Call, Incomplete};
use crate::decode;
use crate::operation::{Operation, PlanIds, resource};
use crate::reply::Reply;
use crate::wire::{Connection, Method, Request, TransportError};
use serde::Serialize;
use sutler_osb::{
    BindBody, BindResponse, BindingId, Catalog, DeleteResponse, FetchBindingResponse,
    FetchInstanceResponse, InstanceId, LastOperationResponse, ProvisionBody, ProvisionResponse,
    UpdateBody, UpdateResponse,
};

/// Typed client of one broker. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// A client of the broker behind a connection.
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// The connection to the broker.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// `GET /v2/catalog`.
    pub async fn catalog(&self, call: &Call) -> Reply<Catalog> {
        let request = Request::new(Method::Get, &["v2", "catalog"]);
        decode::catalog(self.send(request, call).await)
    }

    /// `PUT /v2/service_instances/{instance}`: provisions.
    pub async fn provision(
        &self,
        instance: &InstanceId,
        body: &ProvisionBody,
        call: &Call,
    ) -> Reply<ProvisionResponse> {
        let request = resource(Method::Put, instance, None);
        decode::provision(self.send_body(request, body, call).await)
    }

    /// `GET /v2/service_instances/{instance}`: fetches; `offered` is a hint.
    pub async fn fetch_instance(
        &self,
        instance: &InstanceId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<FetchInstanceResponse> {
        let request = offered.query(resource(Method::Get, instance, None));
        decode::fetched_instance(self.send(request, call).await)
    }

    /// `PATCH /v2/service_instances/{instance}`: updates.
    pub async fn update(
        &self,
        instance: &InstanceId,
        body: &UpdateBody,
        call: &Call,
    ) -> Reply<UpdateResponse> {
        let request = resource(Method::Patch, instance, None);
        decode::update(self.send_body(request, body, call).await)
    }

    /// `DELETE /v2/service_instances/{instance}`: deprovisions.
    pub async fn deprovision(
        &self,
        instance: &InstanceId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<DeleteResponse> {
        let request = offered.query(resource(Method::Delete, instance, None));
        decode::delete(self.send(incomplete(request, call), call).await)
    }

    /// `PUT …/service_bindings/{binding}`: binds or, with a predecessor in the body, rotates.
    pub async fn bind(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        body: &BindBody,
        call: &Call,
    ) -> Reply<BindResponse> {
        let request = resource(Method::Put, instance, Some(binding));
        decode::bind(self.send_body(request, body, call).await)
    }

    /// `GET …/service_bindings/{binding}`: fetches; `offered` is a hint.
    pub async fn fetch_binding(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<FetchBindingResponse> {
        let request = offered.query(resource(Method::Get, instance, Some(binding)));
        decode::fetched_binding(self.send(request, call).await)
    }

    /// `DELETE …/service_bindings/{binding}`: unbinds.
    pub async fn unbind(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<DeleteResponse> {
        let request = offered.query(resource(Method::Delete, instance, Some(binding)));
        decode::delete(self.send(incomplete(request, call), call).await)
    }

    /// `GET …/last_operation`, of an instance or of a binding: polls once.
    pub async fn poll(&self, operation: &Operation, call: &Call) -> Reply<LastOperationResponse> {
        decode::poll(self.send(operation.request(), call).await)
    }

    async fn send_body<B: Serialize>(
        &self,
        request: Request,
        body: &B,
        call: &Call,
    ) -> decode::WireResult {
        match serde_json::to_vec(body) {
            Ok(bytes) => {
                let request = incomplete(request, call).body(bytes);
                self.send(request, call).await
            }
            Err(error) => Err(TransportError::NotSent(format!(
                "the body cannot be written as JSON ({error}); change it"
            ))),
        }
    }

    async fn send(&self, request: Request, call: &Call) -> decode::WireResult {
        self.connection.send(&call.with_headers(request)).await
    }
}

/// Adds `accepts_incomplete` to the request if a 202 is accepted.
fn incomplete(request: Request, call: &Call) -> Request {
    match call.incomplete {
        Incomplete::Accepted => request.query("accepts_incomplete", "true"),
        Incomplete::Unwanted => request,
    }
}
