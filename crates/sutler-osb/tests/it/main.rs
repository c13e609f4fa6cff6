//! Tests of the public API, one module for each part.
//! Lines that begin with `Holds:` name the checklist lines a test proves.

mod catalog;
mod catalog_faults;
mod errors;
mod identifiers;
mod identity;
mod queries;
mod refused_bodies;
mod requests;
mod responses;
mod round_trips;
mod schemas;
mod times;
