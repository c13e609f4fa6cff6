//! Checks `classify` against the tables in `tests/meanings/`: every row, and a row for every possible
//! answer.
//!
//! The tables are the specification, written by hand and never generated: a row that does not match is an
//! error in the row or in the code, and a person decides which. The head of `answers.txt` explains the
//! words.

mod situation;
mod words;

use situation::Situation;
use std::collections::BTreeMap;
use sutler_osb::OperationKind;

const ANSWERS: &str = include_str!("../meanings/answers.txt");
const POLLS: &str = include_str!("../meanings/polls.txt");

/// The columns, in order.
const KINDS: [OperationKind; 5] = [
    OperationKind::Provision,
    OperationKind::Update,
    OperationKind::Deprovision,
    OperationKind::Bind,
    OperationKind::Unbind,
];

/// One line of a table.
struct Row<'t> {
    number: usize,
    event: &'t str,
    meanings: [&'t str; 5],
}

fn rows(table: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (index, text) in table.lines().enumerate() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let [event, provision, update, deprovision, bind, unbind, cites] = cells[..] else {
            panic!("line {number} has not seven columns: {text}");
        };
        assert!(cites.split(", ").all(is_cite), "line {number}: {cites}");
        rows.push(Row {
            number,
            event,
            meanings: [provision, update, deprovision, bind, unbind],
        });
    }
    rows
}

/// A line of the checklist, or a decision.
fn is_cite(cite: &str) -> bool {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let line = cite.strip_prefix("P-").or_else(|| cite.strip_prefix("B-"));
    line.is_some_and(|rest| digits(rest, 3))
        || cite.strip_prefix("D-").is_some_and(|rest| digits(rest, 2))
}

/// Differences between a table and the code, and rows that the table lacks.
fn complaints(table: &str, polls: bool, wanted: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut message: BTreeMap<String, usize> = BTreeMap::new();
    let rows = rows(table);
    let named: Vec<&str> = rows.iter().map(|row| row.event).collect();
    for row in &rows {
        for event in situation::expanded(row.event, &named) {
            if let Some(earlier) = message.insert(event.clone(), row.number) {
                complaints.push(format!("line {}: see line {earlier}", row.number));
            }
            let Some(situation) = Situation::parse(&event) else {
                complaints.push(format!("line {}: what is {event:?}?", row.number));
                continue;
            };
            for (kind, meaning) in KINDS.into_iter().zip(row.meanings) {
                let found = situation.meaning(kind, polls);
                if found != meaning {
                    let line = row.number;
                    let kind = kind.word();
                    complaints.push(format!(
                        "line {line}: {event} | {kind}: `{meaning}` is `{found}`"
                    ));
                }
            }
        }
    }
    let missing = wanted.iter().filter(|it| !message.contains_key(*it));
    complaints.extend(missing.map(|it| format!("no row for: {it}")));
    complaints
}

fn none(complaints: &[String]) {
    let shown = complaints.iter().take(40).cloned().collect::<Vec<_>>();
    assert!(complaints.is_empty(), "\n{}\n", shown.join("\n"));
}

/// Every status, and the other possible answers.
fn everything(more: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = (100..=999).map(|status| status.to_string()).collect();
    all.extend(["200 malformed", "timeout", "broken", "not sent"].map(str::to_owned));
    all.extend(more.iter().map(|it| (*it).to_owned()));
    all
}

#[test]
fn every_answer_to_every_verb_has_the_meaning_in_the_table() {
    let words = [
        "201 malformed",
        "202 malformed",
        "422 AsyncRequired",
        "422 ConcurrencyError",
        "422 MaintenanceInfoConflict",
        "422 RequiresApp",
        "422 OwnWord",
    ];
    let first = everything(&words);
    let before = first.iter().map(|it| format!("{it}, sent before"));
    let wanted: Vec<String> = first.iter().cloned().chain(before).collect();
    none(&complaints(ANSWERS, false, &wanted));
}

#[test]
fn every_answer_to_every_poll_has_the_meaning_in_the_table() {
    let states = ["200 in progress", "200 succeeded", "200 failed", "overdue"];
    let mut wanted = everything(&states);
    // A 200 is one of the states, or malformed.
    wanted.retain(|it| it != "200");
    none(&complaints(POLLS, true, &wanted));
}
