//! `sutler store migrate`: migrates a store to the current layout. Every store does this when it is opened; this
//! command does only that, before brokers of a new version start.

use super::target_store::{TargetStoreArgs, URLS};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use sutler_journal::Layout;

/// Arguments of `store migrate`.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\nExit codes: 0 the layout is up to date, 1 it is not, 2 wrong usage."))]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    chosen: TargetStoreArgs,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

pub(super) async fn run(args: MigrateArgs) -> Result<ExitCode, BoxError> {
    let found = args.chosen.open().await?;
    let layout = found.store.info().await?.layout;
    match args.output {
        StoreOutput::Table => say(&format!("{}\n", sentence(&found.name, layout)))?,
        StoreOutput::Json => {
            let (from, to) = (layout.found, layout.now);
            say_json(&json!({ "store": found.name, "from": from, "to": to }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sentence(name: &str, Layout { found, now }: Layout) -> String {
    match found {
        0 => format!("{name}: was empty, made with layout {now}"),
        found if found == now => format!("{name}: has layout {now}, the newest one; nothing to do"),
        found => format!("{name}: brought from layout {found} to {now}"),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use sutler_journal::Layout;

    #[test]
    fn the_old_and_the_new_layout_are_printed() {
        let text = |found, now| sentence("etcd://a/b", Layout { found, now });
        assert_eq!(text(0, 2), "etcd://a/b: was empty, made with layout 2");
        assert_eq!(text(1, 2), "etcd://a/b: brought from layout 1 to 2");
        let same = "etcd://a/b: has layout 2, the newest one; nothing to do";
        assert_eq!(text(2, 2), same);
    }
}
