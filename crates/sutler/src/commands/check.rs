//! `sutler check`: checks from outside whether a broker conforms to the specification.
//!
//! Flags and dispatch. The rules are in `sutler-check`; here are the connection (`check/connect.rs`), parameters
//! from a file (`check/parameter_file.rs`), signals and progress (`check/run.rs`, `check/progress.rs`), output
//! (`check/text.rs`, `check/outline.rs`, `check/cases.rs`), and exit codes (`check/exit.rs`).

mod cases;
mod connect;
mod exit;
mod outline;
mod parameter_file;
mod progress;
mod run;
mod text;

use clap::{Args, ValueEnum};
use exit::{CheckCommandError, CheckOutcome};
use std::path::PathBuf;
use std::process::ExitCode;
use sutler::DurationText;
use sutler_check::{Level, Options, Profile};

/// Timeout of the cleanup, in multiples of the operation timeout.
const CLEAN_UP_OPERATIONS: u32 = 2;

/// Check whether a broker conforms to the specification.
#[derive(Args)]
#[command(after_help = exit::EXIT_CODES)]
pub(crate) struct CheckArgs {
    /// The broker's URL: everything before /v2
    #[arg(value_name = "URL", required_unless_present_any = ["list_cases", "reference"])]
    url: Option<String>,
    #[command(flatten)]
    connect: connect::ConnectArgs,
    /// Check only this offering, by name or id; may be given several times
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Check only this plan, by name, id or service/plan; may be given several times
    #[arg(long, value_name = "NAME")]
    plan: Vec<String>,
    /// Read parameters from a file of JSON or YAML: {service/plan: {provision: {...}, update: {...}, bind: {...}}}
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Read the catalog and print what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
    /// Timeout of one asynchronous operation
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    operation_timeout: DurationText,
    /// Number of plans that are checked in parallel
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// The set of expectations to check against
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = ProfileName::V2_17)]
    profile: ProfileName,
    /// Failures of this level make the exit code 1; everything is checked and shown in any case
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LevelName::Must)]
    level: LevelName,
    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Write the report to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show passed and not applicable cases too
    #[arg(long, short)]
    verbose: bool,
    /// List every case with its line, its level and its rule, and exit
    #[arg(long)]
    list_cases: bool,
    /// Print docs/check-cases.md and exit
    #[arg(long, hide = true)]
    reference: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProfileName {
    /// The specification 2.17
    #[value(name = "2.17")]
    V2_17,
    /// The older suites: 412 for a missing version, 410 for polls after a delete
    #[value(name = "compat-2.13")]
    Compat2_13,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LevelName {
    /// Only violations of the specification
    Must,
    /// Violations of its recommendations too
    Should,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A table and every failure
    Text,
    /// JSON with all details
    Json,
    /// JUnit's XML, for build servers
    Junit,
    /// For a pull request
    Markdown,
}

impl CheckArgs {
    fn level(&self) -> Level {
        match self.level {
            LevelName::Must => Level::Must,
            LevelName::Should => Level::Should,
        }
    }

    fn options(&self) -> Result<Options, CheckCommandError> {
        let DurationText(operation_within) = self.operation_timeout;
        Ok(Options {
            services: self.service.clone(),
            plans: self.plan.clone(),
            parameters: match &self.params {
                Some(path) => parameter_file::read(path)?,
                None => Default::default(),
            },
            jobs: self.jobs.into(),
            operation_within,
            clean_up_within: operation_within * CLEAN_UP_OPERATIONS,
            profile: match self.profile {
                ProfileName::V2_17 => Profile::V2_17,
                ProfileName::Compat2_13 => Profile::Compat2_13,
            },
        })
    }
}

fn duration(text: &str) -> Result<DurationText, String> {
    DurationText::try_from(text.to_owned())
}

pub(crate) async fn run(args: CheckArgs) -> ExitCode {
    match command(args).await {
        Ok(end) => end.into(),
        Err(not_done) => {
            super::complain(&not_done);
            not_done.end().into()
        }
    }
}

async fn command(args: CheckArgs) -> Result<CheckOutcome, CheckCommandError> {
    if args.reference {
        return text::print(&cases::page()).map(|()| CheckOutcome::Fine);
    }
    if args.list_cases {
        return text::print(&cases::list()).map(|()| CheckOutcome::Fine);
    }
    let url = args.url.as_deref().unwrap_or_default();
    let connection = args.connect.connect(url)?;
    let options = args.options()?;
    if args.dry_run {
        return outline::run(connection, options).await;
    }
    let report = run::to_the_end(connection, options, args.level()).await?;
    let written = match args.format {
        ReportFormat::Text => text::render(&report, args.verbose),
        ReportFormat::Json => report.to_json(),
        ReportFormat::Junit => report.to_junit(),
        ReportFormat::Markdown => report.to_markdown(),
    };
    match &args.output {
        None => text::print(&written)?,
        Some(path) => {
            std::fs::write(path, anstream::adapter::strip_str(&written).to_string())
                .map_err(|error| CheckCommandError::file("write", path, error))?;
        }
    }
    if args.output.is_some() || args.format != ReportFormat::Text {
        text::say(&text::summary(&report));
    }
    Ok(CheckOutcome::of(&report, args.level()))
}
