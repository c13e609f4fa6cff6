//! Rust files: size, names, and that every one of them is compiled and explained.

use crate::none;
use std::path::{Path, PathBuf};
use sutler_tidy::{Repository, Source};

/// Longest file, tests included. Tables and other data are not Rust and may be longer.
const FILE_LINES_MAX: usize = 500;
/// Longest function, signature included.
const FUNCTION_LINES_MAX: usize = 70;
/// Names without information about the contents.
const UNINFORMATIVE_NAMES: [&str; 7] = [
    "util", "utils", "helper", "helpers", "common", "misc", "manager",
];

fn sources() -> Vec<(PathBuf, Source)> {
    let repository = Repository::here();
    let files = repository.files_ending(".rs");
    assert!(files.len() > 100, "the sources were not found");
    let read = |path: PathBuf| {
        let text = repository.read(&path)?;
        Some((path, Source::new(&text)))
    };
    files.into_iter().filter_map(read).collect()
}

fn stem(path: &Path) -> &str {
    path.file_stem()
        .and_then(|it| it.to_str())
        .unwrap_or_default()
}

#[test]
fn no_file_is_too_long() {
    let mut complaints = Vec::new();
    for (path, source) in sources() {
        let lines = source.text().lines().count();
        if lines > FILE_LINES_MAX {
            complaints.push(format!(
                "{}: {lines} lines, at most {FILE_LINES_MAX}",
                path.display()
            ));
        }
    }
    none(&complaints);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let mut complaints = Vec::new();
    for (path, source) in sources() {
        for function in source.functions() {
            if function.lines() > FUNCTION_LINES_MAX {
                complaints.push(format!(
                    "{}:{}: `{}` has {} lines, at most {FUNCTION_LINES_MAX}",
                    path.display(),
                    function.first_line,
                    function.name,
                    function.lines()
                ));
            }
        }
    }
    none(&complaints);
}

#[test]
fn names_of_files_and_folders_are_informative() {
    let mut complaints = Vec::new();
    for (path, _) in sources() {
        for part in path.iter().filter_map(|it| Path::new(it).file_stem()) {
            if UNINFORMATIVE_NAMES.iter().any(|name| part == *name) {
                complaints.push(format!("{}: name the thing", path.display()));
            }
        }
        if stem(&path) == "mod" {
            complaints.push(format!(
                "{}: name it after its folder, beside it",
                path.display()
            ));
        }
    }
    none(&complaints);
}

#[test]
fn every_file_begins_with_a_description() {
    let mut complaints = Vec::new();
    for (path, source) in sources() {
        if !source.text().starts_with("//! ") {
            complaints.push(format!("{}: does not begin with `//!`", path.display()));
        }
    }
    none(&complaints);
}

#[test]
fn every_file_is_compiled() {
    let repository = Repository::here();
    let mut complaints = Vec::new();
    for (path, _) in sources() {
        if is_root(&repository, &path) {
            continue;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let parents = [
            folder.with_extension("rs"),
            folder.join("lib.rs"),
            folder.join("main.rs"),
        ];
        let declared = parents
            .iter()
            .filter_map(|it| repository.read(it))
            .any(|text| {
                let modules = Source::new(&text).modules();
                modules.iter().any(|(name, _)| name == stem(&path))
            });
        if !declared {
            complaints.push(format!(
                "{}: no `mod {};` names it",
                path.display(),
                stem(&path)
            ));
        }
    }
    none(&complaints);
}

#[test]
fn files_that_a_head_sends_the_reader_to_exist() {
    let repository = Repository::here();
    let files = repository.files();
    let mut complaints = Vec::new();
    for (path, source) in sources() {
        let heads = source
            .text()
            .lines()
            .take_while(|line| line.starts_with("//!"));
        for name in heads.flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let names_a_file = [".rs", ".txt", ".md"].iter().any(|it| name.ends_with(it));
            if names_a_file && !name.contains(['*', ' ']) && !is_there(&files, name) {
                complaints.push(format!("{}: `{name}` is not there", path.display()));
            }
        }
    }
    none(&complaints);
}

fn is_there(files: &[PathBuf], name: &str) -> bool {
    files.iter().any(|path| path.ends_with(name))
}

/// Files that cargo compiles without a `mod` declaration.
fn is_root(repository: &Repository, path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new(""));
    let by_cargo = ["tests", "examples", "benches"].iter().any(|it| {
        let crate_of = folder.parent().filter(|_| folder.ends_with(it));
        crate_of.is_some_and(|it| repository.root().join(it).join("Cargo.toml").exists())
    });
    let named = matches!(stem(path), "lib" | "main" | "build");
    named || by_cargo || folder.ends_with("src/bin")
}
