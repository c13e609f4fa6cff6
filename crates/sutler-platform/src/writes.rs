//! How a decision becomes one commit: the document of the lane, its operations, names, uses of secrets, the ledger.
//!
//! Nothing is decided here. `operation_changes.rs` is the same for every kind of resource; `own_operation.rs` is the operation of
//! the run that decided; `broker_id_writes.rs` are the ids that brokers know; `instance_writes.rs` and its siblings translate the effects of one kind.

mod binding_writes;
mod broker_id_writes;
mod instance_writes;
mod operation_changes;
mod orphan_writes;
mod own_operation;

pub(crate) use binding_writes::{BindingChange, binding_commit};
pub(crate) use instance_writes::{InstanceChange, instance_commit};
pub(crate) use operation_changes::{OperationChange, OperationWriter, ScrubbedOperations};
pub(crate) use orphan_writes::{MITIGATE, mitigation, put_orphan};
pub(crate) use own_operation::{NextClaim, OwnOperation};
