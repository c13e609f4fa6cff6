//! What people ask for: read, ask the rules, commit, answer. Nothing here sends anything to a broker.
//!
//! Each command is one decision in one commit; another writer that is first makes it decide again, on what is stored then.
//! `change_options.rs` is what every change has, `plan_search.rs` finds plans by their names, `broker_ids.rs`
//! refuses ids that are taken, `instance_commit.rs` has the
//! steps that all commands about instances share; then one file per resource.

mod abandon_broker;
mod bindings;
mod broker_ids;
mod change_options;
mod command_error;
mod create_instance;
mod delete_instance;
mod instance_changes;
mod instance_commit;
mod instance_intents;
mod namespaces;
mod orphans;
mod plan_search;
mod reads;
mod secrets;

pub use crate::orphan_events::OrphanOutcome;
pub use crate::periodic::AbandonProgress;
pub use bindings::{BindingOutcome, WantedBinding};
pub use change_options::{ChangeOptions, InstancePatch, WantedInstance};
pub use command_error::CommandError;
pub use instance_commit::InstanceOutcome;
pub use namespaces::WantedNamespace;
#[cfg(test)]
pub(crate) use orphans::retry as retry_orphan;
pub use reads::{IntentView, ResourcePage};
pub use secrets::{SecretSummary, WantedSecret};
