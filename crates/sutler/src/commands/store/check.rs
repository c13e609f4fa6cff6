//! `sutler store check`: checks the consistency of a store. Brokers may use a store on a server meanwhile; the broker of
//! an SQLite file must be stopped.

use super::target_store::{self, TargetStoreArgs, URLS};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use crate::commands::progress_bar::progress_bar;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use sutler::PLATFORM_REALM;
use sutler_broker::DocumentOpener;
use sutler_journal::inspect::{CheckReport, Finding, RealmReaders, Severity, check};
use sutler_platform::store_inspection::PlatformDocumentOpener;

/// Exit code if the store could not be checked.
pub(super) const NOT_CHECKED: u8 = 2;

const EXIT_CODES: &str = "Exit codes: 0 everything holds, 1 something does not, 2 it could not be checked \
or wrong usage. Notices do not count.";

/// Arguments of `store check`.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\n{EXIT_CODES}"))]
pub(crate) struct StoreCheckArgs {
    #[command(flatten)]
    chosen: TargetStoreArgs,
    /// The keys that seal the store [default: as in the configuration, or the database's name with .key]
    #[arg(long, value_name = "FILE", conflicts_with = "sealed")]
    key_file: Option<PathBuf>,
    /// Skip sealed contents, and with them the references of documents: no keys are needed
    #[arg(long)]
    sealed: bool,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

pub(super) async fn run(args: StoreCheckArgs) -> Result<ExitCode, BoxError> {
    args.chosen.must_exist()?;
    let found = args.chosen.open().await?;
    let readers = match args.sealed {
        true => None,
        false => {
            let path = args.key_file.or(found.keys);
            let path = path.ok_or(
                "name the keys of the store with --key-file, or leave out what is sealed with --sealed",
            )?;
            let broker = DocumentOpener::new(target_store::keys(&path)?);
            let platform = PlatformDocumentOpener::new(Arc::new(target_store::keys(&path)?));
            Some(RealmReaders::of_others(broker).with(PLATFORM_REALM, platform))
        }
    };
    let (info, stats) = (found.store.info().await?, found.store.stats().await?);
    let bar = progress_bar(info.documents + stats.live + stats.terminal);
    bar.set_message("read");
    let seen = |documents, operations| bar.set_position(documents + operations);
    let checked = check(&found.store, readers.as_ref(), &seen).await;
    bar.finish_and_clear();
    let checked = checked?;
    match args.output {
        StoreOutput::Table => say(&text(&found.name, &checked))?,
        StoreOutput::Json => say_json(&value(&found.name, &checked))?,
    }
    Ok(match checked.has_faults() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn text(name: &str, checked: &CheckReport) -> String {
    let CheckReport {
        documents,
        operations,
        findings,
    } = checked;
    let faults = findings.iter().filter(|it| it.verdict() == Severity::Fault);
    let mut text = format!("{name}: read {documents} documents and {operations} operations\n");
    for finding in findings {
        text += &format!("{}: {finding}\n", verdict(finding));
    }
    text + &match faults.count() {
        0 => "everything holds\n".to_owned(),
        1 => "1 fault\n".to_owned(),
        more => format!("{more} faults\n"),
    }
}

fn verdict(finding: &Finding) -> &'static str {
    match finding.verdict() {
        Severity::Notice => "notice",
        Severity::Fault => "fault",
    }
}

fn value(name: &str, checked: &CheckReport) -> serde_json::Value {
    let findings = checked.findings.iter().map(
        |it| json!({ "verdict": verdict(it), "finding": it.word(), "message": it.to_string() }),
    );
    json!({
        "store": name,
        "documents": checked.documents,
        "operations": checked.operations,
        "holds": !checked.has_faults(),
        "findings": findings.collect::<Vec<_>>(),
    })
}
