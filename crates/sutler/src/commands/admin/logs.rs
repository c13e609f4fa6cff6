//! `logs`: prints the log of an operation from its beginning, and follows it on demand.

use super::AdminOutput;
use super::client::{AdminClient, segment};
use super::error::AdminError;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

/// Pause between two requests while following.
const LOOK: Duration = Duration::from_millis(500);
/// Number of log chunks per request.
const PIECES: usize = 100;

/// Arguments of `logs`.
#[derive(Args)]
pub(super) struct LogArgs {
    /// The operation's id
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Follow the log until the operation has ended
    #[arg(long, short)]
    follow: bool,
}

pub(super) async fn run(
    client: &AdminClient,
    output: AdminOutput,
    args: &LogArgs,
) -> Result<(), AdminError> {
    let path = format!("operations/{}/log", segment(&args.operation));
    let mut next = String::from("0");
    let mut seen = PrintedLines::default();
    loop {
        let query = [("after", next.clone()), ("limit", PIECES.to_string())];
        let page = client.get(&path, &query).await?;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        for item in &items {
            match output {
                AdminOutput::Json => print(&format!("{item}\n"))?,
                AdminOutput::Table | AdminOutput::Name => print(&seen.fresh(item))?,
            }
        }
        page["next"].as_str().unwrap_or("0").clone_into(&mut next);
        let ended = page["ended"].as_bool().unwrap_or(true);
        match (items.is_empty(), ended || !args.follow) {
            (true, true) => return Ok(()),
            (true, false) => tokio::time::sleep(LOOK).await,
            (false, _) => {}
        }
    }
}

fn print(text: &str) -> Result<(), AdminError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| AdminError::Failed("cannot print".to_owned(), Some(error.into())))
}

/// Printed length per attempt: chunks may overlap if two workers wrote.
#[derive(Default)]
struct PrintedLines(BTreeMap<u64, u64>);

impl PrintedLines {
    /// The unprinted part of a chunk, with a heading at the beginning of each attempt.
    fn fresh(&mut self, item: &Value) -> String {
        let attempt = item["attempt"].as_u64().unwrap_or(1);
        let from = item["from"].as_u64().unwrap_or(0);
        let text = item["text"].as_str().unwrap_or_default();
        let is_new = !self.0.contains_key(&attempt) && attempt > 1;
        let until = self.0.entry(attempt).or_default();
        let skip = usize::try_from(until.saturating_sub(from)).unwrap_or(usize::MAX);
        let rest = &text[text.ceil_char_boundary(skip.min(text.len()))..];
        *until = (*until).max(from + text.len() as u64);
        match is_new {
            true => format!("--- attempt {attempt}\n{rest}"),
            false => rest.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PrintedLines;
    use serde_json::json;

    #[test]
    fn output_written_by_two_workers_is_printed_once() {
        let mut seen = PrintedLines::default();
        let mut shown = String::new();
        for (attempt, from, text) in [
            (1, 0, "one\n"),
            (1, 4, "two\n"),
            (1, 0, "one\ntwo\nthree\n"),
            (2, 0, "again\n"),
            (1, 8, "three\n"),
        ] {
            let piece = json!({ "attempt": attempt, "from": from, "text": text });
            shown.push_str(&seen.fresh(&piece));
        }
        assert_eq!(shown, "one\ntwo\nthree\n--- attempt 2\nagain\n");
    }
}
