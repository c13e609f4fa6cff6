//! The examples of RFC 7396, appendix A.

use crate::spec::merge_patch;
use crate::spec::samples::{map, parameters, parameters_patch, spec};
use serde_json::{Map, Value, json};

/// All examples of the appendix: original, patch, result.
fn examples() -> Vec<(Value, Value, Value)> {
    vec![
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!({"a": "foo"}), json!("bar"), json!("bar")),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!([1, 2]),
            json!({"a": "b", "c": null}),
            json!({"a": "b"}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ]
}

fn applied(original: Value, patch: Value) -> Map<String, Value> {
    let mut target = map(original);
    merge_patch::apply(&mut target, &map(patch));
    target
}

#[test]
fn examples_between_objects_have_the_result_of_the_standard() {
    let mut checked = 0;
    for (original, patch, result) in examples() {
        if original.is_object() && patch.is_object() {
            assert_eq!(applied(original, patch), map(result));
            checked += 1;
        }
    }
    assert_eq!(checked, 10);
}

#[test]
fn all_examples_hold_inside_a_member() {
    for (original, patch, result) in examples() {
        // A member whose result is `null` is removed.
        let expected = if result.is_null() {
            json!({})
        } else {
            json!({"v": result})
        };
        assert_eq!(
            applied(json!({"v": original}), json!({"v": patch})),
            map(expected)
        );
    }
}

#[test]
fn parameters_follow_the_examples_but_have_no_null_members() {
    for (original, patch, result) in examples() {
        if original.is_object() && patch.is_object() {
            let after = spec("small", original).apply(&parameters_patch(patch));
            assert_eq!(after.parameters, parameters(result));
        }
    }
}

#[test]
fn nulls_inside_arrays_stay() {
    let object = json!({"a": [null, {"b": null}], "c": null, "d": {"e": null, "f": [null]}});
    let expected = json!({"a": [null, {"b": null}], "d": {"f": [null]}});
    assert_eq!(parameters(object.clone()).as_map(), &map(expected.clone()));
    let after = spec("small", json!({})).apply(&parameters_patch(object));
    assert_eq!(after.parameters.as_map(), &map(expected));
}
