//! Names that a newcomer finds: types, modules and errors, and no large cycles of modules.
//!
//! The figures behind these rules are printed by `cargo run -p sutler-tidy -- names`.

use crate::none;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use sutler_tidy::figures::{AMBIGUOUS_FROM, Figures};
use sutler_tidy::names::{definitions, words};
use sutler_tidy::{Repository, Source};

/// Counted once for all rules.
static FIGURES: LazyLock<Figures> = LazyLock::new(|| Figures::of(&Repository::here()));

/// Maximum modules of a crate in a cycle of dependencies.
const CYCLE_MAX: usize = 5;

/// Participles in the public API for authors of services, which stays as it is.
const PARTICIPLES_OF_AUTHORS: [&str; 2] = ["Provisioned", "Updated"];

/// Names that may be defined often although they are not shared by every crate, with the reason.
const DEFINED_OFTEN: [(&str, &str); 0] = [];

/// Metaphors, and the names to use instead. Neither a module nor a word of a type may be one.
const METAPHORS: [(&str, &str); 44] = [
    ("aside", "background"),
    ("asker", "client"),
    ("bond", "binding data"),
    ("clerk", "background"),
    ("course", "timeline, or the driver of a run"),
    ("deed", "action"),
    ("desk", "requests"),
    ("doubt", "unknown commits"),
    ("doubts", "unknown commits"),
    ("ear", "log stream"),
    ("errand", "task"),
    ("fair", "test registry"),
    ("fate", "status"),
    ("footing", "precondition"),
    ("given", "result, or input"),
    ("graves", "zombies"),
    ("guises", "encodings"),
    ("harbour", "fixture"),
    ("haste", "freshness"),
    ("hear", "decode, or log stream"),
    ("house", "fixture"),
    ("hunt", "kill loop"),
    ("keeper", "source, or guard"),
    ("kin", "process tree"),
    ("obeyed", "command result"),
    ("patience", "limit, or timeout"),
    ("pen", "writer"),
    ("scene", "fixture"),
    ("scribe", "log writer"),
    ("shelf", "version store"),
    ("shop", "publisher"),
    ("stock", "context"),
    ("strike", "redact"),
    ("striker", "redactor"),
    ("teller", "result sender"),
    ("tenants", "instance counts"),
    ("thing", "instance data"),
    ("town", "fixture"),
    ("trouble", "error"),
    ("turnstile", "admission"),
    ("witness", "observer"),
    ("yard", "fixture"),
    ("young", "unindexed"),
    ("ways", "methods"),
];

#[test]
fn no_large_circle_of_modules_depends_on_itself() {
    let figures = &*FIGURES;
    let large = figures.cycles.iter().filter(|(_, it)| it.len() > CYCLE_MAX);
    let complaints: Vec<String> = large
        .map(|(name, cycle)| {
            let modules = cycle.join(", ");
            format!(
                "{name}: {} modules depend on each other, at most {CYCLE_MAX}: {modules}",
                cycle.len()
            )
        })
        .collect();
    none(&complaints);
}

#[test]
fn no_type_is_a_bare_participle() {
    let figures = &*FIGURES;
    let complaints: Vec<String> = figures
        .participles()
        .filter(|(_, it)| !PARTICIPLES_OF_AUTHORS.contains(&it.name.as_str()))
        .map(|(path, it)| {
            let (path, line, name) = (path.display(), it.line, &it.name);
            format!("{path}:{line}: `{name}`: add the noun")
        })
        .collect();
    none(&complaints);
}

#[test]
fn no_type_name_is_defined_again_and_again() {
    let figures = &*FIGURES;
    let excepted = |name: &str| DEFINED_OFTEN.iter().any(|(it, _)| *it == name);
    let ambiguous = figures.ambiguous();
    let complaints: Vec<String> = ambiguous
        .iter()
        .filter(|(name, _)| !excepted(name))
        .map(|(name, count)| {
            let places: Vec<String> = figures
                .types
                .iter()
                .filter(|(_, it)| it.name == *name)
                .map(|(path, it)| format!("{}:{}", path.display(), it.line))
                .collect();
            let places = places.join(", ");
            format!(
                "`{name}` is defined {count} times, at most {}: {places}",
                AMBIGUOUS_FROM - 1
            )
        })
        .collect();
    none(&complaints);
}

#[test]
fn errors_end_in_error() {
    let figures = &*FIGURES;
    let complaints: Vec<String> = figures
        .unlike_errors()
        .map(|(path, it)| {
            let (path, line, name) = (path.display(), it.line, &it.name);
            format!("{path}:{line}: `{name}` is an error: let its name end in `Error`")
        })
        .collect();
    none(&complaints);
}

#[test]
fn no_module_or_type_is_named_after_a_metaphor() {
    let repository = Repository::here();
    let mut complaints = Vec::new();
    for path in repository.files_ending(".rs") {
        let source = Source::new(&repository.read(&path).unwrap_or_default());
        complaints.extend(metaphors_in(&path, &source));
    }
    none(&complaints);
}

/// The metaphors in the path of a file and in the names of its types.
fn metaphors_in(path: &Path, source: &Source) -> Vec<String> {
    let named = |word: &str| {
        let word = word.to_lowercase();
        METAPHORS.iter().find(|(metaphor, _)| *metaphor == word)
    };
    let mut complaints = Vec::new();
    let stem = path.file_stem().and_then(|it| it.to_str());
    for (metaphor, plain) in stem.unwrap_or_default().split('_').filter_map(named) {
        let path = path.display();
        complaints.push(format!("{path}: not `{metaphor}` but {plain}"));
    }
    for found in definitions(source) {
        for (metaphor, plain) in words(&found.name).into_iter().filter_map(named) {
            let (path, line, name) = (path.display(), found.line, &found.name);
            complaints.push(format!(
                "{path}:{line}: `{name}`: not `{metaphor}` but {plain}"
            ));
        }
    }
    complaints
}

#[test]
fn metaphors_are_found_in_names_of_files_and_types() {
    let source = Source::new("struct FrontDesk;\nstruct Desktop;\nenum Shelf {}\n");
    let found = metaphors_in(&PathBuf::from("src/open_shop.rs"), &source);
    assert_eq!(
        found,
        [
            "src/open_shop.rs: not `shop` but publisher",
            "src/open_shop.rs:1: `FrontDesk`: not `desk` but requests",
            "src/open_shop.rs:3: `Shelf`: not `shelf` but version store",
        ]
    );
    assert!(
        metaphors_in(
            &PathBuf::from("src/desktop.rs"),
            &Source::new("struct Desktop;")
        )
        .is_empty()
    );
}
