//! The manifest of a bundle: `bundle.yml`, or an unmodified `apb.yml`.
//!
//! [`Manifest::load`] (`load_manifest.rs`) parses YAML (`sutler-yaml`) and reads it into this type; it reports
//! every fault at once (`manifest/findings.rs`). Plans are `manifest/plan.rs`, parameters `manifest/parameter.rs`,
//! run settings `manifest/settings.rs`. The catalog entry is `catalog.rs`.

mod dashboard;
mod example;
mod fields;
mod findings;
mod parameter;
mod plan;
mod reserved_names;
mod scalars;
mod settings;
mod template_parameters;
#[cfg(test)]
mod tests;
mod validate;
mod value_type;

pub use dashboard::{Dashboard, DashboardOf};
pub use example::{Example, ExampleUpdate};
pub(crate) use findings::ManifestFindings;
pub use findings::{ManifestError, ManifestFinding, ManifestForm};
pub use parameter::{Condition, Parameter};
pub use plan::PlanEntry;
pub use reserved_names::refuse_reserved;
pub use scalars::duration_text;
pub(crate) use settings::is_semantic;
pub use settings::{
    ActionRules, AsyncSupport, Entrypoint, InlineVars, OnLost, SecretRequirement, UpgradePolicy,
};
pub use template_parameters::{
    has_template_syntax, is_ansible_key, may_be_evaluated, refuse_templates,
};
pub(crate) use validate::same_value;
pub use validate::{ValidationPoint, accepts, accepts_change, with_defaults};
pub use value_type::{NumberRange, RangeBound, ValueKind, ValueType};

use crate::action::Action;
use crate::limits::RunLimits;
use fields::Fields;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use sutler_yaml::{Location, Node};

/// The names of manifests, in the order in which a folder is searched for one.
pub const MANIFEST_FILES: [&str; 4] = ["bundle.yml", "bundle.yaml", "apb.yml", "apb.yaml"];

/// Longest manifest, in bytes. It must fit into a label of an image.
pub const MANIFEST_BYTES_MAX: usize = 256 * 1024;

/// Version of the contract between bundle and broker. The version before it is not supported.
const RUNTIME: u64 = 2;

/// Longest name of a bundle, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Longest reference of an image, in bytes.
const IMAGE_BYTES_MAX: usize = 512;
const NO_REFERENCE: &str = "must be a reference such as `registry.example.com/name@sha256:…`";

const KEYS: [&str; 29] = [
    "version",
    "name",
    "id",
    "bundle_version",
    "upgrade",
    "description",
    "bindable",
    "async",
    "tags",
    "metadata",
    "plans",
    "alpha",
    "runtime",
    "image",
    "delete",
    "parameters",
    "required",
    "entrypoint",
    "inline_vars",
    "template_parameters",
    "actions",
    "deadline",
    "on_lost",
    "limits",
    "secrets",
    "share_provision_credentials",
    "dashboard_url",
    "examples",
    "$schema",
];

/// Manifest of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Form of the file it was read from.
    pub form: ManifestForm,
    /// The bundle's name.
    pub name: String,
    /// The offering's id, where the author chose one.
    pub id: Option<String>,
    /// The author's own version: pinned in instances, and passed to every later action.
    pub bundle_version: Option<String>,
    /// Whether instances of other versions can be upgraded to this one.
    pub upgrade: UpgradePolicy,
    /// For the user.
    pub description: String,
    /// Whether instances can be bound, unless a plan says otherwise.
    pub bindable: bool,
    /// Free keywords.
    pub tags: Vec<String>,
    /// For the platform's pages.
    pub metadata: Map<String, Value>,
    /// Plans; at least one.
    pub plans: Vec<PlanEntry>,
    /// Image to run; `None`: the folder is run as processes.
    pub image: Option<String>,
    /// The entrypoint.
    pub entry: Entrypoint,
    /// Whether the manifest names the entrypoint; otherwise it is the default of its form.
    pub entry_is_stated: bool,
    /// Version of the contract between bundle and broker: 1 or 2.
    pub runtime: u8,
    /// Whether variables may be passed on a command line.
    pub inline_vars: InlineVars,
    /// Parameters whose texts Ansible may evaluate as templates.
    pub template_parameters: BTreeSet<String>,
    /// Secrets that the operator must provide.
    pub secrets: Vec<SecretRequirement>,
    /// Whether a binding without credentials of its own gets those of the provision.
    pub share_provision_credentials: bool,
    /// Dashboard of instances.
    pub dashboard: Option<Dashboard>,
    /// `alpha.dashboard_redirect`: the bundle reports its dashboard's URL while it runs.
    pub dashboard_redirect: bool,
    /// Valid parameters, with a name each.
    pub examples: Vec<Example>,
    /// Warnings about the manifest.
    pub warnings: Vec<ManifestFinding>,
    actions: BTreeMap<Action, ActionRules>,
    limits: RunLimits,
}

impl Manifest {
    /// Image that a manifest names, even if it is ignored because the file is an `apb.yml`.
    ///
    /// # Errors
    /// The manifest names an image that is not a valid reference.
    pub fn image_of(bytes: &[u8]) -> Result<Option<String>, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let documents = sutler_yaml::parse(text).unwrap_or_default();
        let image = documents.first().and_then(|it| it.get("image"));
        match image.map(|node| node.text().unwrap_or_default()) {
            None => Ok(None),
            Some(image) if is_reference(&image) => Ok(Some(image)),
            Some(_) => Err(format!("image {NO_REFERENCE}")),
        }
    }

    /// How an action is run.
    #[must_use]
    pub fn rules(&self, action: Action) -> ActionRules {
        self.actions[&action]
    }

    /// Limits of a run of an action.
    #[must_use]
    pub fn limits(&self, action: Action) -> RunLimits {
        RunLimits {
            deadline: self.rules(action).deadline,
            ..self.limits.clone()
        }
    }

    /// Whether Ansible may read the variables of a run. What an image starts is not in its manifest, so only one that
    /// states another entrypoint is believed not to run playbooks.
    #[must_use]
    pub fn may_run_playbooks(&self) -> bool {
        let unknown = self.image.is_some() && !self.entry_is_stated;
        unknown || self.entry == Entrypoint::Playbooks
    }

    /// The plan of this name.
    #[must_use]
    pub fn plan(&self, name: &str) -> Option<&PlanEntry> {
        self.plans.iter().find(|plan| plan.name == name)
    }

    /// Whether instances of a plan can be bound.
    #[must_use]
    pub fn is_bindable(&self, plan: &PlanEntry) -> bool {
        plan.bindable.unwrap_or(self.bindable)
    }
}

/// Reads the fields of a manifest, and returns them with the document they were read from. Whether the offering can
/// be served is checked by `load_manifest.rs`.
pub(crate) fn read(bytes: &[u8], findings: &mut ManifestFindings) -> Option<(Manifest, Node)> {
    let document = document(bytes, findings)?;
    let top = Fields::read(&document, "", &KEYS, findings)?;
    contract_version(&top, findings);
    let plans = plan::list(&top, findings);
    let examples = example::list(&top, &plans, findings);
    let name = name(&top, findings);
    let manifest = Manifest {
        form: findings.form,
        id: top.text("id", findings).filter(|id| !id.trim().is_empty()),
        bundle_version: bundle_version(&top, findings),
        upgrade: settings::upgrade(&top, findings),
        description: plan::described(&top, "A service without a description.", findings),
        bindable: top.boolean("bindable", findings).unwrap_or(false),
        tags: top.texts("tags", findings).unwrap_or_default(),
        metadata: plan::metadata(&top, findings),
        image: image(&top, findings),
        entry: settings::entry(&top, findings),
        entry_is_stated: top.get("entrypoint").is_some(),
        runtime: runtime(&top, findings),
        inline_vars: settings::inline_vars(&top, findings),
        template_parameters: template_parameters::read(&top, &plans, findings),
        secrets: settings::secrets(&top, findings),
        share_provision_credentials: top
            .boolean("share_provision_credentials", findings)
            .unwrap_or(false),
        dashboard: dashboard(&top, findings),
        dashboard_redirect: dashboard_redirect(&top, findings),
        examples,
        plans,
        warnings: Vec::new(),
        actions: settings::actions(&top, findings),
        limits: settings::limits(&top, findings),
        name: name?,
    };
    Some((manifest, document))
}

/// The one document of the file.
fn document(bytes: &[u8], findings: &mut ManifestFindings) -> Option<Node> {
    let nowhere = Location { line: 0, column: 0 };
    if bytes.len() > MANIFEST_BYTES_MAX {
        let reason = format!("must not be longer than {MANIFEST_BYTES_MAX} bytes");
        findings.fault(nowhere, "", reason);
        return None;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        findings.fault(nowhere, "", "must be text in UTF-8");
        return None;
    };
    match sutler_yaml::parse(text) {
        Err(fault) => {
            let reason = format!("is no YAML: {}", fault.reason);
            findings.fault(fault.place.unwrap_or(nowhere), "", reason);
            None
        }
        Ok(documents) => {
            let count = documents.len();
            let mut documents = documents.into_iter();
            if let (Some(document), 1) = (documents.next(), count) {
                return Some(document);
            }
            let reason = format!("must be one document, but the file has {count}");
            findings.fault(nowhere, "", reason);
            None
        }
    }
}

/// `version` is the version of the contract; only one exists.
fn contract_version(top: &Fields<'_>, findings: &mut ManifestFindings) {
    let version = top.text("version", findings);
    let known = |version: &str| matches!(version, "1.0" | "1.0.0" | "1");
    match version {
        Some(version) if known(version.trim()) => (),
        Some(_) => {
            let reason = "must be `1.0`, the version of the contract; the bundle's own version is \
                          `bundle_version`";
            findings.fault(top.place_of("version"), "version", reason);
        }
        None if findings.form == ManifestForm::Apb && top.get("version").is_none() => {
            findings.warn(top.place, "version", "should be there: `version: 1.0`");
        }
        None => (),
    }
}

fn name(top: &Fields<'_>, findings: &mut ManifestFindings) -> Option<String> {
    let name = top.required_text("name", findings)?;
    let place = top.place_of("name");
    let simple = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let reason = format!("must have at most {NAME_BYTES_MAX} bytes, on one line");
        findings.fault(place, "name", reason);
    } else if !(name.chars().all(simple) && name.starts_with(edge) && name.ends_with(edge)) {
        let reason = "must consist of small letters, digits, `-` and `.`, and begin and end with \
                      a letter or a digit";
        findings.doubt(place, "name", reason, "it is taken as it is");
    }
    Some(name)
}

fn bundle_version(top: &Fields<'_>, findings: &mut ManifestFindings) -> Option<String> {
    let version = top.text("bundle_version", findings)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-+_".contains(c);
    if version.len() > 64 || version.is_empty() || !version.chars().all(fits) {
        let reason = "must be a version such as `1.4.2`, of at most 64 characters";
        findings.fault(top.place_of("bundle_version"), "bundle_version", reason);
    }
    Some(version)
}

/// Reads `image`. In an old manifest it is the name under which it was built; the registry decided which image ran.
fn image(top: &Fields<'_>, findings: &mut ManifestFindings) -> Option<String> {
    let image = top.text("image", findings)?;
    let place = top.place_of("image");
    if findings.form == ManifestForm::Apb {
        findings.warn(
            place,
            "image",
            "is passed over: the folder or registry tells",
        );
        return None;
    }
    if !is_reference(&image) {
        findings.fault(place, "image", NO_REFERENCE);
    }
    Some(image)
}

fn is_reference(image: &str) -> bool {
    let fits = |c: char| c.is_ascii_graphic();
    (1..=IMAGE_BYTES_MAX).contains(&image.len()) && image.chars().all(fits)
}

fn runtime(top: &Fields<'_>, findings: &mut ManifestFindings) -> u8 {
    let reason = match top.count("runtime", findings) {
        None | Some(RUNTIME) => return 2,
        Some(1) => {
            "must be 2: bundles of runtime 1 keep credentials in their pod until somebody fetches them, \
             which nobody does here; build the image on a base whose runtime is 2"
        }
        Some(_) => "must be 2",
    };
    findings.fault(top.place_of("runtime"), "runtime", reason);
    2
}

fn dashboard(top: &Fields<'_>, findings: &mut ManifestFindings) -> Option<Dashboard> {
    let text = top.text("dashboard_url", findings)?;
    let parsed = Dashboard::parse(&text);
    if let Err(reason) = &parsed {
        findings.fault(top.place_of("dashboard_url"), "dashboard_url", reason);
    }
    parsed.ok()
}

fn dashboard_redirect(top: &Fields<'_>, findings: &mut ManifestFindings) -> bool {
    let alpha = top.fields("alpha", &["dashboard_redirect"], findings);
    let flag = alpha.and_then(|alpha| alpha.boolean("dashboard_redirect", findings));
    flag.unwrap_or(false)
}
