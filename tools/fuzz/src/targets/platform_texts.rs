//! What the platform reads of operators, users and brokers: restrictions, transforms of credentials, changes of an
//! instance, catalogs of brokers that nobody here wrote. Whole requests are in `platform_requests.rs`.

use super::Verdict;
use crate::properties::{kind_of, refused, round_trip, same, sentence};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use sutler_osb::Credentials;
use sutler_platform::catalog::{
    CatalogRestrictions, ItemChange, KnownCatalog, RestrictionTexts, plan_sync, read_offerings,
};
use sutler_platform::lifecycle::binding::{CredentialPath, Transform, Transforms};
use sutler_platform::spec::{Spec, SpecPatch, diff, undo};

pub(super) const RESTRICTION_WORDS: &[&str] = &[
    "name", "plan", "free", "=", "==", "!=", " in (", " notin (", ")", ",", "\"", "\\", " ",
    "spec.",
];

pub(super) const PATH_WORDS: &[&str] = &["$", ".", "['", "']", "[0]", "/", "~0", "~1", "~", "name"];

pub(super) const TRANSFORM_WORDS: &[&str] = &[
    "rename", "from", "to", "remove", "add", "key", "value", "jsonPath", "$.a", "/a/0",
];

pub(super) const CHANGE_WORDS: &[&str] = &[
    "plan",
    "maintenance_version",
    "parameters",
    "parameter_sources",
    "labels",
    "annotations",
    "name",
    "null",
    "{}",
];

/// Requirements as an operator writes them: what is read is written so that it is read as the same.
pub(super) fn restrictions(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok("no text".to_owned());
    };
    let texts = |text: &str| RestrictionTexts {
        service_class: vec![text.to_owned()],
        service_plan: vec![text.to_owned()],
    };
    match CatalogRestrictions::try_from(texts(text)) {
        Ok(read) => {
            let written = RestrictionTexts::from(read.clone());
            let again = CatalogRestrictions::try_from(written).map_err(|it| it.to_string())?;
            same(&again, &read, "is read otherwise")?;
            Ok("read".to_owned())
        }
        // It quotes the text of the operator.
        Err(error) => {
            sentence(&error.to_string())?;
            let unquoted: String = error.reason.split('`').step_by(2).collect();
            Ok(kind_of(&unquoted))
        }
    }
}

/// A path into credentials: it prints as it was written, and finds at most what is there.
pub(super) fn credential_path(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok("no text".to_owned());
    };
    match CredentialPath::try_from(text.to_owned()) {
        Ok(path) => {
            same(&path.as_str(), &text, "is another path")?;
            let document = serde_json::json!({ "name": [{ "a": 1 }], "": 2, "a": { "b": 3 } });
            Ok(format!("finds {:?}", path.find(&document).is_some()))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

/// Transforms of a user, applied to credentials of a broker: `[transforms, credentials]`.
pub(super) fn transforms(input: &[u8]) -> Verdict {
    let Ok((steps, credentials)) = serde_json::from_slice::<(Vec<Transform>, Credentials)>(input)
    else {
        return Ok("neither".to_owned());
    };
    let transforms = match Transforms::try_from(steps) {
        Ok(transforms) => transforms,
        Err(error) => return refused(&error.to_string(), input),
    };
    match transforms.apply(credentials) {
        Ok(delivered) => {
            let bytes = serde_json::to_vec(&delivered).map_err(|it| it.to_string())?;
            Ok(format!(
                "delivers {}",
                bytes.len().checked_ilog2().unwrap_or(0)
            ))
        }
        // It quotes keys and paths.
        Err(error) => {
            sentence(&error.to_string())?;
            Ok(format!("{:?}", std::mem::discriminant(&error)))
        }
    }
}

/// A specification and two changes: `[spec, change, change]`. The laws of differences hold.
pub(super) fn changes(input: &[u8]) -> Verdict {
    let Ok((spec, first, second)) = serde_json::from_slice::<(Spec, SpecPatch, SpecPatch)>(input)
    else {
        return Ok("no changes".to_owned());
    };
    round_trip(&first)?;
    let after = spec.apply(&first);
    same(
        &after.apply(&first),
        &after,
        "differs when it is applied twice",
    )?;
    same(
        &spec.apply(&diff(&spec, &after)),
        &after,
        "the difference leads elsewhere",
    )?;
    same(&after.apply(&undo(&spec, &first)), &spec, "is not undone")?;
    if let Some(both) = first.then(&second) {
        let wanted = after.apply(&second);
        same(&spec.apply(&both), &wanted, "both together lead elsewhere")?;
    }
    let mut paths = first.paths();
    paths.truncate(8);
    Ok(kind_of(&paths.join(" ")))
}

/// A catalog that a broker sends: each item is judged by itself, and the same catalog again changes nothing.
pub(super) fn broker_catalog(input: &[u8]) -> Verdict {
    let offerings = match read_offerings(input) {
        Ok(offerings) => offerings,
        Err(error) => return refused(&error.to_string(), input),
    };
    let plan = planned(offerings.clone());
    let again = planned(offerings);
    same(&again.faults, &plan.faults, "is judged otherwise")?;
    let mut names = BTreeSet::new();
    for change in plan.services.values() {
        let ItemChange::Added(item) = change else {
            return Err("an offering of a new broker is not new".to_owned());
        };
        if !names.insert(item.contents().name.clone()) {
            return Err(format!("two offerings are called {}", item.contents().name));
        }
    }
    Ok(format!(
        "{} offerings, {} plans",
        plan.services.len().min(3),
        plan.plans.len().min(3)
    ))
}

fn planned(offerings: Vec<Value>) -> sutler_platform::catalog::SyncPlan {
    let known = KnownCatalog::default();
    plan_sync(&known, offerings, Timestamp::UNIX_EPOCH, &|_, _| false)
}
