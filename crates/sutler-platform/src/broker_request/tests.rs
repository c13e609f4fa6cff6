//! Tests of the requests: expected JSON, written by hand, for each profile and verb; and the laws.

mod bindings;
mod contexts;
mod difference_laws;
mod fixtures;
mod identities;
mod provisions;
mod secrets;
mod updates;
