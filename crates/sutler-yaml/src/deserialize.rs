//! A tree into a type, by serde, with every independent fault told at once.
//!
//! Serde stops at the first fault. So a tree is read as often as it has faults: each time the node
//! that was wrong is passed over as if it were not there, until what is left can be read. A struct
//! that lacks something it needs is passed over as a whole. `reader.rs` is serde's side of it.

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

/// Most faults told of one tree. Each costs a reading, and nobody mends more in one go.
const FAULTS_MAX: usize = 50;

/// What became of a tree.
#[derive(Debug)]
pub struct ReadResult<T> {
    /// The value, without what was faulty; nothing if not even that can be.
    pub value: Option<T>,
    /// What was faulty, in the order of the file.
    pub faults: Vec<Diagnostic>,
}

/// Reads a tree into a type. Keys that the type does not know are faults where it denies them.
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
        // Without a node to pass over, or with too many, there is no going on.
        if faults.len() >= FAULTS_MAX || !skipped.add(&error, root) {
            break None;
        }
    };
    faults.sort_by_key(|fault| fault.place);
    ReadResult { value, faults }
}

/// Nodes that were faulty, by their address: the tree stands still while it is read.
#[derive(Default)]
struct SkippedNodes {
    nodes: HashSet<usize>,
    paths: HashSet<String>,
}

impl SkippedNodes {
    fn has(&self, node: &Node) -> bool {
        self.nodes.contains(&address(node))
    }

    /// Passes over the node of an error; false if it is the whole tree, or was passed over before.
    fn add(&mut self, error: &Error, root: &Node) -> bool {
        let Some(node) = error.node else {
            return false;
        };
        self.paths.insert(error.path.clone());
        node != address(root) && self.nodes.insert(node)
    }

    /// Whether something is missing only because it was passed over, which has been said.
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
