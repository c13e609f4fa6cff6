//! Files that do not load, and their diagnostics.

use super::{OFFERING, faults, parse};
use crate::{CatalogFile, CatalogFileError, FileDiagnostic, Location};
use proptest::prelude::{any, proptest};

fn diagnostics(yaml: &str) -> Vec<String> {
    faults(yaml, None)
        .iter()
        .map(FileDiagnostic::to_string)
        .collect()
}

/// Holds: B-055, B-056, B-058, B-059, B-061, B-068, B-070.
#[test]
fn every_fault_is_reported_at_once_with_its_line() {
    let yaml = "\
services:
- id: s
  name: store
  description: Stores things.
  bindable: maybe
  requires: [everything]
  plans:
  - id: p
    name: small
    description: ''
  - id: p
    name: {a: 1}
    description: A large one.
    maximum-polling-duration: soon
- id: s
  name: store
  description: [no, text]
  bindable: true
  plans: []
";
    let expected = [
        "line 2, column 3: services[0].",
        "line 5, column 13: services[0].bindable must be true or false, but is text (B-058)",
        "services[0].requires[0] must be `syslog_drain`",
        "services[0].plans[0].description must not be empty (B-070)",
        "services[0].plans[1].id must be unique, but is the same as services[0].plans[0].id",
        "services[0].plans[1].name must be text, but is a mapping (B-069)",
        "services[0].plans[1].maximum_polling_duration must be a whole number, but is text",
        "services[1].id must be unique, but is the same as services[0].id (B-056)",
        "services[1].name must be unique, but is the same as services[0].name (B-055)",
        "services[1].description must be text, but is a list (B-057)",
        "services[1].plans must have at least one plan (B-059)",
    ];
    let found = diagnostics(yaml);
    assert_eq!(found.len(), expected.len() - 1, "{found:#?}");
    for (found, expected) in found.iter().zip(&expected[1..]) {
        assert!(found.contains(expected), "{found} is not {expected}");
    }
    assert!(found[3].starts_with("line 11, column 9: "), "{}", found[3]);
}

/// Holds: B-055, B-057, B-058, B-069, B-070.
#[test]
fn a_missing_key_is_reported_at_the_start_of_its_mapping() {
    let found = diagnostics("services:\n- id: s\n  plans:\n  - id: p\n");
    let expected = [
        "line 2, column 3: services[0].name is required (B-055)",
        "line 2, column 3: services[0].description is required (B-057)",
        "line 2, column 3: services[0].bindable is required: true or false (B-058)",
        "line 4, column 5: services[0].plans[0].name is required (B-069)",
        "line 4, column 5: services[0].plans[0].description is required (B-070)",
    ];
    assert_eq!(found, expected);
}

/// Holds: B-050.
#[test]
fn a_file_without_services_is_refused_with_the_expected_path() {
    for yaml in ["", "server: {port: 1}", "catalog: {}", "- 1", "text"] {
        match CatalogFile::parse(yaml, None) {
            Err(CatalogFileError::Faulty(faults)) => {
                assert_eq!(faults[0].rule, Some("B-050"));
                assert!(
                    faults[0]
                        .reason
                        .contains("spring.cloud.openservicebroker.catalog")
                );
            }
            other => panic!("{yaml}: {other:?}"),
        }
    }
    assert_eq!(
        diagnostics("services: {id: s}"),
        ["line 1, column 11: services must be a list, but is a mapping (B-050)"]
    );
    let twice = format!("{OFFERING}\ncatalog:\n  services: []\n");
    assert!(diagnostics(&twice)[0].contains("services is given twice (B-050)"));
}

#[test]
fn invalid_yaml_is_reported_with_its_location() {
    let broken = [
        ("services:\n- id: 'never closed\n", 2),
        ("services: [\n", 2),
        ("services:\n- id: s\n  id: t\n", 3),
        ("services:\n- {a: b\n- c", 3),
        ("a: *nowhere\n", 1),
        ("services: []\nx: .nan\n", 2),
    ];
    for (yaml, line) in broken {
        match CatalogFile::parse(yaml, None) {
            Err(CatalogFileError::Yaml {
                place: Some(Location { line: found, .. }),
                reason,
            }) => {
                assert!(found.abs_diff(line) <= 1, "{yaml}: line {found}: {reason}");
                assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
            }
            other => panic!("{yaml}: {other:?}"),
        }
    }
}

#[test]
fn alias_bombs_and_oversized_files_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for nth in 1..12 {
        let inner = vec![format!("*a{}", nth - 1); 10].join(", ");
        bomb.push_str(&format!("a{nth}: &a{nth} [{inner}]\n"));
    }
    let flow = format!("services: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let block: String = (0..500)
        .map(|nth| format!("{}a:\n", " ".repeat(nth)))
        .collect();
    let large = format!("{OFFERING}# {}", "x".repeat(4 * 1024 * 1024));
    let documents = "---\na: 1\n".repeat(10_000);
    for yaml in [bomb, flow, block, large, documents] {
        let error = CatalogFile::parse(&yaml, None).unwrap_err();
        assert!(matches!(error, CatalogFileError::Yaml { .. }), "{error}");
    }
}

#[test]
fn unknown_keys_are_warnings_with_the_likely_key() {
    let yaml = "\
services:
- id: s
  name: store
  description: Stores things.
  bindable: true
  plan-updatable: true
  instance_retrievable: true
  colour: red
  plans:
  - {id: p, name: small, description: A small one., maximum-poling-duration: 5}
";
    let warnings = parse(yaml).warnings;
    let expected = [
        "services[0] has the unknown key `plan-updatable`, which is ignored; did you mean \
         `plan-updateable`?",
        "services[0] has the unknown key `instance_retrievable`, which is ignored; did you mean \
         `instances_retrievable`?",
        "services[0] has the unknown key `colour`, which is ignored",
        "services[0].plans[0] has the unknown key `maximum-poling-duration`, which is ignored; did \
         you mean `maximum-polling-duration`?",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, expected) in expected.iter().map(|expected| {
        let found = warnings.iter().find(|warning| warning.ends_with(expected));
        (found, expected)
    }) {
        assert!(
            warning.is_some(),
            "no warning ends with {expected}: {warnings:#?}"
        );
    }
}

#[test]
fn the_same_key_in_two_spellings_is_a_fault() {
    let yaml = format!("{OFFERING}  plan-updateable: true\n  plan_updateable: false\n");
    assert_eq!(
        diagnostics(&yaml),
        [
            "line 10, column 20: services[0].plan_updateable is given twice, the second time as \
          `plan_updateable` (B-067)"
        ]
    );
}

/// Holds: B-079.
#[test]
fn an_unusable_schema_is_reported_with_its_path() {
    let with = |schema: &str| {
        let schemas =
            format!("schemas: {{service-instance: {{update: {{parameters: {schema}}}}}}}");
        let plan = format!("description: A small one., {schemas}}}");
        OFFERING.replace("description: A small one.}", &plan)
    };
    let dialect = "$schema: 'http://json-schema.org/draft-07/schema#'";
    let path = "services[0].plans[0].schemas.service_instance.update.parameters";
    let table = [
        (
            "{type: object}".to_owned(),
            format!("{path} must say its dialect"),
        ),
        ("5".to_owned(), format!("{path} must be a JSON object")),
        (
            format!("{{{dialect}, properties: {{a: {{type: strin}}}}}}"),
            format!("{path}.properties.a.type is not valid JSON Schema"),
        ),
        (
            format!("{{{dialect}, properties: {{a: {{$ref: 'http://example.com/'}}}}}}"),
            format!("{path}.properties.a must not refer outside itself"),
        ),
        (
            format!("{{{dialect}, allOf: [{{$ref: '#'}}]}}"),
            format!("{path} applies itself to the same value again"),
        ),
        (
            format!("{{{dialect}, pattern: '(?=a)'}}"),
            format!("{path}.pattern is no pattern that can be matched in linear time"),
        ),
    ];
    for (schema, expected) in table {
        let found = diagnostics(&with(&schema));
        assert!(
            found.iter().any(|found| found.contains(&expected)),
            "{found:?} lacks {expected}"
        );
        assert!(
            found.iter().all(|found| found.starts_with("line 8, ")),
            "{found:?}"
        );
    }
}

#[test]
fn a_missing_file_is_reported_by_its_name() {
    let error = CatalogFile::read("/nowhere/catalog.yml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the catalog file /nowhere/catalog.yml cannot be read"
    );
}

#[test]
fn a_faulty_file_is_reported_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("offers.yml");
    std::fs::write(&path, OFFERING.replace("name: store", "name: ''")).unwrap();
    let error = CatalogFile::read(&path).unwrap_err().to_string();
    let expected = format!("{}: the catalog file has 1 fault:", path.display());
    assert!(error.starts_with(&expected), "{error}");
}

/// Holds: B-053.
/// Holds: B-054.
#[test]
fn recommendations_not_followed_are_warnings() {
    let file = parse(&OFFERING.replace("name: store", "name: my store"));
    assert_eq!(file.warnings.len(), 1);
    assert!(file.warnings[0].starts_with("line 4, column 9: services[0].name should"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), at in 0_usize..150) {
        let _ = CatalogFile::parse(&text, None);
        let mut yaml = OFFERING.to_owned();
        let at = at.min(yaml.len());
        yaml.insert_str(at, &text);
        let _ = CatalogFile::parse(&yaml, None);
        yaml.truncate(at);
        let _ = CatalogFile::parse(&yaml, None);
    }
}
