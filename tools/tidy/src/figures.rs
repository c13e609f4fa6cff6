//! Figures about the product that should not grow again: names, cycles, lines.
//!
//! Counted by `names.rs`, `cycles.rs` and `product.rs`; printed by `cargo run -p sutler-tidy -- names`.
//! The rules that fail are in `tests/it/names.rs`.

use crate::Repository;
use crate::cycles::{edges, largest_cycle};
use crate::names::{Definition, definitions, is_participle, words};
use crate::product::{ProductFile, product};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Errors whose names are fixed by the glossary.
pub const ERRORS_BY_GLOSSARY: [&str; 2] = ["Refusal", "Lost"];
/// Names that may be defined three times or more: each module has its own.
pub const SHARED_NAMES: [&str; 5] = ["Error", "Settings", "Event", "State", "Inner"];
/// Number of definitions from which a name is ambiguous.
pub const AMBIGUOUS_FROM: usize = 3;

/// All figures of one working tree.
#[derive(Debug)]
pub struct Figures {
    /// Every type of the product, with its file.
    pub types: Vec<(PathBuf, Definition)>,
    /// The largest cycle of modules of each crate.
    pub cycles: BTreeMap<String, Vec<String>>,
    /// Lines of each crate without tests, comments and blanks.
    pub lines: BTreeMap<String, usize>,
    /// Lines of conformance suites among them.
    pub suite_lines: BTreeMap<String, usize>,
}

impl Figures {
    /// Counts.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        let files = product(repository);
        let mut by_crate: BTreeMap<String, Vec<&ProductFile>> = BTreeMap::new();
        for file in &files {
            by_crate
                .entry(file.crate_name.clone())
                .or_default()
                .push(file);
        }
        let sum = |files: &[&ProductFile]| files.iter().map(|it| it.lines()).sum();
        let suites = |files: &[&ProductFile]| {
            let suites = files.iter().copied().filter(|it| is_suite(it));
            sum(&suites.collect::<Vec<_>>())
        };
        Self {
            types: files.iter().flat_map(types).collect(),
            cycles: by_crate
                .iter()
                .map(|(name, files)| (name.clone(), largest_cycle(&edges(files))))
                .collect(),
            lines: by_crate
                .iter()
                .map(|(name, it)| (name.clone(), sum(it)))
                .collect(),
            suite_lines: by_crate
                .iter()
                .map(|(name, it)| (name.clone(), suites(it)))
                .collect(),
        }
    }

    /// Types whose name is one word.
    pub fn one_word(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|it| words(it).len() == 1)
    }

    /// Types that are bare participles.
    pub fn participles(&self) -> impl Iterator<Item = &(PathBuf, Definition)> {
        self.types.iter().filter(|(_, it)| is_participle(&it.name))
    }

    /// Errors made by thiserror.
    pub fn errors(&self) -> impl Iterator<Item = &(PathBuf, Definition)> {
        self.types.iter().filter(|(_, it)| it.error)
    }

    /// Errors whose names do not end in `Error`.
    pub fn unlike_errors(&self) -> impl Iterator<Item = &(PathBuf, Definition)> {
        self.errors().filter(|(_, it)| {
            !it.name.ends_with("Error") && !ERRORS_BY_GLOSSARY.contains(&it.name.as_str())
        })
    }

    /// Names with too many definitions, and their number.
    #[must_use]
    pub fn ambiguous(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for name in self.names() {
            *counts.entry(name).or_insert(0) += 1;
        }
        counts.retain(|name, count| *count >= AMBIGUOUS_FROM && !SHARED_NAMES.contains(name));
        counts
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.types.iter().map(|(_, it)| it.name.as_str())
    }
}

fn types(file: &ProductFile) -> Vec<(PathBuf, Definition)> {
    let found = definitions(&file.source).into_iter();
    found
        .filter(|it| !file.is_test(it.line))
        .map(|it| (file.path.clone(), it))
        .collect()
}

fn is_suite(file: &ProductFile) -> bool {
    let mut parts = file.path.iter().filter_map(|it| it.to_str());
    parts.any(|it| matches!(it.trim_end_matches(".rs"), "conformance" | "testing"))
}

fn share(part: usize, whole: usize) -> String {
    let thousandths = (part * 1000).checked_div(whole).unwrap_or_default();
    format!(
        "{part} of {whole} ({}.{} %)",
        thousandths / 10,
        thousandths % 10
    )
}

impl Display for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let total = self.types.len();
        writeln!(
            f,
            "one-word types: {}",
            share(self.one_word().count(), total)
        )?;
        let mut names: Vec<&str> = self.participles().map(|(_, it)| it.name.as_str()).collect();
        writeln!(f, "bare participles: {}", share(names.len(), total))?;
        names.sort_unstable();
        names.dedup();
        writeln!(f, "  {}", names.join(" "))?;
        let (errors, unlike) = (self.errors().count(), self.unlike_errors().count());
        writeln!(
            f,
            "errors that end in Error: {}",
            share(errors - unlike, errors)
        )?;
        let unlike: Vec<&str> = self
            .unlike_errors()
            .map(|(_, it)| it.name.as_str())
            .collect();
        writeln!(f, "  others: {}", unlike.join(" "))?;
        let ambiguous = self.ambiguous();
        let count: usize = ambiguous.values().sum();
        writeln!(
            f,
            "names defined {AMBIGUOUS_FROM} times or more: {}, {count} definitions",
            ambiguous.len()
        )?;
        let list: Vec<String> = ambiguous
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        writeln!(f, "  {}", list.join(", "))?;
        writeln!(f, "largest cycle of modules:")?;
        for (name, cycle) in &self.cycles {
            writeln!(f, "  {name}: {} {}", cycle.len(), cycle.join(" "))?;
        }
        let all: usize = self.lines.values().sum();
        let suites: usize = self.suite_lines.values().sum();
        writeln!(
            f,
            "product lines without tests, comments and blanks: {all}, {suites} of them conformance suites"
        )?;
        for (name, lines) in &self.lines {
            let suites = self.suite_lines.get(name).copied().unwrap_or_default();
            writeln!(f, "  {name}: {lines}, suites {suites}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;
    use crate::Source;
    use crate::names::definitions;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn figures(text: &str) -> Figures {
        let path = PathBuf::from("src/a.rs");
        let found = definitions(&Source::new(text)).into_iter();
        Figures {
            types: found.map(|it| (path.clone(), it)).collect(),
            cycles: BTreeMap::from([("a".to_owned(), vec!["b".to_owned(), "c".to_owned()])]),
            lines: BTreeMap::from([("a".to_owned(), 3)]),
            suite_lines: BTreeMap::new(),
        }
    }

    #[test]
    fn names_that_are_defined_three_times_are_ambiguous_and_shared_ones_are_not() {
        let figures = figures(
            "struct Entry;\nenum Entry {}\ntrait Entry {}\nstruct Two;\nstruct Two;\n\
             struct Error;\nstruct Error;\nstruct Error;\n",
        );
        assert_eq!(figures.ambiguous(), BTreeMap::from([("Entry", 3)]));
    }

    #[test]
    fn errors_with_other_names_are_found_and_those_of_the_glossary_are_not() {
        let error = "#[derive(thiserror::Error)]\n";
        let names = ["ReadError", "Fault", "Refusal", "Lost"];
        let text: String = names.map(|it| format!("{error}struct {it};\n")).concat();
        let figures = figures(&(text + "struct Fault;\n"));
        let unlike: Vec<&str> = figures
            .unlike_errors()
            .map(|(_, it)| it.name.as_str())
            .collect();
        assert_eq!(unlike, ["Fault"]);
        let shown = figures.to_string();
        assert!(
            shown.contains("errors that end in Error: 3 of 4 (75.0 %)"),
            "{shown}"
        );
        assert!(shown.contains("  a: 2 b c\n"), "{shown}");
    }
}
