//! The error of one pass: the message of serde in plain words, with path and location.
//!
//! Serde's own messages quote values, and a value may be a secret: they are not used.

use super::address;
use super::reader::Path;
use crate::diagnostic::Diagnostic;
use crate::keys::nearest;
use crate::node::{Location, Node};
use serde::de::{Expected, Unexpected};
use std::fmt;

/// Most keys listed where none is similar.
const NAMED_MAX: usize = 30;

#[derive(Debug)]
pub(super) struct Error {
    /// Address of the node to skip.
    pub(super) node: Option<usize>,
    pub(super) place: Option<Location>,
    pub(super) path: String,
    /// A missing field.
    pub(super) missing: Option<&'static str>,
    reason: String,
}

impl Error {
    pub(super) fn new(reason: String) -> Self {
        Self {
            node: None,
            place: None,
            path: String::new(),
            missing: None,
            reason,
        }
    }

    /// A value of another kind than expected.
    pub(super) fn wanted(wanted: &str, node: &Node) -> Self {
        Self::new(format!("must be {wanted}, but is {}", node.kind_name()))
    }

    /// Adds path and location, unless an inner value has set them.
    pub(super) fn at(mut self, node: &Node, trail: &Path<'_>) -> Self {
        if self.node.is_none() {
            self.node = Some(address(node));
            self.place = Some(node.place);
            self.path = trail.to_string();
        }
        self
    }

    /// Like [`Error::at`], for an error of the key and not of its value.
    pub(super) fn at_key(self, node: &Node, trail: &Path<'_>) -> Self {
        let known = self.node.is_some();
        let mut error = self.at(node, trail);
        if !known {
            error.place = Some(node.begins());
        }
        error
    }

    pub(super) fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic {
            // Line 0: the value is not from the file.
            place: self.place.filter(|place| place.line > 0),
            path: self.path.clone(),
            reason: self.reason.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self::new(reason.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::new(format!("must be {wanted}"))
    }

    fn invalid_value(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::new(match range(&wanted.to_string()) {
            Some(range) => format!("must be a whole number {range}"),
            None => format!("must be {wanted}"),
        })
    }

    fn invalid_length(length: usize, wanted: &dyn Expected) -> Self {
        Self::new(format!("has {length} items, but must have {wanted}"))
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!(
            "must be {}{}",
            listed(known, " or "),
            meant(given, known)
        ))
    }

    fn unknown_field(given: &str, known: &'static [&'static str]) -> Self {
        Self::new(match nearest(given, known.iter().copied()) {
            Some(near) => format!("is not a key; did you mean `{near}`?"),
            None => format!("is not a key; the keys here are {}", listed(known, " and ")),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        let mut error = Self::new(format!("needs `{field}`, which is not there"));
        error.missing = Some(field);
        error
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("has `{field}` twice; remove one of them"))
    }
}

fn meant(given: &str, known: &[&str]) -> String {
    nearest(given, known.iter().copied())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

/// The values that a Rust type can hold, in words.
fn range(name: &str) -> Option<String> {
    match name {
        "u8" => Some(format!("from 0 to {}", u8::MAX)),
        "u16" => Some(format!("from 0 to {}", u16::MAX)),
        "u32" => Some(format!("from 0 to {}", u32::MAX)),
        "u64" | "usize" => Some("that is not negative".to_owned()),
        "i64" => Some("of 64 bits".to_owned()),
        _ => None,
    }
}

/// `a`, `b` or `c`.
fn listed(names: &[&str], last: &str) -> String {
    let mut text = String::new();
    let shown = &names[..names.len().min(NAMED_MAX)];
    for (nth, name) in shown.iter().enumerate() {
        match nth {
            0 => {}
            _ if nth + 1 == names.len() => text.push_str(last),
            _ => text.push_str(", "),
        }
        text.push_str(&format!("`{name}`"));
    }
    if shown.len() < names.len() {
        text.push_str(" …");
    }
    text
}
