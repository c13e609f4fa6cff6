//! The commands, one module each, and the output of their errors.

pub(crate) mod admin;
pub(crate) mod broker;
pub(crate) mod bundle;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod hash_password;
pub(crate) mod platform;
mod progress_bar;
pub(crate) mod store;

use crate::BoxError;
use std::io::Write as _;

/// Result of a command.
pub(crate) type CommandResult = Result<(), BoxError>;

/// Prints an error and its causes to standard error.
pub(crate) fn complain(error: &dyn std::error::Error) {
    let mut text = format!("sutler: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        let line = inner.to_string();
        // Some errors already include the text of their cause.
        if !text.contains(&line) {
            text.push_str("\n  because: ");
            text.push_str(&line);
        }
        cause = inner.source();
    }
    let _ = writeln!(std::io::stderr(), "{text}");
}
