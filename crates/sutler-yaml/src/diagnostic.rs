//! One problem in a YAML tree: location, path, and a reason that fits on one line.
//!
//! Problems of the text itself are `ParseError` in `parse.rs`.

use crate::node::Location;
use std::fmt;

/// Longest part of a sentence that may come from the file, in characters.
const QUOTED_CHARS_MAX: usize = 400;

/// A problem found while a tree is read into a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Location in the file; of a missing field, the beginning of the mapping that lacks it.
    pub place: Option<Location>,
    /// Path in the tree, e.g. `users[0].name`; empty at the top.
    pub path: String,
    /// Reason, e.g. `must be a list, but is text`. Never quotes a value.
    pub reason: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        let path = match self.path.as_str() {
            "" => "the file",
            path => path,
        };
        write!(f, "{} {}", one_line(path), one_line(&self.reason))
    }
}

/// Shortens a text and removes control characters, for one line of a message.
pub fn one_line(text: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(QUOTED_CHARS_MAX).map(one_line).collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}
