//! `sutler bundle`: commands for authors of bundles; none needs a broker. One file per verb.
//!
//! Exit codes: 0 done, 1 failed or faults found, 2 wrong usage.

mod check;
mod docs;
mod emit;
mod environment;
mod new;
mod pack;
mod run;
mod terminal;
mod test;

use super::CommandResult;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write, check and pack bundles.
#[derive(Args)]
pub(crate) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Subcommand)]
enum BundleCommand {
    /// Create a new bundle, small and working
    New(new::NewArgs),
    /// Print every fault of a bundle, with its place and how to fix it
    Check(check::BundleCheckArgs),
    /// Print a page about a bundle, in Markdown, for its users
    Docs(FolderArgs),
    /// Pack a bundle into an image, without a container engine
    Pack(pack::PackArgs),
    /// Run one action of a bundle, without a broker
    Run(run::RunArgs),
    /// Take every example through its whole lifecycle, twice, and once more with crashes
    Test(test::TestArgs),
    /// Return something from a run: credentials, state, progress, an error
    Emit(emit::EmitArgs),
}

/// The bundle to work on.
#[derive(Args)]
struct FolderArgs {
    /// The bundle's folder
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

pub(crate) async fn run(BundleArgs { command }: BundleArgs) -> ExitCode {
    let result = match command {
        BundleCommand::New(args) => new::run(&args),
        BundleCommand::Check(args) => return check::run(&args),
        BundleCommand::Docs(args) => docs::run(&args.folder),
        BundleCommand::Pack(args) => pack::run(&args),
        BundleCommand::Run(args) => run::run(&args).await,
        BundleCommand::Test(args) => test::run(&args).await,
        BundleCommand::Emit(args) => emit::run(&args),
    };
    ended(result)
}

fn ended(result: CommandResult) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            super::complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}
