//! The code of the product: the sources of the crates without their tests.
//!
//! Left out: files under `tests/`, modules and blocks that compile only for tests or for a feature of
//! tests, and the crates that exist only for tests ([`ONLY_FOR_TESTS`]). `names.rs` and `cycles.rs`
//! measure the rest.

use crate::{Repository, Source};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates that only tests depend on.
pub const ONLY_FOR_TESTS: [&str; 1] = ["sutler-servers"];

/// One file of the product.
#[derive(Clone, Debug)]
pub struct ProductFile {
    /// Its path from the top of the repository.
    pub path: PathBuf,
    /// The folder of its crate, such as `sutler-broker`.
    pub crate_name: String,
    /// Its text.
    pub source: Source,
    /// First and last lines, from 1, of what compiles only for tests.
    tests: Vec<(usize, usize)>,
}

impl ProductFile {
    /// Whether this line, from 1, compiles only for tests.
    #[must_use]
    pub fn is_test(&self, line: usize) -> bool {
        self.tests
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&line))
    }

    /// The code outside of tests: number from 1, and the line with strings and comments blanked.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.source.code().lines().enumerate();
        lines
            .map(|(n, line)| (n + 1, line))
            .filter(|(n, _)| !self.is_test(*n))
    }

    /// Number of lines that are neither tests nor comments nor blank.
    #[must_use]
    pub fn lines(&self) -> usize {
        let lines = self.source.text().lines().enumerate();
        lines
            .filter(|(n, line)| {
                let line = line.trim();
                !line.is_empty() && !line.starts_with("//") && !self.is_test(n + 1)
            })
            .count()
    }
}

/// All files of the product, sorted by path.
#[must_use]
pub fn product(repository: &Repository) -> Vec<ProductFile> {
    let only_tests = test_files(repository);
    let mut found = Vec::new();
    for path in repository.files_ending(".rs") {
        let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
        let ["crates", crate_name, "src", ..] = parts[..] else {
            continue;
        };
        if ONLY_FOR_TESTS.contains(&crate_name) || only_tests.contains(&path) {
            continue;
        }
        let source = Source::new(&repository.read(&path).unwrap_or_default());
        found.push(ProductFile {
            crate_name: crate_name.to_owned(),
            tests: source.test_lines(),
            source,
            path,
        });
    }
    found
}

/// Files under `tests`, and modules that compile only for tests, with all files below them.
#[must_use]
pub fn test_files(repository: &Repository) -> BTreeSet<PathBuf> {
    let files = repository.files_ending(".rs");
    let mut found: BTreeSet<PathBuf> = files
        .iter()
        .filter(|path| {
            path.iter()
                .any(|part| part == "tests" || part == "tests.rs")
        })
        .cloned()
        .collect();
    for path in &files {
        let source = Source::new(&repository.read(path).unwrap_or_default());
        for (name, _) in source
            .modules()
            .iter()
            .filter(|(_, only_tests)| *only_tests)
        {
            let folder = match path.file_stem().and_then(|it| it.to_str()) {
                Some("lib" | "main") => path.parent().map(Path::to_owned),
                _ => Some(path.with_extension("")),
            };
            let module = folder.unwrap_or_default().join(name);
            let below = files.iter().filter(|it| it.starts_with(&module));
            found.extend(below.cloned());
            found.insert(module.with_extension("rs"));
        }
    }
    found
}
