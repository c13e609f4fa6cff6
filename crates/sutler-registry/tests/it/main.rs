//! Registries against real servers, with a front that does harm to single requests.
//!
//! `stage.rs` is the vocabulary; `conforms.rs` has every adapter pass the suite; the other files are about one
//! thing each.

mod conforms;
mod conforms_recorded;
mod entry;
mod failures;
mod forms;
mod listings;
mod stage;
