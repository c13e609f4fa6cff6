//! JSON, paths, digests and bounds of specs and changes.

use crate::spec::json_pointer::shortened;
use crate::spec::samples::{label_patch, map, parameters_patch, patches, plan_patch, spec, specs};
use crate::spec::{
    PARAMETERS_DEPTH_MAX, PATHS_BYTES_MAX, ParameterSource, Parameters, ParametersError,
    ParametersPatch, Spec, SpecPatch,
};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, prop_assert_ne, proptest};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn specs_and_changes_survive_a_round_trip(one in specs(), patch in patches()) {
        let stored = serde_json::to_string(&one).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Spec>(&stored).expect("a spec"), one);
        let stored = serde_json::to_string(&patch).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<SpecPatch>(&stored).expect("a change"), patch);
    }

    #[test]
    fn the_stored_form_is_the_document_of_the_paths(patch in patches()) {
        let stored = serde_json::to_value(&patch).expect("JSON");
        prop_assert_eq!(&stored, &Value::Object(patch.to_document()));
        prop_assert_eq!(patch.byte_len(), serde_json::to_vec(&patch).expect("JSON").len());
        let mut distinct = patch.paths();
        for path in &distinct {
            prop_assert!(stored.pointer(path).is_some(), "{}", path);
        }
        distinct.dedup();
        prop_assert_eq!(distinct, patch.paths());
        prop_assert_eq!(patch.paths().is_empty(), patch.is_empty());
    }

    #[test]
    fn different_changes_have_different_digests(one in patches(), other in patches()) {
        if one != other {
            prop_assert_ne!(one.digest(), other.digest());
        }
    }
}

#[test]
fn paths_are_json_pointers_of_the_leaves() {
    let patch = SpecPatch {
        maintenance_version: Some(None),
        parameters: ParametersPatch::new(map(json!({
            "disk": {"size": 50, "old": null, "": {"a/b~1": {}}},
            "list": [{"a": 1}],
        }))),
        parameter_sources: Some(Vec::new()),
        name: Some("db".to_owned()),
        plan: plan_patch("large").plan,
        ..label_patch("team", None)
    };
    let mut paths = patch.paths();
    paths.sort();
    let expected = [
        "/labels/team",
        "/maintenance_version",
        "/name",
        "/parameter_sources",
        "/parameters/disk//a~1b~01",
        "/parameters/disk/old",
        "/parameters/disk/size",
        "/parameters/list",
        "/plan",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn the_digest_is_that_of_the_json_with_sorted_keys() {
    let patch = SpecPatch {
        maintenance_version: Some(None),
        parameters: ParametersPatch::new(map(json!({"b": {"d": null, "c": [1.5, null]}, "a": 1}))),
        parameter_sources: Some(vec![ParameterSource {
            secret: "init".to_owned(),
            key: Some("params".to_owned()),
            watch: true,
        }]),
        plan: plan_patch("large").plan,
        ..label_patch("team", Some("x"))
    };
    let text = concat!(
        r#"{"labels":{"team":"x"},"maintenance_version":null,"#,
        r#""parameter_sources":[{"key":"params","secret":"init","watch":true}],"#,
        r#""parameters":{"a":1,"b":{"c":[1.5,null],"d":null}},"plan":"large"}"#,
    );
    assert_eq!(patch.byte_len(), text.len());
    let expected: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    assert_eq!(patch.digest(), expected);
}

#[test]
fn debug_shows_no_parameters() {
    let hidden = json!({"canary": "canary"});
    let shown = format!(
        "{:?} {:?}",
        spec("small", hidden.clone()),
        parameters_patch(hidden)
    );
    assert!(!shown.contains("canary"), "{shown}");
}

/// An object with so many levels, made of objects or of arrays.
fn nested(levels: usize, wrap: fn(Value) -> Value) -> Map<String, Value> {
    let inside = (2..levels).fold(wrap(json!(1)), |inside, _| wrap(inside));
    map(json!({"a": inside}))
}

#[test]
fn parameters_from_outside_are_bounded_in_depth() {
    let wraps: [fn(Value) -> Value; 3] = [
        |value| json!({"a": value}),
        |value| json!([value]),
        |value| json!([{"a": value}]),
    ];
    for wrap in wraps {
        let weight = if wrap(json!(1)) == json!([{"a": 1}]) {
            2
        } else {
            1
        };
        let deepest = (PARAMETERS_DEPTH_MAX - 1) / weight + 1;
        let fits = nested(deepest, wrap);
        assert!(Parameters::try_from(fits.clone()).is_ok());
        assert!(ParametersPatch::try_from(fits).is_ok());
        let deeper = nested(deepest + 1, wrap);
        assert_eq!(
            Parameters::try_from(deeper.clone()),
            Err(ParametersError::TooDeep)
        );
        let stored = Value::Object(deeper).to_string();
        assert!(serde_json::from_str::<ParametersPatch>(&stored).is_err());
    }
}

#[test]
fn parameters_from_outside_are_bounded_in_the_length_of_their_paths() {
    let short: Map<String, Value> = (0..40).map(|key| (key.to_string(), json!(1))).collect();
    let fits = map(json!({"x".repeat(PATHS_BYTES_MAX / 50): short}));
    assert!(Parameters::try_from(fits).is_ok());
    let longer = map(json!({"x".repeat(PATHS_BYTES_MAX / 40): short}));
    assert_eq!(
        Parameters::try_from(longer.clone()),
        Err(ParametersError::PathsTooLong)
    );
    assert_eq!(
        ParametersPatch::try_from(longer),
        Err(ParametersError::PathsTooLong)
    );
}

#[test]
fn a_long_pointer_is_shortened_by_whole_segments() {
    assert_eq!(shortened("/a/bc/d", 7), "/a/bc/d");
    assert_eq!(shortened("/a/bc/d", 6), "/a/bc");
    assert_eq!(shortened("/a/bc/d", 5), "/a/bc");
    assert_eq!(shortened("/a/bc/d", 4), "/a");
    assert_eq!(shortened("/a/é/d", 3), "/a");
    assert_eq!(shortened("/abc", 1), "");
}
