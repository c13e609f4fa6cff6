//! Tests of the reader of transition tables.

use super::{NextStates, RuleOutcome, TableRow, complaints, expand, is_source, listed};

const GOOD: &str = "it rains\n  here | - | - | unchanged | B-001";

/// What the row says.
fn as_in_row(row: &TableRow) -> RuleOutcome {
    RuleOutcome {
        answer: row.answer.to_owned(),
        effects: row.effects.to_owned(),
        next_differs: None,
    }
}

#[test]
fn a_table_without_a_row_for_a_state_and_an_event_is_wrong() {
    let found = complaints(GOOD, &["here", "there"], &["it rains"], as_in_row);
    assert_eq!(found, ["no row for: there | it rains"]);
}

#[test]
fn a_row_holds_for_every_state_and_event_that_it_names() {
    let table = "it rains\nit snows*\n  here*, there | - | - | unchanged | T-01\n\nfog\n  * | - | - | dry | §2.4";
    let states = ["here", "here too", "there"];
    let events = ["it rains", "it snows", "it snows again", "fog"];
    let (rows, found) = expand(table, &states, &events);
    assert_eq!(found, [""; 0]);
    assert_eq!(rows.len(), states.len() * events.len());
    let found = complaints(table, &states, &events, as_in_row);
    assert_eq!(found, [""; 0]);
    let last = rows.last().expect("a row");
    assert_eq!(
        (last.line, last.state, last.event, last.next),
        (6, "there", "fog", "dry")
    );
}

#[test]
fn a_table_that_says_the_same_twice_is_wrong() {
    let twice = "# head\n\nit rains\n  here | - | - | unchanged | B-001\n  h* | joined | - | unchanged | B-001\n";
    let found = complaints(twice, &["here"], &["it rains"], as_in_row);
    let row = "h* | joined | - | unchanged | B-001";
    let text = format!("line 5: line 4 says it already\n  in here | it rains\n  {row}");
    assert_eq!(found, [text]);
}

#[test]
fn a_row_of_an_unknown_state_or_event_or_without_a_source_is_wrong() {
    let row = "here | - | - | unchanged | B-001";
    let (_, found) = expand(GOOD, &["there"], &["it rains"]);
    assert_eq!(found, [format!("line 2: no such state: `here`\n  {row}")]);
    let (_, found) = expand(GOOD, &["here"], &[]);
    let no_event = "line 1: no such event\n  it rains".to_owned();
    assert_eq!(
        found,
        [no_event, format!("line 2: no event above it\n  {row}")]
    );
    let bare = "it rains\n  here | - | - | unchanged | said so";
    let (_, found) = expand(bare, &["here"], &["it rains"]);
    let text = "line 2: `said so` is not a source\n  here | - | - | unchanged | said so";
    assert_eq!(found, [text]);
}

#[test]
fn a_row_with_too_many_columns_and_a_line_that_is_too_wide_are_wrong() {
    let table = format!(
        "it rains\n  here | - | - | x | B-001 | y\n# {}",
        "é".repeat(159)
    );
    let (rows, found) = expand(&table, &["here"], &["it rains"]);
    assert_eq!(rows, []);
    assert_eq!(
        found,
        [
            "line 2: has not five columns\n  here | - | - | x | B-001 | y",
            "line 3: wider than 160 columns",
        ]
    );
}

#[test]
fn every_kind_of_source_is_known() {
    for source in [
        "T-48",
        "P-010",
        "B-254",
        "D-37",
        "§2.4",
        "§3c.10",
        "invariant I-1",
        "invariant I-11",
        "design: a choice",
    ] {
        assert!(is_source(source), "{source}");
    }
    for source in [
        "",
        "T-4",
        "T-481",
        "P-10",
        "D-370",
        "D-x7",
        "§",
        "invariant 1",
        "invariant I-",
        "design:",
        "design: ",
        "x",
    ] {
        assert!(!is_source(source), "{source}");
    }
}

#[test]
fn a_row_that_the_rules_do_not_follow_is_shown() {
    let found = complaints(GOOD, &["here"], &["it rains"], |_| RuleOutcome {
        answer: "joined".to_owned(),
        effects: "send".to_owned(),
        next_differs: Some(NextStates {
            by_rules: "wet".to_owned(),
            by_row: "dry".to_owned(),
        }),
    });
    let about = "in here | it rains\n  here | - | - | unchanged | B-001";
    assert_eq!(
        found,
        [
            format!("line 2: the answer is `joined`\n  {about}"),
            format!("line 2: the effects are `send`\n  {about}"),
            format!("line 2: the next state is\n  wet\nand not\n  dry\n  {about}"),
        ]
    );
}

#[test]
fn words_are_listed_or_absent() {
    assert_eq!(listed([]), "-");
    assert_eq!(listed(["send".to_owned(), "end".to_owned()]), "send, end");
}
