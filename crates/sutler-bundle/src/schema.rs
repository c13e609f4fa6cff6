//! JSON Schemas of parameters, for the catalog and for the broker's checks.
//!
//! They accept exactly what `manifest/validate.rs` accepts. Conditional parameters stay among the properties so
//! that closed objects can have them; separate rules say when they may and must be present.

use crate::manifest::{
    Condition, NumberRange, Parameter, RangeBound, ValidationPoint, ValueKind, ValueType,
    same_value,
};
use serde_json::{Map, Value, json};

/// Draft of JSON Schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// 2020-12.
    #[default]
    Draft2020,
    /// Draft 4, as Automation Broker wrote it.
    Draft4,
}

impl Dialect {
    const fn name(self) -> &'static str {
        match self {
            Self::Draft2020 => "https://json-schema.org/draft/2020-12/schema",
            Self::Draft4 => "http://json-schema.org/draft-04/schema",
        }
    }
}

/// Schema of the parameters of a provision or bind, or of an update.
#[must_use]
pub fn schema(parameters: &[Parameter], occasion: ValidationPoint, dialect: Dialect) -> Value {
    let given = |it: &&Parameter| occasion == ValidationPoint::Create || it.updatable;
    let listed: Vec<&Parameter> = parameters.iter().filter(given).collect();
    let properties: Map<String, Value> = listed
        .iter()
        .map(|it| (it.name.clone(), property(it, dialect)))
        .collect();
    let mut schema = json!({
        "$schema": dialect.name(),
        "type": "object",
        "additionalProperties": false,
    });
    let mut set = |key: &str, value: Value| schema[key] = value;
    if !properties.is_empty() {
        set("properties", Value::Object(properties));
    }
    // An update contains only the parameters that it changes.
    if occasion == ValidationPoint::Create {
        let demanded = listed.iter().filter(|it| it.is_demanded());
        let always: Vec<&str> = demanded
            .filter(|it| it.conditions.is_empty())
            .map(|it| it.name.as_str())
            .collect();
        if !always.is_empty() {
            set("required", json!(always));
        }
        let sometimes: Vec<Value> = listed
            .iter()
            .filter(|it| it.is_demanded() && !it.conditions.is_empty())
            .map(|it| demanded_if(it, parameters, dialect))
            .collect();
        if !sometimes.is_empty() {
            set("allOf", Value::Array(sometimes));
        }
    }
    let conditional: Map<String, Value> = listed
        .iter()
        .filter_map(|it| {
            let condition = match occasion {
                ValidationPoint::Create => active(it, parameters),
                ValidationPoint::Update => unless_given(it, &listed)?,
            };
            (!it.conditions.is_empty()).then(|| (it.name.clone(), condition))
        })
        .collect();
    if !conditional.is_empty() {
        let key = match dialect {
            Dialect::Draft2020 => "dependentSchemas",
            Dialect::Draft4 => "dependencies",
        };
        set(key, Value::Object(conditional));
    }
    schema
}

fn property(parameter: &Parameter, dialect: Dialect) -> Value {
    let mut schema = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema.insert(key.to_owned(), value);
        }
    };
    set("title", parameter.title.clone().map(Value::String));
    set(
        "description",
        parameter.description.clone().map(Value::String),
    );
    set("default", parameter.default.clone());
    describe(&parameter.value_type, dialect, &mut schema);
    Value::Object(schema)
}

fn shaped(value_type: &ValueType, dialect: Dialect) -> Value {
    let mut schema = Map::new();
    describe(value_type, dialect, &mut schema);
    Value::Object(schema)
}

fn describe(value_type: &ValueType, dialect: Dialect, schema: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema.insert(key.to_owned(), value);
        }
    };
    set("type", Some(json!(value_type.kind.name())));
    set("enum", value_type.choices.clone().map(Value::Array));
    match &value_type.kind {
        ValueKind::Text {
            min_length,
            max_length,
            pattern,
        } => {
            set("minLength", min_length.map(Value::from));
            set("maxLength", max_length.map(Value::from));
            set("pattern", pattern.as_ref().map(|it| json!(it.as_str())));
        }
        ValueKind::Integer(range) | ValueKind::Number(range) => ranged(range, dialect, schema),
        ValueKind::Boolean | ValueKind::Null => (),
        ValueKind::Object { properties, open } => {
            let required: Vec<&str> = properties
                .iter()
                .filter(|it| it.required)
                .map(|it| it.name.as_str())
                .collect();
            let each = properties.iter();
            let each: Map<String, Value> = each
                .map(|it| (it.name.clone(), property(it, dialect)))
                .collect();
            set(
                "properties",
                (!each.is_empty()).then_some(Value::Object(each)),
            );
            set("required", (!required.is_empty()).then(|| json!(required)));
            set(
                "additionalProperties",
                (!open).then_some(Value::Bool(false)),
            );
        }
        ValueKind::Array {
            items,
            min_items,
            max_items,
        } => {
            set("items", items.as_ref().map(|it| shaped(it, dialect)));
            set("minItems", min_items.map(Value::from));
            set("maxItems", max_items.map(Value::from));
        }
    }
}

fn ranged(range: &NumberRange, dialect: Dialect, schema: &mut Map<String, Value>) {
    let mut end = |bound: &Option<RangeBound>, plain: &str, strict: &str| {
        let Some(bound) = bound else {
            return;
        };
        let value = Value::Number(bound.value.clone());
        match (bound.exclusive, dialect) {
            (false, _) => {
                schema.insert(plain.to_owned(), value);
            }
            (true, Dialect::Draft2020) => {
                schema.insert(strict.to_owned(), value);
            }
            (true, Dialect::Draft4) => {
                schema.insert(plain.to_owned(), value);
                schema.insert(strict.to_owned(), Value::Bool(true));
            }
        }
    };
    end(&range.lower, "minimum", "exclusiveMinimum");
    end(&range.upper, "maximum", "exclusiveMaximum");
    if let Some(divisor) = &range.multiple_of {
        schema.insert("multipleOf".to_owned(), Value::Number(divisor.clone()));
    }
}

/// Schema that holds if all conditions of a parameter hold.
fn active(parameter: &Parameter, all: &[Parameter]) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for condition in &parameter.conditions {
        let Some(controller) = all.iter().find(|it| it.name == condition.key) else {
            continue;
        };
        let mut part = one_of(condition);
        let has = |default: &Value| condition.values.iter().any(|it| same_value(it, default));
        if controller.default.as_ref().is_some_and(has) {
            // An absent controller has its default, but only if its own conditions hold.
            if !controller.conditions.is_empty() {
                parts.push(active(controller, all));
            }
        } else {
            part["required"] = json!([condition.key]);
        }
        parts.push(part);
    }
    joined(parts)
}

/// The same for an update, which tells nothing about parameters it does not contain.
fn unless_given(parameter: &Parameter, listed: &[&Parameter]) -> Option<Value> {
    let known = |condition: &&Condition| listed.iter().any(|it| it.name == condition.key);
    let conditions = parameter.conditions.iter().filter(known);
    let parts: Vec<Value> = conditions.map(one_of).collect();
    (!parts.is_empty()).then(|| joined(parts))
}

fn one_of(condition: &Condition) -> Value {
    json!({ "properties": { (condition.key.clone()): { "enum": condition.values } } })
}

fn joined(mut parts: Vec<Value>) -> Value {
    match parts.len() {
        1 => parts.remove(0),
        _ => json!({ "allOf": parts }),
    }
}

/// Schema that requires a parameter if its conditions hold.
fn demanded_if(parameter: &Parameter, all: &[Parameter], dialect: Dialect) -> Value {
    let condition = active(parameter, all);
    let demand = json!({ "required": [parameter.name] });
    match dialect {
        Dialect::Draft2020 => json!({ "if": condition, "then": demand }),
        Dialect::Draft4 => json!({ "anyOf": [{ "not": condition }, demand] }),
    }
}

#[cfg(test)]
mod tests;
