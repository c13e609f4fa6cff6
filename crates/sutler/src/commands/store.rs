//! `sutler store`: the store itself, without a broker: its layout, what is in it, whether it holds together,
//! and copies of it in other stores.
//!
//! Flags and dispatch. Which store is meant is in `store/target_store.rs`, each verb in a file of its own. What
//! they do is the journal's (`sutler_journal::copy`, `sutler_journal::examine`).

mod check;
mod copy;
mod migrate;
mod progress_bar;
mod stats;
mod target_store;

use crate::BoxError;
use clap::{Subcommand, ValueEnum};
use std::io::Write as _;
use std::process::ExitCode;

/// Look after the store itself.
#[derive(Subcommand)]
pub(crate) enum StoreCommand {
    /// Bring a store's layout up to date, and say from what to what
    Migrate(migrate::MigrateArgs),
    /// Count what is in a store
    Stats(stats::StatsArgs),
    /// Read everything in a store and tell what does not hold
    Check(check::StoreCheckArgs),
    /// Copy a store into another one, of any make, while it is in use
    Copy(copy::CopyArgs),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum StoreOutput {
    /// For people
    #[default]
    Table,
    /// For machines
    Json,
}

pub(crate) async fn run(command: StoreCommand) -> ExitCode {
    let (ended, broken) = match command {
        StoreCommand::Migrate(args) => (migrate::run(args).await, ExitCode::FAILURE),
        StoreCommand::Stats(args) => (stats::run(args).await, ExitCode::FAILURE),
        StoreCommand::Check(args) => (check::run(args).await, check::NOT_CHECKED.into()),
        StoreCommand::Copy(args) => (copy::run(args).await, ExitCode::FAILURE),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            super::complain(error.as_ref());
            broken
        }
    }
}

/// Prints to standard output.
fn say(text: &str) -> Result<(), BoxError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints a value for machines.
fn say_json(value: &serde_json::Value) -> Result<(), BoxError> {
    say(&format!("{value:#}\n"))
}
