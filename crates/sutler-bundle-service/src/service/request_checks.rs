//! Checks of a request before anything runs, with the same schemas and sentences as behind a broker. Pure.
//!
//! The framework does most of them for a broker; `local_run.rs` uses these.

use super::build_run::OperatorSecret;
use serde_json::{Map, Value};
use sutler_bundle::{
    Action, Manifest, Offer, accepts_change, compile_schemas, has_template_syntax, offering,
    refuse_reserved, refuse_templates,
};
use sutler_osb::Catalog;

/// A requested action.
pub(super) struct RequestedAction<'a> {
    pub(super) action: Action,
    /// Plan of the instance after the request.
    pub(super) plan: &'a str,
    /// Its current plan, if it exists.
    pub(super) before: Option<&'a str>,
    /// Its current parameters.
    pub(super) current: &'a Map<String, Value>,
    /// Parameters of the request; for an update only the changed ones.
    pub(super) parameters: &'a Map<String, Value>,
}

/// Checks whether a broker would accept the request.
///
/// # Errors
/// A sentence for the user that names the parameter or the plan, without values.
pub(super) fn accepts(
    manifest: &Manifest,
    secrets: &[OperatorSecret],
    request: &RequestedAction<'_>,
) -> Result<(), String> {
    let named = secrets
        .iter()
        .filter(|it| it.bundles.contains(&manifest.name));
    let offer = Offer {
        answered: named.flat_map(|it| it.keys.keys().cloned()).collect(),
        ..Offer::default()
    };
    let catalog = Catalog::load(vec![offering(manifest, &offer)]);
    let catalog = catalog.map_err(|faults| faults.to_string())?;
    let mut plans = catalog.plans().map(|it| it.pin());
    let Some(plan) = plans.find(|it| it.plan_name.as_str() == request.plan) else {
        let names: Vec<&str> = manifest.plans.iter().map(|it| it.name.as_str()).collect();
        return Err(format!(
            "there is no such plan; use one of: {}",
            names.join(", ")
        ));
    };
    let schemas = compile_schemas(&plan).map_err(|fault| fault.to_string())?;
    let parameters = request.parameters;
    match request.action {
        Action::Provision => schemas.check_provision(parameters)?,
        Action::Update => {
            schemas.check_update(parameters)?;
            fits(manifest, request.plan, request.current, request.parameters)?;
            if let Some(before) = request.before.filter(|it| *it != request.plan) {
                leads_to(manifest, before, request.plan)?;
            }
        }
        Action::Bind if !plan.bindable => {
            return Err(format!(
                "Instances of the plan {:?} cannot be bound: say `bindable: true` in the manifest.",
                request.plan
            ));
        }
        Action::Bind => schemas.check_bind(parameters)?,
        Action::Unbind | Action::Deprovision => return Ok(()),
    }
    let allowed = refuse_reserved(request.parameters);
    let allowed = allowed.and_then(|()| refuse_templates(manifest, request.parameters));
    allowed.map_err(|clause| to_sentence(&clause))
}

/// Checks the conditions between parameters of the request and the current ones.
///
/// # Errors
/// A sentence that names the parameter, without values.
pub(super) fn fits(
    manifest: &Manifest,
    plan: &str,
    before: &Map<String, Value>,
    change: &Map<String, Value>,
) -> Result<(), String> {
    let judged = match manifest.plan(plan) {
        Some(plan) if !change.is_empty() => accepts_change(&plan.parameters, before, change),
        Some(_) | None => Ok(()),
    };
    judged.map_err(|reason| format!("The parameters do not fit: {reason}."))
}

/// Checks that the manifest allows the change of plan.
///
/// # Errors
/// A sentence that lists the allowed plans.
pub(super) fn leads_to(manifest: &Manifest, old: &str, new: &str) -> Result<(), String> {
    let ways = manifest.plan(old).map(|plan| plan.updates_to.clone());
    let ways = ways.unwrap_or_default();
    if ways.iter().any(|way| way == new) && manifest.plan(new).is_some() {
        return Ok(());
    }
    let instead = match ways.is_empty() {
        true => "it cannot be left".to_owned(),
        false => format!("use one of: {}", ways.join(", ")),
    };
    Err(format!(
        "An instance of the plan {old:?} cannot change to {new:?}; {instead}."
    ))
}

/// Refuses texts of a request, other than parameters, that an image of playbooks would evaluate: its Ansible may be
/// older than the mark of literal texts.
///
/// # Errors
/// A clause that names the text, without its value.
pub(super) fn refuse_template_texts(
    manifest: &Manifest,
    texts: &[(&'static str, &str)],
) -> Result<(), String> {
    if !manifest.may_run_playbooks() || manifest.image.is_none() {
        return Ok(());
    }
    match texts.iter().find(|(_, text)| has_template_syntax(text)) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "the {name} must not contain `{{{{`, `{{%`, `{{#` or `#jinja2`: this service would read them as a template"
        )),
    }
}

/// Turns a clause into a sentence.
pub(super) fn to_sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::{RequestedAction, accepts};
    use crate::service::OperatorSecret;
    use serde_json::{Map, Value, json};
    use std::collections::{BTreeMap, BTreeSet};
    use sutler_bundle::{Action, Manifest};

    const MANIFEST: &str = "
name: db
description: A database.
bindable: true
plans:
  - name: small
    description: Small.
    updates_to: [large]
    parameters:
      - {name: size, type: integer, minimum: 1, required: true, updatable: true}
      - {name: region, type: string}
    bind_parameters:
      - {name: role, type: string, enum: [reader, writer]}
  - {name: large, description: Large., bindable: false}
";

    fn refusal(action: Action, plan: &str, before: Option<&str>, parameters: Value) -> String {
        refusal_with(&[], action, plan, before, parameters)
    }

    fn refusal_with(
        secrets: &[OperatorSecret],
        action: Action,
        plan: &str,
        before: Option<&str>,
        parameters: Value,
    ) -> String {
        let manifest = Manifest::load(MANIFEST.as_bytes(), "bundle.yml").expect("a manifest");
        let parameters: Map<String, Value> = serde_json::from_value(parameters).expect("an object");
        let request = RequestedAction {
            action,
            plan,
            before,
            current: &Map::new(),
            parameters: &parameters,
        };
        accepts(&manifest, secrets, &request)
            .err()
            .unwrap_or_default()
    }

    #[test]
    fn requests_that_a_broker_accepts_are_accepted() {
        for (action, plan, before, parameters) in [
            (Action::Provision, "small", None, json!({ "size": 1 })),
            (Action::Update, "small", Some("small"), json!({ "size": 2 })),
            (Action::Update, "large", Some("small"), json!({})),
            (
                Action::Bind,
                "small",
                Some("small"),
                json!({ "role": "reader" }),
            ),
            // Removal is never blocked by parameters.
            (Action::Unbind, "large", Some("large"), json!({ "x": 1 })),
            (
                Action::Deprovision,
                "large",
                Some("large"),
                json!({ "x": 1 }),
            ),
        ] {
            assert_eq!(refusal(action, plan, before, parameters), "", "{action}");
        }
    }

    #[test]
    fn requests_that_a_broker_refuses_are_refused_with_the_name_and_without_the_value() {
        for (action, plan, before, parameters, word) in [
            (Action::Provision, "small", None, json!({}), "size"),
            (
                Action::Provision,
                "small",
                None,
                json!({ "size": "77" }),
                "size",
            ),
            (
                Action::Provision,
                "small",
                None,
                json!({ "size": 1, "_apb_x": 77 }),
                "_apb_",
            ),
            (Action::Provision, "tiny", None, json!({}), "small, large"),
            (
                Action::Update,
                "small",
                Some("small"),
                json!({ "region": "77" }),
                "region",
            ),
            (
                Action::Update,
                "small",
                Some("large"),
                json!({}),
                "cannot be left",
            ),
            (
                Action::Bind,
                "small",
                Some("small"),
                json!({ "role": "77" }),
                "role",
            ),
            (
                Action::Bind,
                "large",
                Some("large"),
                json!({}),
                "cannot be bound",
            ),
        ] {
            let sentence = refusal(action, plan, before, parameters);
            assert!(sentence.contains(word), "{action}: {sentence}");
            assert!(!sentence.contains("77"), "{action}: {sentence}");
        }
    }

    #[test]
    fn parameters_answered_by_a_secret_are_not_required() {
        let secret = OperatorSecret {
            name: "sizes".to_owned(),
            bundles: BTreeSet::from(["db".to_owned()]),
            keys: BTreeMap::from([("size".to_owned(), "3".to_owned().into())]),
        };
        let secrets = [secret];
        assert_eq!(
            refusal_with(&secrets, Action::Provision, "small", None, json!({})),
            ""
        );
    }
}
