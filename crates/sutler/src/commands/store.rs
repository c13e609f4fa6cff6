//! `sutler store`: maintenance of a store without a broker: layout, counts, consistency, copies into other stores,
//! keys.
//!
//! Flags and dispatch. The choice of the store is in `store/target_store.rs`, each verb has its own file. The work
//! is done by the journal (`sutler_journal::copy`, `sutler_journal::inspect`, `sutler_journal::rekey`).

mod check;
mod copy;
mod key_usage;
mod keys;
mod migrate;
mod rekey;
mod reopen;
mod stats;
pub(super) mod target_store;

use crate::BoxError;
use clap::{Subcommand, ValueEnum};
use std::io::Write as _;
use std::process::ExitCode;

/// Maintain the store.
#[derive(Subcommand)]
pub(crate) enum StoreCommand {
    /// Migrate a store to the current layout, and print both versions
    Migrate(migrate::MigrateArgs),
    /// Count the contents of a store
    Stats(stats::StatsArgs),
    /// Read everything in a store and report inconsistencies
    Check(check::StoreCheckArgs),
    /// Copy a store into another one, of any kind
    Copy(copy::CopyArgs),
    /// Make, list, use and retire the keys that seal a store
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Seal everything in a store with the current key, while it is in use
    Rekey(rekey::RekeyArgs),
    /// Make a store usable again that was copied into another one
    Reopen(reopen::ReopenArgs),
}

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum StoreOutput {
    /// Text
    #[default]
    Table,
    /// JSON
    Json,
}

pub(crate) async fn run(command: StoreCommand) -> ExitCode {
    let (ended, broken) = match command {
        StoreCommand::Migrate(args) => (migrate::run(args).await, ExitCode::FAILURE),
        StoreCommand::Stats(args) => (stats::run(args).await, ExitCode::FAILURE),
        StoreCommand::Check(args) => (check::run(args).await, check::NOT_CHECKED.into()),
        StoreCommand::Copy(args) => (copy::run(args).await, ExitCode::FAILURE),
        StoreCommand::Keys(command) => (keys::run(command).await, ExitCode::FAILURE),
        StoreCommand::Rekey(args) => (rekey::run(args).await, ExitCode::FAILURE),
        StoreCommand::Reopen(args) => (reopen::run(args).await, ExitCode::FAILURE),
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

/// Prints a value as JSON.
fn say_json(value: &serde_json::Value) -> Result<(), BoxError> {
    say(&format!("{value:#}\n"))
}
