//! Random specs and changes for property tests of this crate.
//!
//! Keys and values come from short lists, so that two samples often touch the same paths. Objects contain what is easily
//! mistaken: `null` members, `null` in arrays, empty objects, keys that need escapes.

use super::{ParameterSource, Parameters, ParametersPatch, Spec, SpecPatch};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use sutler_osb::PlanId;

/// A plan with this id.
pub(crate) fn plan(id: &str) -> PlanId {
    id.try_into().expect("an id")
}

/// The members of a JSON object.
pub(crate) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

/// Parameters from a JSON object.
pub(crate) fn parameters(value: Value) -> Parameters {
    Parameters::new(map(value))
}

/// A change of parameters only.
pub(crate) fn parameters_patch(value: Value) -> SpecPatch {
    SpecPatch {
        parameters: ParametersPatch::new(map(value)),
        ..SpecPatch::default()
    }
}

/// A change of the plan only.
pub(crate) fn plan_patch(id: &str) -> SpecPatch {
    SpecPatch {
        plan: Some(plan(id)),
        ..SpecPatch::default()
    }
}

/// A change of one label only.
pub(crate) fn label_patch(key: &str, value: Option<&str>) -> SpecPatch {
    SpecPatch {
        labels: BTreeMap::from([(key.to_owned(), value.map(str::to_owned))]),
        ..SpecPatch::default()
    }
}

/// A spec named `db` with this plan and these parameters.
pub(crate) fn spec(plan_id: &str, object: Value) -> Spec {
    Spec {
        plan: plan(plan_id),
        maintenance_version: None,
        parameters: parameters(object),
        parameter_sources: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        name: "db".to_owned(),
    }
}

/// Keys of JSON objects.
pub(crate) fn keys() -> impl Strategy<Value = String> {
    select(vec!["", "/", "~", "a/b", "~1", "a", "b", "disk"]).prop_map(str::to_owned)
}

/// Any JSON value, `null` included.
pub(crate) fn values() -> BoxedStrategy<Value> {
    let leaves = prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => (0..3).prop_map(Value::from),
        1 => select(vec![0.0, -0.0, 1.0, 1e300, u64::MAX as f64]).prop_map(Value::from),
        1 => select(vec!["", "x", "/", "\u{0}é"]).prop_map(Value::from),
    ];
    let nested = leaves.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => btree_map(keys(), inner, 0..4).prop_map(|members| json!(members)),
        ]
    });
    nested.boxed()
}

/// JSON objects, also with `null` members.
pub(crate) fn objects() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(keys(), values(), 0..5).prop_map(|members| members.into_iter().collect())
}

fn names() -> impl Strategy<Value = String> {
    select(vec!["db", "cache", ""]).prop_map(str::to_owned)
}

fn plans() -> impl Strategy<Value = PlanId> {
    select(vec!["small", "large"]).prop_map(plan)
}

fn versions() -> impl Strategy<Value = Option<String>> {
    option::of(select(vec!["1.0.0", "2.0.0"]).prop_map(str::to_owned))
}

fn sources() -> impl Strategy<Value = Vec<ParameterSource>> {
    let source = (names(), option::of(names()), any::<bool>());
    vec(
        source.prop_map(|(secret, key, watch)| ParameterSource { secret, key, watch }),
        0..3,
    )
}

fn entries<T: std::fmt::Debug>(
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = BTreeMap<String, T>> {
    btree_map(keys(), values, 0..3)
}

/// Specs of any content.
pub(crate) fn specs() -> impl Strategy<Value = Spec> {
    let local = (entries(names()), entries(names()), names());
    (plans(), versions(), objects(), sources(), local).prop_map(
        |(plan, maintenance_version, object, parameter_sources, local)| Spec {
            plan,
            maintenance_version,
            parameters: Parameters::new(object),
            parameter_sources,
            labels: local.0,
            annotations: local.1,
            name: local.2,
        },
    )
}

/// Changes of labels, annotations and the name.
pub(crate) fn local_patches() -> impl Strategy<Value = SpecPatch> {
    let local = (
        entries(option::of(names())),
        entries(option::of(names())),
        option::of(names()),
    );
    local.prop_map(|(labels, annotations, name)| SpecPatch {
        labels,
        annotations,
        name,
        ..SpecPatch::default()
    })
}

/// Changes of any content; some change nothing, some only what is local.
pub(crate) fn patches() -> impl Strategy<Value = SpecPatch> {
    let remote = (
        option::of(plans()),
        option::of(versions()),
        objects(),
        option::of(sources()),
    );
    let all = (local_patches(), remote).prop_map(
        |(local, (plan, maintenance_version, object, parameter_sources))| SpecPatch {
            plan,
            maintenance_version,
            parameters: ParametersPatch::new(object),
            parameter_sources,
            ..local
        },
    );
    let parameters = objects().prop_map(|object| parameters_patch(Value::Object(object)));
    prop_oneof![
        1 => Just(SpecPatch::default()),
        2 => local_patches(),
        3 => parameters,
        4 => all,
    ]
}
