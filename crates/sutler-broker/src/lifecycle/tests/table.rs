//! Checks the rules against the tables in `tests/transitions/`: every row, and a row for every state and
//! every event. A row may name sets of states and of events; it is expanded here.
//!
//! The tables are the specification, written by hand; nothing generates them. A row that does not match is
//! an error in the row or in the rules. The words of the rows are defined in `table/instance.rs` and
//! `table/binding.rs`.

mod binding;
mod instance;

use super::fixtures::{CREATE, DELETE, NEW, UPDATE, change};
use crate::lifecycle::admin_command::{AdminCommand, FailedOperation, FailedUpdate};
use crate::lifecycle::{Effect, Reply, ResponseMode};
use crate::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::OperationId;

/// Widest line of a table, so that it can be read without scrolling.
const LINE_CHARS_MAX: usize = 160;

/// A row for one state and one event, expanded from a line for sets of both.
struct Row<'t> {
    number: usize,
    /// The line as it is written.
    text: &'t str,
    state: &'t str,
    event: &'t str,
    answer: &'t str,
    effects: &'t str,
    next: &'t str,
}

/// Decision of the rules for a row's state and event, in the table's words.
struct DecidedRow {
    answer: String,
    effects: String,
    /// The next state by the rules and the one by the row, if they differ.
    next_differs: Option<(String, String)>,
}

/// All differences between a table and the rules, and all errors of the table.
fn complaints(
    table: &str,
    states: &[&str],
    events: &[&str],
    seen: impl Fn(&Row) -> DecidedRow,
) -> Vec<String> {
    let (rows, mut complaints) = expand(table, states, events);
    let mut numbers = BTreeMap::new();
    for row in &rows {
        if let Some(earlier) = numbers.insert((row.state, row.event), row.number) {
            complaints.push(complaint_about(
                row,
                &format!("line {earlier} says it already"),
            ));
        } else {
            complaints.extend(compare(row, &seen(row)));
        }
    }
    for event in events {
        for state in states {
            if !numbers.contains_key(&(*state, *event)) {
                complaints.push(format!("no row for: {state} | {event}"));
            }
        }
    }
    complaints
}

/// The rows of a table, one for each state and event that its lines name, and errors of other lines.
///
/// A line without columns names events: those of the rows below it, together with such lines right
/// above it.
fn expand<'t>(
    table: &'t str,
    states: &[&'t str],
    events: &[&'t str],
) -> (Vec<Row<'t>>, Vec<String>) {
    let mut rows = Vec::new();
    let mut complaints = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    let mut after_row = true;
    for (index, text) in table.lines().enumerate() {
        let number = index + 1;
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        if text.contains('|') {
            after_row = true;
            match parse(number, text, states, &named) {
                Ok(parsed) => rows.extend(parsed),
                Err(complaint) => complaints.push(complaint),
            }
            continue;
        }
        if std::mem::take(&mut after_row) {
            named.clear();
        }
        let found = matching(text.trim(), events);
        if found.is_empty() {
            complaints.push(format!("line {number}: no such event\n  {text}"));
        }
        named.extend(found);
    }
    (rows, complaints)
}

/// Names that match a pattern: the name itself, or with a trailing `*` every name with that prefix.
fn matching<'t>(pattern: &str, names: &[&'t str]) -> Vec<&'t str> {
    let is_meant = |name: &&&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => **name == pattern,
    };
    names.iter().filter(is_meant).copied().collect()
}

fn parse<'t>(
    number: usize,
    text: &'t str,
    states: &[&'t str],
    events: &[&'t str],
) -> Result<Vec<Row<'t>>, String> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let [patterns, answer, effects, next, cites] = cells[..] else {
        return Err(format!("line {number} has not five columns: {text}"));
    };
    let complaint = |what: &str| Err(format!("line {number}: {what}\n  {}", text.trim_start()));
    if let Some(cite) = cites.split(", ").find(|cite| !is_cite(cite)) {
        return complaint(&format!("`{cite}` is not a source"));
    }
    if text.chars().count() > LINE_CHARS_MAX {
        return complaint(&format!("wider than {LINE_CHARS_MAX} columns"));
    }
    let mut rows = Vec::new();
    for pattern in patterns.split(", ") {
        let meant = matching(pattern, states);
        if meant.is_empty() || events.is_empty() {
            return complaint("no such state, or no event above it");
        }
        for state in meant {
            rows.extend(events.iter().map(|event| Row {
                number,
                text,
                state,
                event,
                answer,
                effects,
                next,
            }));
        }
    }
    Ok(rows)
}

/// A line of the checklist, a numbered invariant, or a section of the design.
fn is_cite(cite: &str) -> bool {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.chars().all(|letter| letter.is_ascii_digit())
    };
    cite.strip_prefix("B-").is_some_and(|rest| digits(rest, 3))
        || cite.strip_prefix("D-").is_some_and(|rest| digits(rest, 2))
        || cite
            .strip_prefix("invariant ")
            .is_some_and(|rest| rest.parse::<u8>().is_ok())
        || cite
            .strip_prefix("design: ")
            .is_some_and(|rest| !rest.is_empty())
}

fn compare(row: &Row, seen: &DecidedRow) -> Vec<String> {
    let mut complaints = Vec::new();
    if row.answer != seen.answer {
        complaints.push(complaint_about(
            row,
            &format!("the answer is `{}`", seen.answer),
        ));
    }
    if row.effects != seen.effects {
        complaints.push(complaint_about(
            row,
            &format!("the effects are `{}`", seen.effects),
        ));
    }
    if let Some((found, wanted)) = &seen.next_differs {
        let difference = format!("the next state is\n  {found}\nand not\n  {wanted}");
        complaints.push(complaint_about(row, &difference));
    }
    complaints
}

fn complaint_about(row: &Row, complaint: &str) -> String {
    let Row { state, event, .. } = row;
    format!(
        "line {}: {complaint}\n  in {state} | {event}\n  {}",
        row.number,
        row.text.trim()
    )
}

/// A reply in the table's words. A wrong operation id is part of the words, so it never matches.
fn reply_words(reply: Reply, current: Option<OperationId>) -> String {
    match reply {
        Reply::Started(NEW, ResponseMode::Background) => "202 started".to_owned(),
        Reply::Started(NEW, ResponseMode::Inline) => "started, waits".to_owned(),
        Reply::Joined(operation) if Some(operation) == current => "joined".to_owned(),
        Reply::AlreadyDone => "already done".to_owned(),
        Reply::Nothing => "-".to_owned(),
        Reply::Started(..) | Reply::Joined(_) => format!("of the wrong operation: {reply:?}"),
    }
}

fn refusal_words(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid(_) => "400 invalid",
        Refusal::NotFound(_) => "404 not found",
        Refusal::Gone(_) => "410 gone",
        Refusal::Conflict(_) => "409 conflict",
        Refusal::AsyncRequired => "422 AsyncRequired",
        Refusal::Busy(_) => "422 ConcurrencyError",
        Refusal::RequiresApp => "422 RequiresApp",
        Refusal::MaintenanceConflict => "422 MaintenanceInfoConflict",
        Refusal::Unsupported(_) => "422 unsupported",
    }
}

/// Parses the command of a row, if its first words are one, and removes its special words.
fn command(what: &str, special: &mut BTreeSet<&str>) -> Option<AdminCommand> {
    let again = FailedUpdate {
        change: change().into(),
        dashboard_url: Some("https://dashboard/new".to_owned()),
    };
    Some(match what {
        "cancel" => AdminCommand::Cancel,
        "abandon" => AdminCommand::Abandon,
        "purge" => AdminCommand::Purge,
        "retry" => AdminCommand::Retry {
            failed: if special.remove("a create failed") {
                Some(FailedOperation::Create)
            } else if special.remove("an update failed") {
                Some(FailedOperation::Update(Box::new(again)))
            } else if special.remove("a delete failed") {
                Some(FailedOperation::Delete)
            } else {
                assert!(special.remove("nothing failed"), "what failed?");
                None
            },
        },
        _ => return None,
    })
}

/// Effects in the table's words; `create` and `delete` are this resource's words for the two.
fn effect_words(effects: &[Effect], create: &str, delete: &str) -> String {
    let word = |effect: &Effect| match *effect {
        Effect::Start(verb, NEW) => format!("start {}", verb.word()),
        Effect::StartWaiting(verb, NEW) => format!("queue {}", verb.word()),
        Effect::Cancel(CREATE) => format!("cancel {create}"),
        Effect::Cancel(UPDATE) => "cancel update".to_owned(),
        Effect::Cancel(DELETE) => format!("cancel {delete}"),
        Effect::Wake(CREATE) => format!("wake {create}"),
        Effect::Wake(UPDATE) => "wake update".to_owned(),
        Effect::Wake(DELETE) => format!("wake {delete}"),
        Effect::End(CREATE) => format!("end {create}"),
        Effect::End(UPDATE) => "end update".to_owned(),
        Effect::End(DELETE) => format!("end {delete}"),
        Effect::Start(..)
        | Effect::StartWaiting(..)
        | Effect::Cancel(_)
        | Effect::Wake(_)
        | Effect::End(_) => format!("of the wrong operation: {effect:?}"),
    };
    match effects {
        [] => "-".to_owned(),
        some => some.iter().map(word).collect::<Vec<_>>().join(", "),
    }
}

fn hold(table: &str, states: &[&str], events: &[&str], seen: impl Fn(&Row) -> DecidedRow) {
    let complaints = complaints(table, states, events, seen);
    assert!(
        complaints.is_empty(),
        "{} rows do not hold:\n\n{}",
        complaints.len(),
        complaints.join("\n\n")
    );
}

fn as_in_row(row: &Row) -> DecidedRow {
    DecidedRow {
        answer: row.answer.to_owned(),
        effects: row.effects.to_owned(),
        next_differs: None,
    }
}

const GOOD: &str = "it rains\n  here | - | - | unchanged | B-001";

#[test]
fn a_table_without_a_row_for_a_state_and_an_event_is_wrong() {
    let found = complaints(GOOD, &["here", "there"], &["it rains"], as_in_row);
    assert_eq!(found, ["no row for: there | it rains"]);
}

#[test]
fn a_row_holds_for_every_state_and_event_that_it_names() {
    let table = "it rains\nit snows*\n  here*, there | - | - | unchanged | B-001\n\nfog\n  * | - | - | unchanged | B-001";
    let states = ["here", "here too", "there"];
    let events = ["it rains", "it snows", "it snows again", "fog"];
    let (rows, found) = expand(table, &states, &events);
    assert_eq!(found, [""; 0]);
    assert_eq!(rows.len(), states.len() * events.len());
    let found = complaints(table, &states, &events, as_in_row);
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_table_that_says_the_same_twice_is_wrong() {
    let twice = "# head\n\nit rains\n  here | - | - | unchanged | B-001\n  h* | joined | - | unchanged | B-001\n";
    let found = complaints(twice, &["here"], &["it rains"], as_in_row);
    assert_eq!(
        found,
        [
            "line 5: line 4 says it already\n  in here | it rains\n  h* | joined | - | unchanged | B-001"
        ]
    );
}

#[test]
fn a_row_of_an_unknown_state_or_event_or_without_a_source_is_wrong() {
    let found = complaints(GOOD, &["there"], &["it rains"], as_in_row);
    let row = "  here | - | - | unchanged | B-001";
    let unknown = format!("line 2: no such state, or no event above it\n{row}");
    assert_eq!(found, [unknown.as_str(), "no row for: there | it rains"]);
    let found = complaints(GOOD, &["here"], &[], as_in_row);
    assert_eq!(found, ["line 1: no such event\n  it rains", &unknown]);
    let bare = "it rains\n  here | - | - | unchanged | said so";
    let found = complaints(bare, &[], &["it rains"], as_in_row);
    let row = "  here | - | - | unchanged | said so";
    assert_eq!(found, [format!("line 2: `said so` is not a source\n{row}")]);
}

#[test]
fn a_row_that_the_rules_do_not_follow_is_shown() {
    let found = complaints(GOOD, &["here"], &["it rains"], |row| DecidedRow {
        answer: "joined".to_owned(),
        ..as_in_row(row)
    });
    let row = "here | - | - | unchanged | B-001";
    assert_eq!(
        found,
        [format!(
            "line 2: the answer is `joined`\n  in here | it rains\n  {row}"
        )]
    );
}
