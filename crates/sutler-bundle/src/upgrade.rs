//! Upgrades between versions of a bundle: when one is offered, and which are refused. Pure.
//!
//! A version is offered as an upgrade if it is a semantic version, so that platforms can compare. The upgrade
//! itself is an update that runs the new version (`sutler-bundle-service/src/service/hooks.rs`).

use crate::manifest::Manifest;
use semver::Version;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Reason why an upgrade is refused. The text is for the user and names no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// The request lacks a required parameter.
    #[error("{0}")]
    Invalid(String),
    /// No request can upgrade this instance to this version.
    #[error("{0}")]
    Unsupported(String),
}

/// A requested upgrade.
pub struct UpgradePath<'a> {
    /// The instance's current version.
    pub from: Option<&'a str>,
    /// The target bundle.
    pub to: &'a Manifest,
    /// Name of the target plan.
    pub plan: &'a str,
    /// The instance's parameters, merged with those of the request.
    pub parameters: &'a Map<String, Value>,
    /// Parameters that the operator answers.
    pub answered: &'a BTreeSet<String>,
}

/// Checks whether an upgrade is allowed.
///
/// # Errors
/// The reason, for the user, without values.
pub fn check_upgrade(upgrade: &UpgradePath<'_>) -> Result<(), UpgradeError> {
    let version = upgrade.to.bundle_version.as_deref().unwrap_or_default();
    if is_back(upgrade.from, version) {
        let from = upgrade.from.unwrap_or_default();
        return Err(UpgradeError::Unsupported(format!(
            "This service instance is at version {from}, and the catalog has {version}: what was written \
             before does not know what came after it, so instances are never taken back. Wait until the \
             catalog has a later version."
        )));
    }
    let plan = upgrade.to.plan(upgrade.plan).into_iter();
    let mut missing = plan.flat_map(|it| &it.parameters).filter(|it| {
        let unconditional = it.is_demanded() && it.conditions.is_empty();
        let known =
            upgrade.parameters.contains_key(&it.name) || upgrade.answered.contains(&it.name);
        unconditional && !known
    });
    match missing.next() {
        None => Ok(()),
        Some(parameter) if parameter.updatable => Err(UpgradeError::Invalid(format!(
            "Version {version} needs the parameter {:?}, which this service instance does not have: send it \
             with this update.",
            parameter.name
        ))),
        Some(parameter) => Err(UpgradeError::Unsupported(format!(
            "Version {version} needs the parameter {:?}, which this service instance does not have and no \
             update can give it. Its bundle's author must give it a default.",
            parameter.name
        ))),
    }
}

/// Whether the new version precedes the old one. Builds of the same version do not.
fn is_back(from: Option<&str>, to: &str) -> bool {
    let parsed = from.map(Version::parse).and_then(Result::ok);
    match (parsed, Version::parse(to)) {
        (Some(from), Ok(to)) => to.cmp_precedence(&from) == Ordering::Less,
        (None, _) | (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{UpgradeError, UpgradePath, check_upgrade};
    use crate::catalog::maintenance;
    use crate::manifest::Manifest;
    use serde_json::{Map, Value, json};
    use std::collections::BTreeSet;

    fn manifest(more: &str) -> Manifest {
        let text = format!(
            "{{name: db, description: d, plans: [{{name: p, description: d, parameters: [
                {{name: size, type: int, required: true, updatable: true}},
                {{name: place, type: string, required: true}},
                {{name: colour, type: string, required: true, default: red}}]}}], {more}}}"
        );
        Manifest::load(text.as_bytes(), "bundle.yml").unwrap_or_else(|faults| panic!("{faults}"))
    }

    #[test]
    fn an_upgrade_is_offered_if_the_version_is_semantic_and_the_manifest_allows_it() {
        let table = [
            ("bundle_version: 1.2.3", Some(("1.2.3", None))),
            ("bundle_version: 1.0.0-rc.1+7", Some(("1.0.0-rc.1+7", None))),
            (
                "bundle_version: 1.2.3, upgrade: Restarts it.",
                Some(("1.2.3", Some("Restarts it."))),
            ),
            (
                "bundle_version: 1.2.3, upgrade: true",
                Some(("1.2.3", None)),
            ),
            ("bundle_version: 1.2.3, upgrade: false", None),
            ("bundle_version: 1.2.3, actions: {update: false}", None),
            ("bundle_version: '1.2'", None),
            ("bundle_version: v1.2.3", None),
            ("bundle_version: 01.2.3", None),
            ("tags: []", None),
        ];
        for (more, expected) in table {
            let info = maintenance(&manifest(more));
            let sentence = info.as_ref().map(|it| {
                (
                    it.version.as_deref().unwrap_or("-"),
                    it.description.as_deref(),
                )
            });
            assert_eq!(sentence, expected, "{more}");
        }
    }

    fn refusal_of(from: Option<&str>, to: &str, parameters: Value, answered: &[&str]) -> String {
        let parameters: Map<String, Value> = serde_json::from_value(parameters).expect("an object");
        let answered: BTreeSet<String> = answered.iter().map(|it| (*it).to_owned()).collect();
        let upgrade = UpgradePath {
            from,
            to: &manifest(&format!("bundle_version: {to}")),
            plan: "p",
            parameters: &parameters,
            answered: &answered,
        };
        match check_upgrade(&upgrade) {
            Ok(()) => String::new(),
            Err(UpgradeError::Invalid(sentence)) => format!("invalid: {sentence}"),
            Err(other) => format!("unsupported: {other}"),
        }
    }

    #[test]
    fn instances_go_forward_and_never_back() {
        let whole = || json!({ "size": 1, "place": "here" });
        for (from, to) in [
            (Some("1.0.0"), "1.0.1"),
            (Some("1.9.0"), "1.10.0"),
            (Some("1.0.0-rc.1"), "1.0.0"),
            (Some("1.0.0+1"), "1.0.0+2"),
            (Some("1.0.0+2"), "1.0.0+1"),
            (None, "0.0.1"),
            (Some("next"), "0.0.1"),
        ] {
            assert_eq!(refusal_of(from, to, whole(), &[]), "", "{from:?} to {to}");
        }
        for (from, to) in [
            ("1.0.1", "1.0.0"),
            ("1.10.0", "1.9.0"),
            ("1.0.0", "1.0.0-rc.1"),
        ] {
            let sentence = refusal_of(Some(from), to, whole(), &[]);
            assert!(
                sentence.starts_with("unsupported: ") && sentence.contains(from),
                "{sentence}"
            );
        }
    }

    #[test]
    fn parameters_required_by_the_new_version_must_exist_or_be_sent() {
        let sentence = refusal_of(Some("1.0.0"), "2.0.0", json!({ "place": "here" }), &[]);
        assert!(
            sentence.starts_with("invalid: ") && sentence.contains("\"size\""),
            "{sentence}"
        );
        let sentence = refusal_of(Some("1.0.0"), "2.0.0", json!({ "size": 1 }), &[]);
        assert!(
            sentence.starts_with("unsupported: ") && sentence.contains("\"place\""),
            "{sentence}"
        );
        assert_eq!(
            refusal_of(Some("1.0.0"), "2.0.0", json!({ "size": 1 }), &["place"]),
            ""
        );
    }
}
