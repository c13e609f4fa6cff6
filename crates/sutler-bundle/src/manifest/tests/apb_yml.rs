//! `apb.yml`: every field of the old contract, including deprecated ones.

use super::{load, refused, warnings};
use crate::manifest::{Entrypoint, Manifest, ManifestForm, ValueKind};
use serde_json::json;

fn apb(text: &str) -> Manifest {
    load(text, "apb.yml")
}

const OLD: &str = include_str!("apb.yml");

#[test]
fn an_old_manifest_loads_as_it_is() {
    let manifest = apb(OLD);
    assert_eq!(manifest.form, ManifestForm::Apb);
    assert_eq!(manifest.entry, Entrypoint::Playbooks);
    assert_eq!(manifest.image, None, "what is run is told by the registry");
    let plan = &manifest.plans[0];
    assert_eq!(plan.updates_to, ["prod"]);
    let ValueKind::Text { max_length, .. } = plan.parameters[1].value_type.kind else {
        panic!("text");
    };
    assert_eq!(max_length, Some(63));
    let ValueKind::Text { max_length, .. } = plan.parameters[2].value_type.kind else {
        panic!("text");
    };
    assert_eq!(max_length, Some(40), "the new name wins");
    assert_eq!(plan.parameters[3].default, Some(json!("9.6")));
    assert_eq!(plan.parameters[4].default, None, "`ten` is no number");
    let said = warnings(&manifest, "apb.yml");
    let expected = include_str!("apb-warnings.txt");
    assert_eq!(said.join("\n"), expected.trim_end());
}

#[test]
fn the_version_of_the_contract_is_one_however_it_is_written() {
    let text = |version: &str| {
        format!("version: {version}\nname: a\ndescription: d\nplans: [{{name: p, description: d}}]")
    };
    for version in ["1.0", "'1.0'", "1.0.0", "1"] {
        assert_eq!(apb(&text(version)).warnings, [], "{version}");
    }
    for version in ["2.0", "'0.9'", "latest"] {
        for file in ["apb.yml", "bundle.yml"] {
            let faults = refused(&text(version), file);
            assert_eq!(faults.faults[0].path, "version", "{version}");
        }
    }
}

#[test]
fn parameters_from_before_there_were_plans_become_one() {
    let text = "
name: old
description: Older than plans.
parameters:
  - database: {type: string, default: admin}
  - size: {type: int, title: Size}
  - {name: plain, type: bool}
required: [size]
";
    let manifest = apb(text);
    let plan = &manifest.plans[0];
    assert_eq!(plan.name, "default");
    let names: Vec<&str> = plan.parameters.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["database", "size", "plain"]);
    assert!(plan.parameters[1].required && !plan.parameters[0].required);
    assert!(manifest.warnings.iter().any(|it| it.path == "parameters"));
    // In a new manifest it is a fault.
    let faults = refused(text, "bundle.yml");
    assert!(
        faults.faults.iter().any(|it| it.path == "parameters"),
        "{faults}"
    );
}

#[test]
fn names_of_the_broker_are_left_out_of_old_manifests_and_refused_in_new_ones() {
    let text = "
name: a
description: d
plans:
  - name: p
    description: d
    parameters:
      - {name: namespace, type: string}
      - {name: state_owner, type: string}
      - {name: _apb_plan_id, type: string}
      - {name: fine, type: string}
";
    let manifest = apb(text);
    let names = manifest.plans[0]
        .parameters
        .iter()
        .map(|it| it.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["fine"]);
    let faults = refused(text, "bundle.yml");
    assert_eq!(faults.faults.len(), 3, "{faults}");
}
