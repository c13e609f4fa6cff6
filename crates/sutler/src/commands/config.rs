//! `sutler config`: checks and prints a configuration without starting anything.
//!
//! The configuration itself is in the library (`sutler::BrokerConfig`).

use super::CommandResult;
use super::broker::ConfigArgs;
use clap::{Args, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;

/// Default file.
const FILE: &str = "sutler.yaml";

/// Check, show and describe configurations.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every fault and every warning of a configuration; exits with 0 if it has no fault
    Check(FileArgs),
    /// Print the resulting configuration and the source of each value; secrets stay hidden
    Show(FileArgs),
    /// Print the JSON Schema of a configuration file
    Schema,
    /// Print the reference, docs/configuration.md
    Reference,
}

/// The configuration to read.
#[derive(Args)]
pub(crate) struct FileArgs {
    /// The file [default: the one --config names, or sutler.yaml]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(command: ConfigCommand) -> CommandResult {
    let text = match command {
        ConfigCommand::Check(args) => {
            let (loaded, name) = args.load()?;
            let warnings = loaded.warnings.iter();
            let lines = warnings.map(|warning| format!("warning: {warning}\n"));
            let lines: String = lines.collect();
            format!("{lines}{name} has no fault\n")
        }
        ConfigCommand::Show(args) => {
            let (loaded, _) = args.load()?;
            sutler::show(&loaded.config, &loaded.sources)
        }
        ConfigCommand::Schema => format!("{:#}\n", sutler::schema()),
        ConfigCommand::Reference => sutler::reference(),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

impl FileArgs {
    fn load(self) -> Result<(sutler::ResolvedConfig, String), sutler::ConfigError> {
        let named = self.file.or_else(|| self.config.config.clone());
        let file = named.unwrap_or_else(|| FILE.into());
        let loaded = sutler::load(Some(&file), &self.config.flags())?;
        Ok((loaded, file.display().to_string()))
    }
}
