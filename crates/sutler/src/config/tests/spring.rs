//! The `application.yaml` of a Spring broker as a configuration.

use super::{faults, good, of_file};

const APPLICATION: &str = "\
spring:
  application: {name: my-broker}
  cloud:
    openservicebroker:
      catalog:
        services:
        - id: s
          name: store
          description: Stores things.
          bindable: true
          plans: [{id: p, name: small, description: A small one.}]
server:
  port: 8080
com:
  equalities:
    osbapi:
      service-bindings:
        force-delete-unknown: true
      service-instances:
        operations:
          cleanup-age: 10d
          cleanup-all: '0 0 0 */10 * *'
auth: none
---
spring.config.activate.on-profile: production
workers: 7
";

#[test]
fn an_application_file_of_spring_is_accepted_unchanged() {
    let draft = good(&of_file(APPLICATION));
    let config = &draft.config;
    assert!(draft.catalog_inside);
    assert!(config.bindings.force_delete_unknown);
    assert!(!config.instances.force_delete_unknown);
    assert_eq!(config.instances.cleanup.age.to_string(), "10d");
    assert!(config.instances.cleanup.all.is_some());
    assert_ne!(config.workers, 7);
    let warnings = &draft.warnings;
    assert_eq!(
        warnings[0],
        "sutler.yaml:12:1: server is a setting of Spring, and is ignored"
    );
}

#[test]
fn settings_of_spring_are_unknown_in_a_file_without_spring() {
    let faults = faults(&of_file("auth: none\nserver: {port: 8080}\n"));
    assert!(
        faults.to_string().contains("server is not a key"),
        "{faults}"
    );
}

#[test]
fn an_invalid_schedule_of_spring_has_its_line() {
    let bad = APPLICATION.replace("0 0 0 */10 * *", "whenever");
    let faults = faults(&of_file(&bad));
    assert_eq!(faults.0.len(), 1, "{faults}");
    assert_eq!(faults.0[0].at, "sutler.yaml:22:24");
}
