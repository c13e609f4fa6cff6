//! Compares two answers, and a fetched instance with the request. Pure.

use crate::exchange::Exchange;
use serde_json::{Map, Value};

/// The repeat of a request in progress must be 202 with the operation of the first answer.
pub(crate) fn operation(first: &Exchange, repeat: &Exchange) -> Result<(), String> {
    repeat.must_be(&[202])?;
    let named = |it: &Exchange| it.field("operation").filter(|it| !it.is_null()).cloned();
    let words = |it: &Option<Value>| match it {
        Some(operation) => operation.to_string(),
        None => "none".to_owned(),
    };
    let (before, after) = (named(first), named(repeat));
    if before == after {
        return Ok(());
    }
    let (before, after) = (words(&before), words(&after));
    Err(format!(
        "the first answer named operation {before}, the repeat {after}"
    ))
}

/// Every requested parameter that is returned has the requested value. Others may be
/// returned, and any may be omitted (B-154).
pub(crate) fn parameters(
    requested: Option<&Map<String, Value>>,
    shown: &Value,
) -> Result<(), String> {
    let Some(shown) = shown.get("parameters").and_then(Value::as_object) else {
        return Ok(());
    };
    let requested = requested.into_iter().flatten();
    let wrong: Vec<&str> = requested
        .filter(|(name, value)| shown.get(*name).is_some_and(|it| it != *value))
        .map(|(name, _)| name.as_str())
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let names = wrong.join("`, `");
    Err(format!(
        "`{names}` in `parameters` is not what was asked for"
    ))
}

/// Every parameter returned before has the same value, if parameters are returned at all. Others
/// may have been added.
pub(crate) fn kept(before: &Value, now: &Value) -> Result<(), String> {
    let shown = |it: &Value| it.get("parameters").and_then(Value::as_object).cloned();
    let (Some(before), Some(now)) = (shown(before), shown(now)) else {
        return Ok(());
    };
    match before
        .iter()
        .find(|(name, value)| now.get(*name) != Some(value))
    {
        Some((name, _)) => Err(format!("`{name}` in `parameters` is not what it was")),
        None => Ok(()),
    }
}

/// Plan and parameters are unchanged.
pub(crate) fn unchanged(before: &Value, now: &Value) -> Result<(), String> {
    if let Some(plan) = before["plan_id"].as_str() {
        field(now, "plan_id", plan)?;
    }
    kept(before, now)?;
    kept(now, before)
}

/// A returned field has the expected value.
pub(crate) fn field(shown: &Value, name: &str, expected: &str) -> Result<(), String> {
    match shown.get(name) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text == expected => Ok(()),
        Some(other) => Err(format!("`{name}` is {other}, expected {expected:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{field, kept, operation, parameters, unchanged};
    use crate::exchange::Exchange;
    use serde_json::{Value, json};

    #[test]
    fn a_repeat_has_to_name_the_operation_of_the_first_answer_or_none_like_it() {
        let answer = |status, body: &Value| Exchange::answered(status, body);
        let named = answer(202, &json!({"operation": "one"}));
        let other = answer(202, &json!({"operation": "two"}));
        let unnamed = answer(202, &json!({}));
        let null = answer(202, &json!({"operation": null}));
        assert_eq!(operation(&named, &named), Ok(()));
        assert_eq!(operation(&unnamed, &null), Ok(()));
        assert!(operation(&named, &other).is_err());
        assert!(operation(&named, &unnamed).is_err());
        assert!(operation(&named, &answer(200, &json!({"operation": "one"}))).is_err());
    }

    #[test]
    fn parameters_may_be_left_out_or_added_and_not_changed() {
        let requested = json!({"size": 1, "name": "x"});
        let shown = |it: Value| parameters(requested.as_object(), &json!({"parameters": it}));
        assert_eq!(parameters(requested.as_object(), &json!({})), Ok(()));
        assert_eq!(shown(json!({"size": 1, "more": true})), Ok(()));
        assert_eq!(
            parameters(None, &json!({"parameters": {"size": 2}})),
            Ok(())
        );
        assert!(shown(json!({"size": 2})).is_err());
    }

    #[test]
    fn kept_parameters_may_be_extended_and_unchanged_ones_may_not() {
        let of = |it: Value| json!({"plan_id": "a", "parameters": it});
        let (one, two) = (of(json!({"x": 1})), of(json!({"x": 1, "y": 2})));
        assert_eq!(kept(&one, &two), Ok(()));
        assert!(kept(&two, &one).is_err());
        assert_eq!(kept(&two, &json!({})), Ok(()));
        assert_eq!(unchanged(&one, &one), Ok(()));
        assert!(unchanged(&one, &two).is_err());
        assert!(unchanged(&one, &json!({"plan_id": "b"})).is_err());
    }

    #[test]
    fn a_field_may_be_left_out_and_not_be_another() {
        assert_eq!(field(&json!({}), "plan_id", "a"), Ok(()));
        assert_eq!(field(&json!({"plan_id": "a"}), "plan_id", "a"), Ok(()));
        assert!(field(&json!({"plan_id": "b"}), "plan_id", "a").is_err());
    }
}
