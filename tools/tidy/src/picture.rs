//! A diagram of the crates and their dependencies, from the metadata of cargo.
//!
//! Mermaid, so that it is readable as text and rendered on pages. An arrow that follows from
//! two others is left out; dependencies of tests are not drawn. The allowed arrows are in
//! `tests/it/arrows.rs`, not here.

use crate::{ArrowKind, Repository, Workspace};
use std::collections::{BTreeMap, BTreeSet};

/// The page with the diagram.
pub const PAGE: &str = "docs/crates.md";
/// Command that draws the diagram again.
pub const COMMAND: &str = "run cargo run -p sutler-tidy -- picture";

const BEGIN: &str = "<!-- crates: drawn by cargo run -p sutler-tidy -- picture -->";
const END: &str = "<!-- crates: end -->";

/// Crates, and the crates that each depends on.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The diagram as a fenced block.
#[must_use]
pub fn draw(repository: &Repository, workspace: &Workspace) -> String {
    let crates = workspace
        .members()
        .filter(|it| it.folder(repository).starts_with("crates"));
    let mut arrows: Arrows = crates
        .map(|it| {
            let used = it
                .arrows
                .iter()
                .filter(|arrow| arrow.kind != Some(ArrowKind::Dev));
            (
                it.name.clone(),
                used.map(|arrow| arrow.name.clone()).collect(),
            )
        })
        .collect();
    let members: BTreeSet<String> = arrows.keys().cloned().collect();
    for used in arrows.values_mut() {
        used.retain(|it| members.contains(it));
    }
    block(&arrows)
}

/// The page with this diagram between its markers.
///
/// # Errors
/// The page has no markers.
pub fn with_picture(page: &str, picture: &str) -> Result<String, String> {
    let parted = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) =
        parted.ok_or_else(|| format!("{PAGE} has no lines `{BEGIN}` and `{END}`"))?;
    Ok(format!("{before}{BEGIN}\n{picture}{END}{after}"))
}

fn block(arrows: &Arrows) -> String {
    let mut text = "```mermaid\nflowchart TD\n".to_owned();
    for (from, used) in arrows {
        let direct: Vec<&str> = used
            .iter()
            .filter(|to| {
                !used
                    .iter()
                    .any(|via| via != *to && reaches(arrows, via, to))
            })
            .map(String::as_str)
            .collect();
        let used_by_none = !arrows.values().any(|it| it.contains(from));
        match direct.as_slice() {
            [] if used_by_none => text.push_str(&format!("    {from}\n")),
            [] => {}
            targets => text.push_str(&format!("    {from} --> {}\n", targets.join(" & "))),
        }
    }
    text + "```\n"
}

fn reaches(arrows: &Arrows, from: &str, to: &str) -> bool {
    let used = arrows.get(from).into_iter().flatten();
    used.into_iter()
        .any(|it| it == to || reaches(arrows, it, to))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, block, with_picture};

    #[test]
    fn arrows_that_follow_from_others_are_left_out() {
        let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        let arrows = [
            ("a".to_owned(), set(&["b", "c"])),
            ("b".to_owned(), set(&["c"])),
            ("c".to_owned(), set(&[])),
            ("d".to_owned(), set(&[])),
        ];
        let expected = "```mermaid\nflowchart TD\n    a --> b\n    b --> c\n    d\n```\n";
        assert_eq!(block(&arrows.into_iter().collect()), expected);
    }

    #[test]
    fn the_picture_is_replaced_between_its_markers() {
        let page = format!("x\n{BEGIN}\nold\n{END}\ny\n");
        let expected = format!("x\n{BEGIN}\nnew\n{END}\ny\n");
        assert_eq!(with_picture(&page, "new\n"), Ok(expected));
        assert!(with_picture("x\n", "new\n").is_err());
    }
}
