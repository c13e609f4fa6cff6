//! What the client promises: the wire, the ten endpoints, polling, and what each answer means.

mod broker;
mod endpoints;
mod following;
mod laws;
mod meanings;
mod raw;
mod secured;
mod wire;
