//! Tests of the client: the wire, the ten endpoints, polling, and the meaning of each answer.

mod broker;
mod classify_laws;
mod endpoints;
mod meanings;
mod polling;
mod raw_server;
mod tls;
mod wire;
