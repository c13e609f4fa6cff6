//! Schemas and parameters designed to exhaust the processor or the stack.
//!
//! Test threads have the same stack as server threads, 2 MB, so an overflow shows here too.

use super::{DRAFT4, check, compile};
use serde_json::{Map, Value, json};

/// `levels` nested objects, each under this name.
fn nested(name: &str, levels: usize, innermost: Value) -> Value {
    (0..levels).fold(innermost, |inner, _| json!({ name: inner }))
}

fn refused(schema: Value) -> String {
    match compile(schema) {
        Err(fault) => fault.to_string(),
        Ok(_) => panic!("should have been refused"),
    }
}

#[test]
fn a_reference_that_never_ends_is_refused() {
    let loops = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#/not"}}),
        json!({"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
               "properties": {"x": {"$ref": "#/definitions/a"}}}),
        json!({"definitions": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/definitions/a"}]}},
               "items": {"$ref": "#/definitions/a"}}),
        json!({"$ref": "#/else", "else": {"if": {"$ref": "#/else"}}}),
        json!({"$ref": "#/d%65finitions/a", "definitions": {"a": {"$ref": "#"}}}),
        json!({"definitions": {"a": {"id": "#named", "oneOf": [{"$ref": "#named"}]}}}),
        json!({"$defs": {"a": {"$dynamicAnchor": "n", "allOf": [{"$dynamicRef": "#n"}]}}}),
        json!({"unknown": {"here": {"allOf": [{"$ref": "#/unknown/here"}]}},
               "properties": {"x": {"$ref": "#/unknown/here"}}}),
    ];
    for schema in loops {
        let reason = refused(schema.clone());
        assert!(reason.contains("without end"), "{schema}: {reason}");
    }
}

#[test]
fn a_recursive_schema_that_descends_into_the_value_is_accepted() {
    let tree = json!({"$schema": DRAFT4, "$ref": "#/definitions/tree", "definitions": {"tree": {
        "type": "object",
        "properties": {
            "left": {"$ref": "#/definitions/tree"},
            "right": {"$ref": "#/definitions/tree"},
            "children": {"type": "array", "items": {"$ref": "#/definitions/tree"}},
        },
        "additionalProperties": false,
    }}});
    let good = json!({"left": {"right": {}}, "children": [{"left": {}}, {"children": []}]});
    assert_eq!(check(tree.clone(), good), Ok(()));
    let bad = json!({"left": {"right": {"children": [{}, {"wrong": 1}]}}});
    let sentence = check(tree.clone(), bad).unwrap_err();
    assert!(
        sentence.contains("`left.right.children[1].wrong` is not allowed"),
        "{sentence}"
    );
    assert_eq!(check(tree.clone(), nested("left", 60, json!({}))), Ok(()));
    let sentence = check(tree, nested("left", 100, json!({}))).unwrap_err();
    assert!(sentence.contains("must not be nested deeper"), "{sentence}");
}

/// `a0` applies `a1` twice, `a1` applies `a2` twice …: 2³⁰ rules for one value, from 2 kB.
fn doubling(keyword: &str) -> Value {
    let mut definitions = Map::new();
    for nth in 0..30 {
        let next = json!({"$ref": format!("#/definitions/a{}", nth + 1)});
        definitions.insert(format!("a{nth}"), json!({ keyword: [next, next] }));
    }
    definitions.insert("a30".to_owned(), json!({"type": "string"}));
    Value::Object(definitions)
}

#[test]
fn references_that_double_at_every_step_are_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let top = json!({"$ref": "#/definitions/a0", "definitions": doubling(keyword)});
        assert!(refused(top).contains("more than 2000 rules to one value"));
        let below = json!({
            "properties": {"x": {"items": {"$ref": "#/definitions/a0"}}},
            "definitions": doubling(keyword),
        });
        assert!(refused(below).contains("more than 2000 rules to one value"));
    }
}

#[test]
fn rules_that_double_with_the_depth_of_the_value_limit_the_depth() {
    let schema = json!({"$schema": DRAFT4, "anyOf": [
        {"properties": {"x": {"$ref": "#"}}, "required": ["a"]},
        {"properties": {"x": {"$ref": "#"}}},
    ]});
    assert_eq!(check(schema.clone(), nested("x", 8, json!({}))), Ok(()));
    let sentence = check(schema, nested("x", 60, json!({}))).unwrap_err();
    assert!(sentence.contains("must not be nested deeper"), "{sentence}");
    let faster = json!({"anyOf": [
        {"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}},
        {"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}},
    ]});
    assert!(refused(faster).contains("more than 2000 rules"));
}

#[test]
fn a_long_chain_of_references_is_refused_before_it_overflows_the_stack() {
    for length in [400, 600, 1_200] {
        let mut definitions = Map::new();
        for nth in 0..length {
            let next = format!("#/definitions/a{}", nth + 1);
            definitions.insert(format!("a{nth}"), json!({"$ref": next}));
        }
        definitions.insert(format!("a{length}"), json!({"type": "string"}));
        let schema = json!({
            "$schema": DRAFT4,
            "properties": {"x": {"$ref": "#/definitions/a0"}},
            "definitions": definitions,
        });
        match compile(schema) {
            Ok(schemas) => {
                let sentence = schemas.check_provision(&super::parameters(json!({"x": 1})));
                assert!(sentence.unwrap_err().contains("`x` must be text"));
            }
            Err(fault) => assert!(fault.reason.contains("within each other"), "{fault}"),
        }
    }
}

#[test]
fn a_long_chain_into_the_value_does_not_overflow_the_stack() {
    let length = 900;
    let mut definitions = Map::new();
    for nth in 0..length {
        let next = format!("#/definitions/a{}", nth + 1);
        definitions.insert(
            format!("a{nth}"),
            json!({"properties": {"x": {"$ref": next}}}),
        );
    }
    definitions.insert(format!("a{length}"), json!({"type": "string"}));
    let schema = json!({"$ref": "#/definitions/a0", "definitions": definitions});
    let schemas = compile(schema).unwrap();
    let deep = super::parameters(nested("x", 60, json!(1)));
    assert_eq!(schemas.check_provision(&deep), Ok(()));
}

#[test]
fn the_deepest_recursion_allowed_fits_on_the_stack() {
    // Seven nested rules on each level, and each level inside the one above.
    let rule = (0..6).fold(json!({"$ref": "#"}), |inner, _| json!({"allOf": [inner]}));
    let schemas = compile(json!({"$schema": DRAFT4, "properties": {"x": rule}})).unwrap();
    let depth_max = schemas.provision.as_ref().unwrap().depth_max();
    assert!(depth_max > 40, "{depth_max}");
    let deepest = super::parameters(nested("x", depth_max, json!({"x": 1})));
    assert_eq!(schemas.check_provision(&deepest), Ok(()));
}

#[test]
fn the_worst_schema_allowed_ends_soon_on_large_parameters() {
    let rules: Vec<Value> = (0..1_500)
        .map(|nth| json!({"minLength": nth + 9}))
        .collect();
    let schema = json!({"properties": {"x": {"items": {"anyOf": rules}}}});
    let large: Vec<&str> = vec!["a"; 2_000];
    let sentence = check(schema.clone(), json!({"x": large})).unwrap_err();
    assert!(
        sentence.contains("`x[0]` must have one of the forms"),
        "{sentence}"
    );
    let larger: Vec<&str> = vec!["a"; 20_000];
    let sentence = check(schema, json!({"x": larger})).unwrap_err();
    assert_eq!(
        sentence,
        "the parameters are too large for the schema of the plan"
    );
}

#[test]
fn a_pattern_is_matched_in_linear_time() {
    let schema = json!({"$schema": DRAFT4, "properties": {"x": {"pattern": "^(a+)+(b|c+)*$"}}});
    let value = format!("{}!", "a".repeat(50_000));
    assert!(check(schema, json!({"x": value})).is_err());
}

#[test]
fn a_pattern_that_cannot_be_linear_or_is_huge_is_refused() {
    let patterns = [
        "^(?=.*[0-9]).*$",
        r"^(a)\1$",
        "((((a{100}){100}){100}){100}){100}",
        "(",
    ];
    for pattern in patterns {
        let fault = compile(json!({"properties": {"x": {"pattern": pattern}}})).unwrap_err();
        assert_eq!(
            fault.path,
            "schemas.service_instance.create.parameters.properties.x.pattern"
        );
        assert!(fault.reason.contains("linear time"), "{fault}");
    }
    let fault = compile(json!({"patternProperties": {"^(?!a)": {}}})).unwrap_err();
    assert!(fault.path.contains("patternProperties"), "{fault}");
}

#[test]
fn ordinary_patterns_are_not_too_large() {
    for pattern in [
        r"^\p{L}{1,63}$",
        "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        r"^\w{1,255}$",
    ] {
        let schema = json!({"properties": {"x": {"pattern": pattern}}});
        assert_eq!(check(schema, json!({"x": "abc"})), Ok(()), "{pattern}");
    }
}

#[test]
fn many_patterns_and_many_subschemas_are_refused() {
    let patterns: Map<String, Value> = (0..300)
        .map(|nth| (format!("p{nth}"), json!({"pattern": "a"})))
        .collect();
    assert!(refused(json!({ "properties": patterns })).contains("200 patterns"));
    let subschemas: Map<String, Value> = (0..2_500)
        .map(|nth| (format!("p{nth}"), json!({})))
        .collect();
    assert!(refused(json!({ "properties": subschemas })).contains("2000 subschemas"));
    let fine: Map<String, Value> = (0..1_500)
        .map(|nth| (format!("p{nth}"), json!({})))
        .collect();
    assert!(compile(json!({ "properties": fine })).is_ok());
}

/// Holds: B-079.
#[test]
fn a_schema_too_deep_or_too_large_is_refused() {
    let deep = (0..2_000).fold(json!({}), |inner, _| json!({"not": inner}));
    let reason = refused(deep);
    assert!(reason.contains("nested deeper than 96"), "{reason}");
    let large = json!({"description": "x".repeat(70_000)});
    assert!(refused(large).contains("65536 bytes"));
}

#[test]
fn parameters_too_deep_are_refused_unchecked() {
    let deep = super::parameters(nested("x", 2_000, json!(1)));
    let schemas = compile(json!({"$schema": DRAFT4})).unwrap();
    let sentence = schemas.check_provision(&deep).unwrap_err();
    assert_eq!(
        sentence,
        "the parameters must not be nested deeper than 64 levels"
    );
}

#[test]
fn a_subschema_with_an_address_of_its_own_is_refused() {
    let schema = json!({"definitions": {"a": {"id": "http://example.com/a", "$ref": "#/b"}}});
    assert!(refused(schema).contains("address of its own"));
    let property = json!({"id": "http://example.com/", "properties": {"id": {"type": "string"}}});
    assert!(check(property, json!({"id": 1})).is_err());
}
