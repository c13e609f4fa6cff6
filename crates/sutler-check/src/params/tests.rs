//! What is found for schemas as they are in the field, for schemas from a generator, and for
//! schemas that want to do harm.

use super::{Parameters, Sample};
use serde_json::{Value, json};

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

#[test]
fn what_is_required_is_there_and_nothing_else() {
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
}
