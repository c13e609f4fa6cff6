//! `sutler store rekey`: seals a store with the current key. Brokers may use a store on a server meanwhile; the broker of
//! an SQLite file must be stopped, or use `sutler admin rekey`. The journal does the work (`sutler_journal::rekey`);
//! here are flags, progress, signals and the final message.

use super::key_usage::{PassBar, value, words};
use super::target_store::{self, TargetStoreArgs, URLS};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use sutler_journal::rekey::{RecordCounts, RekeyProgress, RekeyReport, rekey};
use tokio::sync::watch;

/// Exit code if others still write with an older key.
const NOT_SETTLED: u8 = 3;
/// Exit code of an interrupted run.
const INTERRUPTED: u8 = 130;

const EXIT_CODES: &str = "Brokers may run meanwhile. An SQLite file belongs to one process: while its broker runs, use \
`sutler admin rekey`. An interrupted run is continued by the same command.

Exit codes: 0 nothing needs an older key; 1 failed, or records cannot be opened or are too large; 2 wrong usage; 3 brokers still \
write with an older key; 130 interrupted.";

/// Arguments of `store rekey`.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\n{EXIT_CODES}"))]
pub(crate) struct RekeyArgs {
    #[command(flatten)]
    chosen: TargetStoreArgs,
    /// The keys that seal the store [default: as in the configuration, or the database's name with .key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

/// End of a run.
enum RekeyEnd {
    Ended(RekeyReport),
    Interrupted(RecordCounts),
}

/// Everything that is printed.
struct RekeyResult {
    store: String,
    key: String,
    end: RekeyEnd,
}

pub(super) async fn run(args: RekeyArgs) -> Result<ExitCode, BoxError> {
    args.chosen.must_exist()?;
    let path = args.chosen.key_file(args.key_file.as_deref())?;
    let keys = Arc::new(target_store::keys(&path)?);
    let found = args
        .chosen
        .open_or_suggest("sutler admin rekey --wait")
        .await?;
    let (progress, receiver) = watch::channel(RekeyProgress::default());
    let bar = PassBar::start(&*found.store, receiver).await?;
    let ended = tokio::select! {
        ended = rekey(&found.store, &keys, &progress) => ended.map(RekeyEnd::Ended),
        _ = tokio::signal::ctrl_c() => Ok(RekeyEnd::Interrupted(progress.borrow().resealed)),
    };
    bar.stop().await;
    let resealed = progress.borrow().resealed;
    let failed = |cause| {
        let done = words(resealed);
        format!(
            "the store did not answer after {done} were sealed again; repeat the command to continue: {cause}"
        )
    };
    let result = RekeyResult {
        store: found.name,
        key: keys.current().to_string(),
        end: ended.map_err(failed)?,
    };
    match args.output {
        StoreOutput::Table => say(&text(&result))?,
        StoreOutput::Json => say_json(&json(&result))?,
    }
    Ok(match &result.end {
        RekeyEnd::Interrupted(_) => INTERRUPTED.into(),
        RekeyEnd::Ended(report) if report.is_complete() => ExitCode::SUCCESS,
        RekeyEnd::Ended(report) if report.failed > 0 => ExitCode::FAILURE,
        RekeyEnd::Ended(_) => NOT_SETTLED.into(),
    })
}

fn text(RekeyResult { store, key, end }: &RekeyResult) -> String {
    let report = match end {
        RekeyEnd::Interrupted(resealed) => {
            let done = words(*resealed);
            return format!(
                "interrupted: {done} are sealed with {key} now; repeat the command to continue\n"
            );
        }
        RekeyEnd::Ended(report) => report,
    };
    let mut text = match report.resealed.total() {
        0 => format!("{store}: nothing to do\n"),
        _ => format!("{store}: sealed {} with {key}\n", words(report.resealed)),
    };
    for failure in &report.failures {
        text += &format!("not sealed: {}: {}\n", failure.record, failure.reason);
    }
    let more = report.failed - report.failures.len() as u64;
    if more > 0 {
        text += &format!("not sealed: {more} more\n");
    }
    for (older, counts) in &report.left {
        text += &format!("{older} still seals {}\n", words(*counts));
    }
    text + &match (report.is_complete(), report.failed) {
        (true, _) => format!(
            "{} are sealed with {key}, and nothing needs another key. Retire the others with `sutler store keys retire`.\nBackups that were made before still need them: keep a copy of the key file with those.\n",
            words(report.seen)
        ),
        (false, 0) => format!(
            "brokers still write with an older key: let all of them read the key file in which {key} is current (SIGHUP), then run the same command\n"
        ),
        (false, _) => {
            "run `sutler store check` about the records that were not sealed\n".to_owned()
        }
    }
}

fn json(RekeyResult { store, key, end }: &RekeyResult) -> serde_json::Value {
    let (state, report) = match end {
        RekeyEnd::Interrupted(resealed) => {
            let resealed = value(*resealed);
            return json!({ "store": store, "key": key, "state": "interrupted", "resealed": resealed });
        }
        RekeyEnd::Ended(report) if report.is_complete() => ("complete", report),
        RekeyEnd::Ended(report) if report.failed > 0 => ("failed", report),
        RekeyEnd::Ended(report) => ("not_settled", report),
    };
    let left = report.left.iter();
    let left: serde_json::Map<_, _> = left
        .map(|(key, counts)| (key.to_string(), value(*counts)))
        .collect();
    let failures = report.failures.iter();
    let failures = failures.map(|it| json!({ "record": it.record, "reason": it.reason }));
    json!({
        "store": store,
        "key": key,
        "state": state,
        "read": value(report.seen),
        "resealed": value(report.resealed),
        "left": left,
        "failed": report.failed,
        "failures": failures.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{RekeyEnd, RekeyResult, json, text};
    use sutler_journal::KeyId;
    use sutler_journal::rekey::{RecordCounts, RekeyFailure, RekeyReport};

    fn result(report: RekeyReport) -> RekeyResult {
        RekeyResult {
            store: "etcd://a/b".to_owned(),
            key: "k2".to_owned(),
            end: RekeyEnd::Ended(report),
        }
    }

    #[test]
    fn every_end_has_a_next_step() {
        let one = RecordCounts {
            documents: 1,
            ..RecordCounts::default()
        };
        let settled = RekeyReport {
            settled: true,
            seen: one,
            ..RekeyReport::default()
        };
        let shown = text(&result(settled.clone()));
        assert!(shown.starts_with("etcd://a/b: nothing to do\n"), "{shown}");
        assert!(shown.contains("sutler store keys retire"), "{shown}");
        let writers = RekeyReport {
            settled: false,
            resealed: one,
            ..settled.clone()
        };
        let shown = text(&result(writers.clone()));
        assert!(shown.contains("(SIGHUP)"), "{shown}");
        assert_eq!(json(&result(writers))["state"], "not_settled");
        let failed = RekeyReport {
            failed: 3,
            left: [(KeyId::parse("k1").expect("an id"), one)].into(),
            failures: vec![RekeyFailure {
                record: "instance i".to_owned(),
                reason: "damaged".to_owned(),
            }],
            ..settled
        };
        let shown = text(&result(failed.clone()));
        for part in [
            "not sealed: instance i: damaged\nnot sealed: 2 more\n",
            "k1 still seals 1 document, 0 operations and 0 log chunks\n",
            "`sutler store check`",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(json(&result(failed))["left"]["k1"]["documents"], 1);
        let interrupted = RekeyResult {
            end: RekeyEnd::Interrupted(one),
            ..result(RekeyReport::default())
        };
        assert!(text(&interrupted).contains("repeat the command to continue"));
        assert_eq!(json(&interrupted)["state"], "interrupted");
    }
}
