//! Valid and invalid parameters, and schemas that cannot be used.

mod derived;
mod hostile;

use super::parameter_schemas::{COMPILED_MAX, CompiledCache};
use super::{ParameterSchemas, PlanSchemas, SchemaError};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn parameters(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn compile(schema: Value) -> Result<ParameterSchemas, SchemaError> {
    ParameterSchemas::compile(PlanSchemas {
        provision: Some(&schema),
        ..PlanSchemas::default()
    })
}

fn check(schema: Value, value: Value) -> Result<(), String> {
    compile(schema).unwrap().check_provision(&parameters(value))
}

const DRAFT4: &str = "http://json-schema.org/draft-04/schema#";

/// Rule, value, and the expected sentence.
const SENTENCES: &str = r#"
    {"type": "integer"}                       | "hunter2-x"           | `x` must be a whole number
    {"type": ["integer", "null"]}             | "hunter2-x"           | `x` must be null or a whole number
    {"type": "object"}                        | [["hunter2"]]         | `x` must be an object
    {"enum": ["a", 5]}                        | "hunter2-x"           | `x` must be one of `"a"`, `5`
    {"minimum": 7000}                         | 6543                  | `x` must be at least 7000
    {"maximum": 7000}                         | 96543                 | `x` must be at most 7000
    {"minimum": 70, "exclusiveMinimum": true} | 6.543                 | `x` must be greater than 70
    {"maximum": 5, "exclusiveMaximum": true}  | 6543                  | `x` must be less than 5
    {"multipleOf": 5}                         | 6543                  | `x` must be a multiple of 5
    {"minLength": 99}                         | "hunter2-x"           | `x` must have at least 99 characters
    {"maxLength": 3}                          | "hunter2-x"           | `x` must have at most 3 characters
    {"pattern": "^[a-z]+$"}                   | "hunter2-x"           | `x` must match the pattern `^[a-z]+$`
    {"format": "ipv4"}                        | "hunter2-x"           | `x` must be in the format `ipv4`
    {"minItems": 2}                           | ["hunter2"]           | `x` must have at least 2 items
    {"maxItems": 0}                           | ["hunter2"]           | `x` must have at most 0 items
    {"items": [{}], "additionalItems": false} | [1, "hunter2"]        | `x` must have at most 1 items
    {"uniqueItems": true}                     | ["hunter2","hunter2"] | `x` must not have the same item twice
    {"items": {"type": "null"}}               | ["hunter2"]           | `x[0]` must be null
    {"required": ["y"]}                       | {"z": "hunter2"}      | `x.y` is required
    {"dependencies": {"z": ["y"]}}            | {"z": "hunter2"}      | `x.y` is required
    {"minProperties": 2}                      | {"z": "hunter2"}      | `x` must have at least 2 entries
    {"maxProperties": 0}                      | {"z": "hunter2"}      | `x` must have at most 0 entries
    {"additionalProperties": false}           | {"z": "hunter2"}      | `x.z` is not allowed
    {"not": {"type": "string"}}               | "hunter2-x"           | `x` must not have the form
    {"anyOf": [{"type": "null"}]}             | "hunter2-x"           | `x` must have one of the forms
    {"oneOf": [{"type": "null"}]}             | "hunter2-x"           | `x` must have one of the forms
    {"oneOf": [{}, {}]}                       | "hunter2-x"           | `x` must have exactly one of the forms
"#;

/// Holds: B-125.
/// Holds: B-129.
#[test]
fn a_sentence_names_the_parameter_and_the_rule_but_never_the_value() {
    for row in SENTENCES.lines().filter(|row| !row.is_empty()) {
        let [rule, value, expected] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("{row} has not three columns");
        };
        let rule: Value = serde_json::from_str(rule).unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        let schema = json!({"$schema": DRAFT4, "properties": {"x": rule}});
        let sentence = check(schema, json!({"x": value})).expect_err(row);
        let head = "the parameters do not fit the schema of the plan: ";
        assert!(sentence.starts_with(head), "{sentence}");
        assert!(
            sentence.contains(expected.trim()),
            "{sentence} lacks {expected}"
        );
        for part in ["hunter2", "543"] {
            assert!(!sentence.contains(part), "{sentence} quotes the value");
        }
    }
}

/// Holds: B-129.
#[test]
fn newer_keywords_do_not_quote_values_either() {
    let secret = "hunter2-hunter2";
    let rules = [
        json!({"const": "other"}),
        json!({"propertyNames": {"maxLength": 2}}),
        json!({"contains": {"type": "null"}, "type": "array"}),
        json!({"if": {"type": ["string", "array", "object"]}, "then": false}),
        json!({"dependentRequired": {"name": ["other"]}, "unevaluatedItems": false,
               "type": ["array", "object"]}),
        json!({"unevaluatedProperties": false, "type": "object"}),
        json!({"$ref": "#/$defs/none"}),
    ];
    let values = [json!(secret), json!([secret]), json!({"name": secret})];
    for rule in rules {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"none": {"type": "null"}},
            "properties": {"x": rule},
        });
        let check = |value: &Value| check(schema.clone(), json!({"x": value})).err();
        let sentences: Vec<String> = values.iter().filter_map(check).collect();
        assert!(!sentences.is_empty(), "{rule}");
        for sentence in sentences {
            assert!(sentence.contains("`x"), "{sentence}");
            assert!(!sentence.contains("hunter2"), "{sentence} quotes the value");
        }
    }
}

#[test]
fn a_rule_about_all_parameters_names_the_missing_one() {
    let schema = json!({"$schema": DRAFT4, "required": ["size"], "additionalProperties": false});
    let sentence = check(schema, json!({"colour": 1})).unwrap_err();
    assert!(sentence.contains("`size` is required"), "{sentence}");
    assert!(sentence.contains("`colour` is not allowed"), "{sentence}");
}

#[test]
fn at_most_five_errors_are_listed() {
    let names: Vec<String> = (0..20).map(|nth| format!("name{nth:02}")).collect();
    let sentence = check(json!({"$schema": DRAFT4, "required": names}), json!({})).unwrap_err();
    assert_eq!(sentence.matches("is required").count(), 5, "{sentence}");
    assert!(sentence.ends_with("; and more"), "{sentence}");
}

#[test]
fn long_names_are_shortened() {
    let name = "n\n".repeat(10_000);
    let schema = json!({"$schema": DRAFT4, "additionalProperties": false});
    let sentence = check(schema, json!({ name: 1 })).unwrap_err();
    assert!(
        sentence.len() < 300 && !sentence.contains('\n'),
        "{sentence}"
    );
}

/// Holds: B-078.
#[test]
fn each_operation_has_its_own_schema() {
    let required = |name: &str| json!({"$schema": DRAFT4, "required": [name]});
    let (a, b, c) = (required("a"), required("b"), required("c"));
    let schemas = ParameterSchemas::compile(PlanSchemas {
        provision: Some(&a),
        update: Some(&b),
        bind: Some(&c),
    })
    .unwrap();
    let names = |result: Result<(), String>| result.unwrap_err();
    let none = parameters(json!({}));
    assert!(names(schemas.check_provision(&none)).contains("`a` is required"));
    assert!(names(schemas.check_update(&none)).contains("`b` is required"));
    assert!(names(schemas.check_bind(&none)).contains("`c` is required"));
    assert_eq!(schemas.check_bind(&parameters(json!({"c": 1}))), Ok(()));
}

#[test]
fn without_a_schema_everything_fits() {
    let schemas = ParameterSchemas::compile(PlanSchemas::default()).unwrap();
    assert_eq!(
        schemas.check_provision(&parameters(json!({"any": "thing"}))),
        Ok(())
    );
    let fits = check(json!({"$schema": DRAFT4}), json!({"any": "thing"}));
    assert_eq!(fits, Ok(()));
}

/// Holds: B-079.
#[test]
fn the_draft_is_the_one_the_schema_names_and_draft_4_by_default() {
    let old = json!({"minimum": 1, "exclusiveMinimum": true});
    let new = json!({"exclusiveMinimum": 1});
    let drafts = [
        ("http://json-schema.org/draft-04/schema#", &old),
        ("http://json-schema.org/draft-04/schema", &old),
        ("http://json-schema.org/schema#", &old),
        ("https://example.com/my-own-dialect", &old),
        ("http://json-schema.org/draft-06/schema#", &new),
        ("http://json-schema.org/draft-07/schema#", &new),
        ("https://json-schema.org/draft/2019-09/schema", &new),
        ("https://json-schema.org/draft/2020-12/schema", &new),
    ];
    for (dialect, rule) in drafts {
        let schema = json!({"$schema": dialect, "properties": {"x": rule}});
        assert!(check(schema.clone(), json!({"x": 1})).is_err(), "{dialect}");
        assert_eq!(check(schema, json!({"x": 2})), Ok(()), "{dialect}");
    }
    assert!(check(json!({"properties": {"x": old}}), json!({"x": 1})).is_err());
}

/// Holds: B-079.
#[test]
fn a_schema_that_does_not_compile_is_an_error_with_its_path() {
    let wrong = [
        (json!({"type": "strin"}), ".properties.x.type"),
        (json!({"minimum": "one"}), ".properties.x.minimum"),
        (json!({"pattern": "("}), ".properties.x.pattern"),
        (json!({"required": "name"}), ".properties.x.required"),
        (json!({"$ref": "#/definitions/nowhere"}), ""),
        (json!({"$ref": "https://example.com/elsewhere.json"}), ""),
        (json!({"$ref": "file:///etc/passwd"}), ""),
    ];
    for (rule, pointer) in wrong {
        let fault = compile(json!({"$schema": DRAFT4, "properties": {"x": rule}})).unwrap_err();
        let path = format!("schemas.service_instance.create.parameters{pointer}");
        assert_eq!(fault.path, path, "{rule}: {fault}");
        assert!(!fault.reason.is_empty());
    }
}

/// The `nth` of many schemas.
fn numbered(nth: usize) -> Value {
    json!({"$schema": DRAFT4, "title": format!("number {nth}")})
}

#[test]
fn a_cached_schema_is_not_compiled_again() {
    let cache = CompiledCache::default();
    let first = cache.compile(&numbered(0)).unwrap();
    for nth in 0..COMPILED_MAX {
        cache.compile(&numbered(nth)).unwrap();
    }
    let again = cache.compile(&numbered(0)).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
}

#[test]
fn few_schemas_are_kept_compiled_however_many_are_checked() {
    let cache = CompiledCache::default();
    for nth in 0..=COMPILED_MAX * 3 {
        cache.compile(&numbered(nth)).unwrap();
        assert!(cache.0.lock().unwrap().len() <= COMPILED_MAX);
    }
}

#[test]
fn printing_schemas_shows_no_parameters() {
    let schemas = compile(json!({"$schema": DRAFT4})).unwrap();
    let printed = format!("{schemas:?}");
    assert_eq!(
        printed,
        "ParameterSchemas { provision: true, update: false, bind: false }"
    );
}
