//! Which test holds which lines of the checklist, read from the `Holds:` lines in the source.
//!
//! A test's doc comment says `Holds: B-083, B-127.`; it may go on over several lines, to the full
//! stop. Tests `… as_the_table_says` hold besides what the table of their file cites.

use crate::Fault;
use crate::binaries::Binary;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The ending of tests that hold the rules to a whole table.
const TABLE_TEST: &str = "as_the_table_says";
/// The beginning of tests that play random lives.
const RANDOM_TEST: &str = "whatever_happens";

/// The lines each test holds, for every binary in turn.
pub(crate) struct Holds(Vec<BTreeMap<String, BTreeSet<String>>>);

impl Holds {
    /// Whether a test of that binary holds a line.
    pub(crate) fn holds(&self, binary: usize, test: &str, line: &str) -> bool {
        self.0[binary]
            .get(test)
            .is_some_and(|lines| lines.contains(line))
    }

    /// The tests of a binary that hold any line: only these take part.
    pub(crate) fn bound(&self, binary: usize) -> Vec<String> {
        let tests = self.0[binary].iter();
        let bound = tests.filter(|(_, lines)| !lines.is_empty());
        bound.map(|(test, _)| test.clone()).collect()
    }

    /// Leaves tests out.
    pub(crate) fn forget(&mut self, tests: &[String]) {
        let known = self.0.iter_mut();
        known.for_each(|binary| binary.retain(|test, _| !tests.contains(test)));
    }

    /// The tests of a binary that hold a line.
    pub(crate) fn holders(&self, binary: usize, line: &str) -> Vec<&str> {
        let tests = self.0[binary].iter();
        tests
            .filter(|(_, lines)| lines.contains(line))
            .map(|(test, _)| test.as_str())
            .collect()
    }
}

/// Whether a test holds the invariants of all lines at once.
pub(crate) fn is_random(test: &str) -> bool {
    test.rsplit("::")
        .next()
        .is_some_and(|name| name.starts_with(RANDOM_TEST))
}

/// A test function as it stands in the source.
struct Found {
    /// The path of its file's module, such as `lifecycle::rules`.
    module: String,
    name: String,
    lines: BTreeSet<String>,
}

/// Reads the sources of all binaries.
pub(crate) fn read(tree: &Path, binaries: &[Binary]) -> Result<Holds, Fault> {
    let mut all = Vec::new();
    for binary in binaries {
        let folder = binary.package.join(binary.source.parent().unwrap_or(tree));
        let mut found = Vec::new();
        read_folder(&folder, "", &mut found)?;
        let lines = |test: &String| (test.clone(), lines_of(test, &found));
        all.push(binary.tests.iter().map(lines).collect());
    }
    Ok(Holds(all))
}

/// The lines of a test: those of the function of that name in the innermost module around it.
fn lines_of(test: &str, found: &[Found]) -> BTreeSet<String> {
    let (around, name) = test.rsplit_once("::").unwrap_or(("", test));
    let inside = |module: &str| {
        module.is_empty()
            || around == module
            || around
                .strip_prefix(module)
                .is_some_and(|rest| rest.starts_with("::"))
    };
    let candidates = found
        .iter()
        .filter(|it| it.name == name && inside(&it.module));
    candidates
        .max_by_key(|it| it.module.len())
        .map(|it| it.lines.clone())
        .unwrap_or_default()
}

fn read_folder(folder: &Path, module: &str, found: &mut Vec<Found>) -> Result<(), Fault> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let inner = match (stem.as_str(), module) {
            ("lib" | "main" | "mod", _) => module.to_owned(),
            (_, "") => stem,
            (_, _) => format!("{module}::{stem}"),
        };
        if path.is_dir() {
            read_folder(&path, &inner, found)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let table = table_of(&text, folder);
            found.extend(tests_in(&text, &inner, &table));
        }
    }
    Ok(())
}

/// The lines that a file's table cites in its last column.
fn table_of(text: &str, folder: &Path) -> BTreeSet<String> {
    let included = text.split("include_str!(\"").skip(1);
    let tables = included
        .filter_map(|rest| rest.split('"').next())
        .filter(|it| it.ends_with(".txt"));
    let texts = tables.filter_map(|table| std::fs::read_to_string(folder.join(table)).ok());
    let cites = |table: String| {
        let rows = table.lines().filter(|row| !row.starts_with('#'));
        let last = rows.filter_map(|row| row.rsplit('|').next().map(cited));
        last.flatten().collect::<Vec<_>>()
    };
    texts.flat_map(cites).collect()
}

/// The B-lines named in a text.
fn cited(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words
        .filter(|word| word.len() == 5 && word.starts_with("B-"))
        .map(str::to_owned)
        .collect()
}

fn tests_in(text: &str, module: &str, table: &BTreeSet<String>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut lines = BTreeSet::new();
    let (mut in_holds, mut is_test) = (false, false);
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            in_holds |= words.trim_start().starts_with("Holds:");
            if in_holds {
                lines.extend(cited(words));
                in_holds = !words.trim_end().ends_with('.');
            }
        } else if line.starts_with("#[") {
            is_test |= line.contains("test");
        } else if let Some(name) = function(line).filter(|_| is_test) {
            let mut lines = std::mem::take(&mut lines);
            if name.ends_with(TABLE_TEST) {
                lines.extend(table.iter().cloned());
            }
            found.push(Found {
                module: module.to_owned(),
                name: name.to_owned(),
                lines,
            });
            is_test = false;
        } else {
            lines.clear();
            (in_holds, is_test) = (false, false);
        }
    }
    found
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::{cited, lines_of, tests_in};
    use std::collections::BTreeSet;

    const SOURCE: &str = "/// Not held: B-001.\nfn helper() {}\n\n/// Says.\n/// Holds: B-002,\n/// B-003. Not B-004.\n#[tokio::test]\nasync fn it_rains() {}\n\n#[test]\nfn rows_are_as_the_table_says() {}\n";

    #[test]
    fn a_test_holds_what_its_comment_says_and_a_table_test_its_table() {
        let table = BTreeSet::from(["B-009".to_owned()]);
        let found = tests_in(SOURCE, "m", &table);
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["it_rains", "rows_are_as_the_table_says"]);
        assert_eq!(lines_of("m::tests::it_rains", &found).len(), 3);
        assert!(lines_of("other::it_rains", &found).is_empty());
        assert_eq!(lines_of("m::rows_are_as_the_table_says", &found), table);
    }

    #[test]
    fn only_whole_numbers_of_lines_are_cited() {
        assert_eq!(
            cited("B-035, D-06, B-1, B-0011 (B-200)."),
            ["B-035", "B-200"]
        );
    }
}
