//! `sutler check`: whether a broker keeps to the rules, seen from outside.
//!
//! Flags and dispatch. What is judged and how is `sutler-check`; here are the way to the broker
//! (`check/connect.rs`), parameters from a file (`check/parameter_file.rs`), signals and progress
//! (`check/run.rs`, `check/progress.rs`), what is printed (`check/text.rs`, `check/outline.rs`,
//! `check/cases.rs`), and exit codes (`check/exit.rs`).

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

/// How long the clean-up may take, in operations that take as long as they may.
const CLEAN_UP_OPERATIONS: u32 = 2;

/// Prove a broker conformant, or show where it is not.
#[derive(Args)]
#[command(after_help = exit::EXIT_CODES)]
pub(crate) struct CheckArgs {
    /// The broker's URL: everything before /v2
    #[arg(value_name = "URL", required_unless_present_any = ["list_cases", "reference"])]
    url: Option<String>,
    #[command(flatten)]
    connect: connect::ConnectArgs,
    /// Walks only this offering, by name or id; may be given several times
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Walks only this plan, by name, id or service/plan; may be given several times
    #[arg(long, value_name = "NAME")]
    plan: Vec<String>,
    /// Reads parameters from a file of JSON or YAML: {service/plan: {provision: {...}, update: {...}, bind: {...}}}
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Reads the catalog and tells what would be done, and does nothing else
    #[arg(long)]
    dry_run: bool,
    /// How long one asynchronous operation may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    operation_timeout: DurationText,
    /// How many plans are walked side by side
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Whose expectations count where they differ
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = ProfileName::V2_17)]
    profile: ProfileName,
    /// Which failures make the exit code 1; everything is checked and shown all the same
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LevelName::Must)]
    level: LevelName,
    /// How the report is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Writes the report to a file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Shows what passed and what was not applicable too
    #[arg(long, short)]
    verbose: bool,
    /// Lists every case with its line, its level and its rule, and ends
    #[arg(long)]
    list_cases: bool,
    /// Prints docs/check-cases.md and ends
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
    /// Only what breaks the specification
    Must,
    /// What it advises too
    Should,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A table and every failure, for people
    Text,
    /// Everything, for machines
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
