//! Lines of the checklist that each test holds, as `tools/spec-map` reads them from the source.
//!
//! Tests `… as_the_table_says` also hold the lines that the table of their file cites.

use crate::BoxError;
use crate::test_binaries::Binary;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use sutler_spec_map::held_by_tests;

/// Suffix of tests that compare the rules with a whole table.
const TABLE_TEST: &str = "as_the_table_says";
/// Prefix of tests that run random lives.
const RANDOM_TEST: &str = "whatever_happens";

/// Lines that each test holds, per binary.
pub(crate) struct TestCoverage(Vec<BTreeMap<String, BTreeSet<String>>>);

impl TestCoverage {
    /// Whether a test of that binary holds a line.
    pub(crate) fn holds(&self, binary: usize, test: &str, line: &str) -> bool {
        let held = self.0[binary].get(test);
        held.is_some_and(|lines| lines.contains(line))
    }

    /// The tests of a binary that hold any line: only these take part.
    pub(crate) fn bound(&self, binary: usize) -> Vec<String> {
        self.0[binary].keys().cloned().collect()
    }

    /// Removes tests.
    pub(crate) fn forget(&mut self, tests: &[String]) {
        let known = self.0.iter_mut();
        known.for_each(|binary| binary.retain(|test, _| !tests.contains(test)));
    }

    /// The tests of a binary that hold a line.
    pub(crate) fn holders(&self, binary: usize, line: &str) -> Vec<&str> {
        let holding = self.0[binary]
            .iter()
            .filter(|(_, lines)| lines.contains(line));
        holding.map(|(test, _)| test.as_str()).collect()
    }
}

/// Whether a test holds the invariants of all lines at once.
pub(crate) fn is_random(test: &str) -> bool {
    let name = test.rsplit("::").next();
    name.is_some_and(|name| name.starts_with(RANDOM_TEST))
}

/// Reads the sources of all binaries.
pub(crate) fn read(tree: &Path, binaries: &[Binary]) -> Result<TestCoverage, BoxError> {
    let mut all = vec![BTreeMap::new(); binaries.len()];
    for held in held_by_tests(tree)? {
        let found = binaries
            .iter()
            .position(|it| name_in(it, &held.test).is_some());
        let Some(nth) = found else {
            let unknown = binaries
                .iter()
                .any(|it| held.test.starts_with(&package_of(it)));
            if unknown {
                return Err(
                    format!("{} holds {}, but does not run", held.test, held.number).into(),
                );
            }
            continue;
        };
        let name = name_in(&binaries[nth], &held.test).unwrap_or_default();
        let lines: &mut BTreeSet<String> = all[nth].entry(name.to_owned()).or_default();
        lines.insert(held.number);
    }
    for (binary, tests) in binaries.iter().zip(&mut all) {
        for (test, lines) in tests.iter_mut().filter(|(it, _)| it.ends_with(TABLE_TEST)) {
            lines.extend(table_of(test, binary)?);
        }
    }
    Ok(TestCoverage(all))
}

/// The name of a test in a binary, if it contains it; `test` is in the form of `tools/spec-map`.
fn name_in<'t>(binary: &Binary, test: &'t str) -> Option<&'t str> {
    let name = test.strip_prefix(&crate_of(binary))?.strip_prefix("::")?;
    binary.tests.iter().any(|it| it == name).then_some(name)
}

fn package_of(binary: &Binary) -> String {
    let folder = binary.package.file_name().unwrap_or_default();
    format!("{}::", folder.to_string_lossy())
}

/// A binary's name in the form of `tools/spec-map`: `sutler-broker`, `sutler-broker::it`.
fn crate_of(binary: &Binary) -> String {
    let name = |path: &Path| {
        let last = path.file_stem().unwrap_or_default();
        last.to_string_lossy().into_owned()
    };
    let package = name(&binary.package);
    match binary.source.strip_prefix("tests") {
        Ok(test) if test.ends_with("main.rs") => {
            format!("{package}::{}", name(test.parent().unwrap_or(test)))
        }
        Ok(test) => format!("{package}::{}", name(test)),
        Err(_) => package,
    }
}

/// The lines that the table of a test's file cites in its last column.
fn table_of(test: &str, binary: &Binary) -> Result<BTreeSet<String>, BoxError> {
    let (module, _) = test.rsplit_once("::").unwrap_or(("lib", test));
    let file = binary
        .package
        .join(format!("src/{}.rs", module.replace("::", "/")));
    let text = std::fs::read_to_string(&file)?;
    let table = text
        .split_once("include_str!(\"")
        .and_then(|(_, rest)| rest.split('"').next());
    let table = table.ok_or_else(|| format!("{test}: its file includes no table"))?;
    let table = std::fs::read_to_string(file.with_file_name("").join(table))?;
    Ok(cited(&table))
}

/// The B-lines named in the last column of a table.
fn cited(table: &str) -> BTreeSet<String> {
    let rows = table.lines().filter(|row| !row.starts_with('#'));
    let cites = rows.filter_map(|row| row.rsplit('|').next());
    let words = cites.flat_map(|cites| cites.split(',').map(str::trim));
    words
        .filter(|word| word.starts_with("B-"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{cited, crate_of};
    use crate::test_binaries::Binary;
    use std::collections::BTreeSet;

    #[test]
    fn a_table_cites_in_its_last_column() {
        let table = "# B-001\n\na | B-002 | c | B-035, D-06, B-200\n";
        let expected = ["B-035", "B-200"].map(str::to_owned);
        assert_eq!(cited(table), BTreeSet::from(expected));
    }

    #[test]
    fn a_binary_is_named_as_the_map_of_the_specification_names_it() {
        let named = |source: &str| {
            crate_of(&Binary {
                path: "x".into(),
                package: "/a/sutler-broker".into(),
                source: source.into(),
                tests: Vec::new(),
            })
        };
        assert_eq!(named("src/lib.rs"), "sutler-broker");
        assert_eq!(named("tests/it/main.rs"), "sutler-broker::it");
        assert_eq!(named("tests/one.rs"), "sutler-broker::one");
    }
}
