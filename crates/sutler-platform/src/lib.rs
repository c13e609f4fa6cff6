//! The platform's side: service instances and bindings of other brokers, changed through a journal of intents.
//!
//! An *intent* is one accepted change with its author. What the broker acknowledged is the *confirmed* state; the
//! *specification* that users see is the confirmed state plus the pending intents, in their order.
//!
//! Reading order, the pure core first (no I/O, no clock, no randomness): [`spec`] (what a user wants, and differences
//! between two of them), [`projection`] (the specification that is shown, and which intents depend on each other),
//! [`lifecycle`] (the states and rules), [`preflight`] (the rules of a plan that are checked before anything is sent),
//! [`broker_request`] (what is sent to a broker for one intent), [`catalog`] (what of a broker's catalog is offered to whom).
//!
//! Then the shell: [`records`] (what is stored), `writes` (from a decision to a commit), [`commands`] (what people ask for),
//! `executor` (one exchange with a broker for each claim), [`brokers`] (registered brokers and the connection to them),
//! [`api`] (the REST API). [`platform`] puts them together.
//!
//! Comments and tables cite rules by number: T-nn (transitions), I-nn (invariants) and the others are explained in
//! `docs/platform-rules.md`.

pub mod api;
pub mod author;
mod bind_facts;
mod binding_changes;
pub mod broker_request;
pub mod brokers;
pub mod catalog;
mod census;
pub mod commands;
mod context;
pub mod credentials;
mod end_waiters;
mod executor;
mod instance_events;
pub mod lifecycle;
pub mod metrics;
mod orphan_events;
mod periodic;
pub mod platform;
pub mod platform_records;
pub mod preflight;
pub mod projection;
mod quoted_text;
pub mod records;
pub mod retention;
pub mod spec;
pub mod store_inspection;
#[cfg(test)]
mod test_platform;
mod writes;
