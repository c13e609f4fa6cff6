//! The table of regressions of an earlier broker: every row exists, and its tests declare that they hold it.

use crate::none;
use std::collections::{BTreeMap, BTreeSet};
use sutler_tidy::{Document, Repository};

const PAGE: &str = "docs/regressions.md";
/// Number of rows of the list.
const ROWS: u32 = 40;
/// Prefix of a row that no test can hold yet.
const WAITS: &str = "waits for ";
const TAG: &str = "/// Regression: ";

/// Rows that each test declares to hold.
fn tagged(source: &str) -> BTreeMap<String, BTreeSet<u32>> {
    let mut tagged: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut rows = BTreeSet::new();
    for line in source.lines().map(str::trim) {
        if let Some(said) = line.strip_prefix(TAG) {
            rows.extend(said.split([',', '.']).filter_map(number));
        }
        let Some((_, rest)) = line.split_once("fn ") else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or_default();
        rows.extend(
            name.split('_')
                .next()
                .and_then(|it| number(&it.to_uppercase())),
        );
        if !rows.is_empty() {
            let of = tagged.entry(name.to_owned()).or_default();
            of.append(&mut rows);
        }
    }
    tagged
}

/// `R8` is 8.
fn number(word: &str) -> Option<u32> {
    word.trim().strip_prefix('R')?.parse().ok()
}

/// The rows of the table: number, and the tests that hold it.
fn table(page: &str) -> Vec<(u32, String)> {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", row, _, held, ""] => Some((number(row)?, held.to_owned())),
            _ => None,
        }
    });
    rows.collect()
}

/// Faults of a row.
fn judge(row: u32, held: &str, tagged: &BTreeMap<String, BTreeSet<u32>>) -> Vec<String> {
    let tests = Document::new(held);
    let tests = tests.code_spans();
    let mut holding = tagged.values().filter(|rows| rows.contains(&row));
    match (held.starts_with(WAITS), tests.is_empty()) {
        (true, true) if holding.next().is_none() => Vec::new(),
        (true, true) => vec![format!(
            "{PAGE}: R{row} waits no more, a test is tagged with it"
        )],
        (false, true) => vec![format!("{PAGE}: R{row} names no test")],
        (_, false) => {
            let lies = tests.iter().filter(|test| {
                let rows = tagged.get(**test);
                rows.is_none_or(|rows| !rows.contains(&row))
            });
            let told = |test: &&str| format!("{PAGE}: there is no test {test} tagged R{row}");
            lies.map(told).collect()
        }
    }
}

#[test]
fn every_regression_has_its_row_with_tests_that_declare_it() {
    let repository = Repository::here();
    let mut all: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for path in repository.files_ending(".rs") {
        let source = repository.read(&path).unwrap_or_default();
        for (test, mut rows) in tagged(&source) {
            all.entry(test).or_default().append(&mut rows);
        }
    }
    let page = repository.read(PAGE).unwrap_or_default();
    let rows = table(&page);
    let numbers: Vec<u32> = rows.iter().map(|(row, _)| *row).collect();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>(), "{PAGE}: its rows");
    let judged = rows.iter().flat_map(|(row, held)| judge(*row, held, &all));
    none(&judged.collect::<Vec<_>>());
}

#[test]
fn a_row_has_a_test_that_declares_it_or_waits() {
    let source =
        "/// Words.\n///\n/// Regression: R1, R2.\n#[test]\nfn one() {}\nasync fn r3_two() {}\n";
    let tagged = tagged(source);
    for (row, held, complaints) in [
        (1, "`one`", 0),
        (2, "`one`, `r3_two`", 1),
        (3, "`r3_two`", 0),
        (4, "`one`", 1),
        (4, "waits for a cluster", 0),
        (3, "waits for a cluster", 1),
        (4, "", 1),
    ] {
        assert_eq!(
            judge(row, held, &tagged).len(),
            complaints,
            "R{row}: {held}"
        );
    }
}
