//! Sets and finds nodes of a YAML tree by path: variables and flags override the file with it.

use std::fmt;
use sutler_yaml::{Kind, Node};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Nth(usize),
}

/// A path from the top, printed as `users[0].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPath(pub(super) Vec<PathStep>);

impl KeyPath {
    /// Parses keys separated by dots.
    pub(super) fn of_keys(dotted: &str) -> Self {
        Self(
            dotted
                .split('.')
                .map(|key| PathStep::Key(key.to_owned()))
                .collect(),
        )
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) if nth == 0 => f.write_str(key)?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Nth(nth) => write!(f, "[{nth}]")?,
            }
        }
        Ok(())
    }
}

/// Sets the value at a path, creating missing nodes.
///
/// # Errors
/// The number of a list item is larger than the length of the list.
pub(super) fn put(node: &mut Node, path: &[PathStep], value: Node) -> Result<(), String> {
    let Some((step, rest)) = path.split_first() else {
        *node = value;
        return Ok(());
    };
    match step {
        PathStep::Key(key) => {
            if !matches!(node.kind, Kind::Mapping(_)) {
                node.kind = Kind::Mapping(Vec::new());
            }
            let Kind::Mapping(entries) = &mut node.kind else {
                return Ok(());
            };
            let known = entries.iter().position(|(name, _)| name == key);
            let at = known.unwrap_or_else(|| {
                entries.push((key.clone(), Node::from_elsewhere(Kind::Null)));
                entries.len() - 1
            });
            put(&mut entries[at].1, rest, value)
        }
        PathStep::Nth(nth) => {
            if !matches!(node.kind, Kind::List(_)) {
                node.kind = Kind::List(Vec::new());
            }
            let Kind::List(items) = &mut node.kind else {
                return Ok(());
            };
            if *nth > items.len() {
                return Err(format!(
                    "names item {nth}, but the next one is {}: number the items from 0 without a gap",
                    items.len()
                ));
            }
            if *nth == items.len() {
                items.push(Node::from_elsewhere(Kind::Null));
            }
            put(&mut items[*nth], rest, value)
        }
    }
}

/// The node at a printed path, or the nearest existing one above it.
pub(super) fn nearest_to<'a>(root: &'a Node, path: &str) -> (&'a Node, bool) {
    let mut node = root;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        let next = match (&node.kind, step.strip_suffix(']')) {
            (Kind::List(items), Some(nth)) => {
                nth.parse().ok().and_then(|nth: usize| items.get(nth))
            }
            (Kind::Mapping(_), None) => node.get(step),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => return (node, false),
        }
    }
    (node, true)
}
