//! The platform's half of the Open Service Broker API: sends requests, decodes answers, and interprets
//! them.
//!
//! Three layers, each usable without those above it. [`wire`] carries raw requests and answers,
//! bounded in time and size, without interpreting their bodies: `sutler-check` tests brokers
//! through it. It also has what a platform needs of a connection: OAuth2, egress rules, and requests as
//! bytes. [`RequestBuilder`] makes the request of every endpoint, pure, so that one can be written down and
//! repeated byte for byte; [`Client`] has all ten endpoints with the types of `sutler-osb`; [`decode`] turns
//! raw answers into typed ones. [`classify`] is the only place that interprets an answer for the platform; it
//! is pure, and tested against the tables in `tests/meanings/`.
//!
//! It has neither a retry loop nor memory: the caller acts on a meaning. Only [`Client::poll_to_end`]
//! waits, because polling is part of the protocol; and only access tokens are kept and, once per request,
//! replaced.
//!
//! Read `request_builder.rs`, `client.rs`, `wire.rs` and its files, `decode.rs`, `classify.rs`, in this order.
//!
//! ```no_run
//! use std::time::Duration;
//! use sutler_client::wire::Connection;
//! use sutler_client::{
//!     Call, Client, Meaning, Operation, OperationEvent, PlanIds, PollSchedule, PollUpdate, ReplyContext,
//!     classify,
//! };
//! use sutler_osb::{OperationKind, ProvisionBody};
//!
//! # async fn provision(body: ProvisionBody) -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::to("https://broker.example")
//!     .basic("platform", "s3cret".into())
//!     .answer_within(Duration::from_secs(60))
//!     .build()?;
//! let client = Client::new(connection);
//! let (instance, call) = ("5c7b1d7e-8b5c-4a53-8f5c-5ae0c5a4dd3c".try_into()?, Call::new());
//! let context = ReplyContext::default();
//!
//! let reply = client.provision(&instance, &body, &call).await;
//! match classify(OperationKind::Provision, OperationEvent::Reply(reply), &context) {
//!     Meaning::Polling { update: PollUpdate::Accepted(accepted), after } => {
//!         let plan = PlanIds { service_id: body.service_id, plan_id: body.plan_id };
//!         let operation = Operation::provision(instance, plan, accepted.operation);
//!         let schedule = PollSchedule::default().of_plan(Some(3600));
//!         let end = client.poll_to_end(&operation, after, &call, &schedule, &context).await;
//!         println!("{end:?}");
//!     }
//!     meaning => println!("{meaning:?}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The same as a platform does it that must survive a crash between sending and the answer:
//!
//! ```no_run
//! use sutler_client::wire::{Connection, Request};
//! use sutler_client::{RequestBuilder, decode};
//! use sutler_osb::{InstanceId, ProvisionBody};
//! use uuid::Uuid;
//!
//! # fn write_down(_: &[u8]) {}
//! # async fn provision(
//! #     connection: Connection, operation: Uuid, instance: InstanceId, body: ProvisionBody,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let request = RequestBuilder::from_uuid(operation).provision(&instance, &body)?;
//! let stored = request.to_stored()?;
//! write_down(&stored);
//! let reply = decode::provision(connection.send(&request).await);
//! // After a crash, the same bytes:
//! let reply = decode::provision(connection.send(&Request::from_stored(&stored)?).await);
//! # Ok(())
//! # }
//! ```

mod call;
mod classify;
mod classify_read;
mod client;
pub mod decode;
mod entity_tag;
mod meaning;
mod operation;
mod poll_loop;
mod poll_schedule;
mod reply;
mod request_builder;
mod retry_after;
pub mod wire;

pub use call::{Call, Incomplete};
pub use classify::{ReplyContext, Sending, classify};
pub use classify_read::{Reading, classify_read};
pub use client::Client;
pub use entity_tag::{EntityTag, EntityTagError};
pub use meaning::{
    BrokerEvent, BrokerMessage, CleanupDuty, Meaning, NextQuestion, PollUpdate, RejectionReason,
    RetryCause, Success,
};
pub use operation::{Operation, PlanIds};
pub use poll_schedule::{NextPoll, PollSchedule};
pub use reply::{
    AcceptedOperation, Answer, ExpectedStatus, NoReplyError, OperationEvent, OtherStatus, Reply,
    ReplyBodyError, SuccessStatus,
};
pub use request_builder::{RequestBodyError, RequestBuilder};
pub use retry_after::RetryAfter;
