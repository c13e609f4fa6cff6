//! Dependencies between the top-level modules of a crate, and the largest cycle among them.
//!
//! An edge is a path that begins with `crate::` (or as many `super::` as lead to the root of the crate)
//! outside of tests, or a name that the root re-exports from a module. Not a parser: groups in braces
//! are expanded, macros are not.

use crate::product::ProductFile;
use std::collections::{BTreeMap, BTreeSet};

/// Modules with the modules that each uses.
pub type Edges = BTreeMap<String, BTreeSet<String>>;

/// The edges between the top-level modules of one crate.
#[must_use]
pub fn edges(files: &[&ProductFile]) -> Edges {
    let modules: BTreeSet<String> = files
        .iter()
        .filter_map(|it| place(it).into_iter().next())
        .collect();
    let roots = files.iter().filter(|it| place(it).is_empty());
    let exported: BTreeMap<String, String> =
        roots.flat_map(|it| re_exports(it, &modules)).collect();
    let mut edges: Edges = modules
        .iter()
        .map(|it| (it.clone(), BTreeSet::new()))
        .collect();
    for file in files {
        let place = place(file);
        let Some(from) = place.first() else {
            continue;
        };
        for path in root_paths(&code(file), place.len()) {
            let first = path.split("::").next().unwrap_or_default();
            let to = modules.get(first).or_else(|| exported.get(first));
            if let Some(to) = to.filter(|it| *it != from) {
                edges.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    edges
}

/// The largest set of modules each of which leads to every other; empty if there is no cycle.
#[must_use]
pub fn largest_cycle(edges: &Edges) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|it| (it.as_str(), reached(edges, it)))
        .collect();
    let cycles = reach.iter().map(|(module, seen)| {
        let mutual = seen
            .iter()
            .filter(|it| reach.get(*it).is_some_and(|back| back.contains(module)));
        mutual.map(|it| (*it).to_owned()).collect::<Vec<_>>()
    });
    cycles.max_by_key(Vec::len).unwrap_or_default()
}

fn reached<'a>(edges: &'a Edges, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = edges
        .get(from)
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    while let Some(module) = next.pop() {
        if seen.insert(module) {
            next.extend(edges.get(module).into_iter().flatten().map(String::as_str));
        }
    }
    seen
}

/// The module path of a file from the root of its crate; empty for the root itself.
fn place(file: &ProductFile) -> Vec<String> {
    let inside = file.path.iter().skip(3).filter_map(|it| it.to_str());
    let names: Vec<String> = inside
        .map(|it| it.trim_end_matches(".rs").to_owned())
        .collect();
    match names.as_slice() {
        [only] if only == "lib" || only == "main" => Vec::new(),
        _ => names,
    }
}

fn code(file: &ProductFile) -> String {
    file.code_lines()
        .map(|(_, line)| line.to_owned() + "\n")
        .collect()
}

/// `pub use module::{A, B}` in the root: the module of each name.
fn re_exports(file: &ProductFile, modules: &BTreeSet<String>) -> Vec<(String, String)> {
    let code = code(file);
    let uses = code
        .split(';')
        .filter_map(|it| it.split_once("use ").map(|(_, rest)| rest));
    let paths = uses.flat_map(expanded);
    paths
        .filter_map(|path| {
            let (module, _) = path.split_once("::")?;
            let name = path.rsplit([':', ' ']).next()?;
            modules
                .contains(module)
                .then(|| (name.to_owned(), module.to_owned()))
        })
        .collect()
}

/// Everything after `crate::`, or after as many `super::` as lead from `depth` to the root.
fn root_paths(code: &str, depth: usize) -> Vec<String> {
    let up = "super::".repeat(depth);
    let mut paths = Vec::new();
    for prefix in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            paths.extend(expanded(&code[at + prefix.len()..]));
        }
    }
    paths
}

/// The paths that begin here: one, or those of a group in braces, by their first segments.
fn expanded(rest: &str) -> Vec<String> {
    let rest = rest.trim_start();
    if !rest.starts_with('{') {
        let (head, tail) = match rest.split_once("::{") {
            Some((head, tail)) if head.chars().all(is_path) => (head, tail),
            _ => {
                let end = rest
                    .find(|c: char| !is_path(c) && c != ' ')
                    .unwrap_or(rest.len());
                return vec![rest[..end].trim().to_owned()];
            }
        };
        let inner = expanded(&format!("{{{tail}"));
        return inner.iter().map(|it| format!("{head}::{it}")).collect();
    }
    let mut depth = 0_usize;
    let mut parts = vec![String::new()];
    for c in rest.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match c {
            _ if depth == 0 => break,
            '{' if depth == 1 => {}
            ',' if depth == 1 => parts.push(String::new()),
            _ => parts.last_mut().expect("it has one").push(c),
        }
    }
    let parts = parts.iter().filter(|it| !it.trim().is_empty());
    parts.flat_map(|it| expanded(it)).collect()
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

#[cfg(test)]
mod tests {
    use super::{Edges, expanded, largest_cycle, root_paths};

    fn edges(pairs: &[(&str, &str)]) -> Edges {
        let mut edges = Edges::new();
        for (from, to) in pairs {
            edges
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
            edges.entry((*to).to_owned()).or_default();
        }
        edges
    }

    #[test]
    fn groups_in_braces_are_expanded() {
        assert_eq!(
            expanded("{a::{B, C}, d, e::F as G};"),
            ["a::B", "a::C", "d", "e::F as G"]
        );
        assert_eq!(expanded("a::{self, B};"), ["a::self", "a::B"]);
    }

    #[test]
    fn paths_to_the_root_are_found_from_any_depth() {
        let code = "use crate::a::B; x(super::super::c::d()); super::e::f(); $crate::g!();";
        assert_eq!(root_paths(code, 2), ["a::B", "c::d"]);
    }

    #[test]
    fn the_largest_cycle_is_found_and_a_chain_is_none() {
        assert!(largest_cycle(&edges(&[("a", "b"), ("b", "c")])).is_empty());
        let two = edges(&[
            ("a", "b"),
            ("b", "a"),
            ("c", "d"),
            ("d", "e"),
            ("e", "c"),
            ("a", "c"),
        ]);
        assert_eq!(largest_cycle(&two), ["c", "d", "e"]);
    }
}
