//! Metadata: free-form, except for the names that platforms know.
//!
//! Those names are converted to camelCase from any spelling. Everything else keeps its spelling, case and
//! structure: `amount: {USD: 1}` differs from `amount: {usd: 1}`. Entries of `properties` are metadata too, as in
//! Spring Cloud Open Service Broker.

use super::fields::Findings;
use super::icon::{self, Icon};
use serde_json::{Map, Value};
use std::path::Path;
use sutler_yaml::{Kind, Node};

/// Names of the profile and of Cloud Foundry, as they are served (B-065).
const OFFERING_NAMES: [&str; 7] = [
    "displayName",
    "imageUrl",
    "longDescription",
    "providerDisplayName",
    "documentationUrl",
    "supportUrl",
    "shareable",
];

/// Names of the profile, as they are served (B-071).
const PLAN_NAMES: [&str; 3] = ["bullets", "costs", "displayName"];

/// Key of a mapping with more metadata.
const PROPERTIES: &str = "properties";

/// The name of an icon's file, which becomes `imageUrl`.
const ICON: &str = "imageurlresource";

/// Name under which the icon is served.
const IMAGE_URL: &str = "imageUrl";

/// Reads an offering's metadata, and the icon.
pub(super) fn of_offering(
    node: &Node,
    path: String,
    icons: Option<&Path>,
    findings: &mut Findings,
) -> Option<Map<String, Value>> {
    let entries = entries(node, &path, "B-065", findings)?;
    let mut metadata = Map::new();
    let mut resource = None;
    for (key, value) in entries {
        if sutler_yaml::plain(key) == ICON {
            resource = Some(value);
        } else {
            insert(key, value, &OFFERING_NAMES, &mut metadata);
        }
    }
    if let Some(shareable) = metadata.get_mut("shareable")
        && let Some("yes" | "on" | "no" | "off") = shareable.as_str()
    {
        *shareable = Value::Bool(matches!(shareable.as_str(), Some("yes" | "on")));
    }
    let resource = resource.filter(|node| !matches!(node.kind, Kind::Null));
    if let Some(resource) = resource
        && !metadata.contains_key(IMAGE_URL)
    {
        let path = format!("{path}.image_url_resource");
        if let Some(url) = image_url(resource, path, icons, findings) {
            metadata.insert(IMAGE_URL.to_owned(), Value::String(url));
        }
    }
    Some(metadata)
}

/// Reads a plan's metadata.
pub(super) fn of_plan(
    node: &Node,
    path: String,
    findings: &mut Findings,
) -> Option<Map<String, Value>> {
    let entries = entries(node, &path, "B-071", findings)?;
    let mut metadata = Map::new();
    for (key, value) in entries {
        insert(key, value, &PLAN_NAMES, &mut metadata);
    }
    Some(metadata)
}

fn entries<'a>(
    node: &'a Node,
    path: &str,
    rule: &'static str,
    findings: &mut Findings,
) -> Option<&'a [(String, Node)]> {
    let entries = node.entries();
    if entries.is_none() {
        let reason = format!("must be a mapping, but is {}", node.kind_name());
        findings.fault(node.place, path.to_owned(), reason, Some(rule));
    }
    entries
}

/// Adds one entry under the name it is served by.
fn insert(key: &str, value: &Node, names: &[&str], metadata: &mut Map<String, Value>) {
    if let (PROPERTIES, Some(entries)) = (key, value.entries()) {
        for (key, value) in entries {
            metadata.insert(key.clone(), value.to_json());
        }
        return;
    }
    let plain = sutler_yaml::plain(key);
    let known = names.iter().find(|name| sutler_yaml::plain(name) == plain);
    let name = known.map_or(key, |name| *name);
    metadata.insert(name.to_owned(), value.to_json());
}

fn image_url(
    node: &Node,
    path: String,
    icons: Option<&Path>,
    findings: &mut Findings,
) -> Option<String> {
    let Some(resource) = node.text() else {
        let reason = format!("must be a file's name, but is {}", node.kind_name());
        findings.fault(node.place, path, reason, Some("B-065"));
        return None;
    };
    match icon::find(&resource, icons) {
        Icon::Url(url) => Some(url),
        Icon::NoDirectory => {
            let warning = format!(
                "{}: {path} is left out, because the catalog was not read from a directory",
                node.place
            );
            findings.warnings.push(warning);
            None
        }
        Icon::Refused(reason) => {
            findings.fault(node.place, path, reason, Some("B-065"));
            None
        }
    }
}
