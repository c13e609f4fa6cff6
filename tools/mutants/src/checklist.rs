//! The MUST lines of the checklist that bind a broker, and which of them have no mutation.

use crate::BoxError;
use crate::mutation::Mutation;
use std::collections::BTreeSet;
use std::path::Path;
use sutler_spec_map::{Level, Line, checklist};

/// Short form of the checklist, in the directory of the tool that maps it to tests.
const CHECKLIST: &str = "tools/spec-map/checklist.txt";

/// The MUST lines without a mutation.
pub(crate) fn without_mutation(
    root: &Path,
    mutations: &[Mutation],
) -> Result<Vec<String>, BoxError> {
    let text = std::fs::read_to_string(root.join(CHECKLIST))
        .map_err(|error| format!("{CHECKLIST} cannot be read: {error}"))?;
    let broken: BTreeSet<&str> = mutations.iter().map(Mutation::line).collect();
    let binds = |line: &Line| line.level == Level::Must && line.reason.is_none();
    let open = |line: &Line| binds(line) && !broken.contains(line.number.as_str());
    let lines = checklist(&text, "")?.into_iter().filter(open);
    Ok(lines.map(|line| line.number).collect())
}
