//! The REST API of the platform: `/api/v1`, JSON, problems as RFC 9457.
//!
//! `route_table.rs` has every route with its permission, its inputs and its handler; `rest_api.rs` checks requests in one
//! order and calls the handlers in `handlers/`, which ask the platform (`commands.rs`). What callers see is made by the pure
//! `views.rs`; what they send is read by `request_inputs.rs`, `request_body.rs` and `bodies.rs`; which refusal is which
//! problem is chosen in `problem_word.rs`, who may do what in `access.rs`. Nothing here decides anything about resources.

mod access;
mod answer;
mod api_call;
mod api_route;
mod audit_line;
mod bodies;
mod browser_request;
mod entity_tag;
mod handlers;
mod health;
mod listing;
mod on_behalf;
mod page_cursor;
mod path_pattern;
mod permitted_request;
mod problem;
mod problem_word;
mod request_body;
mod request_inputs;
mod requested_sync;
mod resource_views;
mod rest_api;
mod route_search;
mod route_table;
mod serve;
#[cfg(test)]
mod tests;
mod time_span;
mod views;

pub use access::AccessSettings;
pub use serve::{ApiSettings, MetricsPage, PlatformServer};
