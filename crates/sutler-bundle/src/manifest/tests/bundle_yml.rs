//! `bundle.yml`: every field, and the defaults.

use super::load;
use crate::action::Action;
use crate::manifest::{
    AsyncSupport, DashboardOf, Entrypoint, InlineVars, Manifest, ManifestForm, OnLost,
    SecretRequirement, ValueKind,
};
use serde_json::json;
use std::time::Duration;

const SMALLEST: &str = "
name: hello
description: Says hello.
plans:
  - {name: free, description: The only one.}
";

const WHOLE: &str = include_str!("whole.yml");

fn bundle(text: &str) -> Manifest {
    load(text, "bundle.yml")
}

#[test]
fn the_smallest_manifest_has_a_name_a_description_and_a_plan() {
    let manifest = bundle(SMALLEST);
    assert_eq!(manifest.form, ManifestForm::Bundle);
    assert_eq!(manifest.entry, Entrypoint::Scripts);
    assert_eq!(manifest.inline_vars, InlineVars::No);
    assert_eq!((manifest.image.as_ref(), manifest.runtime), (None, 2));
    assert!(!manifest.bindable && !manifest.share_provision_credentials);
    for action in Action::ALL {
        let rules = manifest.rules(action);
        assert!(rules.offered);
        assert_eq!(rules.asynchrony, AsyncSupport::Optional);
        assert_eq!(rules.on_lost, OnLost::Fail);
        assert_eq!(manifest.limits(action).deadline, Duration::from_secs(3600));
    }
    assert!(manifest.warnings.is_empty(), "{:?}", manifest.warnings);
}

#[test]
fn every_field_of_a_whole_manifest_is_read() {
    let manifest = bundle(WHOLE);
    assert_eq!(manifest.warnings, []);
    assert_eq!(
        manifest.id.as_deref(),
        Some("6c1f2b1a-0000-4000-8000-000000000001")
    );
    assert_eq!(manifest.bundle_version.as_deref(), Some("1.10"));
    assert_eq!(
        manifest.entry,
        Entrypoint::Program(vec!["./run".to_owned(), "--quiet".to_owned()])
    );
    let despite = ["state", "admin_password"].map(str::to_owned).into();
    assert_eq!(manifest.inline_vars, InlineVars::Yes { despite });
    let templates = ["database".to_owned()].into();
    assert_eq!(manifest.template_parameters, templates);
    assert!(manifest.share_provision_credentials && manifest.dashboard_redirect);
    let expected = [
        SecretRequirement {
            name: "server".to_owned(),
            description: None,
            required: true,
            keys: Vec::new(),
        },
        SecretRequirement {
            name: "tls".to_owned(),
            description: Some("The authority of the server.".to_owned()),
            required: false,
            keys: vec!["ca.pem".to_owned()],
        },
    ];
    assert_eq!(manifest.secrets, expected);
    let limits = manifest.limits(Action::Provision);
    assert_eq!((limits.memory, limits.output), (256 << 20, 1 << 20));
    assert_eq!((limits.open_files, limits.processes), (64, 32));
    assert_eq!(limits.deadline, Duration::from_secs(1800));
    assert_eq!(
        manifest.limits(Action::Update).deadline,
        Duration::from_secs(600)
    );
    let bind = manifest.rules(Action::Bind);
    assert_eq!(
        (bind.asynchrony, bind.on_lost),
        (AsyncSupport::Unsupported, OnLost::Rerun)
    );
    assert!(!manifest.rules(Action::Unbind).offered);
    let dashboard = manifest.dashboard.as_ref().expect("a dashboard");
    let url = dashboard.url(DashboardOf {
        instance_id: "i 1",
        plan: "small",
        bundle: "whole",
    });
    assert_eq!(url, "https://db.example.com/i%201");
}

#[test]
fn plans_parameters_and_examples_are_read() {
    let manifest = bundle(WHOLE);
    let [small, large] = &manifest.plans[..] else {
        panic!("two plans");
    };
    assert_eq!(
        small.id.as_deref(),
        Some("6c1f2b1a-0000-4000-8000-000000000002")
    );
    assert_eq!((small.free, small.bindable), (Some(true), Some(false)));
    assert!(!manifest.is_bindable(small) && manifest.is_bindable(large));
    assert_eq!(small.updates_to, ["large"]);
    assert_eq!(small.maximum_polling_duration, Some(900));
    let names: Vec<&str> = small.parameters.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "database",
            "admin_password",
            "connections",
            "nightly",
            "hour"
        ]
    );
    let password = &small.parameters[1];
    assert!(password.secret, "a password is a secret without saying");
    let connections = &small.parameters[2];
    assert_eq!(connections.default, Some(json!(20)));
    assert!(matches!(connections.value_type.kind, ValueKind::Integer(_)));
    assert_eq!(small.parameters[4].conditions[0].values, [json!(true)]);
    let example = &manifest.examples[0];
    assert_eq!(example.parameters["connections"], json!(50));
    let update = example.update.as_ref().expect("a change");
    assert_eq!(update.plan.as_deref(), Some("large"));
}

#[test]
fn the_upgrade_policy_is_checked_against_the_version() {
    let with = |more: &str| bundle(&format!("{SMALLEST}{more}"));
    let silent = with("bundle_version: 1.0.0\nupgrade: It restarts.\n");
    assert_eq!(silent.warnings, []);
    let idle = with("bundle_version: '1.0'\nupgrade: It restarts.\n");
    let warned = idle.warnings.first().map(|it| it.in_file("bundle.yml"));
    assert!(warned.is_some_and(|it| it.contains("1.4.2")));
    let text = format!("{SMALLEST}upgrade: [a]\n");
    let said = Manifest::load(text.as_bytes(), "bundle.yml").expect_err("no text");
    assert!(said.to_string().contains("upgrade"), "{said}");
}

#[test]
fn json_with_its_own_spelling_is_a_manifest_too() {
    let manifest = json!({
        "name": "in-json",
        "bundleVersion": "2",
        "description": "The same in JSON.",
        "shareProvisionCredentials": true,
        "dashboardUrl": "https://x.example/{instance_id}",
        "plans": [{
            "name": "p",
            "description": "P.",
            "updatesTo": ["q"],
            "parameters": [{
                "name": "text", "type": "string", "maxLength": 5, "minLength": 2,
                "displayType": "password", "displayGroup": "Group",
            }, {
                "name": "number", "type": "number", "exclusiveMaximum": 5, "multipleOf": 0.5,
            }],
            "bindParameters": [{ "name": "b", "type": "bool" }],
        }, { "name": "q", "description": "Q." }],
    });
    let manifest = bundle(&manifest.to_string());
    let text = &manifest.plans[0].parameters[0];
    let ValueKind::Text {
        min_length,
        max_length,
        ..
    } = text.value_type.kind
    else {
        panic!("text");
    };
    assert_eq!(
        (min_length, max_length, text.secret),
        (Some(2), Some(5), true)
    );
    assert_eq!(manifest.plans[0].bind_parameters.len(), 1);
    assert!(manifest.share_provision_credentials);
}
