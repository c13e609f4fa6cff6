//! Examples of valid parameters. They are shown to users and run by `sutler bundle test`.
//!
//! Parameters themselves are `parameter.rs`.

use super::fields::Fields;
use super::findings::ManifestFindings;
use super::plan::PlanEntry;
use super::validate::{self, ValidationPoint};
use serde_json::{Map, Value};
use sutler_yaml::Node;

/// Most examples of one bundle.
const EXAMPLES_MAX: usize = 100;

const KEYS: [&str; 6] = [
    "name",
    "description",
    "plan",
    "parameters",
    "update",
    "bind_parameters",
];

/// An example of an instance's lifecycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Unique in the bundle.
    pub name: String,
    /// Text shown to users.
    pub description: Option<String>,
    /// The plan, by name.
    pub plan: String,
    /// The parameters of its provision.
    pub parameters: Map<String, Value>,
    /// An update of the instance, if the example has one.
    pub update: Option<ExampleUpdate>,
    /// The parameters of a bind.
    pub bind_parameters: Map<String, Value>,
}

/// A change in an example.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleUpdate {
    /// The plan to change to, by name.
    pub plan: Option<String>,
    /// Changed parameters.
    pub parameters: Map<String, Value>,
}

/// Reads the examples, and validates each against its plan.
pub(super) fn list(
    top: &Fields<'_>,
    plans: &[PlanEntry],
    findings: &mut ManifestFindings,
) -> Vec<Example> {
    let nodes = top.list("examples", findings).unwrap_or_default();
    if let Some(beyond) = nodes.get(EXAMPLES_MAX) {
        let reason = format!("must not have more than {EXAMPLES_MAX} examples");
        findings.fault(beyond.place, "examples", reason);
    }
    let mut examples: Vec<Example> = Vec::new();
    for (nth, node) in nodes.iter().enumerate().take(EXAMPLES_MAX) {
        let path = format!("examples[{nth}]");
        let Some(example) = example(node, &path, plans, findings) else {
            continue;
        };
        if examples.iter().any(|there| there.name == example.name) {
            let reason = "is the name of an earlier example";
            findings.fault(node.place, &format!("{path}.name"), reason);
        } else {
            examples.push(example);
        }
    }
    examples
}

fn example(
    node: &Node,
    path: &str,
    plans: &[PlanEntry],
    findings: &mut ManifestFindings,
) -> Option<Example> {
    let fields = Fields::read(node, path, &KEYS, findings)?;
    let name = fields.required_text("name", findings);
    let plan = plan_named(&fields, plans, findings)?;
    let parameters = object(&fields, "parameters", findings);
    if let Err(reason) = validate::accepts(&plan.parameters, &parameters, ValidationPoint::Create) {
        misfit(&fields, "parameters", &reason, findings);
    }
    let bind_parameters = object(&fields, "bind_parameters", findings);
    if let Err(reason) = validate::accepts(
        &plan.bind_parameters,
        &bind_parameters,
        ValidationPoint::Create,
    ) {
        misfit(&fields, "bind_parameters", &reason, findings);
    }
    let known = ["plan", "parameters"];
    let update = fields.fields("update", &known, findings);
    let update = update.map(|update| change(&update, plan, &parameters, plans, findings));
    Some(Example {
        name: name?,
        description: fields.text("description", findings),
        plan: plan.name.clone(),
        parameters,
        update,
        bind_parameters,
    })
}

fn change(
    fields: &Fields<'_>,
    plan: &PlanEntry,
    before: &Map<String, Value>,
    plans: &[PlanEntry],
    findings: &mut ManifestFindings,
) -> ExampleUpdate {
    let parameters = object(fields, "parameters", findings);
    let target = fields.text("plan", findings);
    if let Some(target) = target.as_deref()
        && target != plan.name
        && !plan.updates_to.iter().any(|name| name == target)
    {
        let reason = format!("is not among updates_to of the plan `{}`", plan.name);
        findings.fault(fields.place_of("plan"), &fields.path_of("plan"), reason);
    }
    let after = target
        .as_deref()
        .and_then(|it| plans.iter().find(|one| one.name == it));
    let after = after.unwrap_or(plan);
    let mut merged = before.clone();
    merged.extend(parameters.clone());
    // Parameters that the new plan does not have are dropped with the old plan.
    merged.retain(|name, _| after.parameters.iter().any(|it| it.name == *name));
    let judged = validate::accepts(&after.parameters, &parameters, ValidationPoint::Update)
        .and_then(|()| validate::accepts(&after.parameters, &merged, ValidationPoint::Create));
    if let Err(reason) = judged {
        misfit(fields, "parameters", &reason, findings);
    }
    ExampleUpdate {
        plan: target,
        parameters,
    }
}

/// The plan of an example; a bundle with one plan need not name it.
fn plan_named<'p>(
    fields: &Fields<'_>,
    plans: &'p [PlanEntry],
    findings: &mut ManifestFindings,
) -> Option<&'p PlanEntry> {
    let name = fields.text("plan", findings);
    let found = match (&name, plans) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), plans) => plans.iter().find(|plan| plan.name == *name),
    };
    // Without any plan, the missing plans are reported already.
    if found.is_none() && !plans.is_empty() {
        let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        let reason = format!("must be one of `{}`", names.join("`, `"));
        findings.fault(fields.place_of("plan"), &fields.path_of("plan"), reason);
    }
    found
}

fn object(fields: &Fields<'_>, name: &str, findings: &mut ManifestFindings) -> Map<String, Value> {
    let Some(node) = fields.get(name) else {
        return Map::new();
    };
    match node.to_json() {
        Value::Object(map) => map,
        _ => {
            let reason = format!("must be a mapping, but is {}", node.kind_name());
            findings.fault(node.place, &fields.path_of(name), reason);
            Map::new()
        }
    }
}

fn misfit(fields: &Fields<'_>, name: &str, reason: &str, findings: &mut ManifestFindings) {
    let reason = format!("does not fit the plan: {reason}");
    findings.fault(fields.place_of(name), &fields.path_of(name), reason);
}
