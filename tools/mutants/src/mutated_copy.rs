//! The copy of the workspace with all mutations in it, each behind its switch.
//!
//! A mutated expression becomes `(if crate::mutant("B-083") { mutated } else { original })`. Files
//! are written only where they differ, so that a second build is short.

use crate::BoxError;
use crate::mutation::Mutation;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The switch, added to every mutated crate.
const SWITCH: &str = r#"
/// Whether this run is of that mutant.
pub(crate) fn mutant(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("SUTLER_MUTANT").ok()).as_deref() == Some(name)
}
"#;

/// Positions of expressions in a file, and the mutations of each.
pub(crate) type Sites<'m> = BTreeMap<PathBuf, Vec<(Range<usize>, Vec<&'m Mutation>)>>;

/// Finds the position of every mutation; reports all that have none, or more than one.
pub(crate) fn sites<'m>(root: &Path, mutations: &'m [Mutation]) -> Result<Sites<'m>, BoxError> {
    let mut sites: Sites = BTreeMap::new();
    let mut faults = Vec::new();
    for one in mutations {
        let text = std::fs::read_to_string(root.join(&one.file)).unwrap_or_default();
        let positions = positions(&text, one);
        let [place] = &positions[..] else {
            faults.push(format!(
                "{}: `{}` is {} times in {}",
                one.name,
                one.original,
                positions.len(),
                one.file.display()
            ));
            continue;
        };
        let known = sites.entry(one.file.clone()).or_default();
        match known.iter_mut().find(|(range, _)| overlaps(range, place)) {
            Some((range, same)) if range == place => same.push(one),
            Some((_, others)) => {
                let other = &others[0].name;
                faults.push(format!(
                    "{}: overlaps with {other}, but is not the same",
                    one.name
                ));
            }
            None => known.push((place.clone(), vec![one])),
        }
    }
    if faults.is_empty() {
        Ok(sites)
    } else {
        Err(faults.join("\n").into())
    }
}

fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Positions of the expression in its function, on lines that contain the other text.
fn positions(text: &str, one: &Mutation) -> Vec<Range<usize>> {
    let mut positions = Vec::new();
    let mut start = 0;
    let within = match &one.within {
        Some(name) => function(text, name),
        None => 0..text.len(),
    };
    for line in text.split_inclusive('\n') {
        if one
            .same_line
            .as_deref()
            .is_none_or(|same_line| line.contains(same_line))
        {
            let found = line.match_indices(&one.original);
            positions.extend(found.map(|(at, it)| start + at..start + at + it.len()));
        }
        start += line.len();
    }
    positions.retain(|place| within.contains(&place.start));
    positions
}

/// Extent of a function: from its name to the brace in the column in which its line begins.
fn function(text: &str, name: &str) -> Range<usize> {
    let heads = [format!("fn {name}("), format!("fn {name}<")];
    let Some(at) = heads.iter().find_map(|head| text.find(head.as_str())) else {
        return 0..0;
    };
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = text[line..].len() - text[line..].trim_start().len();
    let brace = format!("\n{}}}\n", " ".repeat(indent));
    at..text[at..]
        .find(&brace)
        .map_or(text.len(), |length| at + length)
}

/// Copies the workspace and inserts the mutations. Returns the path of the copy.
pub(crate) fn plant(root: &Path, to: &Path, sites: &Sites) -> Result<PathBuf, BoxError> {
    let files = listed(root)?;
    let crates: BTreeSet<PathBuf> = sites.keys().map(|file| root_of(file)).collect();
    for file in &files {
        let bytes = std::fs::read(root.join(file))?;
        let bytes = match (sites.get(file), crates.contains(file)) {
            (None, false) => bytes,
            (positions, is_root) => {
                let mut text = String::from_utf8(bytes)?;
                if let Some(positions) = positions {
                    text = switched(&text, positions);
                }
                if is_root {
                    text.push_str(SWITCH);
                }
                text.into_bytes()
            }
        };
        write_if_new(&to.join(file), &bytes)?;
    }
    remove_others(to, to, &files)?;
    Ok(to.to_owned())
}

/// The `lib.rs` of a file's crate.
fn root_of(file: &Path) -> PathBuf {
    let src = file.ancestors().find(|it| it.ends_with("src"));
    src.unwrap_or(file).join("lib.rs")
}

fn switched(text: &str, positions: &[(Range<usize>, Vec<&Mutation>)]) -> String {
    let mut positions: Vec<_> = positions.iter().collect();
    positions.sort_by_key(|(range, _)| range.start);
    let mut new = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for (range, mutations) in positions {
        new.push_str(&text[done..range.start]);
        new.push('(');
        for one in mutations {
            new.push_str(&format!(
                "if crate::mutant({:?}) {{ {} }} else ",
                one.name, one.mutated
            ));
        }
        new.push_str(&format!("{{ {} }})", &text[range.clone()]));
        done = range.end;
    }
    new.push_str(&text[done..]);
    new
}

/// Every file that is tracked, or new and not ignored.
fn listed(root: &Path) -> Result<BTreeSet<PathBuf>, BoxError> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()?;
    if !listed.status.success() {
        return Err("git ls-files failed: the tool needs a checkout".into());
    }
    let names = String::from_utf8(listed.stdout)?;
    let files = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from);
    Ok(files.filter(|file| root.join(file).is_file()).collect())
}

fn write_if_new(path: &Path, bytes: &[u8]) -> Result<(), BoxError> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)?;
    Ok(())
}

/// Removes files of an earlier copy.
fn remove_others(folder: &Path, to: &Path, files: &BTreeSet<PathBuf>) -> Result<(), BoxError> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, to, files)?;
        } else if !files.contains(path.strip_prefix(to)?) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{positions, switched};
    use crate::mutation::Mutation;

    fn mutation(original: &str, mutated: &str, same_line: Option<&str>) -> Mutation {
        Mutation {
            name: "B-001".to_owned(),
            original: original.to_owned(),
            mutated: mutated.to_owned(),
            same_line: same_line.map(str::to_owned),
            ..Mutation::default()
        }
    }

    #[test]
    fn an_expression_becomes_a_choice_and_the_rest_stays() {
        let text = "let a = one();\nlet b = one();\n";
        let one = mutation("one()", "two()", Some("let b"));
        let found = positions(text, &one);
        assert_eq!(found.len(), 1);
        let new = switched(text, &[(found[0].clone(), vec![&one])]);
        let choice = r#"let b = (if crate::mutant("B-001") { two() } else { one() });"#;
        assert_eq!(new, format!("let a = one();\n{choice}\n"));
    }

    #[test]
    fn a_function_ends_with_its_own_brace() {
        let text = "fn one() {\n    if x() {\n    }\n}\nfn two<T>() {\n    x()\n}\n";
        let mut one = mutation("x()", "y()", None);
        for (name, at) in [("one", text.find("x()")), ("two", text.rfind("x()"))] {
            one.within = Some(name.to_owned());
            let found: Vec<_> = positions(text, &one).iter().map(|it| it.start).collect();
            assert_eq!(found.first().copied(), at, "{name}");
            assert_eq!(found.len(), 1, "{name}");
        }
        one.within = Some("three".to_owned());
        assert!(positions(text, &one).is_empty());
    }

    #[test]
    fn an_expression_that_is_there_twice_is_found_twice() {
        assert_eq!(
            positions("x(); x();", &mutation("x()", "y()", None)).len(),
            2
        );
    }
}
