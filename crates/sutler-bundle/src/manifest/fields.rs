//! Reads the mappings of a manifest (`sutler_yaml::Fields`): wording of its findings, and its own value types.
//!
//! Keys may be spelled `max_length`, `max-length` or `maxLength`; the YAML and JSON forms of a manifest differ in
//! nothing else. A value of the wrong type is a fault and counts as absent.

use super::findings::ManifestFindings;
use super::scalars;
use serde_json::Number;
use std::time::Duration;
use sutler_yaml::{FieldFindings, Location, Node};

/// A mapping with its known keys.
pub(crate) type Fields<'a> = sutler_yaml::Fields<'a, ManifestFindings>;

impl FieldFindings for ManifestFindings {
    type Key = &'static str;
    type Rule = ();

    fn name(key: &'static str) -> &'static str {
        key
    }

    fn rule(_: &'static str) {}

    fn wrong_type(&mut self, place: Location, path: String, reason: String, (): ()) {
        self.fault(place, &path, reason);
    }

    fn repeated(&mut self, written: &str, value: &Node, path: &str, key: &'static str) {
        let reason = format!("is the same as `{key}`, which is there already");
        self.fault(value.begins(), &below(path, written), reason);
    }

    fn unknown(&mut self, written: &str, value: &Node, path: &str, meant: Option<&'static str>) {
        let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        let reason = format!("is not known{hint}");
        let path = below(path, written);
        self.doubt(value.begins(), &path, &reason, "it is passed over");
    }

    fn wrong_scalar(_: &Node, wanted: &str) -> String {
        format!("must be {wanted}")
    }
}

/// Value types of a manifest.
pub(crate) trait ManifestFields {
    /// A text that must be there and not be empty.
    fn required_text(&self, name: &str, findings: &mut ManifestFindings) -> Option<String>;
    /// A whole number that is not negative.
    fn count(&self, name: &str, findings: &mut ManifestFindings) -> Option<u64>;
    /// A number.
    fn number(&self, name: &str, findings: &mut ManifestFindings) -> Option<Number>;
    /// A duration.
    fn duration(&self, name: &str, findings: &mut ManifestFindings) -> Option<Duration>;
    /// A number of bytes.
    fn size(&self, name: &str, findings: &mut ManifestFindings) -> Option<u64>;
    /// A list of texts.
    fn texts(&self, name: &str, findings: &mut ManifestFindings) -> Option<Vec<String>>;
    /// One of some words.
    fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        findings: &mut ManifestFindings,
    ) -> Option<T>;
}

impl ManifestFields for Fields<'_> {
    fn required_text(&self, name: &str, findings: &mut ManifestFindings) -> Option<String> {
        let text = self.text(name, findings);
        let empty = text.as_ref().is_some_and(|text| text.trim().is_empty());
        if empty || self.get(name).is_none() {
            findings.fault(self.place_of(name), &self.path_of(name), "is required");
            return None;
        }
        text
    }

    fn count(&self, name: &str, findings: &mut ManifestFindings) -> Option<u64> {
        let count = |node: &Node| node.text()?.trim().parse().ok();
        self.read_as(name, "a whole number, 0 or more", count, findings)
    }

    fn number(&self, name: &str, findings: &mut ManifestFindings) -> Option<Number> {
        self.read_as(name, "a number", scalars::number, findings)
    }

    fn duration(&self, name: &str, findings: &mut ManifestFindings) -> Option<Duration> {
        let wanted = "a duration such as `30s`, `5m` or `2h`, at most 30 days";
        let duration = |node: &Node| scalars::duration(&node.text()?);
        self.read_as(name, wanted, duration, findings)
    }

    fn size(&self, name: &str, findings: &mut ManifestFindings) -> Option<u64> {
        let size = |node: &Node| scalars::size(&node.text()?);
        let wanted = "a size such as `64KiB` or `512MiB`, at most 1024GiB";
        self.read_as(name, wanted, size, findings)
    }

    fn texts(&self, name: &str, findings: &mut ManifestFindings) -> Option<Vec<String>> {
        let items = self.list(name, findings)?;
        let texts = |_: &Node| items.iter().map(Node::text).collect();
        self.read_as(name, "a list of texts", texts, findings)
    }

    fn word<T: Copy>(
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
}

fn below(path: &str, written: &str) -> String {
    match path {
        "" => written.to_owned(),
        path => format!("{path}.{written}"),
    }
}
