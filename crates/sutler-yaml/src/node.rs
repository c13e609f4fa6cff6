//! The YAML tree: values with their locations. `parse.rs` creates it.
//!
//! Values may be secrets, so nothing here prints them: `Debug` shows locations and kinds only.

use serde_json::{Map, Number, Value};
use std::fmt;

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A value with its location.
#[derive(Clone)]
pub struct Node {
    /// Location where the value begins.
    pub place: Location,
    /// Location where its key begins, if it has one.
    pub key: Option<Location>,
    /// The value.
    pub kind: Kind,
}

/// Kind and content of a value. Mappings keep the order and spelling of their keys.
#[derive(Clone)]
pub enum Kind {
    /// Nothing, or `~`.
    Null,
    /// `true` or `false`, and no other spelling.
    Bool(bool),
    /// A number and its spelling: `1.10` is 1.1 as a number, but `1.10` as a name.
    Number(Number, String),
    /// Any other scalar.
    Text(String),
    /// Values in their order.
    List(Vec<Node>),
    /// Keys and values in their order.
    Mapping(Vec<(String, Node)>),
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.kind_name(), self.place)
    }
}

impl Node {
    /// A text without a location, e.g. from an environment variable or a flag.
    pub fn text_from_elsewhere(text: impl Into<String>) -> Self {
        Self::from_elsewhere(Kind::Text(text.into()))
    }

    /// A value without a location.
    pub fn from_elsewhere(kind: Kind) -> Self {
        let place = Location { line: 0, column: 0 };
        Self {
            place,
            key: None,
            kind,
        }
    }

    /// The same value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number, _) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Mapping(entries) => {
                let entries = entries.iter();
                let object: Map<String, Value> = entries
                    .map(|(key, value)| (key.clone(), value.to_json()))
                    .collect();
                Value::Object(object)
            }
        }
    }

    /// Name of its kind for messages, e.g. "must be a list, but is text".
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Number(..) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Mapping(_) => "a mapping",
        }
    }

    /// The entries, if it is a mapping.
    pub fn entries(&self) -> Option<&[(String, Node)]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::List(_) => None,
        }
    }

    /// The value under a key, exactly as it is spelled.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let entries = self.entries()?.iter();
        entries
            .into_iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node)
    }

    /// The scalar as it is written; `None` for lists and mappings.
    pub fn text(&self) -> Option<String> {
        match &self.kind {
            Kind::Text(text) => Some(text.clone()),
            Kind::Number(_, spelling) => Some(spelling.clone()),
            Kind::Bool(value) => Some(value.to_string()),
            Kind::Null | Kind::List(_) | Kind::Mapping(_) => None,
        }
    }

    /// A boolean; accepts `yes`, `no`, `on` and `off` as well.
    pub fn boolean(&self) -> Option<bool> {
        match self.text()?.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// Location of its key, or of the value if it has no key.
    pub fn begins(&self) -> Location {
        self.key.unwrap_or(self.place)
    }
}
