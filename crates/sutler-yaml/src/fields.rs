//! Reads a mapping with known keys: one value of one type per key, all problems collected.
//!
//! Keys are found in any spelling (`keys.rs`). A value of the wrong type is reported and counts as absent. The
//! format of a file decides how problems are worded and stored: it implements [`FieldFindings`].

use crate::keys::{nearest, plain};
use crate::node::{Kind, Location, Node};

/// Collects the problems of one file format.
pub trait FieldFindings {
    /// A known key.
    type Key: Copy + PartialEq;
    /// Rule of the format that a problem violates; `()` if the format numbers no rules.
    type Rule: Copy + Default;

    /// Spelling of a key in paths.
    fn name(key: Self::Key) -> &'static str;

    /// Rule about the value of a key.
    fn rule(key: Self::Key) -> Self::Rule;

    /// Reports an invalid value. The reason continues a sentence that begins with the path.
    fn invalid(&mut self, place: Location, path: String, reason: String, rule: Self::Rule);

    /// Reports a second spelling of a key, in the mapping with this path.
    fn repeated(&mut self, written: &str, value: &Node, path: &str, key: Self::Key);

    /// Reports an unknown key of the mapping with this path, and the most similar known key.
    fn unknown(&mut self, written: &str, value: &Node, path: &str, meant: Option<&'static str>);

    /// Reason for a scalar that cannot be read as `wanted`.
    fn wrong_scalar(node: &Node, wanted: &str) -> String {
        wrong_kind(node, wanted)
    }
}

/// A mapping with its known keys.
pub struct Fields<'a, F: FieldFindings> {
    /// Path in the file; empty at the top.
    pub path: String,
    /// Location where the mapping, or its key, begins.
    pub place: Location,
    values: Vec<(F::Key, &'a Node)>,
}

impl<'a, F: FieldFindings> Fields<'a, F> {
    /// Matches the keys of a mapping; `None` for another type.
    pub fn read(
        node: &'a Node,
        path: impl Into<String>,
        known: &[F::Key],
        findings: &mut F,
    ) -> Option<Self> {
        Self::read_under(F::Rule::default(), node, path, known, findings)
    }

    /// As [`Fields::read`]; another type violates this rule.
    pub fn read_under(
        rule: F::Rule,
        node: &'a Node,
        path: impl Into<String>,
        known: &[F::Key],
        findings: &mut F,
    ) -> Option<Self> {
        let path = path.into();
        let Some(entries) = node.entries() else {
            findings.invalid(node.place, path, wrong_kind(node, "a mapping"), rule);
            return None;
        };
        let mut values: Vec<(F::Key, &Node)> = Vec::new();
        for (written, value) in entries {
            match find::<F>(written, known) {
                Some(key) if values.iter().any(|(other, _)| *other == key) => {
                    findings.repeated(written, value, &path, key);
                }
                Some(key) => values.push((key, value)),
                None => {
                    let meant = nearest(written, known.iter().map(|key| F::name(*key)));
                    findings.unknown(written, value, &path, meant);
                }
            }
        }
        Some(Self {
            path,
            place: node.begins(),
            values,
        })
    }

    /// The value under this key, unless it is null.
    pub fn get(&self, name: &str) -> Option<&'a Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// The path of this key.
    pub fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// Location of the value under this key, or of the mapping.
    pub fn place_of(&self, name: &str) -> Location {
        self.get(name).map_or(self.place, |node| node.place)
    }

    /// A text; numbers and booleans are taken as written.
    pub fn text(&self, name: &str, findings: &mut F) -> Option<String> {
        self.read_as(name, "text", Node::text, findings)
    }

    /// A text that must be there and not be empty.
    pub fn required_text(&self, name: &str, findings: &mut F) -> Option<String> {
        let text = self.text(name, findings);
        let empty = text.as_ref().is_some_and(|text| text.trim().is_empty());
        if empty || self.get(name).is_none() {
            self.refuse(name, "is required".to_owned(), findings);
            return None;
        }
        text
    }

    /// One of some words.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], findings: &mut F) -> Option<T> {
        let text = self.text(name, findings)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let reason = format!("must be one of `{}`", all.join("`, `"));
            self.refuse(name, reason, findings);
        }
        found.map(|(_, value)| *value)
    }

    /// A whole number that is not negative.
    pub fn count(&self, name: &str, findings: &mut F) -> Option<u64> {
        let count = |node: &Node| node.text()?.trim().parse().ok();
        self.read_as(name, "a whole number, 0 or more", count, findings)
    }

    /// True or false.
    pub fn boolean(&self, name: &str, findings: &mut F) -> Option<bool> {
        self.read_as(name, "true or false", Node::boolean, findings)
    }

    /// The items of a list.
    pub fn list(&self, name: &str, findings: &mut F) -> Option<&'a [Node]> {
        let node = self.get(name)?;
        match &node.kind {
            Kind::List(items) => Some(items),
            Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::Mapping(_) => {
                self.refuse(name, wrong_kind(node, "a list"), findings);
                None
            }
        }
    }

    /// A list of texts.
    pub fn texts(&self, name: &str, findings: &mut F) -> Option<Vec<String>> {
        let items = self.list(name, findings)?;
        let texts = |_: &Node| items.iter().map(Node::text).collect();
        self.read_as(name, "a list of texts", texts, findings)
    }

    /// The mapping under this key.
    pub fn fields(&self, name: &str, known: &[F::Key], findings: &mut F) -> Option<Self> {
        let (key, node) = self.entry(name)?;
        Self::read_under(F::rule(key), node, self.path_of(name), known, findings)
    }

    /// The value under this key, converted by `read`; `wanted` completes "must be …".
    pub fn read_as<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&Node) -> Option<T>,
        findings: &mut F,
    ) -> Option<T> {
        let node = self.get(name)?;
        let value = read(node);
        if value.is_none() {
            let reason = match node.text() {
                Some(_) => F::wrong_scalar(node, wanted),
                None => wrong_kind(node, wanted),
            };
            self.refuse(name, reason, findings);
        }
        value
    }

    fn entry(&self, name: &str) -> Option<(F::Key, &'a Node)> {
        let mut values = self.values.iter().copied();
        values
            .find(|(key, _)| F::name(*key) == name)
            .filter(|(_, node)| !matches!(node.kind, Kind::Null))
    }

    fn refuse(&self, name: &str, reason: String, findings: &mut F) {
        let rule = self.entry(name).map(|(key, _)| F::rule(key));
        let (place, path) = (self.place_of(name), self.path_of(name));
        findings.invalid(place, path, reason, rule.unwrap_or_default());
    }
}

fn wrong_kind(node: &Node, wanted: &str) -> String {
    format!("must be {wanted}, but is {}", node.kind_name())
}

/// The exact spelling is found before any other: `maxlength` is not `max_length`.
fn find<F: FieldFindings>(written: &str, known: &[F::Key]) -> Option<F::Key> {
    let exact = known.iter().find(|key| F::name(**key) == written);
    let normalised = plain(written);
    let alike = || known.iter().find(|key| plain(F::name(**key)) == normalised);
    exact.or_else(alike).copied()
}
