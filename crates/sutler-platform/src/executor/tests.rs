//! Runs of bindings and of the orphan ledger, through a real engine and against a scripted broker.

mod answers;
mod binds;
mod broker_ids;
mod cascade;
mod full_instances;
mod key_rotation;
mod looks;
mod orphans;
mod ready_operations;
mod repeated_binds;
mod serialized;
mod unbinds;
