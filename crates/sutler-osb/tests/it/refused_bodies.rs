//! Bodies that are refused, and the error message of each.

use proptest::prelude::{any, proptest};
use sutler_osb::{BindBody, BindResponse, BodyError, ProvisionBody, UpdateBody, from_json};

fn check(body: &str, sentence: &str) {
    let refused = from_json::<UpdateBody>(body.as_bytes()).unwrap_err();
    assert_eq!(refused.to_string(), sentence, "{body:.80}");
}

#[test]
fn invalid_json_is_refused_with_its_position() {
    check("", "the body is empty: a JSON object is expected");
    check(" \r\n\t", "the body is empty: a JSON object is expected");
    check(
        "{",
        "the body is not valid JSON: EOF while parsing an object at line 1 column 1",
    );
    check(
        r#"{"service_id":"s" "plan_id":"p"}"#,
        "the body is not valid JSON: expected `,` or `}` at line 1 column 19",
    );
    check(
        "service_id=s",
        "the body is not valid JSON: expected value at line 1 column 1",
    );
    check(
        r#"{"service_id":"s"} x"#,
        "the body is not valid JSON: trailing characters at line 1 column 20",
    );
    let not_utf8 = from_json::<UpdateBody>(b"{\"service_id\":\"\xff\"}").unwrap_err();
    assert!(matches!(not_utf8, BodyError::NotJson { .. }), "{not_utf8}");
}

#[test]
fn a_body_that_is_not_an_object_is_refused() {
    for body in ["[]", r#"["s","p"]"#, "null", "1", r#""text""#] {
        check(body, "the body is not a JSON object");
    }
}

#[test]
fn a_wrong_type_names_the_field_and_not_the_value() {
    let object = "field `parameters`: invalid type: string, expected a JSON object";
    check(r#"{"service_id":"s","parameters":"hunter2"}"#, object);
    check(
        r#"{"service_id":"s","parameters":[1]}"#,
        "field `parameters`: invalid type: sequence, expected a JSON object",
    );
    check(
        r#"{"service_id":"s","context":7}"#,
        "field `context`: invalid type: number, expected a JSON object",
    );
    check(
        r#"{"service_id":"s","previous_values":["a"]}"#,
        "field `previous_values`: invalid type: sequence, expected a JSON object",
    );
    check(
        r#"{"service_id":5}"#,
        "field `service_id`: invalid type: integer, expected a string",
    );
    check(
        r#"{"service_id":"s","maintenance_info":{"version":1.5}}"#,
        "field `maintenance_info.version`: invalid type: floating point, expected a string",
    );
    check(
        r#"{"service_id":null}"#,
        "field `service_id`: invalid type: null, expected a string",
    );
    let refused = from_json::<BindBody>(br#"{"bind_resource":{"app_guid":true}}"#).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "field `bind_resource.app_guid`: invalid type: boolean, expected a string"
    );
}

#[test]
fn a_fault_inside_a_list_has_its_index() {
    let refused = |wire: &str| {
        from_json::<BindResponse>(wire.as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(r#"{"volume_mounts":[{"driver":"d"}]}"#),
        "field `volume_mounts[0].container_dir` is required"
    );
    assert_eq!(
        refused(r#"{"endpoints":[{"host":"h","ports":["1","x"]}]}"#),
        "field `endpoints[0].ports[1]` must be a port such as 443 or a range such as 9000-9010, \
         from 1 to 65535"
    );
}

#[test]
fn a_field_that_appears_twice_is_refused() {
    check(
        r#"{"service_id":"s","service_id":"t"}"#,
        "field `service_id` must not appear more than once",
    );
    let nested = r#"{"service_id":"s","previous_values":{"space_id":"a","space_id":"b"}}"#;
    check(
        nested,
        "field `previous_values.space_id` must not appear more than once",
    );
}

#[test]
fn a_body_nested_too_deeply_is_refused() {
    let (open, close) = (r#"{"a":"#.repeat(200), "}".repeat(200));
    check(
        &format!(r#"{{"service_id":"s","parameters":{open}1{close}}}"#),
        "the body is nested too deeply: at most 100 levels of objects and arrays are read",
    );
}

/// The parser gives such keys a meaning if they come first, and objects are stored with their keys in order.
#[test]
fn a_key_that_has_a_meaning_for_the_parser_is_refused() {
    let refused = "the body has a key that begins with `$serde_json::private::`, which is reserved";
    for key in [
        "$serde_json::private::RawValue",
        "$serde_json::private::Number",
        r"\u0024serde_json::private::RawValue",
        r"$\u0073erde_json::private\u003a:RawValue",
    ] {
        for parameters in [
            format!(r#"{{"a":1,"{key}":"x"}}"#),
            format!(r#"{{"a":[{{"{key}":"[[1]]"}}]}}"#),
        ] {
            check(
                &format!(r#"{{"service_id":"s","parameters":{parameters}}}"#),
                refused,
            );
        }
    }
    let harmless = r#"{"service_id":"s","parameters":{"a":"x $serde_json::private::","b":["$serde_json::private::Number"],"c":"$serde_json::private::","$serde":"\\u0024serde_json::private::"}}"#;
    from_json::<UpdateBody>(harmless.as_bytes()).expect("ordinary texts");
}

#[test]
fn a_deep_unknown_field_costs_no_stack() {
    let body = format!(
        r#"{{"service_id":"s","x":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let read = from_json::<UpdateBody>(body.as_bytes());
    assert!(matches!(read, Ok(_) | Err(BodyError::TooDeep)));
}

#[test]
fn a_long_message_is_cut() {
    let wire = format!(
        r#"{{"volume_mounts":[{{"mode":"{}"}}]}}"#,
        "m".repeat(10_000)
    );
    let refused = from_json::<BindResponse>(wire.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(refused.len() < 400, "{} bytes", refused.len());
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in any::<Vec<u8>>()) {
        let _ = from_json::<ProvisionBody>(&bytes);
    }

    #[test]
    fn nothing_that_looks_like_a_body_makes_the_reader_panic(
        body in r#"\{("(service_id|context|parameters)":("[^"\\]*"|\{\}|\[|null|1),?){0,4}\}?"#,
    ) {
        let _ = from_json::<ProvisionBody>(body.as_bytes()).map_err(|refused| refused.to_string());
    }
}
