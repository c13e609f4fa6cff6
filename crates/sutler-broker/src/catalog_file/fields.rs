//! Reads the mappings of a catalog file (`sutler_yaml::Fields`): wording of its diagnostics, and value types that
//! only Spring accepts.
//!
//! An unknown key is a warning with the most similar known key.

use super::error::FileDiagnostic;
use sutler_yaml::{FieldFindings, Kind, Location, Node};

/// A key of the specification, and the checklist's line about it.
pub(super) type Key = (&'static str, &'static str);

/// Line of the checklist, if any.
pub(super) type Rule = Option<&'static str>;

/// A mapping with its known keys.
pub(super) type CatalogFields<'a> = sutler_yaml::Fields<'a, Findings>;

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

impl FieldFindings for Findings {
    type Key = Key;
    type Rule = Rule;

    fn name((name, _): Key) -> &'static str {
        name
    }

    fn rule((_, rule): Key) -> Rule {
        Some(rule)
    }

    fn invalid(&mut self, place: Location, path: String, reason: String, rule: Rule) {
        self.fault(place, path, reason, rule);
    }

    fn repeated(&mut self, written: &str, value: &Node, path: &str, (name, rule): Key) {
        let reason = format!("is given twice, the second time as `{written}`");
        self.fault(value.place, format!("{path}.{name}"), reason, Some(rule));
    }

    fn unknown(&mut self, written: &str, value: &Node, path: &str, meant: Option<&'static str>) {
        let (shown, place): (String, _) = (written.chars().take(80).collect(), value.place);
        let mut warning =
            format!("{place}: {path} has the unknown key `{shown}`, which is ignored");
        if let Some(meant) = meant {
            // In the style of the file.
            let meant = match written.contains('_') {
                true => meant.to_owned(),
                false => meant.replace('_', "-"),
            };
            warning.push_str(&format!("; did you mean `{meant}`?"));
        }
        self.warnings.push(warning);
    }
}

/// An item of a list; `None` for `null`, which is not reported.
pub(super) fn item<'a>(
    node: &'a Node,
    path: String,
    known: &[Key],
    rule: &'static str,
    findings: &mut Findings,
) -> Option<CatalogFields<'a>> {
    match node.kind {
        Kind::Null => None,
        _ => CatalogFields::read_under(Some(rule), node, path, known, findings),
    }
}

/// An integer, also in quotes.
pub(super) fn integer(
    fields: &CatalogFields<'_>,
    name: &str,
    findings: &mut Findings,
) -> Option<i64> {
    let integer = |node: &Node| node.text()?.trim().parse().ok();
    fields.read_as(name, "a whole number", integer, findings)
}

/// A list of texts; a single text counts as a list of one, or as several between commas.
pub(super) fn texts(
    fields: &CatalogFields<'_>,
    name: &str,
    findings: &mut Findings,
) -> Option<Vec<String>> {
    let texts = |node: &Node| match &node.kind {
        Kind::List(items) => items.iter().map(Node::text).collect(),
        Kind::Text(text) => Some(text.split(',').map(|one| one.trim().to_owned()).collect()),
        Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Mapping(_) => None,
    };
    fields.read_as(name, "a list of texts", texts, findings)
}
