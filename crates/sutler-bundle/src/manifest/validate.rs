//! Validates parameters against their descriptors, independently of JSON Schema.
//!
//! `schema.rs` expresses the same rules for platforms; a property test compares the two. Reasons never quote a
//! value.

use super::parameter::Parameter;
use super::scalars;
use super::value_type::{NumberRange, RangeBound, ValueKind, ValueType};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// Which request the parameters belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationPoint {
    /// Creation: required parameters must be present.
    Create,
    /// Update: only updatable parameters, and only those that change.
    Update,
}

/// Checks the parameters of a request.
///
/// # Errors
/// A sentence for the caller that names each parameter and its problem, without values.
pub fn accepts(
    parameters: &[Parameter],
    values: &Map<String, Value>,
    occasion: ValidationPoint,
) -> Result<(), String> {
    let mut faults = Vec::new();
    for (name, value) in values {
        let known = parameters.iter().find(|it| it.name == *name);
        match known {
            Some(parameter) if occasion == ValidationPoint::Update && !parameter.updatable => {
                faults.push(format!("{name} cannot be changed"));
            }
            Some(parameter) => {
                if let Err(reason) = fits(&parameter.value_type, value) {
                    faults.push(format!("{name} {reason}"));
                }
                let holds = |known: bool| known || occasion == ValidationPoint::Update;
                if !is_active(parameter, parameters, values, &holds) {
                    faults.push(format!("{name} {}", when(parameter)));
                }
            }
            None => {
                let shown: String = name.chars().take(64).collect();
                faults.push(format!("{shown:?} is not known"));
            }
        }
    }
    if occasion == ValidationPoint::Create {
        for parameter in parameters.iter().filter(|it| it.is_demanded()) {
            let active = is_active(parameter, parameters, values, &|known| known);
            if active && !values.contains_key(&parameter.name) {
                faults.push(format!("{} is required", parameter.name));
            }
        }
    }
    match faults.len() {
        0 => Ok(()),
        _ => Err(faults.join("; ")),
    }
}

/// Checks an update against the current parameters: conditions must hold for the merged parameters, not only for
/// those in the update. Parameters that are not in the update get no other check.
///
/// # Errors
/// A sentence for the caller that names each parameter and its problem, without values.
pub fn accepts_change(
    parameters: &[Parameter],
    before: &Map<String, Value>,
    change: &Map<String, Value>,
) -> Result<(), String> {
    let mut after = before.clone();
    after.extend(change.clone());
    let active = |parameter: &Parameter, values: &Map<String, Value>| {
        is_active(parameter, parameters, values, &|known| known)
    };
    let missing = |parameter: &Parameter, values: &Map<String, Value>| {
        parameter.is_demanded()
            && active(parameter, values)
            && !values.contains_key(&parameter.name)
    };
    let mut faults = Vec::new();
    for parameter in parameters {
        let named = change.contains_key(&parameter.name);
        if named && !active(parameter, &after) {
            faults.push(format!("{} {}", parameter.name, when(parameter)));
        }
        // A parameter that was missing before is not reported.
        if missing(parameter, &after) && !missing(parameter, before) {
            faults.push(format!("{} is required", parameter.name));
        }
    }
    match faults.len() {
        0 => Ok(()),
        _ => Err(faults.join("; ")),
    }
}

/// Adds the defaults of absent parameters whose conditions hold.
#[must_use]
pub fn with_defaults(parameters: &[Parameter], values: &Map<String, Value>) -> Map<String, Value> {
    let mut all = values.clone();
    for parameter in parameters {
        let active = is_active(parameter, parameters, values, &|known| known);
        if let (true, Some(default)) = (active, &parameter.default) {
            let entry = all.entry(parameter.name.clone());
            entry.or_insert_with(|| default.clone());
        }
    }
    all
}

/// Whether all conditions of a parameter hold. A controlling parameter that is absent has its default if its own
/// conditions hold; `absent` is the answer if it has none.
fn is_active(
    parameter: &Parameter,
    all: &[Parameter],
    values: &Map<String, Value>,
    absent: &dyn Fn(bool) -> bool,
) -> bool {
    parameter.conditions.iter().all(|condition| {
        if let Some(value) = values.get(&condition.key) {
            return condition.values.iter().any(|it| same_value(it, value));
        }
        let Some(controller) = all.iter().find(|it| it.name == condition.key) else {
            return false;
        };
        let default = controller.default.as_ref();
        let by_default =
            default.is_some_and(|it| condition.values.iter().any(|one| same_value(one, it)));
        absent(by_default && is_active(controller, all, values, absent))
    })
}

fn when(parameter: &Parameter) -> String {
    let conditions = parameter.conditions.iter();
    let keys: Vec<&str> = conditions.map(|it| it.key.as_str()).collect();
    format!("cannot be given with this choice of {}", keys.join(" and "))
}

/// Checks a value against a type; the reason continues a sentence that begins with the value's name.
pub(super) fn fits(value_type: &ValueType, value: &Value) -> Result<(), String> {
    fits_kind(&value_type.kind, value)?;
    match &value_type.choices {
        Some(choices) if !choices.iter().any(|it| same_value(it, value)) => {
            Err("must be one of its choices".to_owned())
        }
        Some(_) | None => Ok(()),
    }
}

fn fits_kind(kind: &ValueKind, value: &Value) -> Result<(), String> {
    match (kind, value) {
        (
            ValueKind::Text {
                min_length,
                max_length,
                pattern,
            },
            Value::String(text),
        ) => {
            let length = text.chars().count() as u64;
            within(length, *min_length, *max_length, "characters")?;
            match pattern {
                Some(pattern) if !pattern.matches(text) => {
                    Err("does not match its pattern".to_owned())
                }
                Some(_) | None => Ok(()),
            }
        }
        (ValueKind::Integer(range), Value::Number(number)) => {
            let whole = scalars::whole(number).is_some()
                || number.as_f64().is_some_and(|it| it.fract() == 0.0);
            match whole {
                true => in_range(range, number),
                false => Err("must be a whole number".to_owned()),
            }
        }
        (ValueKind::Number(range), Value::Number(number)) => in_range(range, number),
        (ValueKind::Boolean, Value::Bool(_)) | (ValueKind::Null, Value::Null) => Ok(()),
        (ValueKind::Object { properties, open }, Value::Object(entries)) => {
            object_fits(properties, *open, entries)
        }
        (
            ValueKind::Array {
                items,
                min_items,
                max_items,
            },
            Value::Array(values),
        ) => {
            within(values.len() as u64, *min_items, *max_items, "items")?;
            let Some(value_type) = items else {
                return Ok(());
            };
            let mut numbered = values.iter().enumerate();
            numbered.try_for_each(|(nth, value)| {
                fits(value_type, value).map_err(|reason| format!("[{nth}] {reason}"))
            })
        }
        _ => Err(format!("must be of type {}", kind.name())),
    }
}

fn object_fits(
    properties: &[Parameter],
    open: bool,
    entries: &Map<String, Value>,
) -> Result<(), String> {
    for (name, value) in entries {
        match properties.iter().find(|it| it.name == *name) {
            Some(known) => {
                fits(&known.value_type, value).map_err(|why| format!(".{name} {why}"))?
            }
            None if open => (),
            None => return Err("has a property that is not known".to_owned()),
        }
    }
    let missing = properties
        .iter()
        .find(|it| it.required && !entries.contains_key(&it.name));
    match missing {
        Some(missing) => Err(format!(".{} is required", missing.name)),
        None => Ok(()),
    }
}

fn within(count: u64, least: Option<u64>, most: Option<u64>, of: &str) -> Result<(), String> {
    match (least, most) {
        (Some(least), _) if count < least => Err(format!("must have at least {least} {of}")),
        (_, Some(most)) if count > most => Err(format!("must have at most {most} {of}")),
        _ => Ok(()),
    }
}

fn in_range(range: &NumberRange, number: &Number) -> Result<(), String> {
    let outside =
        |bound: &RangeBound, beyond: Ordering| match scalars::compare(number, &bound.value) {
            Ordering::Equal => bound.exclusive,
            ordering => ordering == beyond,
        };
    let words = |bound: &RangeBound, plain: &str, strict: &str| {
        let word = if bound.exclusive { strict } else { plain };
        Err(format!("must be {word} {}", bound.value))
    };
    if let Some(lower) = range
        .lower
        .as_ref()
        .filter(|it| outside(it, Ordering::Less))
    {
        return words(lower, "at least", "more than");
    }
    if let Some(upper) = range
        .upper
        .as_ref()
        .filter(|it| outside(it, Ordering::Greater))
    {
        return words(upper, "at most", "less than");
    }
    match &range.multiple_of {
        Some(divisor) if !is_multiple(number, divisor) => {
            Err(format!("must be a multiple of {divisor}"))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_multiple(number: &Number, divisor: &Number) -> bool {
    match (scalars::whole(number), scalars::whole(divisor)) {
        (Some(number), Some(divisor)) => number % divisor == 0,
        (None, _) | (_, None) => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            (float(number) / float(divisor)).fract() == 0.0
        }
    }
}

/// Whether two values are equal; 1 and 1.0 are.
pub(crate) fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            scalars::compare(one, other) == Ordering::Equal
        }
        _ => one == other,
    }
}
