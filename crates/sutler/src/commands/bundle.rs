//! `sutler bundle`: what authors of bundles need, without any broker. One file per verb.
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
    /// Begin a new bundle, small and working
    New(new::NewArgs),
    /// Tell every fault of a bundle, with its place and what to do about it
    Check(check::BundleCheckArgs),
    /// Print a page about a bundle, in Markdown, for those who use it
    Docs(FolderArgs),
    /// Make an image of a bundle, without any container engine
    Pack(pack::PackArgs),
    /// Run one action of a bundle, without any broker
    Run(run::RunArgs),
    /// Lead every example through a whole life, twice, and once more with crashes
    Test(test::TestArgs),
    /// Give something back from a run: credentials, state, progress, an error
    Emit(emit::EmitArgs),
}

/// Which bundle.
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
