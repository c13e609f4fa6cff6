//! The REST API of the platform: `/api/v1`, JSON, problems as RFC 9457.
//!
//! `route_table.rs` has every route with its permission, its inputs and its handler.

pub mod access;
mod bodies;
mod on_behalf;
mod page_cursor;
mod path_pattern;
mod problem;
mod problem_word;
mod request_body;
mod request_inputs;
mod time_span;
mod views;

pub use access::AccessSettings;
