//! `logs`: prints the log of an operation from its beginning, and follows it on demand.

use super::AdminOutput;
use super::client::{AdminClient, segment};
use super::error::AdminError;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::ops::Range;
use std::time::Duration;

/// Pause between two requests while following.
const LOOK: Duration = Duration::from_millis(500);
/// Number of log chunks per request.
const CHUNKS: usize = 100;

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
        let query = [("after", next.clone()), ("limit", CHUNKS.to_string())];
        let page = client.get(&path, &query).await?;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        for item in &items {
            match output {
                AdminOutput::Json => print(&format!("{item}\n"))?,
                AdminOutput::Table | AdminOutput::Name => {
                    let text = seen.fresh(item);
                    match std::io::stdout().is_terminal() {
                        true => print(&without_control_characters(&text))?,
                        false => print(&text)?,
                    }
                }
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

/// A log for a terminal: control characters of a run are escaped, except for line breaks and tabs. They could hide
/// lines or change the terminal.
fn without_control_characters(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Printed parts per attempt: chunks may overlap if two workers wrote, and a chunk may be missing.
#[derive(Default)]
struct PrintedLines(BTreeMap<u64, Vec<Range<u64>>>);

impl PrintedLines {
    /// The unprinted parts of a chunk. A heading marks the beginning of an attempt, a gap, and a part that is
    /// out of order.
    fn fresh(&mut self, item: &Value) -> String {
        let attempt = item["attempt"].as_u64().unwrap_or(1);
        let from = item["from"].as_u64().unwrap_or(0);
        let text = item["text"].as_str().unwrap_or_default();
        let later = self.0.keys().next_back().is_some_and(|it| *it > attempt);
        let is_new = !self.0.contains_key(&attempt) && attempt > 1 && !later;
        let printed = self.0.entry(attempt).or_default();
        let mut shown = match is_new {
            true => format!("--- attempt {attempt}\n"),
            false => String::new(),
        };
        for part in unprinted(printed, from..from + text.len() as u64) {
            let end = printed.iter().map(|it| it.end).max().unwrap_or(0);
            if later || part.start < end {
                let at = part.start;
                shown += &format!("--- out of order: attempt {attempt} from byte {at}\n");
            } else if part.start > end {
                shown += &format!("--- missing: {} bytes\n", part.start - end);
            }
            shown += slice(text, part.start - from, part.end - from);
            printed.push(part);
        }
        shown
    }
}

/// The parts of a range that no printed range has.
fn unprinted(printed: &[Range<u64>], whole: Range<u64>) -> Vec<Range<u64>> {
    let mut sorted = printed.to_vec();
    sorted.sort_unstable_by_key(|it| it.start);
    let (mut parts, mut at) = (Vec::new(), whole.start);
    for range in sorted {
        parts.push(at..range.start.min(whole.end));
        at = at.max(range.end);
    }
    parts.push(at..whole.end);
    parts.retain(|part| part.start < part.end);
    parts
}

/// A part of a text, cut between characters.
fn slice(text: &str, from: u64, to: u64) -> &str {
    let at = |n: u64| {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        text.ceil_char_boundary(n.min(text.len()))
    };
    text.get(at(from)..at(to)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::PrintedLines;
    use serde_json::json;

    fn printed(chunks: &[(u64, u64, &str)]) -> String {
        let mut seen = PrintedLines::default();
        let chunks = chunks.iter().map(|(attempt, from, text)| {
            seen.fresh(&json!({ "attempt": attempt, "from": from, "text": text }))
        });
        chunks.collect()
    }

    #[test]
    fn control_characters_of_a_run_do_not_reach_a_terminal() {
        let shown = super::without_control_characters("a\tb\r\n\u{1b}]0;x\u{7}c\rd\u{9b}1m\n");
        assert_eq!(shown, "a\tb\n\\u{1b}]0;x\\u{7}c\\rd\\u{9b}1m\n");
    }

    #[test]
    fn output_written_by_two_workers_is_printed_once() {
        let shown = printed(&[
            (1, 0, "one\n"),
            (1, 4, "two\n"),
            (1, 0, "one\ntwo\nthree\n"),
            (2, 0, "again\n"),
            (1, 8, "three\n"),
        ]);
        assert_eq!(shown, "one\ntwo\nthree\n--- attempt 2\nagain\n");
    }

    #[test]
    fn chunks_that_were_moved_or_removed_are_marked_and_nothing_is_left_out() {
        let moved = printed(&[(1, 4, "two\n"), (1, 0, "one\n"), (1, 8, "three\n")]);
        assert_eq!(
            moved,
            "--- missing: 4 bytes\ntwo\n--- out of order: attempt 1 from byte 0\none\nthree\n"
        );
        let removed = printed(&[(1, 0, "one\n"), (1, 8, "three\n"), (2, 0, "again\n")]);
        assert_eq!(
            removed,
            "one\n--- missing: 4 bytes\nthree\n--- attempt 2\nagain\n"
        );
        let late = printed(&[(2, 0, "again\n"), (1, 0, "one\n")]);
        assert_eq!(
            late,
            "--- attempt 2\nagain\n--- out of order: attempt 1 from byte 0\none\n"
        );
    }
}
