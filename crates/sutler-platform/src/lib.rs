//! The platform's side: service instances and bindings of other brokers, changed through a journal of intents.
//!
//! An *intent* is one accepted change with its author. What the broker acknowledged is the *confirmed* state; the
//! *specification* that users see is the confirmed state plus the pending intents, in their order. Everything here is
//! pure: no I/O, no clock, no randomness. The caller passes ids, times and facts, and executes the effects.
//!
//! Reading order: [`spec`] (what a user wants, and differences between two of them), [`projection`] (the specification
//! that is shown, and which intents depend on each other), [`lifecycle`] (the states and rules), [`broker_request`] (what
//! is sent to a broker for one intent), [`catalog`] (what of a broker's catalog is offered to whom).

pub mod author;
pub mod broker_request;
pub mod catalog;
pub mod lifecycle;
pub mod preflight;
pub mod projection;
pub mod spec;
