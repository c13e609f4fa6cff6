//! Reads a tree into a type by serde and reports every independent problem at once.
//!
//! Serde stops at the first error. So a tree is read once per problem: each time the faulty node is
//! skipped as if it were absent, until the rest can be read. A struct that lacks a required field is
//! skipped as a whole. `deserialize/reader.rs` is the serde deserializer.

mod error;
mod reader;
#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::node::Node;
use error::Error;
use reader::{Path, Reader};
use serde::de::DeserializeOwned;
use std::collections::HashSet;

/// Most problems reported for one tree. Each costs one pass over the tree.
const FAULTS_MAX: usize = 50;

/// Result of reading a tree into a type.
#[derive(Debug)]
pub struct ReadResult<T> {
    /// The value without its faulty parts; `None` if the rest cannot be read either.
    pub value: Option<T>,
    /// Problems, in the order of the file.
    pub faults: Vec<Diagnostic>,
}

/// Reads a tree into a type. Unknown keys are problems if the type denies them.
pub fn read<T: DeserializeOwned>(root: &Node) -> ReadResult<T> {
    let mut skipped = SkippedNodes::default();
    let mut faults: Vec<Diagnostic> = Vec::new();
    let value = loop {
        let reader = Reader {
            node: root,
            trail: Path::Top,
            skipped: &skipped,
        };
        let error = match T::deserialize(reader) {
            Ok(value) => break Some(value),
            Err(error) => error.at(root, &Path::Top),
        };
        if !skipped.explains(&error) {
            faults.push(error.to_diagnostic());
        }
        // Stops if there is no node to skip, or too many problems.
        if faults.len() >= FAULTS_MAX || !skipped.add(&error, root) {
            break None;
        }
    };
    faults.sort_by_key(|fault| fault.place);
    ReadResult { value, faults }
}

/// Faulty nodes, by address: the tree does not move while it is read.
#[derive(Default)]
struct SkippedNodes {
    nodes: HashSet<usize>,
    paths: HashSet<String>,
}

impl SkippedNodes {
    fn has(&self, node: &Node) -> bool {
        self.nodes.contains(&address(node))
    }

    /// Skips the node of an error; false if it is the whole tree, or is skipped already.
    fn add(&mut self, error: &Error, root: &Node) -> bool {
        let Some(node) = error.node else {
            return false;
        };
        self.paths.insert(error.path.clone());
        node != address(root) && self.nodes.insert(node)
    }

    /// Whether a field is missing only because it was skipped, which is reported already.
    fn explains(&self, error: &Error) -> bool {
        let missing = |field: &str| match error.path.as_str() {
            "" => self.paths.contains(field),
            path => self.paths.contains(&format!("{path}.{field}")),
        };
        error.missing.is_some_and(missing)
    }
}

fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}
