//! Runs of bindings, through a real engine and against a scripted broker.

mod binds;
mod cascade;
mod serialized;
mod unbinds;
