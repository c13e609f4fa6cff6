//! Samples for schemas from real catalogs, for generated schemas, and for
//! malicious schemas.

use super::schema::{Schema, external_references, fault};
use super::{Parameters, Sample, samples};
use crate::catalog;
use crate::options::{Options, PlanParameters};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn sample(schema: &Value) -> Sample {
    Sample::of(Some(schema), None, "a provision")
}

fn valid(schema: &Value) -> Parameters {
    let sample = sample(schema);
    match sample.valid() {
        Ok(Some(parameters)) => parameters.clone(),
        other => panic!("{other:?} for {schema}"),
    }
}

/// A schema of an object with one required entry.
fn one(entry: &Value) -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "required": ["it"],
        "properties": { "it": entry },
    })
}

#[test]
fn a_sample_has_the_required_entries_only() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "required": ["size", "name"],
        "properties": {
            "size": { "type": "integer", "minimum": 3, "maximum": 9, "exclusiveMinimum": true },
            "name": { "type": "string", "minLength": 20 },
            "note": { "type": "string" },
        },
    });
    let found = valid(&schema);
    assert_eq!(found["size"], json!(4));
    assert_eq!(found.len(), 2);
    let sample = sample(&schema);
    assert_ne!(sample.other(), Ok(&found));
    let words: Vec<&str> = sample
        .invalid()
        .unwrap()
        .iter()
        .map(|it| &*it.what)
        .collect();
    assert!(words.contains(&"without \"size\""), "{words:?}");
}

#[test]
fn values_are_found_for_every_kind_of_rule() {
    for entry in [
        json!({ "const": { "a": [1] } }),
        json!({ "enum": ["x", "y"] }),
        json!({ "default": 7, "type": "integer", "minimum": 7, "maximum": 7 }),
        json!({ "examples": ["beta-9"], "type": "string", "pattern": "^(?=b)[a-z]+-\\d$" }),
        json!({ "type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.2 }),
        json!({ "type": "integer", "multipleOf": 7, "minimum": 50 }),
        json!({ "type": "number", "multipleOf": 0.25, "maximum": -1 }),
        json!({ "type": "string", "pattern": "^[a-z][a-z0-9-]{2,30}$", "minLength": 12 }),
        json!({ "type": "string", "pattern": "^(small|large)-\\d+(\\.\\d+)?$" }),
        json!({ "type": "string", "pattern": "^(\\d{1,3}\\.){3}\\d{1,3}/[0-9]+$" }),
        json!({ "type": "string", "format": "ipv4" }),
        json!({ "type": "string", "format": "date-time" }),
        json!({ "type": "string", "format": "uuid" }),
        json!({ "type": "string", "maxLength": 3 }),
        json!({ "type": ["null", "string"] }),
        json!({ "type": "array", "minItems": 3, "items": { "type": "integer" } }),
        json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "type": "integer" } }),
        json!({ "type": "array", "items": [{ "type": "string" }, { "type": "integer" }], "minItems": 2 }),
        json!({ "type": "array", "contains": { "const": 5 } }),
        json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "integer" } }),
        json!({ "oneOf": [{ "type": "string", "minLength": 2, "maxLength": 1 }, { "type": "integer" }] }),
        json!({ "anyOf": [{ "not": {} }, { "type": "boolean" }] }),
        json!({ "allOf": [{ "type": "integer", "minimum": 5 }, { "maximum": 6 }, { "not": { "const": 5 } }] }),
        json!({ "required": ["a"], "properties": { "a": {} }, "dependencies": { "a": ["b"] } }),
        json!({ "type": "object", "if": { "required": ["a"] }, "then": { "required": ["b"] }, "required": ["a"] }),
        json!({ "required": ["deep"], "properties": { "deep": { "required": ["er"], "properties": { "er": { "type": "boolean" } } } } }),
    ] {
        assert!(valid(&one(&entry)).contains_key("it"), "{entry}");
    }
}

#[test]
fn references_inside_the_document_are_followed_and_may_be_recursive() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$ref": "#/definitions/tree",
        "definitions": {
            "tree": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": { "$ref": "#/definitions/name" },
                    "children": { "type": "array", "items": { "$ref": "#/definitions/tree" } },
                },
            },
            "name": { "type": "string", "minLength": 30 },
        },
    });
    assert_eq!(valid(&schema).len(), 1);
    assert!(external_references(&schema).is_empty());
}

#[test]
fn each_broken_rule_is_named() {
    for (entry, word) in [
        (json!({ "type": "integer" }), "is a text"),
        (
            json!({ "enum": ["a"] }),
            "is none of the values that are allowed",
        ),
        (json!({ "type": "integer", "minimum": 3 }), "is too small"),
        (json!({ "type": "integer", "maximum": 3 }), "is too large"),
        (json!({ "type": "string", "minLength": 3 }), "is too short"),
        (json!({ "type": "string", "maxLength": 3 }), "is too long"),
        (
            json!({ "type": "integer", "multipleOf": 2 }),
            "is no multiple of its step",
        ),
        (
            json!({ "type": "string", "pattern": "^a+b$" }),
            "does not match what it has to look like",
        ),
        (
            json!({ "type": "array", "minItems": 1 }),
            "has too few items",
        ),
        (
            json!({ "type": "array", "items": { "type": "boolean" } }),
            "holds an item that is not allowed",
        ),
        (
            json!({ "required": ["x"], "properties": { "x": {} } }),
            "without \"x\"",
        ),
    ] {
        let sample = sample(&one(&entry));
        let found = sample.invalid().unwrap();
        assert!(
            found.iter().any(|it| it.what.ends_with(word)),
            "{word}: {found:?}"
        );
    }
    let closed = json!({ "additionalProperties": false, "type": "object" });
    let sample = sample(&closed);
    assert!(sample.invalid().unwrap()[0].what.starts_with("with "));
    assert_eq!(sample.valid(), Ok(Some(&Parameters::new())));
}

#[test]
fn an_underivable_sample_has_a_reason() {
    let none = Sample::of(None, None, "a bind");
    assert_eq!(none.valid(), Ok(None));
    assert_eq!(
        none.other(),
        Err("the plan has no schema for parameters of a bind")
    );
    let impossible = sample(&one(&json!({ "not": {} })));
    assert!(impossible.valid().is_err());
    let anything = sample(&json!({}));
    assert_eq!(anything.valid(), Ok(Some(&Parameters::new())));
    assert!(anything.invalid().is_err());
}

#[test]
fn parameters_of_the_caller_take_precedence_by_plan_or_service() {
    let raw = json!({ "services": [{ "id": "s1", "name": "service", "plans": [
        { "id": "p1", "name": "plan", "schemas": { "service_instance": { "create": { "parameters": one(&json!({ "type": "integer" })) } } } },
    ] }] });
    let offerings = catalog::read(&raw);
    let given = |value: i64| PlanParameters {
        provision: json!({ "it": value }).as_object().cloned(),
        ..PlanParameters::default()
    };
    let mut options = Options::default();
    let got = |options: &Options| {
        let samples = samples(options, &offerings[0], &offerings[0].plans[0]);
        samples.provision.valid().unwrap().unwrap()["it"].clone()
    };
    assert_eq!(got(&options), json!(1));
    options.parameters.insert("s1".to_owned(), given(41));
    assert_eq!(got(&options), json!(41));
    options
        .parameters
        .insert("service/p1".to_owned(), given(42));
    assert_eq!(got(&options), json!(42));
}

#[test]
fn a_malicious_schema_is_refused_quickly() {
    let mut doubling =
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/d0" });
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = format!("#/definitions/d{}", level + 1);
        let twice = json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
        definitions.insert(format!("d{level}"), twice);
    }
    definitions.insert("d40".to_owned(), json!({ "type": "object" }));
    doubling["definitions"] = Value::Object(definitions);
    let mut nested = json!({ "type": "string" });
    for _ in 0..60 {
        nested = json!({ "type": "object", "required": ["a"], "properties": { "a": nested } });
    }
    let branches: Vec<Value> = (0..50)
        .map(|it| json!({ "$ref": format!("#/definitions/x{}", it % 3) }))
        .collect();
    let names: Vec<String> = (0..30).map(|it| format!("n{it}")).collect();
    let mut recursive = json!({ "type": "object", "required": names, "properties": {} });
    for name in &names {
        recursive["properties"][name] = json!({ "$ref": "#" });
    }
    for number in 0..1_500 {
        recursive["properties"][format!("m{number}")] = json!({ "type": "string" });
    }
    let mut loose = recursive.clone();
    loose["required"] = json!([]);
    loose["oneOf"] =
        json!([{}, { "minProperties": 1 }, { "minProperties": 2 }, { "minProperties": 3 }]);
    let hostile = [
        recursive,
        loose,
        doubling,
        nested,
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "https://elsewhere.example/schema" }),
        json!({ "$dynamicRef": "#x" }),
        one(&json!({ "type": "string", "minLength": 1_000_000_000_000_u64 })),
        one(&json!({ "type": "array", "minItems": 1e18 })),
        one(&json!({ "type": "string", "pattern": "(a{1000}){1000}" })),
        one(&json!({ "type": "string", "pattern": "((((((((((((((((((((a))))))))))))))))))))" })),
        one(&json!({ "type": "string", "pattern": "(a+)+$" })),
        json!({ "anyOf": branches, "definitions": {
            "x0": { "anyOf": branches }, "x1": { "oneOf": branches }, "x2": { "allOf": branches },
        } }),
        json!({ "title": "a".repeat(70_000) }),
        json!({ "required": (0..5_000).map(|it| it.to_string()).collect::<Vec<_>>() }),
    ];
    for schema in hostile {
        let started = Instant::now();
        let sample = sample(&schema);
        let words = schema.to_string();
        let words = &words[..words.len().min(80)];
        let took = started.elapsed();
        assert!(took < Duration::from_secs(5), "{words} took {took:?}");
        assert!(!matches!(sample.valid(), Ok(None)), "{words}");
    }
}

#[test]
fn external_references_are_reported_and_internal_ones_are_not() {
    let out = |schema: &Value| external_references(schema).into_iter().collect::<Vec<_>>();
    let schema = json!({ "properties": { "a": { "$ref": "other.json#/a" } } });
    assert_eq!(out(&schema), ["other.json#/a"]);
    for inside in [
        json!({ "$ref": "#" }),
        json!({ "$ref": "#/definitions/a" }),
        json!({ "$id": "https://x.example/root.json", "$ref": "https://x.example/root.json#/definitions/a" }),
        json!({ "$ref": "item.json", "definitions": { "item": { "$id": "https://x.example/item.json" } } }),
    ] {
        assert!(out(&inside).is_empty(), "{inside}");
    }
}

#[test]
fn an_invalid_schema_is_reported() {
    assert!(fault(&json!({ "type": "strin" })).is_some());
    assert!(fault(&json!({ "properties": [] })).is_some());
    assert_eq!(fault(&json!({ "pattern": "\\cA(?<![a])" })), None);
    assert_eq!(
        fault(&json!({ "$schema": "https://x.example/own", "type": 7 })),
        None
    );
    assert!(fault(&json!("text")).is_some());
    assert_eq!(fault(&one(&json!({ "type": "string" }))), None);
}

fn plain_schema() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "type": "boolean" })),
        Just(json!({})),
        (-50_i64..50, 0_i64..50).prop_map(|(low, more)| {
            json!({ "type": "integer", "minimum": low, "maximum": low + more })
        }),
        (1_i64..9, -50_i64..50).prop_map(|(step, low)| {
            json!({ "type": "integer", "multipleOf": step, "minimum": low })
        }),
        (-5.0_f64..5.0, 0.5_f64..5.0).prop_map(|(low, more)| {
            json!({ "type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + more })
        }),
        (0_usize..40, 0_usize..40).prop_map(|(least, more)| {
            json!({ "type": "string", "minLength": least, "maxLength": least + more })
        }),
        prop::collection::vec("[a-z]{1,8}", 1..5).prop_map(|all| json!({ "enum": all })),
        (1_usize..5, 0_usize..9).prop_map(|(least, more)| {
            json!({ "type": "string", "pattern": format!("^[a-f][0-9x-z]{{{least},{}}}$", least + more) })
        }),
        any::<i32>().prop_map(|it| json!({ "const": it })),
    ]
}

fn any_schema() -> impl Strategy<Value = Value> {
    plain_schema().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0_usize..4).prop_map(|(items, least)| {
                json!({ "type": "array", "items": items, "minItems": least })
            }),
            object_schema(inner.clone()),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({ "anyOf": all })),
            inner.prop_map(|it| json!({ "allOf": [it, {}] })),
        ]
    })
}

fn object_schema(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (
        prop::collection::btree_map("[a-e]", (inner, any::<bool>()), 0..4),
        any::<bool>(),
    )
        .prop_map(|(entries, open)| {
            let required: Vec<&String> =
                entries.iter().filter(|it| it.1.1).map(|it| it.0).collect();
            let properties: serde_json::Map<String, Value> = entries
                .iter()
                .map(|(name, it)| (name.clone(), it.0.clone()))
                .collect();
            json!({
                "type": "object", "required": required, "properties": properties,
                "additionalProperties": open,
            })
        })
}

/// Names with a meaning in a schema, and some without.
const KEYWORDS: &str = "
    $schema $ref $id type properties required additionalProperties items prefixItems
    contains minItems maxItems uniqueItems minLength maxLength pattern format minimum
    maximum exclusiveMinimum exclusiveMaximum multipleOf enum const default examples allOf
    anyOf oneOf not if then else definitions dependencies dependentRequired minProperties
    patternProperties a b
";

/// Any JSON that resembles a schema.
fn nonsense() -> impl Strategy<Value = Value> {
    let words = [
        "object",
        "string",
        "integer",
        "#",
        "#/definitions/a",
        "[a-",
        "a",
        "email",
    ];
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..40).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let keywords: Vec<&str> = KEYWORDS.split_whitespace().collect();
    plain.prop_recursive(4, 40, 6, move |inner| {
        let named = (prop::sample::select(keywords.clone()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            prop::collection::vec(named, 0..8).prop_map(|all| {
                let all = all.into_iter().map(|(name, it)| (name.to_owned(), it));
                Value::Object(all.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn nonsense_in_place_of_a_schema_ends_in_a_sample_or_a_reason(schema in nonsense()) {
        let sample = sample(&schema);
        if let Ok(Some(valid)) = sample.valid() {
            let compiled = Schema::compile(&schema).unwrap();
            assert!(compiled.fits(&Value::Object(valid.clone())));
        }
        fault(&schema);
        external_references(&schema);
    }

    #[test]
    fn samples_of_any_schema_are_valid_or_invalid_as_intended(
        mut schema in object_schema(any_schema())
    ) {
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        let compiled = Schema::compile(&schema).unwrap();
        let sample = sample(&schema);
        let found = sample.valid().unwrap().unwrap();
        assert!(compiled.fits(&Value::Object(found.clone())), "{found:?} for {schema}");
        if let Ok(other) = sample.other() {
            assert_ne!(found, other);
            assert!(compiled.fits(&Value::Object(other.clone())));
        }
        for invalid in sample.invalid().unwrap_or_default() {
            let parameters = Value::Object(invalid.parameters.clone());
            assert!(!compiled.fits(&parameters), "{} for {schema}", invalid.what);
        }
    }
}
