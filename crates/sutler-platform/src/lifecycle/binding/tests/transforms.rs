//! The delivery of credentials.

use crate::lifecycle::binding::{
    AddedKey, AddedValue, KEY_BYTES_MAX, RESULT_BYTES_MAX, RESULT_DEPTH_MAX, TRANSFORMS_BYTES_MAX,
    TRANSFORMS_MAX, Transform, TransformError, Transforms, TransformsError,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sutler_osb::Credentials;

fn transforms(document: Value) -> Transforms {
    serde_json::from_value(document).expect("transforms")
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn delivered(steps: Value, credentials: Value) -> Result<Value, TransformError> {
    let applied = transforms(steps).apply(Credentials(map(credentials)));
    applied.map(|credentials| Value::Object(credentials.0))
}

#[test]
fn keys_are_renamed_removed_and_added() {
    let steps = json!([
        {"rename": {"from": "uri", "to": "DATABASE_URL"}},
        {"remove": "admin"},
        {"add": {"key": "PORT", "jsonPath": "$.port"}},
        {"add": {"key": "FIRST", "jsonPath": "/hosts/0"}},
        {"add": {"key": "MODE", "value": {"tls": true}}},
    ]);
    let credentials = json!({"uri": "u", "admin": "secret", "port": 5432, "hosts": ["a", "b"]});
    let expected = json!({
        "DATABASE_URL": "u", "port": 5432, "hosts": ["a", "b"],
        "PORT": 5432, "FIRST": "a", "MODE": {"tls": true},
    });
    assert_eq!(delivered(steps, credentials), Ok(expected));
}

/// Terminals and logs show it.
#[test]
fn a_refusal_has_no_control_characters_of_keys_and_paths() {
    let steps = json!([{"add": {"key": "b\u{1b}[2J", "jsonPath": "/a\u{7f}"}}]);
    let error = delivered(steps, json!({})).expect_err("nothing is there");
    let error = error.to_string();
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn each_step_sees_what_the_steps_before_it_made() {
    let steps = json!([
        {"add": {"key": "b", "jsonPath": "$.a"}},
        {"rename": {"from": "b", "to": "a"}},
        {"remove": "missing"},
        {"rename": {"from": "missing", "to": "a"}},
        {"rename": {"from": "a", "to": "a"}},
        {"add": {"key": "all", "jsonPath": "$"}},
    ]);
    let expected = json!({"a": 1, "all": {"a": 1}});
    assert_eq!(delivered(steps, json!({"a": 1})), Ok(expected));
    let steps = json!([{"remove": "a"}, {"add": {"key": "b", "jsonPath": "$.a"}}]);
    let error = delivered(steps, json!({"a": 1})).expect_err("it was removed");
    assert_eq!(
        error.to_string(),
        "the credentials have nothing at `$.a`, which is to be delivered as `b`"
    );
}

#[test]
fn what_is_delivered_has_a_bound_between_the_steps_too() {
    let double = json!({"add": {"key": "a", "jsonPath": "$"}});
    let twice = json!({"add": {"key": "b", "jsonPath": "$"}});
    let steps: Vec<_> = (0..TRANSFORMS_MAX / 2)
        .flat_map(|_| [double.clone(), twice.clone()])
        .collect();
    let result = delivered(Value::Array(steps), json!({"x": "y".repeat(100)}));
    assert_eq!(result, Err(TransformError::TooLong));
    let long = json!({"x": "y".repeat(RESULT_BYTES_MAX)});
    assert_eq!(delivered(json!([]), long), Err(TransformError::TooLong));
    let fits = json!({"x": "y".repeat(RESULT_BYTES_MAX - 8)});
    assert_eq!(delivered(json!([]), fits.clone()), Ok(fits));
}

#[test]
fn what_is_delivered_is_not_too_deep_to_be_read() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inside, _| json!({"a": inside}));
    let deepest = nested(RESULT_DEPTH_MAX);
    assert_eq!(delivered(json!([]), deepest.clone()), Ok(deepest.clone()));
    let text = deepest.to_string();
    assert!(serde_json::from_str::<Value>(&text).is_ok());
    let deeper = json!({"a": deepest});
    assert_eq!(delivered(json!([]), deeper), Err(TransformError::TooDeep));
    let steps = json!([{"add": {"key": "b", "jsonPath": "$"}}]);
    let result = delivered(steps, nested(RESULT_DEPTH_MAX));
    assert_eq!(result, Err(TransformError::TooDeep));
}

#[test]
fn transforms_have_bounds() {
    let remove = |key: String| Transform::Remove(key);
    let many = |count| Transforms::try_from(vec![remove("a".to_owned()); count]);
    assert!(many(TRANSFORMS_MAX).is_ok());
    assert_eq!(many(TRANSFORMS_MAX + 1), Err(TransformsError::TooMany));
    let key = |length| Transforms::try_from(vec![remove("k".repeat(length))]);
    assert!(key(KEY_BYTES_MAX).is_ok());
    for length in [0, KEY_BYTES_MAX + 1] {
        assert_eq!(key(length), Err(TransformsError::WrongKey));
    }
    let long = Transform::Add(AddedKey {
        key: "k".to_owned(),
        value: AddedValue::Fixed(json!("v".repeat(TRANSFORMS_BYTES_MAX))),
    });
    assert_eq!(
        Transforms::try_from(vec![long]),
        Err(TransformsError::TooLong)
    );
}

#[test]
fn a_step_with_other_members_is_refused() {
    for step in [
        json!({"add": {"key": "a"}}),
        json!({"add": {"key": "a", "value": 1, "jsonPath": "$.a"}}),
        json!({"add": {"key": "a", "value": 1, "more": 1}}),
        json!({"add": {"key": 1, "value": 1}}),
        json!({"add": {"key": "a", "jsonPath": "$..a"}}),
        json!({"add": {"key": "a", "jsonPath": 1}}),
        json!({"rename": {"from": "a", "to": "b", "more": 1}}),
        json!({"rename": {"from": "a"}}),
        json!({"remove": 1}),
        json!({"drop": "a"}),
        json!({"remove": "a", "rename": {"from": "a", "to": "b"}}),
    ] {
        let read = serde_json::from_value::<Transforms>(json!([step]));
        assert!(read.is_err(), "{step}");
    }
}

#[test]
fn fixed_values_are_not_shown() {
    let steps = json!([{"add": {"key": "TOKEN", "value": "secret"}}, {"remove": "a"}]);
    let shown = format!("{:?}", transforms(steps));
    assert_eq!(shown, r#"[Add("TOKEN", …), Remove("a")]"#);
}

fn some_transform() -> impl Strategy<Value = Value> {
    let key = "[ab]";
    prop_oneof![
        (key, key).prop_map(|(from, to)| json!({"rename": {"from": from, "to": to}})),
        key.prop_map(|key| json!({"remove": key})),
        (key, any::<u8>()).prop_map(|(key, value)| json!({"add": {"key": key, "value": value}})),
        (key, "\\$(\\.[ab]){0,2}")
            .prop_map(|(key, path)| json!({"add": {"key": key, "jsonPath": path}})),
    ]
}

proptest! {
    /// Laws: they are read as they were written; they do the same every time, and one after another what they do
    /// together; the result is within its bounds; other keys stay as they are.
    #[test]
    fn transforms_are_steps_one_after_another(
        steps in prop::collection::vec(some_transform(), 0..10),
        split in 0usize..10,
        size in 0usize..40_000,
    ) {
        let credentials = json!({"a": {"b": "x".repeat(size)}, "b": 1, "other": 2});
        let all = transforms(Value::Array(steps.clone()));
        let written = serde_json::to_value(&all).expect("it is written");
        prop_assert_eq!(&written, &Value::Array(steps.clone()));
        let whole = all.apply(Credentials(map(credentials.clone())));
        let (first, second) = steps.split_at(split.min(steps.len()));
        let first = transforms(json!(first)).apply(Credentials(map(credentials)));
        let parts = first.and_then(|between| transforms(json!(second)).apply(between));
        prop_assert_eq!(&whole, &parts);
        if let Ok(Credentials(delivered)) = whole {
            let text = Value::Object(delivered.clone()).to_string();
            prop_assert!(text.len() <= RESULT_BYTES_MAX);
            prop_assert_eq!(delivered.get("other"), Some(&json!(2)));
            prop_assert!(delivered.keys().all(|key| ["a", "b", "other"].contains(&key.as_str())));
        }
    }
}
