//! `sutler store copy`: copies one store into another. Brokers may use a source on a server meanwhile; the broker of an
//! SQLite file must be stopped. The journal copies (`sutler_journal::copy`); here are flags, progress, signals and the
//! final message.

use super::target_store::{self, URLS, must_exist, url};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use crate::commands::progress_bar::progress_bar;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use sutler::StoreUrl;
use sutler_journal::copy::{CopyError, CopyNames, CopyProgress, CopyReport, CopyStep, StoreCopy};
use sutler_journal::{Store, StoreError};
use tokio::sync::watch;

/// The exit code of a copy that caught up and is not finished.
const NOT_FINISHED: u8 = 3;
/// The exit code of a copy that was interrupted.
const INTERRUPTED: u8 = 130;

const EXIT_CODES: &str = "Exit codes: 0 finished, both stores hold the same; 1 failed; 2 wrong usage; 3 caught \
up, to be finished when the source is stopped; 130 interrupted. The same command continues an unfinished copy.";

/// Source and target of a copy.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\n{EXIT_CODES}"))]
pub(crate) struct CopyArgs {
    /// The source; brokers may use a store on a server meanwhile, the broker of an SQLite file must be stopped
    #[arg(long, value_name = "URL", env = "SUTLER_COPY_FROM", hide_env_values = true, value_parser = url)]
    from: StoreUrl,
    /// The target: an empty store, or one with an unfinished copy of the same source
    #[arg(long, value_name = "URL", env = "SUTLER_COPY_TO", hide_env_values = true, value_parser = url)]
    to: StoreUrl,
    /// Finish the copy: the brokers on the source are stopped, and the next ones start on the target. If no worker holds a
    /// lease in the source, the copy is finished without it, too
    #[arg(long)]
    finish: bool,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

/// Result of a copy.
#[derive(Debug, PartialEq, Eq)]
enum CopyResult {
    Finished(CopyReport),
    /// Progress, and the number of workers that still hold leases in the source.
    CaughtUp(CopyProgress, u64),
    Interrupted(CopyProgress),
}

pub(super) async fn run(args: CopyArgs) -> Result<ExitCode, BoxError> {
    must_exist(&args.from)?;
    let (source, from) = target_store::open(&args.from).await?;
    let (target, to) = target_store::open(&args.to).await?;
    if from == to {
        return Err("--from and --to name the same store: name an empty one with --to".into());
    }
    let info = source.info().await.map_err(unanswered)?;
    let stats = source.stats().await.map_err(unanswered)?;
    let names = CopyNames {
        source: &from,
        target: &to,
    };
    let mut copying = StoreCopy::begin(Arc::clone(&source), target, names).await?;
    let progress = copying.progress();
    let everything = info.documents + stats.live + stats.terminal;
    let drawing = tokio::spawn(draw(progress.clone(), everything));
    let ended = tokio::select! {
        ended = work(&mut copying, &*source, args.finish) => ended,
        _ = tokio::signal::ctrl_c() => Ok(CopyResult::Interrupted(*progress.borrow())),
    };
    drawing.abort();
    // The task clears its bar when it is dropped.
    let _ = drawing.await;
    let ended = ended?;
    match args.output {
        StoreOutput::Table => say(&text(&from, &to, &ended))?,
        StoreOutput::Json => say_json(&value(&from, &to, &ended))?,
    }
    Ok(match ended {
        CopyResult::Finished(_) => ExitCode::SUCCESS,
        CopyResult::CaughtUp(..) => NOT_FINISHED.into(),
        CopyResult::Interrupted(_) => INTERRUPTED.into(),
    })
}

fn unanswered(cause: StoreError) -> BoxError {
    format!("the source did not answer: {cause}").into()
}

/// Copies; finishes if requested, or if no worker holds a lease in the source.
async fn work(
    copying: &mut StoreCopy,
    source: &dyn Store,
    finish: bool,
) -> Result<CopyResult, CopyError> {
    if let Some(finished) = copying.finished() {
        return Ok(CopyResult::Finished(finished.clone()));
    }
    copying.catch_up().await?;
    let info = source.info().await;
    let side = sutler_journal::copy::Side::Source;
    let leases = info
        .map_err(|cause| CopyError::Store { side, cause })?
        .leases;
    if !finish && leases > 0 {
        let progress = *copying.progress().borrow();
        return Ok(CopyResult::CaughtUp(progress, leases));
    }
    copying.finish().await.map(CopyResult::Finished)
}

/// Clears its bar when it is dropped.
struct ClearOnDrop(indicatif::ProgressBar);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

async fn draw(mut progress: watch::Receiver<CopyProgress>, everything: u64) {
    let bar = ClearOnDrop(progress_bar(everything));
    loop {
        let now = *progress.borrow_and_update();
        let (word, done) = match now.step {
            CopyStep::Beginning => ("looking for the end of the feed", 0),
            CopyStep::Documents => ("copied (documents)", now.documents),
            CopyStep::Operations => ("copied (operations)", now.documents + now.operations),
            CopyStep::Following => ("copied, changes followed", now.documents + now.operations),
            CopyStep::Comparing => ("compared", now.compared),
        };
        bar.0.set_message(word);
        bar.0.set_position(done.min(everything));
        if progress.changed().await.is_err() {
            return;
        }
    }
}

fn text(from: &str, to: &str, ended: &CopyResult) -> String {
    match ended {
        CopyResult::Finished(CopyReport {
            documents,
            operations,
            digest,
        }) => format!(
            "finished: {from} and {to} held the same\n  {documents} documents, {operations} operations\n  sha256 {digest}\nStart the brokers on the target, with the same keys. Brokers refuse the source from now on.\n"
        ),
        CopyResult::CaughtUp(progress, leases) => format!(
            "caught up: {} documents, {} operations that ended, {} changes followed\nWorkers still hold leases in the source ({leases}). Stop the brokers on it, then finish:\n  sutler store copy --from ... --to ... --finish\n",
            progress.documents, progress.operations, progress.changes
        ),
        CopyResult::Interrupted(progress) => format!(
            "interrupted: {} documents and {} operations are copied; run the same command to continue\n",
            progress.documents, progress.operations
        ),
    }
}

fn value(from: &str, to: &str, ended: &CopyResult) -> serde_json::Value {
    let (state, documents, operations) = match ended {
        CopyResult::Finished(it) => ("finished", it.documents, it.operations),
        CopyResult::CaughtUp(it, _) => ("caught_up", it.documents, it.operations),
        CopyResult::Interrupted(it) => ("interrupted", it.documents, it.operations),
    };
    let digest = match ended {
        CopyResult::Finished(it) => Some(&it.digest),
        CopyResult::CaughtUp(..) | CopyResult::Interrupted(_) => None,
    };
    json!({
        "from": from,
        "to": to,
        "state": state,
        "documents": documents,
        "operations": operations,
        "sha256": digest,
    })
}
