//! Error bodies, and the flags that each kind of operation may have.

use serde_json::json;
use sutler_osb::{
    ErrorBody, ErrorCode, LastOperationResponse, OperationKind, OperationState, from_json,
};

const KINDS: [OperationKind; 5] = [
    OperationKind::Provision,
    OperationKind::Update,
    OperationKind::Deprovision,
    OperationKind::Bind,
    OperationKind::Unbind,
];

/// Holds: B-031.
#[test]
fn an_error_without_fields_is_an_empty_object() {
    assert_eq!(
        serde_json::to_value(ErrorBody::default()).unwrap(),
        json!({})
    );
    let empty = ErrorBody::coded(ErrorCode::Other(String::new()), "");
    assert_eq!(serde_json::to_value(empty).unwrap(), json!({}));
}

/// Holds: B-031.
#[test]
fn empty_strings_and_null_are_read_as_absent() {
    for wire in [
        r#"{"error":"","description":""}"#,
        r#"{"error":null,"description":null}"#,
        "{}",
    ] {
        assert_eq!(
            from_json::<ErrorBody>(wire.as_bytes()).unwrap(),
            ErrorBody::default()
        );
    }
}

/// Holds: B-032.
#[test]
fn the_four_error_codes_are_spelt_as_the_specification_spells_them() {
    for (code, word) in [
        (ErrorCode::AsyncRequired, "AsyncRequired"),
        (ErrorCode::ConcurrencyError, "ConcurrencyError"),
        (ErrorCode::RequiresApp, "RequiresApp"),
        (
            ErrorCode::MaintenanceInfoConflict,
            "MaintenanceInfoConflict",
        ),
        (
            ErrorCode::Other("QuotaExceeded".to_owned()),
            "QuotaExceeded",
        ),
    ] {
        let wire = json!({"error": word, "description": "why"});
        let body = ErrorBody::coded(code, "why");
        assert_eq!(serde_json::to_value(&body).unwrap(), wire);
        assert_eq!(
            from_json::<ErrorBody>(wire.to_string().as_bytes()).unwrap(),
            body
        );
    }
}

/// Holds: B-033, B-034.
#[test]
fn only_update_and_deprovision_have_the_instance_flags() {
    let full = ErrorBody {
        instance_usable: Some(false),
        update_repeatable: Some(false),
        ..ErrorBody::described("no")
    };
    for kind in KINDS {
        let scoped = full.clone().scoped_to(Some(kind));
        let (usable, repeatable) = match kind {
            OperationKind::Update => (Some(false), Some(false)),
            OperationKind::Deprovision => (Some(false), None),
            OperationKind::Provision | OperationKind::Bind | OperationKind::Unbind => (None, None),
        };
        assert_eq!(
            (scoped.instance_usable, scoped.update_repeatable),
            (usable, repeatable)
        );
    }
    assert_eq!(full.scoped_to(None), ErrorBody::described("no"));
}

/// Holds: B-033, B-034.
#[test]
fn absent_error_flags_count_as_true() {
    let unset = ErrorBody::described("no");
    assert!(unset.leaves_instance_usable() && unset.leaves_update_repeatable());
    let wire = br#"{"instance_usable":false,"update_repeatable":false}"#;
    let denied = from_json::<ErrorBody>(wire).unwrap();
    assert!(!denied.leaves_instance_usable() && !denied.leaves_update_repeatable());
}

/// Holds: B-102, B-110.
#[test]
fn a_poll_has_the_instance_flags_only_after_a_failed_update_or_deprovision() {
    for state in [
        OperationState::InProgress,
        OperationState::Succeeded,
        OperationState::Failed,
    ] {
        for kind in KINDS {
            let full = LastOperationResponse {
                instance_usable: Some(false),
                update_repeatable: Some(false),
                ..LastOperationResponse::of_state(state)
            };
            let failed = state == OperationState::Failed;
            let scoped = full.scoped_to(kind);
            let usable =
                failed && matches!(kind, OperationKind::Update | OperationKind::Deprovision);
            assert_eq!(scoped.instance_usable.is_some(), usable);
            assert_eq!(
                scoped.update_repeatable.is_some(),
                failed && kind == OperationKind::Update
            );
        }
    }
}
