//! The sutler executable: flags and commands, one file each under `commands/`.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage; `admin`, `check` and `store` have some of their own.

mod commands;
mod demo;
mod stores;
mod telemetry;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Service brokers for platforms: nothing happens that is not first written down.
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
    /// Check, show and describe configurations
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),
    /// Read a password and print its hash, for `password_hash` of a configuration
    HashPassword,
    /// Look into a running broker, and put right what is stuck
    Admin(commands::admin::AdminArgs),
    /// Prove a broker conformant, or show where it is not
    Check(commands::check::CheckArgs),
    /// Write, check and pack bundles: services without writing a broker
    Bundle(commands::bundle::BundleArgs),
    /// See which bundles registries have, and ask them now
    Registry(commands::admin::registry::RegistryArgs),
    /// Look after the store itself: migrate, count, check, copy into another one
    #[command(subcommand)]
    Store(commands::store::StoreCommand),
}

fn main() -> ExitCode {
    // A supervisor of a run: hundreds may wait at once, so nothing else is set up for one.
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    match words.as_slice() {
        [word, rest @ ..] if word == sutler_runner::SUPERVISOR => {
            sutler_runner::run_supervisor(rest)
        }
        _ => carry_out(Cli::parse()),
    }
}

#[tokio::main]
async fn carry_out(Cli { command }: Cli) -> ExitCode {
    let result = match command {
        Command::Broker(args) => commands::broker::run(args).await,
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
