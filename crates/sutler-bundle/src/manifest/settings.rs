//! Run settings of a bundle: actions, limits, secrets and entrypoint.
//!
//! Plans and parameters are `plan.rs` and `parameter.rs`.

use super::fields::{self, Fields};
use super::findings::{ManifestFindings, ManifestForm};
use crate::action::Action;
use crate::limits::RunLimits;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use sutler_yaml::{Kind as Yaml, Node};

/// Default time limit of an action.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(3600);

/// Maximum secrets of one bundle.
const SECRETS_MAX: usize = 32;

/// Longest text about upgrades, in characters.
const IMPACT_CHARS_MAX: usize = 1_000;

/// Maximum words of an entry point.
const WORDS_MAX: usize = 64;

const ASYNC: [(&str, AsyncSupport); 3] = [
    ("optional", AsyncSupport::Optional),
    ("required", AsyncSupport::Required),
    ("unsupported", AsyncSupport::Unsupported),
];

const ON_LOST: [(&str, OnLost); 2] = [("fail", OnLost::Fail), ("rerun", OnLost::Rerun)];

/// Whether an action runs while its caller waits or after the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AsyncSupport {
    /// After the response where the platform allows it.
    #[default]
    Optional,
    /// Only after the response.
    Required,
    /// Only while the caller waits.
    Unsupported,
}

/// Reaction to a run whose result is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// The operation fails.
    #[default]
    Fail,
    /// The action runs again with the same idempotency key: the bundle promises that this is harmless.
    Rerun,
}

/// How one action is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionRules {
    /// Whether the bundle has this action.
    pub offered: bool,
    /// While the caller waits, or after the response.
    pub asynchrony: AsyncSupport,
    /// Time limit.
    pub deadline: Duration,
    /// Reaction to a lost run.
    pub on_lost: OnLost,
}

/// Whether instances of other versions can be upgraded to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// By an update, if the bundle's version is a semantic one.
    Offered {
        /// Impact for the user, e.g. a restart.
        impact: Option<String>,
    },
    /// Instances stay at the version that created them.
    Never,
}

/// Entrypoint of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entrypoint {
    /// One program for all actions, with its first arguments.
    Program(Vec<String>),
    /// A script for each action, `actions/ACTION`. An action without a script does not exist.
    Scripts,
    /// A playbook for each action: `playbooks/ACTION.yaml` or `.yml`, run by `ansible-playbook`.
    Playbooks,
}

/// Whether variables may be passed on a command line, where all users of the host can read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InlineVars {
    /// Never: they are in a file.
    #[default]
    No,
    /// The image supports nothing else. Refused for secrets, except those listed: names of secret parameters and of
    /// secrets, or `state`.
    Yes {
        /// Secrets that may be visible.
        despite: BTreeSet<String>,
    },
}

/// A secret that the operator must provide to the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRequirement {
    /// Its name: the folder is `apb-NAME`.
    pub name: String,
    /// Purpose.
    pub description: Option<String>,
    /// Whether the bundle cannot work without it.
    pub required: bool,
    /// The keys that it must have.
    pub keys: Vec<String>,
}

/// Reads the rules of all actions.
pub(super) fn actions(
    top: &Fields<'_>,
    findings: &mut ManifestFindings,
) -> BTreeMap<Action, ActionRules> {
    let rules = ActionRules {
        offered: true,
        asynchrony: top.word("async", &ASYNC, findings).unwrap_or_default(),
        deadline: fields::duration(top, "deadline", findings).unwrap_or(DEADLINE_DEFAULT),
        on_lost: top.word("on_lost", &ON_LOST, findings).unwrap_or_default(),
    };
    let names = Action::ALL.map(Action::as_str);
    let given = top.fields("actions", &names, findings);
    let each = |action: Action| {
        let own = given.as_ref().and_then(|given| {
            let node = given.get(action.as_str())?;
            Some(one(node, &given.path_of(action.as_str()), rules, findings))
        });
        (action, own.unwrap_or(rules))
    };
    Action::ALL.into_iter().map(each).collect()
}

fn one(
    node: &Node,
    path: &str,
    rules: ActionRules,
    findings: &mut ManifestFindings,
) -> ActionRules {
    if let Yaml::Bool(offered) = node.kind {
        return ActionRules { offered, ..rules };
    }
    let Some(fields) = Fields::read(node, path, &["async", "deadline", "on_lost"], findings) else {
        return rules;
    };
    ActionRules {
        offered: true,
        asynchrony: fields
            .word("async", &ASYNC, findings)
            .unwrap_or(rules.asynchrony),
        deadline: fields::duration(&fields, "deadline", findings).unwrap_or(rules.deadline),
        on_lost: fields
            .word("on_lost", &ON_LOST, findings)
            .unwrap_or(rules.on_lost),
    }
}

/// Reads `upgrade`: its impact on the user, or whether upgrades are offered.
pub(super) fn upgrade(top: &Fields<'_>, findings: &mut ManifestFindings) -> UpgradePolicy {
    let without = UpgradePolicy::Offered { impact: None };
    let place = top.place_of("upgrade");
    match top.get("upgrade").map(|node| &node.kind) {
        None | Some(Yaml::Bool(true)) => return without,
        Some(Yaml::Bool(false)) => return UpgradePolicy::Never,
        Some(_) => {}
    }
    let impact = top.text("upgrade", findings).unwrap_or_default();
    let impact = impact.trim();
    if impact.is_empty() || impact.chars().count() > IMPACT_CHARS_MAX {
        let reason = format!(
            "must say what an upgrade means for users, in at most {IMPACT_CHARS_MAX} characters, or be \
             `false` where there is none"
        );
        findings.fault(place, "upgrade", reason);
    }
    let version = top.get("bundle_version").and_then(Node::text);
    if !version.is_some_and(|version| is_semantic(&version)) {
        let reason = "has no effect: upgrades are offered where `bundle_version` is a semantic version such \
                      as `1.4.2`";
        findings.warn(place, "upgrade", reason);
    }
    UpgradePolicy::Offered {
        impact: Some(impact.to_owned()),
    }
}

/// Whether a version is a semantic one, which platforms can compare.
pub(crate) fn is_semantic(version: &str) -> bool {
    semver::Version::parse(version).is_ok()
}

/// Reads the resource limits of a run.
pub(super) fn limits(top: &Fields<'_>, findings: &mut ManifestFindings) -> RunLimits {
    let mut limits = RunLimits::default();
    let known = ["memory", "output", "open_files", "processes"];
    let Some(fields) = top.fields("limits", &known, findings) else {
        return limits;
    };
    let positive = |name: &str, findings: &mut ManifestFindings| {
        let count = fields.count(name, findings);
        if count == Some(0) {
            findings.fault(
                fields.place_of(name),
                &fields.path_of(name),
                "must be more than 0",
            );
        }
        count
    };
    limits.memory = fields::size(&fields, "memory", findings).unwrap_or(limits.memory);
    limits.output = fields::size(&fields, "output", findings).unwrap_or(limits.output);
    limits.open_files = positive("open_files", findings).unwrap_or(limits.open_files);
    limits.processes = positive("processes", findings).unwrap_or(limits.processes);
    limits
}

/// Reads the secrets that the bundle requires.
pub(super) fn secrets(top: &Fields<'_>, findings: &mut ManifestFindings) -> Vec<SecretRequirement> {
    let nodes = top.list("secrets", findings).unwrap_or_default();
    if let Some(beyond) = nodes.get(SECRETS_MAX) {
        let reason = format!("must not have more than {SECRETS_MAX} secrets");
        findings.fault(beyond.place, "secrets", reason);
    }
    let mut secrets: Vec<SecretRequirement> = Vec::new();
    for (nth, node) in nodes.iter().enumerate().take(SECRETS_MAX) {
        let path = format!("secrets[{nth}]");
        let Some(secret) = secret(node, &path, findings) else {
            continue;
        };
        let fault = if secrets.iter().any(|there| there.name == secret.name) {
            Some("is the name of an earlier secret".to_owned())
        } else if !is_file_name(&secret.name) {
            let rule = "must consist of letters, digits, `-`, `.` and `_`: it names a folder";
            Some(rule.to_owned())
        } else {
            let strange = secret.keys.iter().find(|key| !is_file_name(key));
            strange.map(|_| "has keys that cannot name files".to_owned())
        };
        match fault {
            Some(reason) => findings.fault(node.place, &path, reason),
            None => secrets.push(secret),
        }
    }
    secrets
}

fn secret(node: &Node, path: &str, findings: &mut ManifestFindings) -> Option<SecretRequirement> {
    if let Some(name) = node.text() {
        return Some(SecretRequirement {
            name,
            description: None,
            required: true,
            keys: Vec::new(),
        });
    }
    let known = ["name", "description", "required", "keys"];
    let fields = Fields::read(node, path, &known, findings)?;
    Some(SecretRequirement {
        name: fields.required_text("name", findings)?,
        description: fields.text("description", findings),
        required: fields.boolean("required", findings).unwrap_or(true),
        keys: fields.texts("keys", findings).unwrap_or_default(),
    })
}

fn is_file_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (1..=100).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fits)
}

/// Reads the entrypoint.
pub(super) fn entry(top: &Fields<'_>, findings: &mut ManifestFindings) -> Entrypoint {
    let Some(node) = top.get("entrypoint") else {
        return match findings.form {
            ManifestForm::Bundle => Entrypoint::Scripts,
            ManifestForm::Apb => Entrypoint::Playbooks,
        };
    };
    let words = match &node.kind {
        Yaml::Text(word) if word == "playbooks" => return Entrypoint::Playbooks,
        Yaml::Text(word) if word == "scripts" => return Entrypoint::Scripts,
        Yaml::Text(word) => Some(vec![word.clone()]),
        Yaml::List(items) => items.iter().map(Node::text).collect(),
        Yaml::Null | Yaml::Bool(_) | Yaml::Number(..) | Yaml::Mapping(_) => None,
    };
    let usable = |words: &Vec<String>| {
        let fits = |word: &String| !word.is_empty() && !word.contains('\0');
        (1..=WORDS_MAX).contains(&words.len()) && words.iter().all(fits)
    };
    match words.filter(usable) {
        Some(words) => Entrypoint::Program(words),
        None => {
            let reason = "must be `scripts`, `playbooks`, a program, or a list of a program and \
                          its arguments";
            findings.fault(node.place, "entrypoint", reason);
            Entrypoint::Scripts
        }
    }
}

/// Reads whether variables may be inline.
pub(super) fn inline_vars(top: &Fields<'_>, findings: &mut ManifestFindings) -> InlineVars {
    let Some(node) = top.get("inline_vars") else {
        return InlineVars::No;
    };
    if let Yaml::List(items) = &node.kind
        && let Some(names) = items.iter().map(Node::text).collect::<Option<Vec<_>>>()
    {
        let despite = names.into_iter().collect();
        return InlineVars::Yes { despite };
    }
    match node.boolean() {
        Some(true) => InlineVars::Yes {
            despite: BTreeSet::new(),
        },
        Some(false) => InlineVars::No,
        None => {
            let reason = "must be true, false, or a list of what may be seen on a command line";
            findings.fault(node.place, "inline_vars", reason);
            InlineVars::No
        }
    }
}
