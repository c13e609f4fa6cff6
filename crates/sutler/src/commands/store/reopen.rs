//! `sutler store reopen`: makes a store usable again that was moved by `sutler store copy`. The mark and its meaning are
//! in `sutler_journal::copy`.

use super::target_store::{TargetStoreArgs, URLS};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `store reopen`.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\nExit codes: 0 a broker can use the store, 1 failed, 2 wrong usage."))]
pub(crate) struct ReopenArgs {
    #[command(flatten)]
    chosen: TargetStoreArgs,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

pub(super) async fn run(args: ReopenArgs) -> Result<ExitCode, BoxError> {
    args.chosen.must_exist()?;
    let found = args.chosen.open().await?;
    let moved_to = sutler_journal::copy::reopen(found.store.as_ref()).await?;
    match args.output {
        StoreOutput::Table => say(&text(&found.name, moved_to.as_deref()))?,
        StoreOutput::Json => {
            say_json(&json!({ "store": found.name, "was_moved_to": moved_to }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(name: &str, moved_to: Option<&str>) -> String {
    match moved_to {
        Some(to) => format!(
            "{name} can be used again.\nStart no broker on {to}, which holds a copy: it would run the same operations.\n"
        ),
        None => format!("{name}: was not moved; nothing to do\n"),
    }
}
