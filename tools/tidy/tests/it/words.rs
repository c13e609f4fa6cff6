//! Words that must not stay in the code: leftovers, silenced warnings, waits in tests.

use crate::none;
use std::path::Path;
use sutler_tidy::product::test_files;
use sutler_tidy::{Function, Repository, Source};

/// Not allowed in code. Written in two halves, so that this file does not match itself.
const LEFT_OVER: [(&str, &str); 6] = [
    (concat!("to", "do!("), "do it, or open an issue"),
    (concat!("db", "g!("), "use tracing, or take it out"),
    (
        concat!("#[", "ignore"),
        "a test that does not run protects nothing",
    ),
    (
        concat!("#[", "allow("),
        "mend the cause; where there is none, use #[expect] with a reason",
    ),
    (concat!("#![", "allow("), "mend the cause"),
    (
        concat!("#[", "path"),
        "the rule that every file is compiled needs plain modules",
    ),
];

/// Not allowed even in comments.
const UNFINISHED: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X:")];

/// Parts of names of functions in tests that may wait: they poll a condition, and give
/// up in the end.
const MAY_PAUSE: [&str; 2] = ["eventually", "until"];

/// Modules with tokio's clock, which is stopped: waiting advances it and takes no time. Their
/// services and fixtures may wait; a test that waits must stop the clock itself.
const CLOCK_IS_STOPPED: [&str; 2] = [
    "crates/sutler-journal/tests/it/engine",
    "crates/sutler-broker/tests/it/hooks",
];

/// Directories of one machine.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
];

#[test]
fn nothing_unfinished_or_silenced_is_left_in_the_code() {
    let repository = Repository::here();
    let mut complaints = Vec::new();
    for path in repository.files_ending(".rs") {
        let source = Source::new(&repository.read(&path).unwrap_or_default());
        for (line, code) in numbered(source.code()) {
            for (word, advice) in LEFT_OVER.iter().filter(|(word, _)| code.contains(word)) {
                complaints.push(format!("{}:{line}: `{word}`: {advice}", path.display()));
            }
        }
        for (line, text) in numbered(source.text()) {
            for word in UNFINISHED.iter().filter(|word| text.contains(**word)) {
                complaints.push(format!("{}:{line}: {word}", path.display()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn tests_wait_for_conditions_and_never_just_for_time() {
    let repository = Repository::here();
    let only_tests = test_files(&repository);
    let mut complaints = Vec::new();
    for path in repository.files_ending(".rs") {
        let source = Source::new(&repository.read(&path).unwrap_or_default());
        let whole = only_tests.contains(&path);
        let inline = source.test_lines();
        for (line, code) in numbered(source.code()) {
            let in_test = whole
                || inline
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&line));
            let waits = in_test && code.contains(concat!("sle", "ep("));
            if !waits || polls(&source, line) {
                continue;
            }
            if code.contains("thread::") || !clock_is_stopped(&path, &source, line) {
                complaints.push(format!(
                    "{}:{line}: a test waits for time; wait for a condition, in a function named {MAY_PAUSE:?}",
                    path.display()
                ));
            }
        }
    }
    none(&complaints);
}

/// Whether this line is in a function that polls.
fn polls(source: &Source, line: usize) -> bool {
    let around = |it: &Function| (it.first_line..=it.last_line).contains(&line);
    let named = |it: &Function| MAY_PAUSE.iter().any(|word| it.name.contains(word));
    source.functions().iter().any(|it| around(it) && named(it))
}

/// Whether this line waits on a stopped clock: in a test that stops it, or in code that only
/// such tests use.
fn clock_is_stopped(path: &Path, source: &Source, line: usize) -> bool {
    let around = |it: &Function| (it.first_line..=it.last_line).contains(&line);
    let functions = source.functions();
    let inner = functions.iter().rfind(|it| around(it));
    let lines: Vec<&str> = source.code().lines().collect();
    let attributes = inner.map(|it| {
        let above = lines[..it.first_line - 1].iter().rev();
        above
            .take_while(|line| line.trim_start().starts_with("#["))
            .collect::<Vec<_>>()
    });
    let attributes = attributes.unwrap_or_default();
    if attributes.iter().any(|it| it.contains("test")) {
        return attributes
            .iter()
            .any(|it| it.contains("start_paused = true"));
    }
    let module = path.with_extension("");
    CLOCK_IS_STOPPED.iter().any(|it| module.starts_with(it))
}

#[test]
fn no_file_names_a_directory_of_one_machine() {
    let repository = Repository::here();
    let mut complaints = Vec::new();
    for path in repository.files() {
        let text = repository.read(&path).unwrap_or_default();
        for (line, text) in numbered(&text) {
            for folder in MACHINE_PATHS.iter().filter(|it| text.contains(**it)) {
                complaints.push(format!("{}:{line}: {folder}…", path.display()));
            }
        }
    }
    none(&complaints);
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(n, line)| (n + 1, line))
}
