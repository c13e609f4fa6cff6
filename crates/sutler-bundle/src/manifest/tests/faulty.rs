//! Manifests with faults: all are reported at once, each with its location and a hint.

use super::refused;

const FAULTY: &str = include_str!("faulty.yml");

#[test]
fn every_fault_is_told_at_once_with_its_place() {
    let faults = refused(FAULTY, "bundle.yml");
    let lines = faults
        .faults
        .iter()
        .map(|it| it.in_file("bundle.yml") + "\n");
    assert_eq!(lines.collect::<String>(), include_str!("faulty.txt"));
}

#[test]
fn invalid_yaml_is_reported_with_its_location() {
    for (text, expected) in [
        ("name: a\n\t- b", "bundle.yml:1:7: the manifest is no YAML"),
        ("name: a\nname: b", "bundle.yml:2:"),
        (
            "- a",
            "bundle.yml:1:1: the manifest must be a mapping, but is a list",
        ),
        (
            "",
            "bundle.yml: the manifest must be one document, but the file has 0",
        ),
        ("a: 1\n---\nb: 2", "the file has 2"),
    ] {
        let faults = refused(text, "bundle.yml");
        let said = faults.to_string();
        assert!(said.contains(expected), "{said}");
    }
    let long = format!("name: {}", "x".repeat(300_000));
    let said = refused(&long, "bundle.yml").to_string();
    assert!(said.contains("must not be longer"), "{said}");
    let binary = crate::manifest::Manifest::load(&[0xff, 0xfe], "bundle.yml");
    let said = binary.expect_err("no text").to_string();
    assert!(said.contains("UTF-8"), "{said}");
}

#[test]
fn conditions_that_go_in_circles_are_refused() {
    let parameter = |name: &str, key: &str| {
        format!("{{name: {name}, type: bool, dependencies: [{{key: {key}, value: true}}]}}")
    };
    let list = [
        parameter("a", "b"),
        parameter("b", "c"),
        parameter("c", "a"),
    ]
    .join(", ");
    let text = format!(
        "name: x\ndescription: d\nplans: [{{name: p, description: d, parameters: [{list}]}}]"
    );
    let faults = refused(&text, "bundle.yml");
    assert_eq!(faults.faults.len(), 3, "{faults}");
    assert!(faults.faults[0].reason.contains("lead back"), "{faults}");
}

#[test]
fn plans_that_want_the_same_id_are_refused() {
    let text = "
name: x
description: d
plans:
  - {name: a, id: same, description: d}
  - {name: b, id: same, description: d}
";
    let faults = refused(text, "bundle.yml");
    let said = faults.to_string();
    assert!(said.contains("plans[1].id must be unique"), "{said}");
    assert!(said.contains("bundle.yml:6:"), "{said}");
}

#[test]
fn a_schema_that_a_broker_would_reject_is_reported() {
    let choices: Vec<String> = (0..900).map(|nth| format!("{nth:0>100}")).collect();
    let text = format!(
        "name: x\ndescription: d\nplans: [{{name: p, description: d, parameters: \
         [{{name: a, type: string, enum: ['{}']}}]}}]",
        choices.join("','")
    );
    let said = refused(&text, "bundle.yml").to_string();
    assert!(said.contains("plans[0]"), "{said}");
}

#[test]
fn the_unsupported_runtime_is_refused_with_a_hint() {
    let text = "name: x\ndescription: d\nruntime: 1\nplans: [{name: p, description: d}]";
    for file in ["bundle.yml", "apb.yml"] {
        let said = refused(text, file).to_string();
        assert!(said.contains("runtime must be 2"), "{said}");
        assert!(said.contains("build the image on a base"), "{said}");
    }
}
