//! The typed client: all ten endpoints, each one request and one reply.
//!
//! It sends what `request_builder.rs` builds and decodes answers; `poll_loop.rs` polls, `classify.rs` interprets, and
//! the caller retries. Every request carries the version, a request identity and, if a user caused it, the
//! originating identity.

use crate::call::Call;
use crate::decode;
use crate::operation::{Operation, PlanIds};
use crate::reply::Reply;
use crate::request_builder::RequestBodyError;
use crate::wire::{Connection, Request, TransportError};
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
        decode::catalog(self.send(call.builder().catalog(None)).await)
    }

    /// `PUT /v2/service_instances/{instance}`: provisions.
    pub async fn provision(
        &self,
        instance: &InstanceId,
        body: &ProvisionBody,
        call: &Call,
    ) -> Reply<ProvisionResponse> {
        let request = call.builder().provision(instance, body);
        decode::provision(self.send_built(request).await)
    }

    /// `GET /v2/service_instances/{instance}`: fetches; `offered` is a hint.
    pub async fn fetch_instance(
        &self,
        instance: &InstanceId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<FetchInstanceResponse> {
        let request = call.builder().fetch_instance(instance, offered);
        decode::fetched_instance(self.send(request).await)
    }

    /// `PATCH /v2/service_instances/{instance}`: updates.
    pub async fn update(
        &self,
        instance: &InstanceId,
        body: &UpdateBody,
        call: &Call,
    ) -> Reply<UpdateResponse> {
        let request = call.builder().update(instance, body);
        decode::update(self.send_built(request).await)
    }

    /// `DELETE /v2/service_instances/{instance}`: deprovisions.
    pub async fn deprovision(
        &self,
        instance: &InstanceId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<DeleteResponse> {
        let request = call.builder().deprovision(instance, offered);
        decode::delete(self.send(request).await)
    }

    /// `PUT …/service_bindings/{binding}`: binds or, with a predecessor in the body, rotates.
    pub async fn bind(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        body: &BindBody,
        call: &Call,
    ) -> Reply<BindResponse> {
        let request = call.builder().bind(instance, binding, body);
        decode::bind(self.send_built(request).await)
    }

    /// `GET …/service_bindings/{binding}`: fetches; `offered` is a hint.
    pub async fn fetch_binding(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<FetchBindingResponse> {
        let request = call.builder().fetch_binding(instance, binding, offered);
        decode::fetched_binding(self.send(request).await)
    }

    /// `DELETE …/service_bindings/{binding}`: unbinds.
    pub async fn unbind(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        offered: &PlanIds,
        call: &Call,
    ) -> Reply<DeleteResponse> {
        let request = call.builder().unbind(instance, binding, offered);
        decode::delete(self.send(request).await)
    }

    /// `GET …/last_operation`, of an instance or of a binding: polls once.
    pub async fn poll(&self, operation: &Operation, call: &Call) -> Reply<LastOperationResponse> {
        decode::poll(self.send(call.builder().poll(operation)).await)
    }

    async fn send_built(&self, request: Result<Request, RequestBodyError>) -> decode::WireResult {
        match request {
            Ok(request) => self.send(request).await,
            Err(error) => Err(TransportError::NotSent(error.to_string())),
        }
    }

    async fn send(&self, request: Request) -> decode::WireResult {
        self.connection.send(&request).await
    }
}
