//! The query string.

use proptest::prelude::{any, prop_assert_eq, proptest};
use sutler_osb::{OperationToken, PlanId, QUERY_BYTES_MAX, Query, ServiceId};

fn parsed(raw: &str) -> Query {
    Query::parse(raw).unwrap()
}

fn refused(raw: &str) -> String {
    Query::parse(raw).unwrap_err().to_string()
}

/// Holds: B-108.
#[test]
fn nothing_in_a_query_is_mandatory() {
    assert_eq!(parsed(""), Query::default());
    assert_eq!(parsed("&&"), Query::default());
    assert!(!parsed("accepts_incomplete=false").accepts_incomplete);
}

/// Holds: B-020, B-108, B-156.
#[test]
fn values_are_percent_decoded() {
    let raw = "accepts_incomplete=true&service_id=a%2Fb&plan_id=%C3%A4+x&operation=task%5f1%2B";
    let expected = Query {
        accepts_incomplete: true,
        service_id: Some(ServiceId::try_from("a/b").unwrap()),
        plan_id: Some(PlanId::try_from("ä x").unwrap()),
        operation: Some(OperationToken::try_from("task_1+").unwrap()),
    };
    assert_eq!(parsed(raw), expected);
}

/// Holds: D-07.
#[test]
fn the_first_of_repeated_parameters_counts() {
    let query = parsed("service_id=X&service_id=X&plan_id=1&plan_id=2&plan_id=");
    assert_eq!(query.service_id.unwrap().as_str(), "X");
    assert_eq!(query.plan_id.unwrap().as_str(), "1");
    assert!(parsed("accepts_incomplete=true&accepts_incomplete=no").accepts_incomplete);
    assert!(!parsed("accepts_incomplete=false&accepts_incomplete=true").accepts_incomplete);
}

/// Holds: B-003.
#[test]
fn unknown_parameters_are_ignored_with_any_value() {
    assert_eq!(
        parsed("x=%zz&%zz=1&=&y&service=%ff&Service_id=q"),
        Query::default()
    );
}

#[test]
fn an_encoded_key_is_the_same_key() {
    assert_eq!(parsed("plan%5Fid=p").plan_id.unwrap().as_str(), "p");
}

/// Holds: B-156.
#[test]
fn an_empty_value_is_refused_by_name() {
    let check = |raw, sentence| assert_eq!(refused(raw), sentence);
    check(
        "operation=",
        "query parameter `operation` must not be empty",
    );
    check(
        "service_id",
        "query parameter `service_id` must not be empty",
    );
    check(
        "plan_id=&plan_id=p",
        "query parameter `plan_id` must not be empty",
    );
    check(
        "accepts_incomplete=",
        "query parameter `accepts_incomplete` must be true or false",
    );
}

/// Holds: B-240, D-06.
#[test]
fn empty_ids_of_a_delete_count_as_absent() {
    let parsed = |raw| Query::parse_delete(raw).unwrap();
    let empty = parsed("service_id=&plan_id&accepts_incomplete=true");
    assert_eq!((empty.service_id, empty.plan_id), (None, None));
    assert!(empty.accepts_incomplete);
    assert_eq!(parsed("plan_id=&plan_id=p").plan_id.unwrap().as_str(), "p");
    assert!(Query::parse_delete("operation=").is_err());
    assert!(Query::parse_delete("plan_id=%00").is_err());
}

#[test]
fn a_broken_value_is_refused_by_name() {
    for raw in [
        "accepts_incomplete=1",
        "accepts_incomplete=TRUE",
        "accepts_incomplete=%zz",
    ] {
        assert!(refused(raw).ends_with("must be true or false"), "{raw}");
    }
    assert!(refused("plan_id=%4").starts_with("query parameter `plan_id` must be percent-encoded"));
    assert!(refused("plan_id=%ff").starts_with("query parameter `plan_id` must be UTF-8"));
}

#[test]
fn a_query_is_bounded() {
    let longest = "x".repeat(QUERY_BYTES_MAX);
    assert_eq!(parsed(&longest), Query::default());
    assert_eq!(
        refused(&format!("{longest}x")),
        "the query is longer than 65536 bytes"
    );
}

proptest! {
    #[test]
    fn every_query_survives_a_url(
        accepts_incomplete in any::<bool>(),
        service in proptest::option::of("[^\0]{1,20}"),
        plan in proptest::option::of("[^\0]{1,20}"),
        operation in proptest::option::of("[^\0]{1,20}"),
    ) {
        let query = Query {
            accepts_incomplete,
            service_id: service.map(|id| id.try_into().unwrap()),
            plan_id: plan.map(|id| id.try_into().unwrap()),
            operation: operation.map(|token| token.try_into().unwrap()),
        };
        prop_assert_eq!(Query::parse(&query.to_string()), Ok(query));
    }

    #[test]
    fn no_query_makes_the_parser_panic(raw in any::<String>()) {
        let _ = Query::parse(&raw);
    }
}
