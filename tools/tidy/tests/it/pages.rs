//! Pages: short, linked, and consistent with the repository.

use crate::none;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use sutler_tidy::{Document, Repository, Workspace};

/// Maximum lines of the pages that a newcomer reads first.
const LINES_MAX: [(&str, usize); 3] = [
    ("README.md", 220),
    ("docs/ARCHITECTURE.md", 250),
    ("CONTRIBUTING.md", 150),
];

/// The first decision that is this project's own; those before are in the checklist.
const FIRST_OWN_DECISION: u32 = 14;

fn page(path: &str) -> Document {
    let text = Repository::here().read(path);
    Document::new(&text.unwrap_or_else(|| panic!("{path} is missing")))
}

#[test]
fn the_first_pages_are_short() {
    for (path, most) in LINES_MAX {
        let lines = page(path).lines();
        assert!(lines <= most, "{path}: {lines} lines, at most {most}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let repository = Repository::here();
    let mut complaints = Vec::new();
    for path in repository.files_ending(".md") {
        let text = repository.read(&path).unwrap_or_default();
        let here = Document::new(&text);
        for link in here.links() {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = path.parent().unwrap_or(Path::new(""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                folder.join(file)
            };
            let there = repository.root().join(&target);
            let known = anchor.is_empty() || anchors(&there).contains(&anchor.to_owned());
            if !there.exists() || !known {
                complaints.push(format!("{}: {link} leads nowhere", path.display()));
            }
        }
    }
    none(&complaints);
}

fn anchors(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    Document::new(&text).anchors()
}

#[test]
fn the_map_names_every_crate_and_only_files_that_exist() {
    let repository = Repository::here();
    let map = page("docs/ARCHITECTURE.md");
    let spans: BTreeSet<&str> = map.code_spans().into_iter().collect();
    let mut complaints = Vec::new();
    for package in Workspace::of(&repository).members() {
        let folder = package.folder(&repository);
        let folder = folder.to_string_lossy();
        if !spans.contains(&*folder) && !spans.contains(package.name.as_str()) {
            complaints.push(format!("{folder}: the map does not name it"));
        }
    }
    let files = repository.files();
    for span in spans {
        let is_path = [".rs", ".txt", ".md", ".toml", ".yaml", "/"]
            .iter()
            .any(|it| span.ends_with(it));
        if is_path && !span.contains(['*', ' ', '<']) && !exists(&files, span) {
            complaints.push(format!("{span}: named in the map, and not there"));
        }
    }
    none(&complaints);
}

/// Whether a file has this path, or a path with this suffix.
fn exists(files: &[PathBuf], name: &str) -> bool {
    let inner = format!("/{name}");
    files.iter().any(|path| {
        let path = path.to_string_lossy();
        match name.ends_with('/') {
            true => path.starts_with(name) || path.contains(&inner),
            false => path == name || path.ends_with(&inner),
        }
    })
}

#[test]
fn every_dependency_of_the_workspace_has_its_reason_written_down() {
    let repository = Repository::here();
    let manifest = repository.read("Cargo.toml").unwrap_or_default();
    let reasons = repository.read("docs/DEPENDENCIES.md").unwrap_or_default();
    let table = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .unwrap_or_default();
    let table = table.split("\n[").next().unwrap_or_default();
    let mut complaints = Vec::new();
    let mut names = BTreeSet::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, _)) = line.split_once(" = ") else {
            continue;
        };
        names.insert(name);
        if !name.starts_with("sutler") && !reasons.contains(&format!("| `{name}` |")) {
            complaints.push(format!("{name}: no reason in docs/DEPENDENCIES.md"));
        }
    }
    for line in reasons.lines() {
        let listed = line.strip_prefix("| `").and_then(|it| it.split('`').next());
        if let Some(name) = listed.filter(|it| !names.contains(it)) {
            complaints.push(format!("{name}: explained, and not in the workspace"));
        }
    }
    none(&complaints);
}

#[test]
fn every_decision_that_is_cited_is_written_down() {
    let repository = Repository::here();
    let decisions = repository.read("docs/DECISIONS.md").unwrap_or_default();
    let mut complaints = Vec::new();
    for path in repository.files() {
        let text = repository.read(&path).unwrap_or_default();
        for piece in text.split("D-").skip(1) {
            let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
            let own = digits.parse::<u32>().is_ok_and(|n| n >= FIRST_OWN_DECISION);
            if own && digits.len() == 2 && !decisions.contains(&format!("\n## D-{digits} ")) {
                complaints.push(format!(
                    "{}: D-{digits} is nowhere explained",
                    path.display()
                ));
            }
        }
    }
    none(&complaints);
}

/// Pages whose claims are checked against the sources.
const CHECKED: [&str; 7] = [
    "docs/ARCHITECTURE.md",
    "docs/DECISIONS.md",
    "docs/adr/0001-versions-are-commit-ids.md",
    "docs/adr/0002-one-lease-per-worker.md",
    "docs/adr/0003-plan-copies-by-digest.md",
    "docs/adr/0004-index-terms-and-gone-tombstones.md",
    "docs/adr/0005-the-fence-demands-a-live-lease.md",
];

/// A name with this many underscores is a test's.
const UNDERSCORES_OF_A_TEST: usize = 3;

#[test]
fn tests_that_pages_name_exist() {
    let repository = Repository::here();
    let sources: Vec<String> = repository
        .files_ending(".rs")
        .iter()
        .filter_map(|path| repository.read(path))
        .collect();
    let mut complaints = Vec::new();
    for path in CHECKED {
        for span in page(path).code_spans() {
            let is_name = span
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_name || span.matches('_').count() < UNDERSCORES_OF_A_TEST {
                continue;
            }
            let defined = format!("fn {span}(");
            if !sources.iter().any(|text| text.contains(&defined)) {
                complaints.push(format!("{path}: there is no test {span}"));
            }
        }
    }
    none(&complaints);
}

#[test]
fn rows_that_decisions_name_are_in_the_tables() {
    let repository = Repository::here();
    let decisions = repository.read("docs/DECISIONS.md").unwrap_or_default();
    let mut complaints = Vec::new();
    let mut found = 0;
    for span in Document::new(&decisions).code_spans() {
        let Some((row, result)) = span.split_once(" → ") else {
            continue;
        };
        let Some((table, row)) = row.split_once(": ") else {
            continue;
        };
        let path = format!("crates/sutler-broker/tests/transitions/{table}.txt");
        let table = repository.read(&path).unwrap_or_default();
        let holds = rows(&table).iter().any(|(events, cells)| {
            let Some((state, event)) = row.split_once(" | ") else {
                return false;
            };
            let [states, answer, _, next, _] = cells[..] else {
                return false;
            };
            states.split(", ").any(|it| means(it, state))
                && events.iter().any(|it| means(it, event))
                && (answer == result || (answer == "-" && next == result))
        });
        found += 1;
        if !holds {
            complaints.push(format!("{path} does not say: {span}"));
        }
    }
    assert!(found > 10, "the rows were not found");
    none(&complaints);
}

/// The rows of a table of transitions: their events, and their cells.
fn rows(table: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let mut found: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    let mut events = Vec::new();
    let mut after_row = true;
    for line in table.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.contains('|') {
            after_row = true;
            found.push((events.clone(), line.split('|').map(str::trim).collect()));
            continue;
        }
        if std::mem::take(&mut after_row) {
            events.clear();
        }
        events.push(line);
    }
    found
}

/// Whether a pattern of a table matches this name: exactly, or as a prefix if it ends with `*`.
fn means(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}
