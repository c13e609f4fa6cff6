//! What the client promises: the wire, the ten endpoints, polling, and what each answer means.

mod broker;
mod classify_laws;
mod endpoints;
mod meanings;
mod polling;
mod raw_server;
mod tls;
mod wire;
