//! The identity headers.

use proptest::prelude::{any, prop_assert_eq, proptest};
use serde_json::json;
use sutler_osb::{
    ORIGINATING_IDENTITY_BYTES_MAX, OriginatingIdentity, OriginatingIdentityError, RequestIdentity,
    RequestIdentityError,
};

/// `{"user_id":"683ea748-3092-4ff4-b656-39cacc4d5360"}` in base64.
const USER: &str = "eyJ1c2VyX2lkIjoiNjgzZWE3NDgtMzA5Mi00ZmY0LWI2NTYtMzljYWNjNGQ1MzYwIn0=";

/// Holds: B-005.
#[test]
fn an_originating_identity_is_a_platform_and_an_encoded_object() {
    let identity = OriginatingIdentity::parse(&format!("cloudfoundry {USER}")).unwrap();
    assert_eq!(identity.platform, "cloudfoundry");
    assert_eq!(
        identity.value["user_id"],
        json!("683ea748-3092-4ff4-b656-39cacc4d5360")
    );
}

/// Holds: B-005.
#[test]
fn every_common_base64_is_read() {
    // `{"a":"??>~"}` needs both characters in which the alphabets differ.
    for encoded in [
        "eyJhIjoiPz8+fiJ9",
        "eyJhIjoiPz8-fiJ9",
        "eyJhIjoiPz8+fiIgfQ==",
        "eyJhIjoiPz8-fiIgfQ",
    ] {
        let identity = OriginatingIdentity::parse(&format!("kubernetes {encoded}")).unwrap();
        assert_eq!(identity.value["a"], json!("??>~"), "{encoded}");
    }
}

/// Holds: B-005.
#[test]
fn a_malformed_originating_identity_is_refused_with_its_reason() {
    use OriginatingIdentityError::{NoPlatform, NotAnObject, NotBase64, TooLong};
    let check = |header: &str, reason| {
        assert_eq!(
            OriginatingIdentity::parse(header).unwrap_err(),
            reason,
            "{header:.60}"
        );
    };
    check("", NoPlatform);
    check("cloudfoundry", NoPlatform);
    check(&format!(" {USER}"), NoPlatform);
    check("cloudfoundry ***", NotBase64);
    check("cloudfoundry ", NotAnObject);
    check("cloudfoundry W10=", NotAnObject);
    check("cloudfoundry e30x", NotAnObject);
    check(&"x".repeat(ORIGINATING_IDENTITY_BYTES_MAX + 1), TooLong);
}

#[test]
fn an_originating_identity_is_not_printed() {
    let identity = OriginatingIdentity::parse(&format!("cloudfoundry {USER}")).unwrap();
    assert_eq!(
        format!("{identity:?}"),
        "OriginatingIdentity(cloudfoundry …)"
    );
}

/// Holds: B-006.
#[test]
fn a_request_identity_is_returned_unchanged() {
    let text = "e26cee84-6b38-4456-b34e-d1a9f002c956 (retry)";
    assert_eq!(RequestIdentity::try_from(text).unwrap().as_str(), text);
}

/// Holds: B-007.
#[test]
fn a_request_identity_cannot_forge_a_log_line() {
    use RequestIdentityError::{Empty, NotVisible, TooLong};
    let check = |text: &str, reason| {
        assert_eq!(RequestIdentity::try_from(text).unwrap_err(), reason);
    };
    check("", Empty);
    check("  ", Empty);
    check("a\nb", NotVisible);
    check("a\u{1b}[2J", NotVisible);
    check("ä", NotVisible);
    check(&"x".repeat(1025), TooLong);
}

proptest! {
    /// Holds: B-005.
    #[test]
    fn every_originating_identity_survives_a_header(
        platform in "[a-z]{1,12}",
        value in proptest::collection::btree_map(any::<String>(), any::<String>(), 0..4),
    ) {
        let value = value.into_iter().map(|(key, value)| (key, json!(value))).collect();
        let identity = OriginatingIdentity { platform, value };
        prop_assert_eq!(OriginatingIdentity::parse(&identity.to_header()), Ok(identity));
    }
}
