//! Reads the transition tables in `tests/transitions/` and compares them with the rules. Only for tests.
//!
//! A table is written by hand: lines that name events, below them rows `states | answer | effects | next state | source`.
//! A row may name sets of states and events; [`expand`] makes one row of each pair. A line `#@name: first, second` names a
//! set of states, which rows use as `@name`. [`complaints`] demands exactly one row
//! for every state and event, and that the rules decide what it says. It knows no rules and no words: the caller
//! translates both into the words of its table.

use std::collections::BTreeMap;

/// Widest line of a table in characters, so that it can be read without scrolling.
const LINE_CHARS_MAX: usize = 160;

/// A row for one state and one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRow<'t> {
    /// Number of the line, from 1.
    pub(crate) line: usize,
    /// The line as it is written.
    pub(crate) text: &'t str,
    /// State before the event.
    pub(crate) state: &'t str,
    /// The event.
    pub(crate) event: &'t str,
    /// Answer to the caller.
    pub(crate) answer: &'t str,
    /// Effects, or `-`.
    pub(crate) effects: &'t str,
    /// State after the event.
    pub(crate) next: &'t str,
}

/// What the rules decide for the state and the event of a row, in the words of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleOutcome {
    /// Answer to the caller.
    pub(crate) answer: String,
    /// Effects, or `-`.
    pub(crate) effects: String,
    /// If the next state is another one than the row's: both.
    pub(crate) next_differs: Option<NextStates>,
}

/// Two next states, as texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextStates {
    /// By the rules.
    pub(crate) by_rules: String,
    /// By the row.
    pub(crate) by_row: String,
}

/// Words joined by commas; `-` if there is none.
pub(crate) fn listed(words: impl IntoIterator<Item = String>) -> String {
    let words: Vec<String> = words.into_iter().collect();
    match words.is_empty() {
        true => "-".to_owned(),
        false => words.join(", "),
    }
}

/// Fails with all complaints about a table.
pub(crate) fn assert_holds(
    table: &str,
    states: &[&str],
    events: &[&str],
    outcome: impl Fn(&TableRow) -> RuleOutcome,
) {
    let found = complaints(table, states, events, outcome);
    assert!(
        found.is_empty(),
        "{} complaints:\n\n{}",
        found.len(),
        found.join("\n\n")
    );
}

/// All differences between a table and the rules, and all errors of the table.
pub(crate) fn complaints(
    table: &str,
    states: &[&str],
    events: &[&str],
    outcome: impl Fn(&TableRow) -> RuleOutcome,
) -> Vec<String> {
    let (rows, mut complaints) = expand(table, states, events);
    let mut lines = BTreeMap::new();
    for row in &rows {
        match lines.insert((row.state, row.event), row.line) {
            Some(earlier) => {
                let text = format!("line {earlier} says it already");
                complaints.push(complaint_about(row, &text));
            }
            None => complaints.extend(differences(row, &outcome(row))),
        }
    }
    for event in events {
        for state in states {
            if !lines.contains_key(&(*state, *event)) {
                complaints.push(format!("no row for: {state} | {event}"));
            }
        }
    }
    complaints
}

/// The rows of a table, one for each state and event that its lines name, and errors of the other lines.
///
/// A line without columns names events: those of the rows below it, together with such lines right above it.
pub(crate) fn expand<'t>(
    table: &'t str,
    states: &[&'t str],
    events: &[&'t str],
) -> (Vec<TableRow<'t>>, Vec<String>) {
    let sets = state_sets(table);
    let mut rows = Vec::new();
    let mut complaints = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut block_has_rows = true;
    for (index, text) in table.lines().enumerate() {
        let line = index + 1;
        if text.chars().count() > LINE_CHARS_MAX {
            complaints.push(format!("line {line}: wider than {LINE_CHARS_MAX} columns"));
        }
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        if text.contains('|') {
            block_has_rows = true;
            match parse_row(line, text, states, &sets, &block) {
                Ok(parsed) => rows.extend(parsed),
                Err(complaint) => complaints.push(complaint),
            }
            continue;
        }
        if std::mem::take(&mut block_has_rows) {
            block.clear();
        }
        let named = matching(text.trim(), events);
        if named.is_empty() {
            complaints.push(format!("line {line}: no such event\n  {text}"));
        }
        block.extend(named);
    }
    (rows, complaints)
}

/// Names that match a pattern: the name itself, or with a `*` at its end every name that begins so.
fn matching<'t>(pattern: &str, names: &[&'t str]) -> Vec<&'t str> {
    let matches = |name: &&&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => **name == pattern,
    };
    names.iter().filter(matches).copied().collect()
}

/// The named sets of states, as their lines list them.
fn state_sets(table: &str) -> BTreeMap<&str, Vec<&str>> {
    let lines = table.lines().filter_map(|line| line.strip_prefix("#@"));
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, states)| (name.trim(), states.trim().split(", ").collect()))
        .collect()
}

fn parse_row<'t>(
    line: usize,
    text: &'t str,
    states: &[&'t str],
    sets: &BTreeMap<&str, Vec<&'t str>>,
    events: &[&'t str],
) -> Result<Vec<TableRow<'t>>, String> {
    let complaint = |what: &str| Err(format!("line {line}: {what}\n  {}", text.trim()));
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let [patterns, answer, effects, next, sources] = cells[..] else {
        return complaint("has not five columns");
    };
    if let Some(source) = sources.split(", ").find(|source| !is_source(source)) {
        return complaint(&format!("`{source}` is not a source"));
    }
    if events.is_empty() {
        return complaint("no event above it");
    }
    let mut rows = Vec::new();
    let members = |pattern: &'t str| match pattern.strip_prefix('@') {
        Some(set) => sets.get(set).cloned().unwrap_or_else(|| vec![pattern]),
        None => vec![pattern],
    };
    for pattern in patterns.split(", ").flat_map(members) {
        let named = matching(pattern, states);
        if named.is_empty() {
            return complaint(&format!("no such state: `{pattern}`"));
        }
        for state in named {
            rows.extend(events.iter().map(|event| TableRow {
                line,
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

/// Whether a text names what a row rests on: `T-48`, `P-010`, `B-254`, `D-37`, `§2.4`, `invariant I-11`, `design: …`.
fn is_source(source: &str) -> bool {
    let numbered = |prefix: &str, digits: usize| {
        source.strip_prefix(prefix).is_some_and(|number| {
            number.len() == digits && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let named = |prefix: &str| {
        let rest = source.strip_prefix(prefix);
        rest.is_some_and(|rest| !rest.trim().is_empty())
    };
    numbered("T-", 2)
        || numbered("P-", 3)
        || numbered("B-", 3)
        || numbered("D-", 2)
        || numbered("invariant I-", 1)
        || numbered("invariant I-", 2)
        || named("§")
        || named("design: ")
}

fn differences(row: &TableRow, outcome: &RuleOutcome) -> Vec<String> {
    let mut complaints = Vec::new();
    if row.answer != outcome.answer {
        let text = format!("the answer is `{}`", outcome.answer);
        complaints.push(complaint_about(row, &text));
    }
    if row.effects != outcome.effects {
        let text = format!("the effects are `{}`", outcome.effects);
        complaints.push(complaint_about(row, &text));
    }
    if let Some(NextStates { by_rules, by_row }) = &outcome.next_differs {
        let text = format!("the next state is\n  {by_rules}\nand not\n  {by_row}");
        complaints.push(complaint_about(row, &text));
    }
    complaints
}

fn complaint_about(row: &TableRow, complaint: &str) -> String {
    let TableRow {
        line, state, event, ..
    } = row;
    let text = row.text.trim();
    format!("line {line}: {complaint}\n  in {state} | {event}\n  {text}")
}

#[cfg(test)]
mod tests;
