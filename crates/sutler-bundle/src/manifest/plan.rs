//! Plans of a manifest: name, description, parameters and metadata of each.
//!
//! Parameters are `parameter.rs`.

use super::fields::Fields;
use super::findings::ManifestFindings;
use super::parameter::{self, Parameter};
use serde_json::{Map, Value};
use sutler_yaml::{Kind as Yaml, Node};

/// Maximum plans of one bundle.
const PLANS_MAX: usize = 100;

/// Longest name of a plan, in bytes.
const NAME_BYTES_MAX: usize = 128;

const KEYS: [&str; 10] = [
    "id",
    "name",
    "description",
    "free",
    "bindable",
    "metadata",
    "parameters",
    "bind_parameters",
    "updates_to",
    "maximum_polling_duration",
];

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanEntry {
    /// Its own id, where the author chose one.
    pub id: Option<String>,
    /// Unique in the bundle.
    pub name: String,
    /// For the user.
    pub description: String,
    /// Whether it is free of charge.
    pub free: Option<bool>,
    /// Whether its instances can be bound, if it differs from the bundle's setting.
    pub bindable: Option<bool>,
    /// For the platform's pages.
    pub metadata: Map<String, Value>,
    /// Parameters of an instance.
    pub parameters: Vec<Parameter>,
    /// Parameters of a binding.
    pub bind_parameters: Vec<Parameter>,
    /// Names of the plans that an instance may change to.
    pub updates_to: Vec<String>,
    /// Maximum time that a platform should poll, in seconds.
    pub maximum_polling_duration: Option<u64>,
}

/// Reads the plans. A manifest without plans has its parameters at the top level: they become the plan `default`.
pub(super) fn list(top: &Fields<'_>, findings: &mut ManifestFindings) -> Vec<PlanEntry> {
    let old = top.get("parameters");
    let nodes = top.list("plans", findings).unwrap_or_default();
    if let Some(old) = old {
        let path = top.path_of("parameters");
        if top.get("plans").is_none() {
            let reason = "stands at the top: put it into a plan";
            let instead = "a plan `default` is made of it";
            findings.doubt(old.begins(), &path, reason, instead);
            return vec![default_plan(top, findings)];
        }
        let reason = "means nothing beside plans: put it into them";
        findings.doubt(old.begins(), &path, reason, "it is passed over");
    }
    let not_a_list = |it: &Node| !matches!(it.kind, Yaml::List(_));
    if nodes.is_empty() && !top.get("plans").is_some_and(not_a_list) {
        let place = top.place_of("plans");
        findings.fault(place, "plans", "must have at least one plan");
    }
    if let Some(beyond) = nodes.get(PLANS_MAX) {
        let reason = format!("must not have more than {PLANS_MAX} plans");
        findings.fault(beyond.place, "plans", reason);
    }
    let mut plans: Vec<(PlanEntry, &Node)> = Vec::new();
    for (nth, node) in nodes.iter().enumerate().take(PLANS_MAX) {
        let path = format!("plans[{nth}]");
        let Some(plan) = plan(node, &path, findings) else {
            continue;
        };
        if plans.iter().any(|(there, _)| there.name == plan.name) {
            let reason = "is the name of an earlier plan";
            findings.fault(node.place, &format!("{path}.name"), reason);
        } else {
            plans.push((plan, node));
        }
    }
    check_targets(&plans, findings);
    plans.into_iter().map(|(plan, _)| plan).collect()
}

fn default_plan(top: &Fields<'_>, findings: &mut ManifestFindings) -> PlanEntry {
    let nodes = top.list("parameters", findings).unwrap_or_default();
    let required = top.texts("required", findings).unwrap_or_default();
    PlanEntry {
        id: None,
        name: "default".to_owned(),
        description: "The only plan.".to_owned(),
        free: None,
        bindable: None,
        metadata: Map::new(),
        parameters: parameter::list(nodes, "parameters", &required, findings),
        bind_parameters: Vec::new(),
        updates_to: Vec::new(),
        maximum_polling_duration: None,
    }
}

fn plan(node: &Node, path: &str, findings: &mut ManifestFindings) -> Option<PlanEntry> {
    let fields = Fields::read(node, path, &KEYS, findings)?;
    let name = fields.required_text("name", findings);
    let too_long = |name: &&String| name.len() > NAME_BYTES_MAX || name.contains(char::is_control);
    if name.as_ref().filter(too_long).is_some() {
        let reason = format!("must have at most {NAME_BYTES_MAX} bytes, on one line");
        findings.fault(fields.place_of("name"), &fields.path_of("name"), reason);
    }
    let parameters = |name: &str, findings: &mut ManifestFindings| {
        let nodes = fields.list(name, findings).unwrap_or_default();
        parameter::list(nodes, &fields.path_of(name), &[], findings)
    };
    let (own, bind) = (
        parameters("parameters", findings),
        parameters("bind_parameters", findings),
    );
    let name = name?;
    Some(PlanEntry {
        id: fields.text("id", findings),
        description: described(&fields, &format!("The plan {name}."), findings),
        free: fields.boolean("free", findings),
        bindable: fields.boolean("bindable", findings),
        metadata: metadata(&fields, findings),
        parameters: own,
        bind_parameters: bind,
        updates_to: fields.texts("updates_to", findings).unwrap_or_default(),
        maximum_polling_duration: fields.count("maximum_polling_duration", findings),
        name,
    })
}

/// Reads a description. OSB requires one, old manifests may lack it.
pub(super) fn described(
    fields: &Fields<'_>,
    instead: &str,
    findings: &mut ManifestFindings,
) -> String {
    let text = fields.text("description", findings).unwrap_or_default();
    if !text.trim().is_empty() {
        return text;
    }
    let place = fields.place_of("description");
    let path = fields.path_of("description");
    let instead_text = format!("it becomes `{instead}`");
    findings.doubt(place, &path, "is required: say what it is", &instead_text);
    instead.to_owned()
}

/// Reads metadata, unchanged.
pub(super) fn metadata(fields: &Fields<'_>, findings: &mut ManifestFindings) -> Map<String, Value> {
    let Some(node) = fields.get("metadata") else {
        return Map::new();
    };
    match node.to_json() {
        Value::Object(metadata) => metadata,
        _ => {
            let reason = format!("must be a mapping, but is {}", node.kind_name());
            findings.fault(node.place, &fields.path_of("metadata"), reason);
            Map::new()
        }
    }
}

/// Checks that the plans to change to exist and are different plans.
fn check_targets(plans: &[(PlanEntry, &Node)], findings: &mut ManifestFindings) {
    for (nth, (plan, node)) in plans.iter().enumerate() {
        for target in &plan.updates_to {
            let path = format!("plans[{nth}].updates_to");
            let names = plans.iter().map(|(plan, _)| plan.name.as_str());
            if *target == plan.name {
                let reason = "names the plan itself, which needs no saying";
                findings.warn(node.place, &path, reason);
            } else if !names.clone().any(|name| name == target) {
                let meant = sutler_yaml::nearest(target, names);
                let hint = meant.map_or_else(String::new, |it| format!(", did you mean `{it}`?"));
                let reason = format!("must name plans of this manifest{hint}");
                findings.doubt(node.place, &path, &reason, "it is passed over");
            }
        }
    }
}
