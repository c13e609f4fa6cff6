//! Tests of the client: the wire, the ten endpoints, polling, and the meaning of each answer.

mod broker;
mod certificates;
mod classify_laws;
mod egress;
mod endpoints;
mod meanings;
mod oauth2;
mod polling;
mod raw_server;
mod repeated_sends;
mod request_bytes;
mod stored_requests;
mod tls;
mod wire;
