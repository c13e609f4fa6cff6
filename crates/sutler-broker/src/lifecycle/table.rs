//! Holds the rules to the tables in `tests/transitions/`: every row, and a row for every state and
//! every event.
//!
//! The tables are the specification, written by hand. Nothing here writes them: a row that does not
//! fit is a mistake in the row or in the rules, and a person finds out which. What the words of a row
//! mean is in `table/instance.rs` and `table/binding.rs`.

mod binding;
mod instance;

use super::order::{Again, Failed, Order};
use super::sample::{CREATE, DELETE, NEW, UPDATE, change};
use super::{Effect, Pace, Reply};
use crate::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::OperationId;

/// One line of a table.
struct Row<'t> {
    number: usize,
    text: &'t str,
    state: &'t str,
    event: &'t str,
    answer: &'t str,
    effects: &'t str,
    next: &'t str,
    cites: &'t str,
}

/// What the rules make of a row's state and event, in the table's words.
struct Seen {
    answer: String,
    effects: String,
    /// The state the rules leave behind and the one the row asks for, where the two differ.
    next_differs: Option<(String, String)>,
}

/// Everything that is wrong with a table, or with the rules it speaks about.
fn complaints(
    table: &str,
    states: &[&str],
    events: &[&str],
    seen: impl Fn(&Row) -> Seen,
) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut rows = BTreeMap::new();
    for (index, text) in table.lines().enumerate() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let row = match parse(index + 1, text) {
            Ok(row) => row,
            Err(complaint) => {
                complaints.push(complaint);
                continue;
            }
        };
        if !states.contains(&row.state) || !events.contains(&row.event) {
            complaints.push(said(&row, "no such state or event"));
        } else if let Some(earlier) = rows.insert((row.state, row.event), row.number) {
            complaints.push(said(&row, &format!("line {earlier} says it already")));
        } else {
            complaints.extend(judge(&row, &seen(&row)));
        }
    }
    for event in events {
        for state in states {
            if !rows.contains_key(&(*state, *event)) {
                complaints.push(format!("no row for: {state} | {event}"));
            }
        }
    }
    complaints
}

fn parse(number: usize, text: &str) -> Result<Row<'_>, String> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let [state, event, answer, effects, next, cites] = cells[..] else {
        return Err(format!("line {number} has not six columns: {text}"));
    };
    let row = Row {
        number,
        text,
        state,
        event,
        answer,
        effects,
        next,
        cites,
    };
    match row.cites.split(", ").find(|cite| !is_cite(cite)) {
        None => Ok(row),
        Some(cite) => Err(said(&row, &format!("`{cite}` is no source"))),
    }
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

fn judge(row: &Row, seen: &Seen) -> Vec<String> {
    let mut complaints = Vec::new();
    if row.answer != seen.answer {
        complaints.push(said(row, &format!("the answer is `{}`", seen.answer)));
    }
    if row.effects != seen.effects {
        complaints.push(said(row, &format!("the effects are `{}`", seen.effects)));
    }
    if let Some((found, wanted)) = &seen.next_differs {
        let difference = format!("the next state is\n  {found}\nand not\n  {wanted}");
        complaints.push(said(row, &difference));
    }
    complaints
}

fn said(row: &Row, complaint: &str) -> String {
    format!("line {}: {complaint}\n  {}", row.number, row.text)
}

/// An answer in the table's words. A wrong operation id is part of the words, and so never fits.
fn reply_words(reply: Reply, current: Option<OperationId>) -> String {
    match reply {
        Reply::Started(NEW, Pace::Background) => "202 started".to_owned(),
        Reply::Started(NEW, Pace::Inline) => "started, waits".to_owned(),
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

/// The order that a row's first words are, if they are one; takes its special words.
fn order(what: &str, special: &mut BTreeSet<&str>) -> Option<Order> {
    let again = Again {
        change: change(),
        dashboard_url: Some("https://dashboard/new".to_owned()),
    };
    Some(match what {
        "cancel" => Order::Cancel,
        "abandon" => Order::Abandon,
        "purge" => Order::Purge,
        "retry" => Order::Retry {
            failed: if special.remove("a create failed") {
                Some(Failed::Create)
            } else if special.remove("an update failed") {
                Some(Failed::Update(Box::new(again)))
            } else if special.remove("a delete failed") {
                Some(Failed::Delete)
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

fn hold(table: &str, states: &[&str], events: &[&str], seen: impl Fn(&Row) -> Seen) {
    let complaints = complaints(table, states, events, seen);
    assert!(
        complaints.is_empty(),
        "{} rows do not hold:\n\n{}",
        complaints.len(),
        complaints.join("\n\n")
    );
}

fn as_told(row: &Row) -> Seen {
    Seen {
        answer: row.answer.to_owned(),
        effects: row.effects.to_owned(),
        next_differs: None,
    }
}

const GOOD_ROW: &str = "here | it rains | - | - | unchanged | B-001";

#[test]
fn a_table_without_a_row_for_a_state_and_an_event_is_wrong() {
    let found = complaints(GOOD_ROW, &["here", "there"], &["it rains"], as_told);
    assert_eq!(found, ["no row for: there | it rains"]);
}

#[test]
fn a_table_that_says_the_same_twice_is_wrong() {
    let twice = format!("# head\n\n{GOOD_ROW}\n{GOOD_ROW}\n");
    let found = complaints(&twice, &["here"], &["it rains"], as_told);
    assert_eq!(
        found,
        [format!("line 4: line 3 says it already\n  {GOOD_ROW}")]
    );
}

#[test]
fn a_row_of_an_unknown_event_or_without_a_source_is_wrong() {
    let found = complaints(GOOD_ROW, &["here"], &[], as_told);
    assert_eq!(
        found,
        [format!("line 1: no such state or event\n  {GOOD_ROW}")]
    );
    let bare = "here | it rains | - | - | unchanged | said so";
    let found = complaints(bare, &[], &[], as_told);
    assert_eq!(found, [format!("line 1: `said so` is no source\n  {bare}")]);
}

#[test]
fn a_row_that_the_rules_do_not_follow_is_shown() {
    let found = complaints(GOOD_ROW, &["here"], &["it rains"], |row| Seen {
        answer: "joined".to_owned(),
        ..as_told(row)
    });
    assert_eq!(
        found,
        [format!("line 1: the answer is `joined`\n  {GOOD_ROW}")]
    );
}
