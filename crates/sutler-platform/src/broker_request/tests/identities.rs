//! Originating identities. P-010 to P-013.

use super::fixtures::{author, context, namespace, text, to_json};
use crate::author::Author;
use crate::broker_request::{
    AuthorIdentityError, Profile, RequestCause, check_author, originating_identity,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sutler_osb::{ORIGINATING_IDENTITY_BYTES_MAX, OriginatingIdentity, OriginatingIdentityError};

fn identity(profile: Profile, author: &Author) -> OriginatingIdentity {
    originating_identity(profile, RequestCause::Author(author)).unwrap()
}

/// Holds: P-013.
#[test]
fn kubernetes_and_own_brokers_get_the_user_info_of_the_author() {
    for (profile, platform) in [
        (Profile::Kubernetes, "kubernetes"),
        (Profile::Sutler, "sutler"),
    ] {
        assert_eq!(
            to_json(&identity(profile, &author())),
            json!({
                "platform": platform,
                "value": {
                    "username": "ann", "uid": "user-1", "groups": ["dev", "ops"],
                    "extra": {"scopes": ["write"]},
                },
            })
        );
    }
}

/// Holds: P-013.
#[test]
fn cloud_foundry_brokers_get_the_user_id_of_the_author() {
    assert_eq!(
        to_json(&identity(Profile::CloudFoundry, &author())),
        json!({"platform": "cloudfoundry", "value": {"user_id": "user-1"}})
    );
}

#[test]
fn groups_and_extra_are_there_even_if_they_are_empty() {
    let author = Author {
        groups: Vec::new(),
        extra: BTreeMap::new(),
        ..author()
    };
    assert_eq!(
        Value::Object(identity(Profile::Kubernetes, &author).value),
        json!({"username": "ann", "uid": "user-1", "groups": [], "extra": {}})
    );
}

/// Holds: P-012.
#[test]
fn the_platform_of_the_identity_is_that_of_every_context() {
    let namespace = namespace();
    for profile in Profile::ALL {
        let identity = identity(profile, &author());
        let context = context(profile, &namespace);
        let of_instance = context.of_instance(&text("db"), &BTreeMap::new());
        assert!(!identity.platform.is_empty());
        assert_eq!(of_instance.platform(), Some(identity.platform.as_str()));
        assert_eq!(
            context.of_binding().platform(),
            Some(identity.platform.as_str())
        );
        assert_eq!(context.profile(), profile);
    }
}

#[test]
fn what_no_user_caused_has_no_identity() {
    for profile in Profile::ALL {
        for cause in [RequestCause::OrphanMitigation, RequestCause::CatalogRelist] {
            assert_eq!(originating_identity(profile, cause), None);
        }
    }
}

#[test]
fn an_accepted_author_has_a_header_that_brokers_read() {
    assert_eq!(check_author(&author()), Ok(()));
    for profile in Profile::ALL {
        let identity = identity(profile, &author());
        assert_eq!(
            OriginatingIdentity::parse(&identity.to_header()),
            Ok(identity)
        );
    }
}

#[test]
fn an_author_without_uid_or_username_is_refused() {
    let nameless = Author {
        username: String::new(),
        ..author()
    };
    let without_id = Author {
        uid: String::new(),
        ..author()
    };
    assert_eq!(
        check_author(&nameless),
        Err(AuthorIdentityError::NoUsername)
    );
    assert_eq!(check_author(&without_id), Err(AuthorIdentityError::NoUid));
}

/// The bound is that of the header: base64 makes four bytes of three.
#[test]
fn an_author_whose_header_would_be_too_long_is_refused() {
    let with_group_of = |bytes: usize| Author {
        groups: vec!["g".repeat(bytes)],
        ..author()
    };
    let header_bytes = |author: &Author| identity(Profile::Kubernetes, author).to_header().len();
    let longest = (24_400..24_600)
        .rev()
        .find(|bytes| header_bytes(&with_group_of(*bytes)) <= ORIGINATING_IDENTITY_BYTES_MAX)
        .unwrap();
    assert_eq!(check_author(&with_group_of(longest)), Ok(()));
    let refused = check_author(&with_group_of(longest + 1)).unwrap_err();
    assert_eq!(refused, AuthorIdentityError::TooLong);
    assert_eq!(
        refused.to_string(),
        "the author's groups and attributes do not fit into an originating identity of at most 32768 bytes"
    );
}

#[test]
fn an_author_whose_header_brokers_cannot_read_is_refused() {
    let author = Author {
        extra: BTreeMap::from([("$serde_json::private::Number".to_owned(), Vec::new())]),
        ..author()
    };
    assert_eq!(
        check_author(&author),
        Err(AuthorIdentityError::Unreadable(
            OriginatingIdentityError::Reserved
        ))
    );
}
