//! `sutler admin rekey`: lets the running broker seal its store with the current key, and follows it on demand.
//!
//! The run belongs to the broker: it continues if this command ends. `sutler store rekey` does the same without a broker.

use super::AdminOutput;
use super::actions::{self, ReasonArgs};
use super::client::AdminClient;
use super::error::AdminError;
use super::list::{print, shown};
use crate::commands::progress_bar::progress_bar;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::Value;
use std::time::Duration;

/// Interval between two checks whether a rekey is over.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Arguments of `rekey`.
#[derive(Args)]
#[command(
    after_help = "The broker must seal with the new key already (`sutler store keys use`, SIGHUP). The run continues \
if this command ends; a second command joins it, and after a stop of the broker the next one continues it.

Exit codes: 0 started, or with --wait nothing needs an older key; 1 failed, or brokers still write with an older key; \
2 wrong usage."
)]
pub(super) struct RekeyArgs {
    #[command(flatten)]
    why: ReasonArgs,
    /// Wait for the end, and show the progress
    #[arg(long)]
    wait: bool,
    /// Start nothing: show the state of the last run
    #[arg(long, conflicts_with = "wait")]
    status: bool,
}

pub(super) async fn run(
    client: &AdminClient,
    output: AdminOutput,
    args: &RekeyArgs,
) -> Result<(), AdminError> {
    if args.status {
        let state = client.get("rekey", &[]).await?;
        return show(output, &state);
    }
    let started = actions::post(client, "rekey", &args.why).await?;
    if !args.wait {
        return match output {
            AdminOutput::Json => shown(output, &started),
            AdminOutput::Table | AdminOutput::Name => print(
                "The broker seals its store with the current key; `sutler admin rekey --status` shows how far it is.\n",
            ),
        };
    }
    let ended = until_ended(client, started).await?;
    show(output, &ended)?;
    match ended["state"].as_str() {
        Some("complete") => Ok(()),
        Some("none") => Err(AdminError::failed(
            "the broker was restarted before the rekey ended; run the command again to continue",
        )),
        _ => Err(AdminError::failed(
            "the rekey is not complete; see above for the next step",
        )),
    }
}

/// Follows a run to its end.
async fn until_ended(client: &AdminClient, mut state: Value) -> Result<Value, AdminError> {
    let mut bar: Option<ProgressBar> = None;
    while state["state"] == "running" {
        // The number is known soon after the start.
        let expected = state["expected"].as_u64().unwrap_or_default();
        let bar = bar.get_or_insert_with(|| progress_bar(expected));
        bar.set_length(expected);
        bar.set_message(message(&state));
        bar.set_position(read(&state).min(expected));
        tokio::time::sleep(LOOK_AGAIN).await;
        state = client.get("rekey", &[]).await?;
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(state)
}

/// Documents and operations that were read.
fn read(state: &Value) -> u64 {
    let count = |kind: &str| state["read"][kind].as_u64().unwrap_or_default();
    count("documents") + count("operations")
}

fn message(state: &Value) -> String {
    let resealed = state["resealed"].as_object().into_iter().flatten();
    let resealed: u64 = resealed.filter_map(|(_, count)| count.as_u64()).sum();
    let again = match state["pass"].as_u64() {
        Some(0 | 1) | None => "read",
        Some(_) => "read again",
    };
    format!("{again}, {resealed} sealed again")
}

fn show(output: AdminOutput, state: &Value) -> Result<(), AdminError> {
    match output {
        AdminOutput::Json => shown(output, state),
        AdminOutput::Table | AdminOutput::Name => print(&text(state)),
    }
}

/// The state in sentences: every failure, every older key, and the next step.
fn text(state: &Value) -> String {
    let mut text = String::new();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let failures = state["failures"].as_array().map_or(&[][..], Vec::as_slice);
    for failure in failures {
        let (record, reason) = (word(&failure["record"]), word(&failure["reason"]));
        text += &format!("not sealed: {record}: {reason}\n");
    }
    let more = state["failed"].as_u64().unwrap_or_default();
    let more = more.saturating_sub(failures.len() as u64);
    if more > 0 {
        text += &format!("not sealed: {more} more\n");
    }
    for (key, counts) in state["left"].as_object().into_iter().flatten() {
        let counts = counts.as_object().into_iter().flatten();
        let total: u64 = counts.filter_map(|(_, count)| count.as_u64()).sum();
        text += &format!("{key} still seals {total} records\n");
    }
    text + &word(&state["description"]) + "\n"
}

#[cfg(test)]
mod tests {
    use super::{message, read, text};
    use serde_json::json;

    #[test]
    fn a_state_is_printed_with_its_failures_and_the_next_step() {
        let state = json!({
            "state": "failed", "description": "Records that cannot be sealed again: 3. Keep the old key.",
            "failed": 3, "failures": [{ "record": "instance i", "reason": "damaged" }],
            "left": { "k1": { "documents": 2, "operations": 1, "log_chunks": 0 } },
        });
        let expected = "\
not sealed: instance i: damaged
not sealed: 2 more
k1 still seals 3 records
Records that cannot be sealed again: 3. Keep the old key.
";
        assert_eq!(text(&state), expected);
    }

    #[test]
    fn progress_counts_what_was_read_and_sealed_again() {
        let state = json!({
            "pass": 2, "read": { "documents": 4, "operations": 3, "log_chunks": 9 },
            "resealed": { "documents": 1, "operations": 1, "log_chunks": 1 },
        });
        assert_eq!(read(&state), 7);
        assert_eq!(message(&state), "read again, 3 sealed again");
    }
}
