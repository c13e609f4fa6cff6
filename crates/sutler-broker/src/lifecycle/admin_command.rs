//! Commands of operators for one instance or binding, and their refusals.
//!
//! Their meaning in each state is in `instance/admin_commands.rs` and `binding/admin_commands.rs`; they are read and
//! committed by `requests/admin_command.rs`.

use super::instance::Change;
use crate::refusal::Refusal;
use std::sync::Arc;

/// Command of an operator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AdminCommand {
    /// Repeats the last failed operation. `failed`: that operation, if it failed and its request is still stored.
    Retry { failed: Option<FailedOperation> },
    /// Requests cancellation of the running operation.
    Cancel,
    /// Ends the running operation as failed, without waiting for it.
    Abandon,
    /// Deletes all records of the resource, without calling a hook.
    Purge,
}

/// The last operation, if it failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FailedOperation {
    /// A provision or a bind.
    Create,
    /// An update, with its request.
    Update(Box<FailedUpdate>),
    /// A deprovision or an unbind.
    Delete,
}

/// A failed update that can be repeated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FailedUpdate {
    pub change: Arc<Change>,
    /// Dashboard URL after the update, if it changes.
    pub dashboard_url: Option<String>,
}

/// Refuses a retry: the last operation did not fail.
pub(super) fn nothing_failed() -> Refusal {
    refused(
        "Nothing failed here that is kept and could be done again; look at its last operation, and ask the platform to send the change anew.",
    )
}

/// Refuses a cancel or an abandon: no operation runs.
pub(super) fn nothing_runs() -> Refusal {
    refused(
        "No operation runs or waits here, so there is nothing to stop; use retry to do again what failed, or purge to forget it.",
    )
}

fn refused(sentence: &str) -> Refusal {
    Refusal::Unsupported(sentence.to_owned())
}
