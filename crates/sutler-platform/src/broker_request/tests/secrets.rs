//! Parameters with those of secrets.

use super::fixtures::{object, to_json};
use crate::broker_request::{
    ParameterOrigin, ParameterResolutionError, RESOLVED_PARAMETERS_BYTES_MAX, SecretContent,
    SecretReference, resolve_parameters,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sutler_osb::{JsonTextError, Parameters};

fn content(values: &[(&str, &[u8])]) -> SecretContent {
    let owned = |(key, value): &(&str, &[u8])| ((*key).to_owned(), value.to_vec());
    SecretContent::from(values.iter().map(owned).collect::<BTreeMap<_, _>>())
}

fn key<'a>(secret: &'a str, key: &'a str) -> SecretReference<'a> {
    SecretReference {
        secret,
        key: Some(key),
    }
}

fn whole(secret: &str) -> SecretReference<'_> {
    SecretReference { secret, key: None }
}

/// Resolves against the secret `init` with the values.
fn resolve(
    inline: Value,
    sources: &[SecretReference<'_>],
    values: &[(&str, &[u8])],
) -> Result<Parameters, ParameterResolutionError> {
    let secrets = BTreeMap::from([
        ("init".to_owned(), content(values)),
        ("other".to_owned(), content(&[("user", b"ann")])),
    ]);
    resolve_parameters(&object(inline), sources, &secrets)
}

#[test]
fn a_source_with_a_key_is_an_object_of_parameters() {
    let values: &[(&str, &[u8])] = &[("params", br#"{"password": "hunter2", "disk": {"gb": 1}}"#)];
    let resolved = resolve(json!({"tier": "gold"}), &[key("init", "params")], values).unwrap();
    assert_eq!(
        to_json(&resolved),
        json!({"tier": "gold", "password": "hunter2", "disk": {"gb": 1}})
    );
}

#[test]
fn a_source_without_a_key_makes_every_key_a_string() {
    let values: &[(&str, &[u8])] = &[("password", b"hunter2"), ("port", b"5432")];
    let resolved = resolve(
        json!({"tier": "gold"}),
        &[whole("init"), whole("other")],
        values,
    );
    assert_eq!(
        to_json(&resolved.unwrap()),
        json!({"tier": "gold", "password": "hunter2", "port": "5432", "user": "ann"})
    );
}

#[test]
fn without_sources_the_inline_parameters_are_all() {
    let resolved = resolve(json!({"tier": {"name": null}}), &[], &[]).unwrap();
    assert_eq!(to_json(&resolved), json!({"tier": {"name": null}}));
}

#[test]
fn a_parameter_of_a_secret_and_of_the_intent_is_an_error() {
    let values: &[(&str, &[u8])] = &[("params", br#"{"password": "hunter2"}"#)];
    let refused = resolve(
        json!({"password": "inline"}),
        &[key("init", "params")],
        values,
    );
    let error = refused.unwrap_err();
    assert_eq!(
        error,
        ParameterResolutionError::Duplicate {
            parameter: "password".to_owned(),
            first: ParameterOrigin::SecretKey("init".to_owned(), "params".to_owned()),
            second: ParameterOrigin::Inline,
        }
    );
    assert_eq!(
        error.to_string(),
        "the parameter `password` is in the key `params` of the secret `init` and in the inline parameters: \
         leave one out"
    );
}

#[test]
fn a_parameter_of_two_secrets_is_an_error_even_if_both_are_equal() {
    let values: &[(&str, &[u8])] = &[("params", br#"{"user": "ann"}"#)];
    let error = resolve(json!({}), &[whole("other"), key("init", "params")], values).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the parameter `user` is in the secret `other` and in the key `params` of the secret `init`: leave one out"
    );
}

#[test]
fn a_missing_secret_or_key_is_named() {
    let values: &[(&str, &[u8])] = &[("params", b"{}")];
    let missing_secret = resolve(json!({}), &[key("gone", "params")], values).unwrap_err();
    let missing_key = resolve(json!({}), &[key("init", "gone")], values).unwrap_err();
    assert_eq!(
        [missing_secret.to_string(), missing_key.to_string()],
        [
            "the secret `gone` does not exist or cannot be read",
            "the secret `init` has no key `gone`",
        ]
    );
}

#[test]
fn a_value_that_is_no_object_is_named_and_not_quoted() {
    for value in [
        &br#""hunter2""#[..],
        br#"["hunter2"]"#,
        b"hunter2",
        br#"{"password": hunter2}"#,
        b"",
        b"null",
        b"{} hunter2",
        b"\xff",
    ] {
        let error = resolve(json!({}), &[key("init", "params")], &[("params", value)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the key `params` of the secret `init` is not a JSON object"
        );
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

#[test]
fn a_value_that_brokers_do_not_read_is_refused() {
    let deep = format!(r#"{{"a": {}1{}}}"#, "[".repeat(100), "]".repeat(100));
    let reserved = br#"{"$serde_json::private::RawValue": "hunter2"}"#;
    for (value, fault, sentence) in [
        (
            deep.as_bytes(),
            JsonTextError::TooDeep,
            "is nested deeper than 100 levels",
        ),
        (
            &reserved[..],
            JsonTextError::Reserved,
            "has a key that begins with `$serde_json::private::`",
        ),
    ] {
        let error = resolve(json!({}), &[key("init", "params")], &[("params", value)]).unwrap_err();
        let origin = ParameterOrigin::SecretKey("init".to_owned(), "params".to_owned());
        assert_eq!(
            error.to_string(),
            format!("the key `params` of the secret `init` {sentence}")
        );
        assert_eq!(
            error,
            ParameterResolutionError::Unreadable { origin, fault }
        );
    }
}

#[test]
fn an_object_of_a_secret_obeys_the_rules_of_inline_parameters() {
    let with_null = br#"{"a": null, "b": {"c": null, "d": [null]}}"#;
    let resolved = resolve(
        json!({}),
        &[key("init", "params")],
        &[("params", with_null)],
    )
    .unwrap();
    assert_eq!(to_json(&resolved), json!({"b": {"d": [null]}}));
    let deep = format!(r#"{{"a": {}1{}}}"#, "[".repeat(80), "]".repeat(80));
    let deep: &[(&str, &[u8])] = &[("params", deep.as_bytes())];
    let error = resolve(json!({}), &[key("init", "params")], deep).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key `params` of the secret `init`: parameters must not be nested deeper than 64 levels"
    );
}

#[test]
fn a_value_that_is_no_text_cannot_be_a_string() {
    let error = resolve(json!({}), &[whole("init")], &[("bytes", b"\xff\xfe")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key `bytes` of the secret `init` is not UTF-8 text"
    );
}

/// `{"k":"…"}` has 8 bytes besides the text.
#[test]
fn parameters_are_bounded_together() {
    let with_text_of = |bytes: usize| resolve(json!({"k": "v".repeat(bytes)}), &[], &[]);
    assert!(with_text_of(RESOLVED_PARAMETERS_BYTES_MAX - 8).is_ok());
    assert_eq!(
        with_text_of(RESOLVED_PARAMETERS_BYTES_MAX - 7),
        Err(ParameterResolutionError::TooLarge)
    );
    let half = vec![b'v'; RESOLVED_PARAMETERS_BYTES_MAX / 2];
    let values: &[(&str, &[u8])] = &[("a", &half), ("b", &half)];
    assert_eq!(
        resolve(json!({}), &[whole("init")], values),
        Err(ParameterResolutionError::TooLarge)
    );
}

#[test]
fn a_large_value_is_refused_before_it_is_parsed() {
    let value = vec![b' '; RESOLVED_PARAMETERS_BYTES_MAX + 1];
    assert_eq!(
        resolve(json!({}), &[key("init", "params")], &[("params", &value)]),
        Err(ParameterResolutionError::TooLarge)
    );
}

#[test]
fn long_names_are_shortened_and_stay_on_one_line() {
    let name = format!("a\nb{}", "c".repeat(200));
    let error = resolve(json!({}), &[whole(&name)], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the secret `a b{}…` does not exist or cannot be read",
            "c".repeat(97)
        )
    );
}

#[test]
fn no_debug_form_shows_a_value() {
    let values: &[(&str, &[u8])] = &[("params", br#"{"password": "hunter2"}"#)];
    assert_eq!(format!("{:?}", content(values)), r#"{"params"}"#);
    let resolved = resolve(json!({}), &[key("init", "params")], values).unwrap();
    assert!(!format!("{resolved:?}").contains("hunter2"));
    let secret_twice = [key("init", "params"), key("init", "params")];
    let error = resolve(json!({}), &secret_twice, values).unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hunter2"));
}
