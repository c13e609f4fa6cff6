//! Parameters of an instance or a binding, and the conditions between them.
//!
//! The type of a value is `value_type.rs`, names reserved for the broker `reserved_names.rs`, validation of given
//! parameters `validate.rs`.

use super::fields::Fields;
use super::findings::{ManifestFindings, ManifestForm};
use super::reserved_names;
use super::value_type::{self, ValueType};
use serde_json::Value;
use sutler_yaml::{Kind as Yaml, Node};

/// Maximum parameters per list. A platform shows them as one form.
const PARAMETERS_MAX: usize = 200;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Maximum conditions per parameter.
const CONDITIONS_MAX: usize = 4;

/// Longest chain of parameters that depend on each other.
const CHAIN_MAX: usize = 4;

/// Keys of a parameter that do not describe its value.
const KEYS: [&str; 10] = [
    "name",
    "title",
    "description",
    "default",
    "required",
    "updatable",
    "display_type",
    "display_group",
    "dependencies",
    "secret",
];

/// Field types that forms support.
const DISPLAY_TYPES: [&str; 5] = ["text", "textarea", "password", "checkbox", "select"];

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, for users and for the bundle.
    pub name: String,
    /// Short label for a form.
    pub title: Option<String>,
    /// Longer text for a form.
    pub description: Option<String>,
    /// Type of its value.
    pub value_type: ValueType,
    /// Default; valid for the type.
    pub default: Option<Value>,
    /// Whether it must be present if its conditions hold.
    pub required: bool,
    /// Whether an update may change it.
    pub updatable: bool,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// Field type in a form.
    pub display_type: Option<String>,
    /// Heading in a form.
    pub display_group: Option<String>,
    /// Conditions on other parameters; all must hold, otherwise this one must be absent.
    pub conditions: Vec<Condition>,
}

/// Condition: another parameter has one of these values.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The other parameter.
    pub key: String,
    /// The values, of its type; at least one.
    pub values: Vec<Value>,
}

impl Parameter {
    /// Whether a caller must send it if its conditions hold; a parameter with a default is never demanded.
    #[must_use]
    pub fn is_demanded(&self) -> bool {
        self.required && self.default.is_none()
    }
}

/// Reads a list of parameters; `required` names additional ones that must be present.
pub(super) fn list(
    nodes: &[Node],
    path: &str,
    required: &[String],
    findings: &mut ManifestFindings,
) -> Vec<Parameter> {
    let mut read: Vec<ParameterSource<'_>> = Vec::new();
    if let Some(beyond) = nodes.get(PARAMETERS_MAX) {
        let reason = format!("must not have more than {PARAMETERS_MAX} parameters");
        findings.fault(beyond.place, path, reason);
    }
    for (nth, node) in nodes.iter().enumerate().take(PARAMETERS_MAX) {
        let path = format!("{path}[{nth}]");
        let Some(mut parameter) = entry(node, &path, findings) else {
            continue;
        };
        let name_path = format!("{path}.name");
        if read
            .iter()
            .any(|there| there.parameter.name == parameter.name)
        {
            findings.fault(
                node.place,
                &name_path,
                "is the name of an earlier parameter",
            );
            continue;
        }
        if let Some(reason) = reserved_names::why_not(&parameter.name) {
            let instead = "the broker's own value always won, and it is left out";
            findings.doubt(node.place, &name_path, &reason, instead);
            continue;
        }
        parameter.required |= required.contains(&parameter.name);
        read.push(ParameterSource {
            parameter,
            node,
            path: format!("{path}.dependencies"),
        });
    }
    conditions(&mut read, findings);
    read.into_iter().map(|entry| entry.parameter).collect()
}

/// A parameter, the node it was read from, and the location of its conditions.
struct ParameterSource<'a> {
    parameter: Parameter,
    node: &'a Node,
    path: String,
}

/// Reads the properties of an object: a list of descriptors, or a mapping from names to descriptors.
pub(super) fn properties(
    node: &Node,
    path: &str,
    findings: &mut ManifestFindings,
) -> Vec<Parameter> {
    let known: Vec<&'static str> = keys().filter(|key| *key != "dependencies").collect();
    let mut properties: Vec<Parameter> = Vec::new();
    let mut add = |node: &Node, path: &str, name: Option<&str>, findings: &mut ManifestFindings| {
        let fields = Fields::read(node, path, &known, findings);
        let read = fields.and_then(|fields| described(&fields, name, findings));
        match read {
            Some(read) if properties.iter().any(|it| it.name == read.name) => {
                findings.fault(node.place, path, "is described twice");
            }
            Some(read) => properties.push(read),
            None => (),
        }
    };
    match &node.kind {
        Yaml::List(items) => {
            for (nth, item) in items.iter().enumerate() {
                add(item, &format!("{path}[{nth}]"), None, findings);
            }
        }
        Yaml::Mapping(entries) => {
            for (name, item) in entries {
                add(item, &format!("{path}.{name}"), Some(name), findings);
            }
        }
        Yaml::Null | Yaml::Bool(_) | Yaml::Number(..) | Yaml::Text(_) => {
            let reason = format!("must be a mapping or a list, but is {}", node.kind_name());
            findings.fault(node.place, path, reason);
        }
    }
    properties
}

fn keys() -> impl Iterator<Item = &'static str> {
    let value_type = value_type::KEYS.into_iter().filter(|key| *key != "secret");
    KEYS.into_iter().chain(value_type)
}

/// Reads one entry of a list. In manifests without plans, an entry is `- name: {type: …}`.
fn entry(node: &Node, path: &str, findings: &mut ManifestFindings) -> Option<Parameter> {
    let known: Vec<&'static str> = keys().collect();
    if let (ManifestForm::Apb, Some([(name, inner)])) = (findings.form, node.entries())
        && inner.entries().is_some()
    {
        let reason = "is written the way it was before there were plans: put the name under `name`";
        findings.warn(node.place, path, reason);
        let fields = Fields::read(inner, path, &known, findings)?;
        return described(&fields, Some(name), findings);
    }
    let fields = Fields::read(node, path, &known, findings)?;
    described(&fields, None, findings)
}

fn described(
    fields: &Fields<'_>,
    name: Option<&str>,
    findings: &mut ManifestFindings,
) -> Option<Parameter> {
    let name = match name {
        Some(name) => Some(name.to_owned()),
        None => fields.required_text("name", findings),
    };
    let value_type = value_type::read(fields, findings);
    let (name, value_type) = (name?, value_type?);
    check_name(&name, fields, findings);
    let default = default(&value_type, fields, findings);
    let display_type = fields.text("display_type", findings);
    if let Some(word) = display_type.as_deref()
        && !DISPLAY_TYPES.contains(&word)
    {
        let place = fields.place_of("display_type");
        let reason = format!("should be one of `{}`", DISPLAY_TYPES.join("`, `"));
        findings.warn(place, &fields.path_of("display_type"), reason);
    }
    let secret = fields.boolean("secret", findings);
    Some(Parameter {
        name,
        title: fields.text("title", findings),
        description: fields.text("description", findings),
        default,
        required: fields.boolean("required", findings).unwrap_or(false),
        updatable: fields.boolean("updatable", findings).unwrap_or(false),
        secret: secret.unwrap_or(display_type.as_deref() == Some("password")),
        display_type,
        display_group: fields.text("display_group", findings),
        value_type,
        conditions: Vec::new(),
    })
}

fn check_name(name: &str, fields: &Fields<'_>, findings: &mut ManifestFindings) {
    let place = fields.place_of("name");
    let path = fields.path_of("name");
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let word = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let reason = format!("must have at most {NAME_BYTES_MAX} bytes, on one line");
        findings.fault(place, &path, reason);
    } else if !word {
        let reason = "must consist of letters, digits and `_`, so that it can name a variable";
        findings.doubt(place, &path, reason, "it is passed on as it is");
    }
}

fn default(
    value_type: &ValueType,
    fields: &Fields<'_>,
    findings: &mut ManifestFindings,
) -> Option<Value> {
    let node = fields.get("default")?;
    match value_type.typed(node) {
        Ok(value) => Some(value),
        Err(reason) => {
            let path = fields.path_of("default");
            findings.doubt(node.place, &path, &reason, "it is left out");
            None
        }
    }
}

/// Reads the conditions of parameters, after all parameters are known.
fn conditions(read: &mut [ParameterSource<'_>], findings: &mut ManifestFindings) {
    let known = |entry: &ParameterSource<'_>| {
        (
            entry.parameter.name.clone(),
            entry.parameter.value_type.clone(),
        )
    };
    let controllers: Vec<(String, ValueType)> = read.iter().map(known).collect();
    for entry in read.iter_mut() {
        let Some(dependencies) = entry.node.get("dependencies") else {
            continue;
        };
        let path = &entry.path;
        let Yaml::List(items) = &dependencies.kind else {
            if !matches!(dependencies.kind, Yaml::Null) {
                findings.fault(dependencies.place, path, "must be a list of {key, value}");
            }
            continue;
        };
        if items.len() > CONDITIONS_MAX {
            let reason = format!("must not have more than {CONDITIONS_MAX} entries");
            findings.fault(dependencies.place, path, reason);
        }
        for (nth, item) in items.iter().enumerate().take(CONDITIONS_MAX) {
            let path = format!("{path}[{nth}]");
            let read = condition(item, &path, &entry.parameter, &controllers, findings);
            entry.parameter.conditions.extend(read);
        }
    }
    let all: Vec<Parameter> = read.iter().map(|entry| entry.parameter.clone()).collect();
    for entry in read.iter_mut() {
        if !is_chain(&entry.parameter, &all, CHAIN_MAX) {
            entry.parameter.conditions.clear();
            let reason = format!(
                "must not lead back to the parameter itself, nor over more than {CHAIN_MAX} others"
            );
            findings.fault(entry.node.place, &entry.path, reason);
        }
    }
}

fn condition(
    node: &Node,
    path: &str,
    parameter: &Parameter,
    controllers: &[(String, ValueType)],
    findings: &mut ManifestFindings,
) -> Option<Condition> {
    let fields = Fields::read(node, path, &["key", "value"], findings)?;
    let key = fields.required_text("key", findings)?;
    let Some((_, value_type)) = controllers.iter().find(|(name, _)| *name == key) else {
        let names = controllers.iter().map(|(name, _)| name.as_str());
        let meant = sutler_yaml::nearest(&key, names);
        let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        let reason = format!("must name another parameter of this list{hint}");
        findings.fault(fields.place_of("key"), &fields.path_of("key"), reason);
        return None;
    };
    if parameter.conditions.iter().any(|there| there.key == key) {
        let reason = "is there already: put all its values into one list";
        findings.fault(fields.place_of("key"), &fields.path_of("key"), reason);
        return None;
    }
    let value_path = fields.path_of("value");
    let Some(value) = fields.get("value") else {
        findings.fault(fields.place, &value_path, "is required");
        return None;
    };
    let written = match &value.kind {
        Yaml::List(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let mut values = Vec::new();
    for node in written {
        match value_type.typed(node) {
            Ok(value) => values.push(value),
            Err(reason) => findings.fault(node.place, &value_path, reason),
        }
    }
    if written.is_empty() {
        findings.fault(value.place, &value_path, "must have at least one value");
    }
    (!values.is_empty()).then_some(Condition { key, values })
}

/// Whether the chain of parameters that this one depends on has at most `left` members.
fn is_chain(parameter: &Parameter, all: &[Parameter], left: usize) -> bool {
    parameter.conditions.iter().all(|condition| {
        let next = all.iter().find(|it| it.name == condition.key);
        left > 0 && next.is_none_or(|next| is_chain(next, all, left - 1))
    })
}
