//! One catalog in every accepted spelling.

use super::{OFFERING, parse, served};
use crate::CatalogFile;
use serde_json::json;

/// The example of the Spring framework's documentation, unchanged.
const SPRING_EXAMPLE: &str = "\
spring:
  cloud:
    openservicebroker:
      catalog:
        services:
        # Service A
        - id: com.equalities.sample.serviceA
          name: Service-A
          description: A simple service A.
          bindable: true
          plan-updateable: false
          instances-retrievable: true
          bindings-retrievable: true
          metadata:
            display-name:       Service A
            documentation-url:  https://en.wikipedia.org/wiki/Documentation
            support-url:        https://en.wikipedia.org/wiki/Support
            long-description:   A long description of Service A.
            image-url-resource: serviceA.png
          tags:
          - service-a
          - sample-service
          - cloud-foundry
          plans:
          - id: com.equalities.sample.serviceA.small
            name: small
            description: A small-sized service version
          - id: com.equalities.sample.serviceA.medium
            name: medium
            description: A medium-sized service version
          - id: com.equalities.sample.serviceA.large
            name: large
            description: A large-sized service version
";

/// Holds: B-055.
/// Holds: B-062.
/// Holds: B-063.
/// Holds: B-065.
#[test]
fn the_spring_example_loads_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let icon = b"\x89PNG\r\n\x1a\nicon";
    std::fs::write(directory.path().join("serviceA.png"), icon).unwrap();
    let path = directory.path().join("application.yaml");
    std::fs::write(&path, SPRING_EXAMPLE).unwrap();
    let file = CatalogFile::read(&path).unwrap();
    let plan = |size: &str| {
        json!({
            "id": format!("com.equalities.sample.serviceA.{size}"),
            "name": size,
            "description": format!("A {size}-sized service version"),
        })
    };
    let expected = json!({"services": [{
        "id": "com.equalities.sample.serviceA",
        "name": "Service-A",
        "description": "A simple service A.",
        "bindable": true,
        "plan_updateable": false,
        "instances_retrievable": true,
        "bindings_retrievable": true,
        "metadata": {
            "displayName": "Service A",
            "documentationUrl": "https://en.wikipedia.org/wiki/Documentation",
            "supportUrl": "https://en.wikipedia.org/wiki/Support",
            "longDescription": "A long description of Service A.",
            "imageUrl": "data:image/png;base64,iVBORw0KGgppY29u",
        },
        "tags": ["service-a", "sample-service", "cloud-foundry"],
        "plans": [plan("small"), plan("medium"), plan("large")],
    }]});
    assert_eq!(served(&file), expected);
    assert_eq!(file.warnings, Vec::<String>::new());
}

#[test]
fn keys_may_be_kebab_case_snake_case_or_camel_case() {
    let written = |updateable: &str, retrievable: &str, polling: &str| {
        let plan = format!("description: A small one., {polling}: 60}}");
        let offering = OFFERING.replace("description: A small one.}", &plan);
        format!("{offering}  {updateable}: true\n  {retrievable}: true\n")
    };
    let kebab = written(
        "plan-updateable",
        "bindings-retrievable",
        "maximum-polling-duration",
    );
    let snake = written(
        "plan_updateable",
        "bindings_retrievable",
        "maximum_polling_duration",
    );
    let camel = written(
        "planUpdateable",
        "bindingsRetrievable",
        "maximumPollingDuration",
    );
    let expected = served(&parse(&snake));
    assert_eq!(expected["services"][0]["plan_updateable"], json!(true));
    assert_eq!(expected["services"][0]["bindings_retrievable"], json!(true));
    assert_eq!(
        expected["services"][0]["plans"][0]["maximum_polling_duration"],
        json!(60)
    );
    for yaml in [kebab, camel] {
        assert_eq!(served(&parse(&yaml)), expected);
    }
}

fn indented(yaml: &str, spaces: usize) -> String {
    let indent = " ".repeat(spaces);
    let lines = yaml.lines().filter(|line| !line.is_empty());
    lines.map(|line| format!("{indent}{line}\n")).collect()
}

#[test]
fn the_root_may_be_nested_dotted_or_absent() {
    let expected = served(&parse(OFFERING));
    let roots = [
        "catalog:\n",
        "spring.cloud.openservicebroker.catalog:\n",
        "spring.cloud.openservicebroker:\n",
        "spring:\n cloud.open-service-broker.catalog:\n",
        "spring:\n cloud:\n  openservicebroker:\n   catalog:\n",
        "spring:\n cloud:\n  open_service_broker:\n",
    ];
    for root in roots {
        let yaml = format!("{root}{}", indented(OFFERING, 4));
        assert_eq!(served(&parse(&yaml)), expected, "{yaml}");
    }
    let dotted = OFFERING.replace(
        "services:",
        "spring.cloud.openservicebroker.catalog.services:",
    );
    assert_eq!(served(&parse(&dotted)), expected);
}

#[test]
fn other_keys_of_an_application_are_ignored() {
    let yaml = format!(
        "server:\n  port: 8080\nlogging.level.root: info\nmanagement: [1, two, {{three: 3}}]\n\
         spring:\n  application:\n    name: x\n  profiles:\n    active: dev\n{OFFERING}"
    );
    let file = parse(&yaml);
    assert_eq!(served(&file), served(&parse(OFFERING)));
    assert_eq!(file.warnings, Vec::<String>::new());
}

#[test]
fn a_document_for_a_profile_is_ignored_with_a_warning() {
    for profile in [
        "spring.config.activate.on-profile: cloud",
        "spring:\n  profiles: cloud",
    ] {
        let yaml = format!("server: {{port: 1}}\n---\n{OFFERING}---\n{profile}\nservices: 5\n");
        let file = parse(&yaml);
        assert_eq!(served(&file), served(&parse(OFFERING)));
        assert_eq!(file.warnings.len(), 1);
        assert!(
            file.warnings[0].contains("Spring profile"),
            "{:?}",
            file.warnings
        );
    }
}

#[test]
fn names_that_look_like_numbers_keep_their_spelling() {
    let yaml = OFFERING
        .replace("name: small", "name: 1.10")
        .replace("id: p", "id: 007")
        .replace("name: store", "name: on");
    let body = served(&parse(&yaml));
    assert_eq!(body["services"][0]["name"], json!("on"));
    assert_eq!(body["services"][0]["plans"][0]["name"], json!("1.10"));
    assert_eq!(body["services"][0]["plans"][0]["id"], json!("007"));
}

#[test]
fn booleans_may_be_words_where_a_boolean_is_expected() {
    for (word, expected) in [("yes", true), ("on", true), ("'true'", true), ("No", false)] {
        let yaml = OFFERING.replace("bindable: true", &format!("bindable: {word}"));
        assert_eq!(
            served(&parse(&yaml))["services"][0]["bindable"],
            json!(expected)
        );
    }
}

#[test]
fn anchors_and_merges_are_expanded() {
    let yaml = OFFERING.replace(
        "  - {id: p, name: small, description: A small one.}",
        "  - &small {id: p, name: small, description: A small one., free: false}\n  \
         - {<<: *small, id: q, name: other}",
    );
    let body = served(&parse(&yaml));
    assert_eq!(body["services"][0]["plans"][1]["free"], json!(false));
    assert_eq!(body["services"][0]["plans"][1]["id"], json!("q"));
}

#[test]
fn an_empty_list_of_services_is_a_catalog() {
    assert_eq!(served(&parse("services: []")), json!({"services": []}));
}
