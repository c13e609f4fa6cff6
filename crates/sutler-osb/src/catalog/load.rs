//! The rules of a catalog, B-053 to B-079: checks the raw form and builds the checked one.
//!
//! Each function reads one part, records each fault with its path, and returns the checked value or
//! `None`. No function stops at the first fault. The rules of schemas are in `schema.rs`.

use super::faults::{CatalogFault, CatalogFaults, Findings};
use super::offering::{DashboardClient, Requires, ServiceOffering};
use super::plan::Plan;
use super::schema;
use super::spec::{DashboardClientSpec, PlanSpec, ServiceSpec};
use crate::maintenance::MaintenanceInfo;
use crate::non_empty_text::NonEmptyText;
use std::collections::HashMap;

/// Longest string the specification recommends, in characters (B-053).
const STRING_CHARS_ADVISED: usize = 255;

/// Checks all offerings; returns them with the warnings, or all faults.
pub(super) fn check(
    services: Vec<ServiceSpec>,
) -> Result<(Vec<ServiceOffering>, Vec<CatalogFault>), CatalogFaults> {
    let mut findings = Findings::default();
    check_uniqueness(&services, &mut findings);
    let mut offerings = Vec::with_capacity(services.len());
    for (nth, service) in services.into_iter().enumerate() {
        offerings.extend(offering(
            service,
            &format!("services[{nth}]"),
            &mut findings,
        ));
    }
    let Findings { faults, warnings } = findings;
    if faults.is_empty() {
        Ok((offerings, warnings))
    } else {
        Err(CatalogFaults { faults, warnings })
    }
}

fn offering(spec: ServiceSpec, path: &str, findings: &mut Findings) -> Option<ServiceOffering> {
    let at = |field: &str| format!("{path}.{field}");
    let name = name(spec.name, at("name"), "B-055", findings);
    let id = id(spec.id, at("id"), "B-056", findings);
    let description = text(spec.description, at("description"), "B-057", findings);
    if spec.bindable.is_none() {
        findings.fault(at("bindable"), "is required: true or false", "B-058");
    }
    let tags = spec.tags;
    for (nth, tag) in tags.iter().flatten().enumerate() {
        advise_length(tag, || format!("{path}.tags[{nth}]"), findings);
    }
    let requires = requires(spec.requires, path, findings);
    let client = spec
        .dashboard_client
        .map(|client| dashboard_client(client, path, findings));
    let plans = plans(spec.plans, path, findings);
    Some(ServiceOffering {
        name: name?,
        id: id?,
        description: description?,
        tags,
        requires,
        bindable: spec.bindable?,
        instances_retrievable: spec.instances_retrievable,
        bindings_retrievable: spec.bindings_retrievable,
        allow_context_updates: spec.allow_context_updates,
        metadata: spec.metadata,
        dashboard_client: client.flatten(),
        plan_updateable: spec.plan_updateable,
        plans,
    })
}

fn plans(specs: Option<Vec<PlanSpec>>, path: &str, findings: &mut Findings) -> Vec<Plan> {
    let specs = specs.unwrap_or_default();
    if specs.is_empty() {
        findings.fault(
            format!("{path}.plans"),
            "must have at least one plan",
            "B-059",
        );
    }
    let numbered = specs.into_iter().enumerate();
    numbered
        .filter_map(|(nth, spec)| plan(spec, &format!("{path}.plans[{nth}]"), findings))
        .collect()
}

fn plan(spec: PlanSpec, path: &str, findings: &mut Findings) -> Option<Plan> {
    let at = |field: &str| format!("{path}.{field}");
    let id = id(spec.id, at("id"), "B-068", findings);
    let name = name(spec.name, at("name"), "B-069", findings);
    let description = text(spec.description, at("description"), "B-070", findings);
    let maximum_polling_duration = spec.maximum_polling_duration.and_then(|seconds| {
        let duration = u64::try_from(seconds).ok();
        if duration.is_none() {
            let reason = "must be a number of seconds, not a negative number";
            findings.fault(at("maximum_polling_duration"), reason, "B-076");
        }
        duration
    });
    if let Some(info) = &spec.maintenance_info {
        check_maintenance(info, path, findings);
    }
    if let Some(schemas) = &spec.schemas {
        schema::check(schemas, &at("schemas"), findings);
    }
    Some(Plan {
        id: id?,
        name: name?,
        description: description?,
        metadata: spec.metadata,
        free: spec.free,
        bindable: spec.bindable,
        binding_rotatable: spec.binding_rotatable,
        plan_updateable: spec.plan_updateable,
        schemas: spec.schemas,
        maximum_polling_duration,
        maintenance_info: spec.maintenance_info,
        origin: spec.origin,
    })
}

fn requires(
    words: Option<Vec<String>>,
    path: &str,
    findings: &mut Findings,
) -> Option<Vec<Requires>> {
    let words = words?;
    let mut known = Vec::with_capacity(words.len());
    for (nth, word) in words.iter().enumerate() {
        match Requires::from_word(word) {
            Some(permission) => known.push(permission),
            None => {
                let reason = "must be `syslog_drain`, `route_forwarding` or `volume_mount`";
                findings.fault(format!("{path}.requires[{nth}]"), reason, "B-061");
            }
        }
    }
    Some(known)
}

fn dashboard_client(
    spec: DashboardClientSpec,
    path: &str,
    findings: &mut Findings,
) -> Option<DashboardClient> {
    let id = text(
        spec.id,
        format!("{path}.dashboard_client.id"),
        "B-066",
        findings,
    );
    let secret = text(
        spec.secret,
        format!("{path}.dashboard_client.secret"),
        "B-066",
        findings,
    );
    Some(DashboardClient {
        id: id?,
        secret: secret?,
        redirect_uri: spec.redirect_uri,
    })
}

fn check_maintenance(info: &MaintenanceInfo, path: &str, findings: &mut Findings) {
    let path = format!("{path}.maintenance_info.version");
    match info.version.as_deref().map(semver::Version::parse) {
        Some(Ok(_)) => (),
        Some(Err(_)) => {
            findings.fault(path, "must be a semantic version such as 1.2.3", "B-077");
        }
        None => findings.fault(path, "is required", "B-077"),
    }
}

/// A mandatory string.
fn text(
    text: Option<String>,
    path: String,
    rule: &'static str,
    findings: &mut Findings,
) -> Option<NonEmptyText> {
    let Some(text) = text else {
        findings.fault(path, "is required", rule);
        return None;
    };
    advise_length(&text, || path.clone(), findings);
    match NonEmptyText::try_from(text) {
        Ok(text) => Some(text),
        Err(empty) => {
            findings.fault(path, empty.to_string(), rule);
            None
        }
    }
}

/// A mandatory id, of an offering or of a plan, which should need no encoding in a URL (B-021).
fn id<T: TryFrom<String, Error = crate::ids::IdError>>(
    id: Option<String>,
    path: String,
    rule: &'static str,
    findings: &mut Findings,
) -> Option<T> {
    let id = text(id, path.clone(), rule, findings)?;
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !id.as_str().bytes().all(unreserved) {
        let reason = "should consist of letters, digits, `-`, `.`, `_` and `~`";
        findings.warn(path.clone(), reason, "B-021");
    }
    match T::try_from(id.into()) {
        Ok(id) => Some(id),
        Err(invalid) => {
            findings.fault(path, invalid.fault.to_string(), rule);
            None
        }
    }
}

/// A mandatory name, which should be easy to type (B-054).
fn name(
    name: Option<String>,
    path: String,
    rule: &'static str,
    findings: &mut Findings,
) -> Option<NonEmptyText> {
    let name = text(name, path.clone(), rule, findings)?;
    let typeable = |c: char| c.is_alphanumeric() || c == '.' || c == '-';
    let has_word = name.as_str().chars().any(char::is_alphanumeric);
    if !has_word || !name.as_str().chars().all(typeable) {
        let reason = "should consist of letters, digits, `.` and `-`, so that it is easy to type";
        findings.warn(path, reason, "B-054");
    }
    Some(name)
}

fn advise_length(text: &str, path: impl FnOnce() -> String, findings: &mut Findings) {
    let chars = text.chars().count();
    if chars > STRING_CHARS_ADVISED {
        let reason =
            format!("should not be longer than {STRING_CHARS_ADVISED} characters, but has {chars}");
        findings.warn(path(), reason, "B-053");
    }
}

/// Names and ids that appear twice, each reported at its second place.
fn check_uniqueness(services: &[ServiceSpec], findings: &mut Findings) {
    let mut service_names = SeenNames::default();
    let mut service_ids = SeenNames::default();
    let mut plan_ids = SeenNames::default();
    for (nth, service) in services.iter().enumerate() {
        let path = format!("services[{nth}]");
        service_names.note(&service.name, format!("{path}.name"), "B-055", findings);
        service_ids.note(&service.id, format!("{path}.id"), "B-056", findings);
        let mut plan_names = SeenNames::default();
        for (nth, plan) in service.plans.iter().flatten().enumerate() {
            let path = format!("{path}.plans[{nth}]");
            plan_ids.note(&plan.id, format!("{path}.id"), "B-068", findings);
            plan_names.note(&plan.name, format!("{path}.name"), "B-069", findings);
        }
    }
}

/// Texts found so far, with the path of each.
#[derive(Default)]
struct SeenNames<'a>(HashMap<&'a str, String>);

impl<'a> SeenNames<'a> {
    fn note(
        &mut self,
        text: &'a Option<String>,
        path: String,
        rule: &'static str,
        findings: &mut Findings,
    ) {
        // Missing and empty values are reported as other faults.
        let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else {
            return;
        };
        match self.0.get(text) {
            Some(first) => {
                findings.fault(
                    path,
                    format!("must be unique, but is the same as {first}"),
                    rule,
                );
            }
            None => {
                self.0.insert(text, path);
            }
        }
    }
}
