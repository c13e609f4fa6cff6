//! Tests of the table of routes: every path leads to its own row, and every row has a permission that fits its method.

use super::ROUTES;
use crate::api::access::Permission;
use crate::api::api_route::BASE;
use crate::api::route_search::{FoundRoute, find};
use axum::http::Method;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A path of the pattern, with other words in the place of its names.
fn example(pattern: &str) -> String {
    let mut path = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("a closed brace");
        let _ = write!(path, "{before}a-{name}");
        rest = after;
    }
    path + rest
}

#[test]
fn every_path_leads_to_its_own_row() {
    for route in &ROUTES {
        let path = example(route.path);
        let method = Method::from_bytes(route.method.word().as_bytes()).expect("a method");
        match find(&method, &path) {
            FoundRoute::Route(found, _) => assert_eq!(found.name, route.name, "{path}"),
            FoundRoute::OtherMethod(_) | FoundRoute::Unknown => panic!("{path} leads nowhere"),
        }
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<&str> = ROUTES.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), ROUTES.len());
}

#[test]
fn only_the_version_is_public_and_only_reads_need_no_more_than_read() {
    for route in &ROUTES {
        let is_read = route.method.is_read();
        match route.permission {
            Permission::Public => assert_eq!(route.path, "/version"),
            Permission::Read => assert!(is_read, "{}", route.name),
            Permission::Credentials => assert_eq!(route.name, "binding_credentials"),
            Permission::OrphanManage => assert!(route.path.starts_with("/orphans")),
            Permission::Change
            | Permission::SecretWrite
            | Permission::IntentManage
            | Permission::Abandon
            | Permission::NamespaceManage
            | Permission::BrokerManage => assert!(!is_read, "{}", route.name),
        }
    }
}

#[test]
fn giving_something_up_needs_its_own_permission() {
    let abandon = ROUTES
        .iter()
        .filter(|it| it.permission == Permission::Abandon);
    let names: Vec<&str> = abandon.map(|it| it.name).collect();
    assert_eq!(
        names,
        ["instance_abandon", "binding_abandon", "orphan_forget"]
    );
}

#[test]
fn other_methods_are_named_and_other_paths_are_unknown() {
    let other = |method: &Method, path: &str| match find(method, path) {
        FoundRoute::OtherMethod(methods) => methods,
        FoundRoute::Route(..) => "a route".to_owned(),
        FoundRoute::Unknown => "nothing".to_owned(),
    };
    assert_eq!(other(&Method::POST, "/namespaces/a"), "PUT, GET, DELETE");
    assert_eq!(
        other(&Method::GET, "/namespaces/a/instances/b:undelete"),
        "POST"
    );
    assert_eq!(other(&Method::HEAD, "/namespaces"), "a route");
    for path in [
        "",
        "/",
        "/namespaces/",
        "/namespaces/a/instances/b:explode",
        "/v2/catalog",
    ] {
        assert_eq!(other(&Method::GET, path), "nothing", "{path}");
    }
}

/// The table as the description of the API will show it; a change of it is a change of the API.
#[test]
fn the_table_is_as_recorded() {
    let mut table = String::new();
    for route in &ROUTES {
        let (method, permission) = (route.method.word(), route.permission.word());
        let _ = writeln!(table, "{method:6} {BASE}{} | {permission}", route.path);
    }
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let path = std::path::PathBuf::from(folder).join("tests/routes.txt");
    if std::env::var_os("SUTLER_TEST_WRITE").is_some() {
        std::fs::write(&path, &table).expect("it can be written");
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        table, recorded,
        "read the difference, then record it: SUTLER_TEST_WRITE=1"
    );
}
