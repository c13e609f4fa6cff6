//! The page of statuses and the code contain the same ones.

use crate::none;
use std::collections::{BTreeMap, BTreeSet};
use sutler_tidy::Repository;

const PAGE: &str = "docs/http-status.md";

/// The names of statuses in code, with their numbers.
const NUMBERS: [(&str, u16); 21] = [
    ("OK", 200),
    ("CREATED", 201),
    ("ACCEPTED", 202),
    ("NO_CONTENT", 204),
    ("NOT_MODIFIED", 304),
    ("BAD_REQUEST", 400),
    ("UNAUTHORIZED", 401),
    ("FORBIDDEN", 403),
    ("NOT_FOUND", 404),
    ("METHOD_NOT_ALLOWED", 405),
    ("REQUEST_TIMEOUT", 408),
    ("CONFLICT", 409),
    ("GONE", 410),
    ("PRECONDITION_FAILED", 412),
    ("PAYLOAD_TOO_LARGE", 413),
    ("URI_TOO_LONG", 414),
    ("UNPROCESSABLE_ENTITY", 422),
    ("TOO_MANY_REQUESTS", 429),
    ("REQUEST_HEADER_FIELDS_TOO_LARGE", 431),
    ("INTERNAL_SERVER_ERROR", 500),
    ("SERVICE_UNAVAILABLE", 503),
];

#[test]
fn every_status_that_is_answered_is_on_the_page_and_no_other() {
    let repository = Repository::here();
    let numbers: BTreeMap<&str, u16> = NUMBERS.into_iter().collect();
    let mut complaints = Vec::new();
    let mut answered = BTreeSet::new();
    for path in repository.files_ending(".rs") {
        let answers = ["crates/sutler-broker/src", "crates/sutler-server/src"];
        if !answers.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let text = repository.read(&path).unwrap_or_default();
        for piece in text.split("StatusCode::").skip(1) {
            let of_name = |c: &char| c.is_ascii_uppercase() || *c == '_';
            let name: String = piece.chars().take_while(of_name).collect();
            match numbers.get(name.as_str()) {
                Some(number) => drop(answered.insert(*number)),
                None if name.is_empty() => {}
                None => complaints.push(format!("{}: {name} is new here", path.display())),
            }
        }
    }
    let page = repository.read(PAGE).unwrap_or_default();
    let listed: BTreeSet<u16> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .flat_map(|row| {
            row.split(" | ")
                .next()
                .unwrap_or_default()
                .split([' ', ','])
        })
        .filter_map(|word| word.parse().ok())
        .collect();
    let missing = answered.difference(&listed);
    complaints.extend(missing.map(|it| format!("{it}: answered, and not in {PAGE}")));
    let unknown = listed.difference(&answered);
    complaints.extend(unknown.map(|it| format!("{it}: in {PAGE}, and never answered")));
    none(&complaints);
}
