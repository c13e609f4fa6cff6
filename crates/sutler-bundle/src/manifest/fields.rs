//! Reads a mapping with known keys: one value of one kind per key, every fault noted in the findings.
//!
//! Keys may be spelled `max_length`, `max-length` or `maxLength`; the YAML and JSON forms of a manifest differ in
//! nothing else. A value of the wrong kind is a fault and counts as absent.

use super::findings::ManifestFindings;
use super::scalars;
use serde_json::Number;
use std::time::Duration;
use sutler_yaml::{Kind, Location, Node};

/// A mapping, its keys sorted out.
pub(crate) struct Fields<'a> {
    /// Where in the manifest; empty at the top.
    pub(crate) path: String,
    /// Where it begins.
    pub(crate) place: Location,
    values: Vec<(&'static str, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// Sorts out the keys of a mapping; gives nothing for what is none.
    pub(crate) fn read(
        node: &'a Node,
        path: &str,
        known: &[&'static str],
        findings: &mut ManifestFindings,
    ) -> Option<Self> {
        let Some(entries) = node.entries() else {
            let reason = format!("must be a mapping, but is {}", node.kind_name());
            findings.fault(node.place, path, reason);
            return None;
        };
        let mut fields = Self {
            path: path.to_owned(),
            place: node.begins(),
            values: Vec::new(),
        };
        for (written, value) in entries {
            let path = fields.path_of(written);
            match find(written, known) {
                Some(key) if fields.values.iter().any(|(other, _)| *other == key) => {
                    let reason = format!("is the same as `{key}`, which is there already");
                    findings.fault(value.begins(), &path, reason);
                }
                Some(key) => fields.values.push((key, value)),
                None => unknown(written, value, &path, known, findings),
            }
        }
        Some(fields)
    }

    /// The value under this key, unless it is nothing.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        let found = self.values.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, node)| *node)
            .filter(|node| !matches!(node.kind, Kind::Null))
    }

    /// The path of this key.
    pub(crate) fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// Where this key stands, or else the mapping.
    pub(crate) fn place_of(&self, name: &str) -> Location {
        self.get(name).map_or(self.place, |node| node.place)
    }

    /// A text; numbers and booleans count as what was written.
    pub(crate) fn text(&self, name: &str, findings: &mut ManifestFindings) -> Option<String> {
        self.read_as(name, "text", Node::text, findings)
    }

    /// A text that must be there and not be empty.
    pub(crate) fn required_text(
        &self,
        name: &str,
        findings: &mut ManifestFindings,
    ) -> Option<String> {
        let text = self.text(name, findings);
        let empty = text.as_ref().is_some_and(|text| text.trim().is_empty());
        if empty || self.get(name).is_none() {
            findings.fault(self.place_of(name), &self.path_of(name), "is required");
            return None;
        }
        text
    }

    /// True or false.
    pub(crate) fn boolean(&self, name: &str, findings: &mut ManifestFindings) -> Option<bool> {
        self.read_as(name, "true or false", Node::boolean, findings)
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&self, name: &str, findings: &mut ManifestFindings) -> Option<u64> {
        let count = |node: &Node| node.text()?.trim().parse().ok();
        self.read_as(name, "a whole number, 0 or more", count, findings)
    }

    /// A number.
    pub(crate) fn number(&self, name: &str, findings: &mut ManifestFindings) -> Option<Number> {
        self.read_as(name, "a number", scalars::number, findings)
    }

    /// How long.
    pub(crate) fn duration(&self, name: &str, findings: &mut ManifestFindings) -> Option<Duration> {
        let wanted = "a duration such as `30s`, `5m` or `2h`, at most 30 days";
        let duration = |node: &Node| scalars::duration(&node.text()?);
        self.read_as(name, wanted, duration, findings)
    }

    /// How many bytes.
    pub(crate) fn size(&self, name: &str, findings: &mut ManifestFindings) -> Option<u64> {
        let size = |node: &Node| scalars::size(&node.text()?);
        let wanted = "a size such as `64KiB` or `512MiB`, at most 1024GiB";
        self.read_as(name, wanted, size, findings)
    }

    /// The items of a list.
    pub(crate) fn list(&self, name: &str, findings: &mut ManifestFindings) -> Option<&'a [Node]> {
        let node = self.get(name)?;
        match &node.kind {
            Kind::List(items) => Some(items),
            Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::Mapping(_) => {
                self.wrong(name, node, "a list", findings);
                None
            }
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str, findings: &mut ManifestFindings) -> Option<Vec<String>> {
        let items = self.list(name, findings)?;
        let texts: Option<Vec<String>> = items.iter().map(Node::text).collect();
        if texts.is_none() {
            self.wrong(name, self.get(name)?, "a list of texts", findings);
        }
        texts
    }

    /// The mapping under this key.
    pub(crate) fn fields(
        &self,
        name: &str,
        known: &[&'static str],
        findings: &mut ManifestFindings,
    ) -> Option<Self> {
        Self::read(self.get(name)?, &self.path_of(name), known, findings)
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        findings: &mut ManifestFindings,
    ) -> Option<T> {
        let text = self.text(name, findings)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let reason = format!("must be one of `{}`", all.join("`, `"));
            findings.fault(self.place_of(name), &self.path_of(name), reason);
        }
        found.map(|(_, value)| *value)
    }

    fn read_as<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&Node) -> Option<T>,
        findings: &mut ManifestFindings,
    ) -> Option<T> {
        let node = self.get(name)?;
        let value = read(node);
        match (&value, node.text()) {
            (Some(_), _) => (),
            // It is of the right kind, and still not right.
            (None, Some(_)) => {
                findings.fault(node.place, &self.path_of(name), format!("must be {wanted}"));
            }
            (None, None) => self.wrong(name, node, wanted, findings),
        }
        value
    }

    fn wrong(&self, name: &str, node: &Node, wanted: &str, findings: &mut ManifestFindings) {
        let reason = format!("must be {wanted}, but is {}", node.kind_name());
        findings.fault(node.place, &self.path_of(name), reason);
    }
}

/// Exactly as it is spelled, before any other spelling: `maxlength` is not `max_length`.
fn find(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let exact = known.iter().find(|key| **key == written);
    let plain = sutler_yaml::plain(written);
    let alike = || known.iter().find(|key| sutler_yaml::plain(key) == plain);
    exact.or_else(alike).copied()
}

fn unknown(
    written: &str,
    value: &Node,
    path: &str,
    known: &[&'static str],
    findings: &mut ManifestFindings,
) {
    let meant = sutler_yaml::nearest(written, known.iter().copied());
    let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
    let reason = format!("is not known{hint}");
    findings.doubt(value.begins(), path, &reason, "it is passed over");
}
