//! The broker through its router, line by line of the checklist: raw JSON, headers, statuses.
//!
//! Each test says with `Holds:` which lines it proves; `tools/spec-map` makes the table of that.
//! Start with `kit.rs`.

mod kit;

mod admin;
mod auth;
mod beside;
mod bind;
mod catalog;
mod concurrency;
mod content;
mod deprovision;
mod errors;
mod fetch;
mod gaps;
mod headers;
mod hooks;
mod hostile;
mod limits;
mod order;
mod overdue;
mod pace;
mod platforms;
mod poll;
mod provision;
mod rotation;
mod secured;
mod tenants;
mod unbind;
mod untimely;
mod update;
mod upgrade;
mod waiting;
mod withdrawn;
