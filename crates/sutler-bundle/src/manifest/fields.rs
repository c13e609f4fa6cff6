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

    fn invalid(&mut self, place: Location, path: String, reason: String, (): ()) {
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

/// A number.
pub(crate) fn number(
    fields: &Fields<'_>,
    name: &str,
    findings: &mut ManifestFindings,
) -> Option<Number> {
    fields.read_as(name, "a number", scalars::number, findings)
}

/// A duration.
pub(crate) fn duration(
    fields: &Fields<'_>,
    name: &str,
    findings: &mut ManifestFindings,
) -> Option<Duration> {
    let wanted = "a duration such as `30s`, `5m` or `2h`, at most 30 days";
    let duration = |node: &Node| scalars::duration(&node.text()?);
    fields.read_as(name, wanted, duration, findings)
}

/// A number of bytes.
pub(crate) fn size(
    fields: &Fields<'_>,
    name: &str,
    findings: &mut ManifestFindings,
) -> Option<u64> {
    let wanted = "a size such as `64KiB` or `512MiB`, at most 1024GiB";
    let size = |node: &Node| scalars::size(&node.text()?);
    fields.read_as(name, wanted, size, findings)
}

fn below(path: &str, written: &str) -> String {
    match path {
        "" => written.to_owned(),
        path => format!("{path}.{written}"),
    }
}
