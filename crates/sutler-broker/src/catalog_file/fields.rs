//! Reads a mapping with known keys, one value of one type each, and collects all diagnostics.
//!
//! A value of the wrong type is reported with its location and counts as absent; an unknown key is a warning with
//! the most similar known key.

use super::error::FileDiagnostic;
use sutler_yaml::{Kind, Location, Node};

/// A key of the specification, and the checklist's line about it.
pub(super) type Key = (&'static str, &'static str);

/// Diagnostics and warnings of a file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<FileDiagnostic>,
    pub(super) warnings: Vec<String>,
}

impl Findings {
    pub(super) fn fault(&mut self, place: Location, path: String, reason: String, rule: Rule) {
        self.faults.push(FileDiagnostic {
            place: Some(place),
            path,
            reason,
            rule,
        });
    }
}

/// Line of the checklist, if any.
pub(super) type Rule = Option<&'static str>;

/// A mapping with its known keys.
pub(super) struct Fields<'a> {
    pub(super) path: String,
    values: Vec<(Key, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// Matches the keys of a mapping; `None` for `null` or another type.
    pub(super) fn read(
        node: &'a Node,
        path: String,
        known: &[Key],
        rule: &'static str,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(entries) = node.entries() else {
            if !matches!(node.kind, Kind::Null) {
                let reason = format!("must be a mapping, but is {}", node.kind_name());
                findings.fault(node.place, path, reason, Some(rule));
            }
            return None;
        };
        let mut values: Vec<(Key, &Node)> = Vec::new();
        for (written, value) in entries {
            let plain = sutler_yaml::plain(written);
            match known
                .iter()
                .find(|(name, _)| sutler_yaml::plain(name) == plain)
            {
                Some(&key) if values.iter().any(|(other, _)| *other == key) => {
                    let path = format!("{path}.{}", key.0);
                    let reason = format!("is given twice, the second time as `{written}`");
                    findings.fault(value.place, path, reason, Some(key.1));
                }
                Some(&key) => values.push((key, value)),
                None => warn_of_unknown(written, value.place, &path, known, findings),
            }
        }
        Some(Self { path, values })
    }

    /// The value under this key.
    pub(super) fn get(&self, name: &str) -> Option<(Key, &'a Node)> {
        self.values
            .iter()
            .find(|((known, _), _)| *known == name)
            .copied()
            .filter(|(_, node)| !matches!(node.kind, Kind::Null))
    }

    /// The path of this key.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// A text; numbers and booleans are taken as written.
    pub(super) fn text(&self, name: &str, findings: &mut Findings) -> Option<String> {
        let (key, node) = self.get(name)?;
        let text = node.text();
        if text.is_none() {
            self.wrong(key, node, "text", findings);
        }
        text
    }

    /// True or false.
    pub(super) fn boolean(&self, name: &str, findings: &mut Findings) -> Option<bool> {
        let (key, node) = self.get(name)?;
        let boolean = node.boolean();
        if boolean.is_none() {
            self.wrong(key, node, "true or false", findings);
        }
        boolean
    }

    /// An integer, also in quotes.
    pub(super) fn integer(&self, name: &str, findings: &mut Findings) -> Option<i64> {
        let (key, node) = self.get(name)?;
        let integer = node.text().and_then(|text| text.trim().parse().ok());
        if integer.is_none() {
            self.wrong(key, node, "a whole number", findings);
        }
        integer
    }

    /// A list of texts; a single text counts as a list of one, or as several between commas.
    pub(super) fn texts(&self, name: &str, findings: &mut Findings) -> Option<Vec<String>> {
        let (key, node) = self.get(name)?;
        let texts: Option<Vec<String>> = match &node.kind {
            Kind::List(items) => items.iter().map(Node::text).collect(),
            Kind::Text(text) => Some(text.split(',').map(|one| one.trim().to_owned()).collect()),
            Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Mapping(_) => None,
        };
        if texts.is_none() {
            self.wrong(key, node, "a list of texts", findings);
        }
        texts
    }

    /// The items of a list.
    pub(super) fn list(&self, name: &str, findings: &mut Findings) -> Option<&'a [Node]> {
        let (key, node) = self.get(name)?;
        match &node.kind {
            Kind::List(items) => Some(items),
            Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::Mapping(_) => {
                self.wrong(key, node, "a list", findings);
                None
            }
        }
    }

    /// The mapping under this key.
    pub(super) fn fields(
        &self,
        name: &str,
        known: &[Key],
        findings: &mut Findings,
    ) -> Option<Fields<'a>> {
        let ((_, rule), node) = self.get(name)?;
        Fields::read(node, self.path_of(name), known, rule, findings)
    }

    fn wrong(&self, (name, rule): Key, node: &Node, wanted: &str, findings: &mut Findings) {
        let reason = format!("must be {wanted}, but is {}", node.kind_name());
        findings.fault(node.place, self.path_of(name), reason, Some(rule));
    }
}

fn warn_of_unknown(
    written: &str,
    place: Location,
    path: &str,
    known: &[Key],
    findings: &mut Findings,
) {
    let shown: String = written.chars().take(80).collect();
    let mut warning = format!("{place}: {path} has the unknown key `{shown}`, which is ignored");
    if let Some(meant) = sutler_yaml::nearest(written, known.iter().map(|(name, _)| *name)) {
        // In the style of the file.
        let meant = if written.contains('_') {
            meant.to_owned()
        } else {
            meant.replace('_', "-")
        };
        warning.push_str(&format!("; did you mean `{meant}`?"));
    }
    findings.warnings.push(warning);
}
