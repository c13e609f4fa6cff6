//! `sutler bundle check`: prints all faults of a bundle, as text or JSON.
//!
//! The rules are in `sutler-bundle`.

use super::FolderArgs;
use crate::commands::complain;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use sutler_bundle::{Inspection, InspectionFinding, Severity};

#[derive(Args)]
pub(super) struct BundleCheckArgs {
    #[command(flatten)]
    bundle: FolderArgs,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t = CheckOutput::Text)]
    output: CheckOutput,
    /// Count warnings as faults
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckOutput {
    /// A line for each finding, in the format of compilers
    Text,
    /// JSON with all details
    Json,
}

pub(super) fn run(args: &BundleCheckArgs) -> ExitCode {
    let folder = &args.bundle.folder;
    let inspection = match sutler_bundle::inspect(folder) {
        Ok(inspection) => inspection,
        Err(fault) => {
            complain(&fault);
            return ExitCode::FAILURE;
        }
    };
    let text = match args.output {
        CheckOutput::Text => lines(&inspection, folder),
        CheckOutput::Json => format!("{:#}\n", document(&inspection)),
    };
    let written = std::io::stdout().write_all(text.as_bytes());
    let errors = inspection.count(Severity::Error);
    let warnings = inspection.count(Severity::Warning);
    let fine = errors == 0 && (warnings == 0 || !args.strict);
    match written {
        Ok(()) if fine => ExitCode::SUCCESS,
        Ok(()) | Err(_) => ExitCode::FAILURE,
    }
}

fn lines(inspection: &Inspection, folder: &Path) -> String {
    let found = inspection.findings.iter();
    let found: String = found.map(|it| format!("{}\n", it.line())).collect();
    let name = match &inspection.manifest {
        Some(manifest) => manifest.name.clone(),
        None => folder.display().to_string(),
    };
    let count = |severity, word: &str| match inspection.count(severity) {
        1 => format!("1 {word}"),
        many => format!("{many} {word}s"),
    };
    let (errors, warnings) = (
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
    );
    format!("{found}{name}: {errors}, {warnings}\n")
}

fn document(inspection: &Inspection) -> Value {
    let one = |it: &InspectionFinding| {
        json!({
            "severity": it.severity.as_str(),
            "file": it.file,
            "line": it.place.map(|place| place.line),
            "column": it.place.map(|place| place.column),
            "message": it.message,
        })
    };
    let manifest = inspection.manifest.as_ref();
    let findings: Vec<Value> = inspection.findings.iter().map(one).collect();
    json!({
        "manifest": inspection.file,
        "name": manifest.map(|it| &it.name),
        "version": manifest.and_then(|it| it.bundle_version.as_ref()),
        "errors": inspection.count(Severity::Error),
        "warnings": inspection.count(Severity::Warning),
        "findings": findings,
    })
}
