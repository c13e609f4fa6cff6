//! What an operator may order for an instance or a binding, and why not.
//!
//! What an order means in each state is in `instance/admin_commands.rs` and `binding/admin_commands.rs`; who asks and
//! commits is `requests/admin_command.rs`.

use super::instance::Change;
use crate::refusal::Refusal;

/// What an operator orders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AdminCommand {
    /// Do again what failed last. `failed`: what that was, if it failed and what it asked is kept.
    Retry { failed: Option<FailedOperation> },
    /// Ask what runs to stop.
    Cancel,
    /// End what runs as failed, without waiting for it.
    Abandon,
    /// Forget all of it, without calling anybody.
    Purge,
}

/// What failed last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FailedOperation {
    /// A provision or a bind.
    Create,
    /// An update, and what it asked for.
    Update(Box<FailedUpdate>),
    /// A deprovision or an unbind.
    Delete,
}

/// An update to be done again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FailedUpdate {
    pub change: Change,
    /// The dashboard after the update, where it changes.
    pub dashboard_url: Option<String>,
}

/// Nothing of it failed last, so there is nothing to do again.
pub(super) fn nothing_failed() -> Refusal {
    refused(
        "Nothing failed here that is kept and could be done again; look at its last operation, and ask the platform to send the change anew.",
    )
}

/// Nothing runs, so there is nothing to stop or to end.
pub(super) fn nothing_runs() -> Refusal {
    refused(
        "No operation runs or waits here, so there is nothing to stop; use retry to do again what failed, or purge to forget it.",
    )
}

fn refused(sentence: &str) -> Refusal {
    Refusal::Unsupported(sentence.to_owned())
}
