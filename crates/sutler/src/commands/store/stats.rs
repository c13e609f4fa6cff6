//! `sutler store stats`: counts documents, operations and leases of a store.

use super::target_store::{TargetStoreArgs, URLS};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use crate::commands::progress_bar::progress_bar;
use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use sutler_journal::inspect::{StoreCounts, count_all};
use sutler_journal::{Stats, StoreInfo, StoreTime};

/// Arguments of `store stats`.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\nExit codes: 0 done, 1 failed, 2 wrong usage."))]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    chosen: TargetStoreArgs,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

/// Everything that is printed.
struct StatsReport {
    name: String,
    counts: StoreCounts,
    stats: Stats,
    info: StoreInfo,
    now: StoreTime,
}

pub(super) async fn run(args: StatsArgs) -> Result<ExitCode, BoxError> {
    args.chosen.must_exist()?;
    let found = args.chosen.open().await?;
    let store = &*found.store;
    let (info, stats) = (store.info().await?, store.stats().await?);
    let bar = progress_bar(info.documents + stats.live + stats.terminal);
    bar.set_message("counted");
    let seen = |documents, operations| bar.set_position(documents + operations);
    let counted = count_all(store, &seen).await;
    bar.finish_and_clear();
    let report = StatsReport {
        name: found.name,
        counts: counted?,
        stats,
        info,
        now: store.now().await?,
    };
    match args.output {
        StoreOutput::Table => say(&table(&report))?,
        StoreOutput::Json => say_json(&value(&report))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &StatsReport) -> String {
    let mut text = format!("{}\n", report.name);
    let mut documents = plain();
    documents.set_header(["REALM", "KIND", "DOCUMENTS"]);
    for ((realm, kind), count) in &report.counts.documents {
        documents.add_row([realm.clone(), kind.clone(), count.to_string()]);
    }
    text += &trimmed(documents, 2);
    let mut operations = plain();
    operations.set_header(["OPERATIONS", ""]);
    for (word, count) in &report.counts.operations {
        operations.add_row([(*word).to_owned(), count.to_string()]);
    }
    operations.add_row([
        "accepted ever".to_owned(),
        report.stats.accepted.to_string(),
    ]);
    operations.add_row(["cleaned up".to_owned(), report.stats.cleaned.to_string()]);
    text += &trimmed(operations, 1);
    let StoreInfo {
        layout,
        leases,
        leases_over,
        abandoned,
        feed,
        bytes,
        ..
    } = report.info;
    let mut store = plain();
    store.set_header(["STORE", ""]);
    for (name, value) in [
        ("layout", layout.now.to_string()),
        ("size", bytes.map_or("unknown".to_owned(), size)),
        ("commits in the feed", feed.to_string()),
        ("workers with a lease", leases.to_string()),
        ("leases that ran out", leases_over.to_string()),
        ("running without a lease", abandoned.to_string()),
        ("oldest unfinished", oldest(report)),
    ] {
        store.add_row([name.to_owned(), value]);
    }
    text + &trimmed(store, usize::MAX)
}

fn oldest(report: &StatsReport) -> String {
    match &report.counts.oldest {
        Some(it) => format!(
            "{} {} of {} {}, for {}",
            it.verb,
            it.id,
            it.lane.kind(),
            it.lane.id(0).escape_debug(),
            age(report.now.since(it.accepted))
        ),
        None => "none".to_owned(),
    }
}

fn value(report: &StatsReport) -> Value {
    let documents = report.counts.documents.iter();
    let documents = documents
        .map(|((realm, kind), count)| json!({ "realm": realm, "kind": kind, "documents": count }));
    let oldest = report.counts.oldest.as_ref().map(|it| {
        json!({
            "operation": it.id.to_string(),
            "verb": it.verb,
            "realm": it.lane.realm(),
            "kind": it.lane.kind(),
            "id": it.lane.id(0),
            "age_seconds": report.now.since(it.accepted).as_secs(),
        })
    });
    let info = &report.info;
    json!({
        "store": report.name,
        "layout": info.layout.now,
        "documents": documents.collect::<Vec<_>>(),
        "operations": report.counts.operations,
        "accepted": report.stats.accepted,
        "cleaned": report.stats.cleaned,
        "oldest_unfinished": oldest,
        "leases": info.leases,
        "leases_over": info.leases_over,
        "running_without_lease": info.abandoned,
        "feed_commits": info.feed,
        "bytes": info.bytes,
    })
}

/// A duration in the largest unit that fits twice.
fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A size in the largest unit that fits ten times.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes / KIB),
        10_485_760..10_737_418_240 => format!("{} MiB", bytes / KIB / KIB),
        _ => format!("{} GiB", bytes / KIB / KIB / KIB),
    }
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Removes trailing blanks, adds an empty line in front, and aligns one column to the right.
fn trimmed(mut table: Table, numbers: usize) -> String {
    if let Some(column) = table.column_mut(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().fold("\n".to_owned(), |text, line| {
        let line = line.strip_prefix(' ').unwrap_or(&line);
        text + line.trim_end() + "\n"
    })
}

#[cfg(test)]
mod tests {
    use super::{age, size};
    use std::time::Duration;

    #[test]
    fn ages_and_sizes_are_round() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (7199, "119m"),
            (7200, "2h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
        for (bytes, expected) in [
            (10, "10 B"),
            (10_240, "10 KiB"),
            (20 << 20, "20 MiB"),
            (11 << 30, "11 GiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
