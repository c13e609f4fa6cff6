//! The broker through its router, line by line of the checklist: raw JSON, headers, statuses.
//!
//! Each test lists the lines it covers after `Holds:`; `tools/spec-map` builds the table from that.
//! Start with `fixture.rs`.

mod fixture;

mod admin;
mod auth;
mod bad_input;
mod bind;
mod binding_rotation;
mod catalog;
mod changed_rows;
mod concurrency;
mod content_types;
mod deprovision;
mod errors;
mod extension_routes;
mod fetch_resources;
mod headers;
mod hooks;
mod instance_counts;
mod limits;
mod multiple_platforms;
mod mutant_regressions;
mod poll;
mod provision;
mod provision_before_plan;
mod refusal_precedence;
mod repeats_under_new_rules;
mod store_inspection;
mod sync_and_async;
mod sync_wait_timeout;
mod tls;
mod unbind;
mod update;
mod upgrade;
mod withdrawn_plans;
