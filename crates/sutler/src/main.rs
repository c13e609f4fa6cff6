//! The sutler executable: flags and commands, one file each under `commands/`.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage; `admin`, `check` and `store` have some of their own.

mod commands;
mod demo;
mod stores;
mod telemetry;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An error of a command, shown to the user by [`commands::complain`].
type BoxError = Box<dyn std::error::Error>;

/// Service brokers for platforms. Every change is committed to a store before it is carried out.
#[derive(Parser)]
#[command(name = "sutler", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve bundles, or a catalog file with a built-in demo service behind it, as a service broker
    Broker(commands::broker::BrokerArgs),
    /// Serve the API of a platform: provision, change, bind and delete through other brokers
    Platform(commands::platform::PlatformArgs),
    /// Check, show and describe configurations
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),
    /// Read a password and print its hash, for `password_hash` of a configuration
    HashPassword,
    /// Inspect a running broker, and repair stuck operations
    Admin(commands::admin::AdminArgs),
    /// Check whether a broker conforms to the specification
    Check(commands::check::CheckArgs),
    /// Write, check and pack bundles: services without a broker of your own
    Bundle(commands::bundle::BundleArgs),
    /// List the bundles of registries, and refresh them
    Registry(commands::admin::registry::RegistryArgs),
    /// Maintain the store: migrate, count, check, copy into another store
    #[command(subcommand)]
    Store(commands::store::StoreCommand),
}

fn main() -> ExitCode {
    // A supervisor of a run. Hundreds may wait at once, so it starts without a runtime.
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    match words.as_slice() {
        [word, rest @ ..] if word == sutler_runner::SUPERVISOR => {
            sutler_runner::run_supervisor(rest)
        }
        _ => run_command(Cli::parse()),
    }
}

#[tokio::main]
async fn run_command(Cli { command }: Cli) -> ExitCode {
    let result = match command {
        Command::Broker(args) => commands::broker::run(args).await,
        Command::Platform(args) => commands::platform::run(args).await,
        Command::Config(command) => commands::config::run(command),
        Command::HashPassword => commands::hash_password::run(),
        Command::Admin(args) => return commands::admin::run(args).await,
        Command::Check(args) => return commands::check::run(args).await,
        Command::Bundle(args) => return commands::bundle::run(args).await,
        Command::Registry(args) => return commands::admin::registry::run(args).await,
        Command::Store(command) => return commands::store::run(command).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            commands::complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}
