//! Derives parameters that fit a schema, small ones first.
//!
//! Values that the schema names (default, constants, examples) precede invented ones; the validator checks
//! every result, so a wrong guess is harmless.

use super::Parameters;
use super::flatten::{FlatSchema, flats, types};
use super::limits::{CANDIDATES_MAX, DEPTH_MAX, STEPS_MAX, WIDTH_MAX, is_small};
use super::schema::Schema;
use super::text;
use serde_json::{Map, Number, Value, json};
use std::cell::Cell;

/// Maximum parameters found, and maximum tried.
const FOUND_MAX: usize = 6;
const TRIED_MAX: usize = 200;
/// Name of an entry that is in no schema.
const ENTRY: &str = "sutler_check";

/// Valid parameters, the smallest likely ones first, without duplicates.
pub(super) fn parameters(schema: &Schema<'_>) -> Vec<Parameters> {
    let maker = Maker {
        schema,
        steps: Cell::new(0),
    };
    let mut found: Vec<Parameters> = Vec::new();
    let mut tried = 0;
    for flat in flats(schema, schema.root) {
        let own = named(&flat).into_iter().filter(Value::is_object);
        let made = maker.objects(&flat, 0);
        // No parameters at all is the minimum.
        let empty = std::iter::once(json!({}));
        for value in empty.chain(own).chain(made) {
            tried += 1;
            if found.len() >= FOUND_MAX || tried > TRIED_MAX {
                return found;
            }
            if !schema.fits(&value) {
                continue;
            }
            if let Value::Object(object) = value
                && !found.contains(&object)
            {
                found.push(object);
            }
        }
    }
    found
}

struct Maker<'a> {
    schema: &'a Schema<'a>,
    steps: Cell<u32>,
}

impl Maker<'_> {
    /// Values that probably fit, the most likely first.
    fn values(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if depth > DEPTH_MAX || steps > STEPS_MAX {
            return Vec::new();
        }
        let mut all = Vec::new();
        for flat in flats(self.schema, schema) {
            all.extend(self.of_flat(&flat, depth));
        }
        distinct(all)
    }

    fn of_flat(&self, flat: &FlatSchema, depth: usize) -> Vec<Value> {
        let mut all = named(flat);
        if flat.contains_key("const") || flat.contains_key("enum") {
            return all;
        }
        let known = types(flat);
        let kinds = if known.is_empty() {
            vec![likely_type(flat)]
        } else {
            known
        };
        for kind in kinds {
            match kind {
                "object" => all.extend(self.objects(flat, depth)),
                "array" => all.extend(self.arrays(flat, depth)),
                "string" => all.extend(text::texts(flat).into_iter().map(Value::String)),
                "integer" => all.extend(numbers(flat, 1.0)),
                "number" => all.extend(numbers(flat, 0.0)),
                "boolean" => all.extend([json!(true), json!(false)]),
                "null" => all.push(Value::Null),
                _ => {}
            }
        }
        all
    }

    /// Objects: with required entries only, then with another value of each entry, then with one
    /// more entry each.
    fn objects(&self, flat: &FlatSchema, depth: usize) -> Vec<Value> {
        let empty = Map::new();
        let properties = flat.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&empty);
        let mut needed = names(flat.get("required"));
        let least = size(flat, "minProperties").unwrap_or(0).min(WIDTH_MAX);
        let optional = properties.keys().filter(|it| !needed.contains(it));
        let fill: Vec<String> = optional.cloned().collect();
        let missing = least.saturating_sub(needed.len());
        needed.extend(fill.into_iter().take(missing));
        for number in needed.len()..least {
            needed.push(format!("{ENTRY}_{number}"));
        }
        if needed.len() > WIDTH_MAX {
            return Vec::new();
        }
        let needed = with_dependencies(flat, needed);
        let mut least = Map::new();
        let mut others = Vec::new();
        for name in &needed {
            let mut values = self.entry(flat, properties, name, depth).into_iter();
            let Some(first) = values.next() else {
                return Vec::new();
            };
            others.extend(values.map(|it| (name.clone(), it)));
            least.insert(name.clone(), first);
        }
        let mut all = vec![Value::Object(least.clone())];
        let further = properties.keys().filter(|it| !needed.contains(it));
        for name in further.take(WIDTH_MAX.saturating_sub(needed.len())) {
            let mut larger = least.clone();
            for name in with_dependencies(flat, vec![name.clone()]) {
                if let Some(value) = self.entry(flat, properties, &name, depth).first() {
                    larger.entry(name).or_insert_with(|| value.clone());
                }
            }
            all.push(Value::Object(larger));
        }
        for (name, value) in others.into_iter().take(CANDIDATES_MAX * 4) {
            let mut another = least.clone();
            another.insert(name, value);
            all.push(Value::Object(another));
        }
        all
    }

    /// Values for one entry of an object.
    fn entry(
        &self,
        flat: &FlatSchema,
        properties: &Map<String, Value>,
        name: &str,
        depth: usize,
    ) -> Vec<Value> {
        let any = Value::Bool(true);
        let schema = properties
            .get(name)
            .or_else(|| flat.get("additionalProperties"))
            .unwrap_or(&any);
        self.values(schema, depth + 1)
    }

    fn arrays(&self, flat: &FlatSchema, depth: usize) -> Vec<Value> {
        let least = size(flat, "minItems").unwrap_or(0);
        let most = size(flat, "maxItems").unwrap_or(usize::MAX);
        if least > WIDTH_MAX {
            return Vec::new();
        }
        let any = Value::Bool(true);
        let (first, rest) = match (flat.get("prefixItems"), flat.get("items")) {
            (Some(Value::Array(first)), rest) => (first.as_slice(), rest.unwrap_or(&any)),
            (_, Some(Value::Array(first))) => (
                first.as_slice(),
                flat.get("additionalItems").unwrap_or(&any),
            ),
            (_, rest) => (&[][..], rest.unwrap_or(&any)),
        };
        let rest = self.values(rest, depth + 1);
        let contained = flat.get("contains").map(|it| self.values(it, depth + 1));
        let mut items: Vec<Value> = Vec::new();
        for schema in first.iter().take(WIDTH_MAX) {
            items.extend(self.values(schema, depth + 1).into_iter().next());
        }
        items.extend(contained.and_then(|it| it.into_iter().next()));
        let unique = flat.get("uniqueItems") == Some(&Value::Bool(true));
        while items.len() < least {
            let next = if unique {
                rest.iter().find(|it| !items.contains(it))
            } else {
                rest.first()
            };
            let Some(next) = next else { return Vec::new() };
            items.push(next.clone());
            if !is_small(&json!(items)) {
                return Vec::new();
            }
        }
        let mut all = vec![json!(items)];
        for value in rest.into_iter().take(2) {
            if items.len() < most.min(WIDTH_MAX) && !(unique && items.contains(&value)) {
                let mut longer = items.clone();
                longer.push(value);
                all.push(json!(longer));
            }
        }
        all
    }
}

/// Values that the schema itself names.
fn named(flat: &FlatSchema) -> Vec<Value> {
    let list = |name: &str| flat.get(name).and_then(Value::as_array);
    let mut all: Vec<Value> = Vec::new();
    all.extend(flat.get("const").cloned());
    all.extend(flat.get("default").cloned());
    all.extend(list("enum").into_iter().flatten().cloned());
    all.extend(list("examples").into_iter().flatten().cloned());
    all.extend(flat.get("example").cloned());
    all.retain(is_small);
    distinct(all)
}

fn distinct(all: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for value in all {
        if kept.len() < CANDIDATES_MAX && !kept.contains(&value) && is_small(&value) {
            kept.push(value);
        }
    }
    kept
}

/// Likely type of a schema without `type`.
fn likely_type(flat: &FlatSchema) -> &'static str {
    let has = |names: &[&str]| names.iter().any(|it| flat.contains_key(*it));
    if has(&["properties", "required", "minProperties"]) {
        "object"
    } else if has(&["items", "prefixItems", "minItems", "contains"]) {
        "array"
    } else if has(&["minimum", "maximum", "multipleOf", "exclusiveMinimum"]) {
        "number"
    } else {
        "string"
    }
}

fn names(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A size that a schema names; 2.0 is a size too.
pub(super) fn size(flat: &FlatSchema, name: &str) -> Option<usize> {
    let number = flat.get(name)?.as_f64()?;
    // Saturates, which is right for a size too large to be served.
    (number >= 0.0).then_some(number as usize)
}

/// The names, and the names that they require.
fn with_dependencies(flat: &FlatSchema, mut needed: Vec<String>) -> Vec<String> {
    let mut visited = 0;
    while visited < needed.len() && needed.len() <= WIDTH_MAX {
        for keyword in ["dependencies", "dependentRequired"] {
            let others = flat.get(keyword).and_then(|it| it.get(&needed[visited]));
            for other in names(others) {
                if !needed.contains(&other) {
                    needed.push(other);
                }
            }
        }
        visited += 1;
    }
    needed
}

/// Numbers within the bounds; `grain` is 1 for whole numbers.
fn numbers(flat: &FlatSchema, grain: f64) -> Vec<Value> {
    let number = |name: &str| flat.get(name).and_then(Value::as_f64);
    let multiple = number("multipleOf").filter(|it| *it > 0.0);
    let step = match multiple {
        // A whole number that is a multiple of a fraction is most likely a multiple of a power of ten.
        Some(step) if grain > 0.0 && step.fract() != 0.0 => step * 1000.0,
        Some(step) => step,
        None => 1.0,
    };
    let bounds = Bounds::of(flat);
    let (low, high) = (bounds.low, bounds.high);
    let up = |it: f64| (it / step).ceil() * step;
    let down = |it: f64| (it / step).floor() * step;
    let first = match (low, high) {
        (Some(low), _) => up(low),
        (None, Some(high)) if high < step => down(high),
        (None, _) => step,
    };
    let mut all = vec![first, first + step, first + 2.0 * step, first + 7.0 * step];
    if let (Some(low), Some(high)) = (low, high) {
        let middle = f64::midpoint(low, high);
        all.extend([up(middle), down(high), middle, f64::midpoint(low, middle)]);
    }
    all.extend([first - step, 0.0]);
    all.retain(|it| bounds.hold(*it) && (grain == 0.0 || it.fract() == 0.0));
    all.into_iter().filter_map(as_number).collect()
}

/// The bounds of a number, whichever draft wrote them.
struct Bounds {
    low: Option<f64>,
    high: Option<f64>,
    is_low_out: bool,
    is_high_out: bool,
}

impl Bounds {
    fn of(flat: &FlatSchema) -> Self {
        let number = |name: &str| flat.get(name).and_then(Value::as_f64);
        let is_true = |name: &str| flat.get(name) == Some(&Value::Bool(true));
        let (least, above) = (number("minimum"), number("exclusiveMinimum"));
        let (most, below) = (number("maximum"), number("exclusiveMaximum"));
        Self {
            low: above.into_iter().chain(least).reduce(f64::max),
            high: below.into_iter().chain(most).reduce(f64::min),
            is_low_out: is_true("exclusiveMinimum") || (above.is_some() && above >= least),
            is_high_out: is_true("exclusiveMaximum")
                || below.is_some_and(|it| most.is_none_or(|most| it <= most)),
        }
    }

    fn hold(&self, number: f64) -> bool {
        let low = self
            .low
            .is_none_or(|it| number > it || (number == it && !self.is_low_out));
        let high = self
            .high
            .is_none_or(|it| number < it || (number == it && !self.is_high_out));
        low && high
    }
}

/// Whole where it can be: `1`, not `1.0`.
pub(super) fn as_number(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < 9.0e15 {
        return Some(json!(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}
