//! Random parameters and random values: `validate.rs` and both schemas accept the same values.

use super::{object, plan, validator};
use crate::manifest::{PlanEntry, ValidationPoint, accepts, with_defaults};
use crate::schema::{Dialect, schema};
use proptest::prelude::{any, proptest};
use proptest::test_runner::Config;
use serde_json::{Map, Value, json};
use std::cell::Cell;

/// Choices derived from bytes; after the last byte, always the first choice.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    fn pick<'v>(&mut self, values: &'v [Value]) -> &'v Value {
        &values[self.below(values.len())]
    }
}

/// Values of every kind. No whole number is written with a fraction: the drafts treat those differently.
fn pool() -> Vec<Value> {
    vec![
        json!("a"),
        json!("b"),
        json!(1),
        json!(2),
        json!(true),
        json!(""),
        json!("abcdefgh"),
        json!("äöü"),
        json!("1"),
        json!(-3),
        json!(0),
        json!(4),
        json!(7),
        json!(0.5),
        json!(-2.5),
        json!(false),
        json!(null),
        json!([]),
        json!([1]),
        json!([1, 2, "a"]),
        json!({}),
        json!({ "x": 1 }),
        json!({ "x": "1", "y": "a" }),
        json!({ "x": 2, "z": null }),
    ]
}

fn described(dice: &mut Dice<'_>) -> Value {
    match dice.below(8) {
        0 => json!({ "type": "enum", "enum": ["a", "b", "1"], "default": "a" }),
        1 => json!({ "type": "int", "enum": ["1", 2, 4] }),
        2 => json!({ "type": "boolean", "default": dice.coin() }),
        3 => {
            let mut text = json!({ "type": "string", "min_length": dice.below(2), "max_length": 1 + dice.below(5) });
            if dice.coin() {
                text["pattern"] = json!("^[a-c]*$");
            }
            text
        }
        4 => {
            let kind = if dice.coin() { "int" } else { "number" };
            let lower = if dice.coin() {
                "minimum"
            } else {
                "exclusive_minimum"
            };
            let upper = if dice.coin() {
                "maximum"
            } else {
                "exclusive_maximum"
            };
            let mut number = json!({ "type": kind, (lower): -2, (upper): 4 });
            if dice.coin() {
                number["multiple_of"] = if dice.coin() { json!(2) } else { json!(0.5) };
            }
            number
        }
        5 => json!({
            "type": "array",
            "items": { "type": "int" },
            "min_items": dice.below(2),
            "max_items": 2,
        }),
        6 => json!({
            "type": "object",
            "properties": { "x": { "type": "int", "required": dice.coin() }, "y": { "type": "string" } },
            "additional_properties": dice.coin(),
        }),
        _ => json!({ "type": if dice.coin() { "null" } else { "object" } }),
    }
}

/// Values of this parameter that conditions of others may name.
fn deciding(parameter: &Value) -> Option<Value> {
    match parameter["type"].as_str() {
        Some("enum") => Some(json!(["b", "a"])),
        Some("boolean") => Some(json!([true])),
        Some("int") if parameter["enum"].is_array() => Some(json!(["1", 4])),
        _ => None,
    }
}

fn parameters(dice: &mut Dice<'_>) -> PlanEntry {
    let mut all: Vec<Value> = Vec::new();
    for nth in 0..=dice.below(5) {
        let mut parameter = described(dice);
        parameter["name"] = json!(format!("p{nth}"));
        parameter["required"] = json!(dice.coin());
        parameter["updatable"] = json!(dice.coin());
        let mut dependencies = Vec::new();
        for before in &all {
            if let (Some(mut values), true) = (deciding(before), dice.coin()) {
                if let (Value::Array(values), true) = (&mut values, dice.coin()) {
                    values.truncate(1);
                }
                dependencies.push(json!({ "key": before["name"], "value": values }));
            }
        }
        parameter["dependencies"] = json!(dependencies);
        all.push(parameter);
    }
    plan(Value::Array(all))
}

fn values(plan: &PlanEntry, dice: &mut Dice<'_>) -> Value {
    let pool = pool();
    let mut values = Map::new();
    for parameter in &plan.parameters {
        match dice.below(4) {
            0 => (),
            1 => {
                values.insert(parameter.name.clone(), dice.pick(&pool).clone());
            }
            _ => {
                // Usually one that is valid.
                let choices = parameter.value_type.choices.clone();
                let fitting = choices.unwrap_or_else(|| pool.clone());
                values.insert(parameter.name.clone(), dice.pick(&fitting).clone());
            }
        }
    }
    if dice.below(16) == 15 {
        values.insert("other".to_owned(), json!(1));
    }
    Value::Object(values)
}

#[test]
fn schemas_accept_exactly_what_we_accept() {
    let counts = [Cell::new(0), Cell::new(0)];
    let bytes = proptest::collection::vec(any::<u8>(), 40..160);
    proptest!(Config::with_cases(400), |(bytes in bytes)| {
        let mut dice = Dice(bytes.iter());
        let plan = parameters(&mut dice);
        for occasion in [ValidationPoint::Create, ValidationPoint::Update] {
            let schemas = [Dialect::Draft2020, Dialect::Draft4].map(|dialect| {
                let schema = schema(&plan.parameters, occasion, dialect);
                (validator(&schema, dialect), schema)
            });
            for _ in 0..6 {
                let values = values(&plan, &mut dice);
                let own = accepts(&plan.parameters, object(&values), occasion);
                let count = &counts[usize::from(own.is_ok())];
                count.set(count.get() + 1);
                for (validator, schema) in &schemas {
                    let valid = validator.is_valid(&values);
                    assert_eq!(valid, own.is_ok(), "{values}: {own:?}\n{schema:#}");
                }
                // Values with their defaults filled in must be accepted too.
                if own.is_ok() && occasion == ValidationPoint::Create {
                    let filled = with_defaults(&plan.parameters, object(&values));
                    let own = accepts(&plan.parameters, &filled, occasion);
                    assert_eq!(own, Ok(()), "{values} became {filled:?}");
                }
            }
        }
    });
    assert!(
        counts.iter().all(|count| count.get() > 100),
        "one-sided: {counts:?}"
    );
}
