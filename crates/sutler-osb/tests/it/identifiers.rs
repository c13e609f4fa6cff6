//! Ids and the version: accepted and refused texts, and the error messages.

use proptest::prelude::{any, prop_assert_eq, proptest};
use sutler_osb::{
    ApiVersion, BindingId, InstanceId, OperationToken, PlanId, ServiceId, VersionError,
};

/// Holds: B-020.
#[test]
fn an_id_may_be_any_text_once_decoded() {
    for (segment, id) in [
        ("plain", "plain"),
        ("a%2Fb", "a/b"),
        ("two%20words", "two words"),
        ("1+1", "1+1"),
        ("%C3%A4", "ä"),
        ("ä", "ä"),
        ("a%CC%88", "a\u{308}"),
        ("%25", "%"),
        ("..", ".."),
    ] {
        assert_eq!(InstanceId::from_path_segment(segment).unwrap().as_str(), id);
    }
}

/// Holds: B-020.
#[test]
fn ids_that_look_alike_stay_different() {
    let id = |text: &str| BindingId::try_from(text).unwrap();
    let different = [id("a"), id("A"), id("a "), id("ä"), id("a\u{308}")];
    for (nth, one) in different.iter().enumerate() {
        assert!(different[nth + 1..].iter().all(|other| one != other));
    }
}

#[test]
fn a_refused_id_is_named_as_the_specification_names_it() {
    let check = |refused: Result<PlanId, sutler_osb::IdError>, sentence: &str| {
        assert_eq!(refused.unwrap_err().to_string(), sentence);
    };
    check(PlanId::try_from(""), "`plan_id` must not be empty");
    check(PlanId::from_path_segment(""), "`plan_id` must not be empty");
    check(
        PlanId::try_from("a\0"),
        "`plan_id` must not contain a NUL character",
    );
    check(
        PlanId::from_path_segment("%00"),
        "`plan_id` must not contain a NUL character",
    );
    check(
        PlanId::try_from("x".repeat(513)),
        "`plan_id` must not be longer than 512 bytes",
    );
    check(
        PlanId::from_path_segment("%ff"),
        "`plan_id` must be UTF-8 once it is percent-decoded",
    );
    let broken =
        "`plan_id` must be percent-encoded correctly: every `%` needs two hex digits behind it";
    for segment in ["%", "%4", "%zz", "a%", "%+1"] {
        check(PlanId::from_path_segment(segment), broken);
    }
    let empty = ServiceId::try_from("").unwrap_err().to_string();
    assert_eq!(empty, "`service_id` must not be empty");
}

#[test]
fn an_id_is_bounded_in_bytes() {
    assert!(ServiceId::try_from("x".repeat(512)).is_ok());
    assert!(ServiceId::try_from("ä".repeat(256)).is_ok());
    assert!(ServiceId::try_from("ä".repeat(257)).is_err());
}

/// Holds: B-086.
#[test]
fn an_operation_is_bounded_in_characters() {
    assert!(OperationToken::try_from("x".repeat(10_000)).is_ok());
    assert!(OperationToken::try_from("ä".repeat(10_000)).is_ok());
    let refused = OperationToken::try_from("ä".repeat(10_001)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`operation` must not be longer than 10000 characters"
    );
}

#[test]
fn an_empty_id_does_not_deserialise() {
    let refused = serde_json::from_str::<ServiceId>(r#""""#)
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("`service_id` must not be empty"),
        "{refused}"
    );
}

#[test]
fn only_unreserved_characters_are_left_unencoded_in_a_url() {
    let id = PlanId::try_from("aZ0-._~ /+%ä&=#?").unwrap();
    assert_eq!(id.to_url(), "aZ0-._~%20%2F%2B%25%C3%A4%26%3D%23%3F");
}

/// Holds: B-002.
#[test]
fn versions_compare_as_two_integers() {
    let version = |text: &str| text.parse::<ApiVersion>().unwrap();
    assert!(version("2.9") < version("2.17"));
    assert!(version("2.17") < version("10.0"));
    assert_eq!(version("2.17"), ApiVersion::CURRENT);
    assert_eq!(ApiVersion::CURRENT.to_string(), "2.17");
}

/// Holds: B-002.
#[test]
fn a_version_is_exactly_two_integers() {
    for text in [
        "",
        ".",
        "2",
        "2.",
        ".17",
        "2.17.1",
        "+2.17",
        "2.+17",
        "-2.17",
        " 2.17",
        "2.17 ",
        "2 .17",
        "2.x",
        "v2.17",
        "2.017",
        "02.17",
        "2.4294967296",
        "2.٣",
        "2,17",
    ] {
        assert_eq!(text.parse::<ApiVersion>(), Err(VersionError), "{text:?}");
    }
}

proptest! {
    /// Holds: B-020.
    #[test]
    fn every_id_survives_a_url(text in "[^\0]{1,100}") {
        let id = InstanceId::try_from(text.as_str()).unwrap();
        prop_assert_eq!(&InstanceId::from_path_segment(&id.to_url()).unwrap(), &id);
        prop_assert_eq!(&InstanceId::from_query_value(&id.to_url()).unwrap(), &id);
    }

    #[test]
    fn every_version_survives_a_header(major in 0..1_000_000_000u32, minor in 0..1_000_000_000u32) {
        let version = ApiVersion { major, minor };
        prop_assert_eq!(version.to_string().parse(), Ok(version));
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in any::<String>()) {
        let _ = InstanceId::from_path_segment(&text);
        let _ = text.parse::<ApiVersion>();
    }
}
