//! Restrictions: Service Catalog's examples, and the errors of the grammar. Its laws: `restriction_laws.rs`.

use super::{known, plan, plan_key, service, service_id, with};
use crate::catalog::{CatalogRestrictions, KnownCatalog, RestrictionTexts};
use serde_json::json;

pub(super) fn texts(classes: &[&str], plans: &[&str]) -> RestrictionTexts {
    let owned = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
    RestrictionTexts {
        service_class: owned(classes),
        service_plan: owned(plans),
    }
}

fn restrictions(classes: &[&str], plans: &[&str]) -> CatalogRestrictions {
    CatalogRestrictions::parse(&texts(classes, plans)).unwrap_or_else(|error| panic!("{error}"))
}

fn catalog() -> KnownCatalog {
    known([
        with(
            service("0a-1", [plan("small"), with(plan("large"), "free", false)]),
            "name",
            "FooService",
        ),
        with(
            service("AABBB-CCDD", [plan("Demo"), plan("two words")]),
            "name",
            "BarService",
        ),
        service("other.id", [plan("tiny")]),
    ])
}

/// The offerings that meet requirements.
fn classes(requirements: &[&str]) -> Vec<String> {
    let restrictions = restrictions(requirements, &[]);
    let catalog = catalog();
    let admitted = catalog
        .services()
        .values()
        .filter(|it| restrictions.admit_service(it));
    admitted.map(|it| it.name().to_owned()).collect()
}

/// The plans that meet requirements.
fn plans(requirements: &[&str]) -> Vec<String> {
    let restrictions = restrictions(&[], requirements);
    let catalog = catalog();
    let admitted = catalog
        .plans()
        .values()
        .filter(|it| restrictions.admit_plan(it));
    admitted.map(|it| it.name().to_owned()).collect()
}

#[test]
fn without_requirements_everything_is_admitted() {
    assert!(restrictions(&[], &[]).is_empty());
    assert_eq!(classes(&[]).len(), 3);
    assert_eq!(plans(&[]).len(), 5);
}

#[test]
fn the_examples_of_service_catalog_mean_the_same_here() {
    assert_eq!(plans(&["spec.externalName==small"]), ["small"]);
    assert_eq!(
        classes(&["spec.externalName in (FooService, BarService)"]),
        ["FooService", "BarService"]
    );
    assert_eq!(
        classes(&["spec.externalName notin (FooService, BarService)"]),
        ["other.id"]
    );
    assert_eq!(
        plans(&["spec.externalName in (Demo)", "spec.free=true"]),
        ["Demo"]
    );
    assert_eq!(classes(&["name!=AABBB-CCDD"]), ["FooService", "other.id"]);
    assert_eq!(
        classes(&["name   in      (0a-1,   x)", "name   notin   (y,   z)"]),
        ["FooService"]
    );
    assert_eq!(
        plans(&[
            "name   notin   (Baz,   Barf), name=tiny",
            "name   in      (tiny,   Bar)"
        ]),
        ["tiny"]
    );
}

#[test]
fn every_property_of_an_offering_can_be_required() {
    assert_eq!(classes(&["name=0a-1"]), ["FooService"]);
    assert_eq!(classes(&["spec.externalID=0a-1"]), ["FooService"]);
    assert_eq!(
        classes(&["spec.externalName!=FooService"]),
        ["BarService", "other.id"]
    );
}

#[test]
fn every_property_of_a_plan_can_be_required() {
    assert_eq!(plans(&["name in (small,tiny)"]), ["small", "tiny"]);
    assert_eq!(plans(&["spec.externalID=small"]), ["small"]);
    assert_eq!(plans(&["spec.free=false"]), ["large"]);
    assert_eq!(plans(&["spec.free!=true"]), ["large"]);
    assert_eq!(plans(&["spec.free in (true,false)"]).len(), 5);
    for property in ["spec.serviceClass.name", "spec.clusterServiceClass.name"] {
        assert_eq!(plans(&[&format!("{property}=other.id")]), ["tiny"]);
    }
}

#[test]
fn a_name_is_the_id_or_what_service_catalog_made_of_it() {
    assert_eq!(
        classes(&["name=z41zz41zz42zz42zz42z-z43zz43zz44zz44z"]),
        ["BarService"]
    );
    assert_eq!(
        classes(&["name!=z41zz41zz42zz42zz42z-z43zz43zz44zz44z"]).len(),
        2
    );
    assert_eq!(plans(&["name=z44zemo"]), ["Demo"]);
    assert_eq!(plans(&["name=twoz20zwords"]), ["two words"]);
}

#[test]
fn names_are_escaped_as_service_catalog_did() {
    let names = [
        ("zoo", "z7azoo"),
        (".a.b.", "z2eza.bz2ez"),
        ("a..b", "a.z2ezb"),
        ("a-.b", "a-z2ezb"),
        ("a.-b", "a.z2dzb"),
        ("-a--b-", "z2dza--bz2dz"),
        ("ä_", "ze4zz5fz"),
    ];
    for (id, name) in names {
        let catalog = known([service("s", [plan(id)])]);
        let restrictions = restrictions(&[], &[&format!("name={name}")]);
        let plan = &catalog.plans()[&plan_key("s", id)];
        assert!(restrictions.admit_plan(plan), "{id} is not {name}");
    }
}

#[test]
fn requirements_are_joined_by_and() {
    assert_eq!(
        plans(&["spec.free=true", "spec.externalName!=small"]).len(),
        3
    );
    assert_eq!(plans(&["spec.free=true,spec.externalName!=small"]).len(), 3);
    assert_eq!(plans(&["spec.free=true", "spec.free=false"]).len(), 0);
}

#[test]
fn a_value_with_spaces_is_quoted() {
    assert_eq!(plans(&[r#"spec.externalName="two words""#]), ["two words"]);
    assert_eq!(
        plans(&[r#"spec.externalName in ( "two words" , "small" )"#]),
        ["small", "two words"]
    );
}

const FAULTS: &str = r#"
                                    | 1  | expected one of `name`, `spec.externalName`
spec.externalname=a                 | 1  | `spec.externalname` is not a property; write one of `name`, `spec.externalName`, `spec.externalID`, `spec.free`, `spec.serviceClass.name`, `spec.clusterServiceClass.name`
name                                | 5  | expected `=`, `==`, `!=`, `in` or `notin`, but found the end
  name exists                       | 8  | expected `=`, `==`, `!=`, `in` or `notin`, but found `e`
name<5                              | 5  | expected `=`, `==`, `!=`, `in` or `notin`, but found `<`
!name                               | 1  | expected one of `name`
name=                               | 6  | expected a value, in double quotes if it has spaces, but found the end
name=""                             | 6  | expected a value
name in a                           | 9  | expected `(` and values, but found `a`
name in ()                          | 10 | expected a value
name in (a                          | 11 | expected `,` and another value, or `)`, but found the end
name in (a,)                        | 12 | expected a value, in double quotes if it has spaces, but found `)`
name in (a b)                       | 12 | expected `,` and another value, or `)`, but found `b`
name=a b                            | 8  | expected `,` and another requirement, or the end, but found `b`
name=ä,                             | 8  | expected one of `name`
name="a                             | 8  | expected `"` at the end of the value, but found the end
name="a\n"                          | 8  | write `\\` for a backslash
spec.free=yes                       | 11 | must be `true` or `false`
spec.free in (true,no)              | 20 | must be `true` or `false`
"#;

#[test]
fn an_error_says_where_it_is_and_what_to_write() {
    for row in FAULTS.lines().filter(|row| !row.is_empty()) {
        let [text, column, reason] = row.splitn(3, '|').collect::<Vec<_>>()[..] else {
            panic!("{row} has not three columns");
        };
        let text = text.trim_end();
        let error = CatalogRestrictions::parse(&texts(&[], &["name=a", text])).expect_err(text);
        assert_eq!((error.list, error.nth), ("servicePlan", 1));
        assert_eq!(error.column.to_string(), column.trim(), "{text}: {error}");
        assert!(error.reason.starts_with(reason.trim()), "{text}: {error}");
    }
}

#[test]
fn properties_of_plans_are_none_of_offerings() {
    let error = CatalogRestrictions::parse(&texts(&["spec.free=true"], &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`serviceClass[0]`, character 1: `spec.free` is not a property; \
         write one of `name`, `spec.externalName`, `spec.externalID`"
    );
}

#[test]
fn texts_and_lists_are_bounded() {
    let long = format!("name={}", "x".repeat(4_092));
    let error = CatalogRestrictions::parse(&texts(&[&long], &[])).unwrap_err();
    assert_eq!(error.reason, "is too long: at most 4096 bytes are read");
    CatalogRestrictions::parse(&texts(&[&long[..4_096]], &[])).unwrap();

    let error = CatalogRestrictions::parse(&texts(&["name=a"; 101], &[])).unwrap_err();
    assert_eq!(error.nth, 100);
    let error = CatalogRestrictions::parse(&texts(&[&["name=a"; 101].join(",")], &[]));
    assert_eq!(
        error.unwrap_err().reason,
        "at most 100 requirements are allowed in a list"
    );
    CatalogRestrictions::parse(&texts(&["name=a"; 100], &["name=a"; 100])).unwrap();
}

#[test]
fn restrictions_are_stored_as_texts() {
    let restrictions = restrictions(&["name in (b,a), name != c"], &["spec.free == true"]);
    let json = serde_json::to_value(&restrictions).unwrap();
    let expected = json!({
        "serviceClass": ["name in (a,b)", "name!=c"],
        "servicePlan": ["spec.free=true"],
    });
    assert_eq!(json, expected);
    assert_eq!(
        serde_json::from_value::<CatalogRestrictions>(json).unwrap(),
        restrictions
    );
    assert!(
        serde_json::from_value::<CatalogRestrictions>(json!({}))
            .unwrap()
            .is_empty()
    );
    let error = serde_json::from_value::<CatalogRestrictions>(json!({"servicePlan": ["x"]}));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("`servicePlan[0]`, character 1: `x` is not")
    );
}

#[test]
fn an_admitted_item_is_found_by_its_ids() {
    let (catalog, restrictions) = (catalog(), restrictions(&["name=0a-1"], &["name=small"]));
    assert!(restrictions.admit_service(&catalog.services()[&service_id("0a-1")]));
    assert!(restrictions.admit_plan(&catalog.plans()[&plan_key("0a-1", "small")]));
    assert!(!restrictions.admit_plan(&catalog.plans()[&plan_key("0a-1", "large")]));
}
