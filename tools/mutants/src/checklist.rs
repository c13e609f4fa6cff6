//! The MUST lines of the checklist that bind a broker, and which of them have no mutation.

use crate::Fault;
use crate::mutation::Mutation;
use std::collections::BTreeSet;
use std::path::Path;

/// The checklist in short, beside the tool that maps it to tests.
const CHECKLIST: &str = "tools/spec-map/checklist.txt";

/// The MUST lines that nothing breaks.
pub(crate) fn without_mutation(root: &Path, mutations: &[Mutation]) -> Result<Vec<String>, Fault> {
    let path = root.join(CHECKLIST);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{CHECKLIST} cannot be read: {error}"))?;
    let broken: BTreeSet<&str> = mutations.iter().map(Mutation::line).collect();
    Ok(must_lines(&text)
        .filter(|line| !broken.contains(line))
        .map(str::to_owned)
        .collect())
}

fn must_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|word| word.starts_with("B-"))?;
        (words.next() == Some("M")).then_some(name)
    })
}
