//! One fault of a text: where it stands, what it is about, and a sentence that fits on one line.

use crate::node::Location;
use std::fmt;

/// Longest part of a sentence that may come from the file, in characters.
const QUOTED_CHARS_MAX: usize = 400;

/// Something that cannot be, found while a tree was read into a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where in the file; of something missing, where the thing begins that lacks it.
    pub place: Option<Location>,
    /// Where in the tree, e.g. `users[0].name`; empty at the top.
    pub path: String,
    /// What, e.g. `must be a list, but is text`. Never quotes a value.
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

/// Fit for one line of a message.
pub fn one_line(text: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(QUOTED_CHARS_MAX).map(one_line).collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}
