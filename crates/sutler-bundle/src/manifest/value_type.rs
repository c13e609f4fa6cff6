//! The type of a value: its kind, the rules of that kind, and the choices.
//!
//! Read from the keys of a descriptor. Validation is `validate.rs`, the JSON Schema `schema.rs`, the whole
//! parameter `parameter.rs`.

use super::fields::{self, Fields};
use super::findings::{ManifestFindings, ManifestForm};
use super::parameter::{self, Parameter};
use super::scalars;
use super::validate;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use sutler_schema::TextPattern;
use sutler_yaml::{Kind as Yaml, Node};

/// Maximum choices of one parameter. A platform shows them in a list.
const CHOICES_MAX: usize = 1_000;

/// Keys that describe a value.
pub(super) const KEYS: [&str; 17] = [
    "type",
    "enum",
    "pattern",
    "max_length",
    "min_length",
    "maxlength",
    "multiple_of",
    "maximum",
    "minimum",
    "exclusive_maximum",
    "exclusive_minimum",
    "items",
    "min_items",
    "max_items",
    "properties",
    "additional_properties",
    "secret",
];

/// Type of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueType {
    /// Its type, with the rules of that type.
    pub kind: ValueKind,
    /// The only allowed values, each of that type; `None`: all values that satisfy the rules.
    pub choices: Option<Vec<Value>>,
}

/// A type of values, with its rules.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueKind {
    /// Text.
    Text {
        /// Fewest characters.
        min_length: Option<u64>,
        /// Most characters.
        max_length: Option<u64>,
        /// Pattern that some part must match.
        pattern: Option<TextPattern>,
    },
    /// Whole numbers.
    Integer(NumberRange),
    /// Numbers.
    Number(NumberRange),
    /// True or false.
    Boolean,
    /// Only `null`.
    Null,
    /// Objects.
    Object {
        /// Types of their properties.
        properties: Vec<Parameter>,
        /// Whether additional properties are allowed.
        open: bool,
    },
    /// Lists.
    Array {
        /// Type of each item; `None`: any.
        items: Option<Box<ValueType>>,
        /// Fewest items.
        min_items: Option<u64>,
        /// Most items.
        max_items: Option<u64>,
    },
}

/// Range of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberRange {
    /// Lower bound.
    pub lower: Option<RangeBound>,
    /// Upper bound.
    pub upper: Option<RangeBound>,
    /// Divisor of every allowed number; greater than 0.
    pub multiple_of: Option<Number>,
}

/// A bound of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeBound {
    /// The number.
    pub value: Number,
    /// Whether the number itself is excluded.
    pub exclusive: bool,
}

impl ValueKind {
    /// Name of the type in JSON Schema.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text { .. } => "string",
            Self::Integer(_) => "integer",
            Self::Number(_) => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
            Self::Object { .. } => "object",
            Self::Array { .. } => "array",
        }
    }
}

impl ValueType {
    /// Converts a scalar to this type: `"5"` becomes 5 for numbers, and 5 becomes `"5"` for text.
    pub(super) fn typed(&self, node: &Node) -> Result<Value, String> {
        let wanted = |wanted: &str| format!("must be {wanted}, as its type says");
        let value = match &self.kind {
            ValueKind::Text { .. } => node.text().map(Value::String).ok_or("text"),
            ValueKind::Integer(_) => {
                let whole = scalars::number(node).filter(|number| scalars::whole(number).is_some());
                whole.map(Value::Number).ok_or("a whole number")
            }
            ValueKind::Number(_) => scalars::number(node).map(Value::Number).ok_or("a number"),
            ValueKind::Boolean => node.boolean().map(Value::Bool).ok_or("true or false"),
            ValueKind::Null => match &node.kind {
                Yaml::Null => Ok(Value::Null),
                _ => Err("null"),
            },
            ValueKind::Object { .. } => match &node.kind {
                Yaml::Mapping(_) => Ok(node.to_json()),
                _ => Err("a mapping"),
            },
            ValueKind::Array { .. } => match &node.kind {
                Yaml::List(_) => Ok(node.to_json()),
                _ => Err("a list"),
            },
        };
        let value = value.map_err(wanted)?;
        validate::fits(self, &value)?;
        Ok(value)
    }
}

/// Reads the type from a descriptor.
pub(super) fn read(fields: &Fields<'_>, findings: &mut ManifestFindings) -> Option<ValueType> {
    let kind = kind(fields, findings)?;
    foreign_rules(&kind, fields, findings);
    let mut value_type = ValueType {
        kind,
        choices: None,
    };
    value_type.choices = choices(&value_type, fields, findings);
    Some(value_type)
}

fn kind(fields: &Fields<'_>, findings: &mut ManifestFindings) -> Option<ValueKind> {
    let word = fields.text("type", findings);
    let Some(word) = word else {
        if fields.get("type").is_none() {
            let path = fields.path_of("type");
            findings.doubt(fields.place, &path, "is required", "it is taken for string");
        }
        return Some(text(fields, findings));
    };
    match word.to_ascii_lowercase().as_str() {
        "string" | "enum" => Some(text(fields, findings)),
        "int" | "integer" => Some(ValueKind::Integer(range(fields, findings))),
        "number" => Some(ValueKind::Number(range(fields, findings))),
        "bool" | "boolean" => Some(ValueKind::Boolean),
        "nil" | "null" => Some(ValueKind::Null),
        "object" => Some(object(fields, findings)),
        "array" => Some(array(fields, findings)),
        _ => {
            let reason =
                "must be one of string, enum, integer, number, boolean, object, array, null";
            findings.fault(fields.place_of("type"), &fields.path_of("type"), reason);
            None
        }
    }
}

fn text(fields: &Fields<'_>, findings: &mut ManifestFindings) -> ValueKind {
    let mut max_length = fields.count("max_length", findings);
    let old = fields.count("maxlength", findings);
    if old.is_some() {
        let reason = "is an old name";
        let place = fields.place_of("maxlength");
        let instead = "write `max_length`, which wins if both are there";
        findings.doubt(place, &fields.path_of("maxlength"), reason, instead);
        max_length = max_length.or(old);
    }
    let min_length = fields.count("min_length", findings);
    if let (Some(min), Some(max)) = (min_length, max_length)
        && min > max
    {
        let reason = "must not be more than max_length";
        let place = fields.place_of("min_length");
        findings.fault(place, &fields.path_of("min_length"), reason);
    }
    ValueKind::Text {
        // In the old contract, zero meant no limit.
        min_length: min_length.filter(|length| *length > 0),
        max_length: max_length
            .filter(|length| *length > 0 || findings.form == ManifestForm::Bundle),
        pattern: pattern(fields, findings),
    }
}

fn pattern(fields: &Fields<'_>, findings: &mut ManifestFindings) -> Option<TextPattern> {
    let text = fields.text("pattern", findings)?;
    match TextPattern::compile(&text) {
        Ok(pattern) => Some(pattern),
        Err(reason) => {
            let place = fields.place_of("pattern");
            findings.doubt(
                place,
                &fields.path_of("pattern"),
                &reason.to_string(),
                "it is left out",
            );
            None
        }
    }
}

fn range(fields: &Fields<'_>, findings: &mut ManifestFindings) -> NumberRange {
    let multiple_of = fields::number(fields, "multiple_of", findings);
    let positive = multiple_of.filter(|number| number.as_f64().is_some_and(|it| it > 0.0));
    if positive.is_none() && fields.get("multiple_of").is_some() {
        let place = fields.place_of("multiple_of");
        let path = fields.path_of("multiple_of");
        findings.doubt(place, &path, "must be more than 0", "it is left out");
    }
    let range = NumberRange {
        lower: bound(fields, "minimum", "exclusive_minimum", findings),
        upper: bound(fields, "maximum", "exclusive_maximum", findings),
        multiple_of: positive,
    };
    if let (Some(lower), Some(upper)) = (&range.lower, &range.upper) {
        let nothing = match scalars::compare(&lower.value, &upper.value) {
            Ordering::Less => false,
            Ordering::Equal => lower.exclusive || upper.exclusive,
            Ordering::Greater => true,
        };
        if nothing {
            findings.fault(
                fields.place,
                &fields.path,
                "has bounds that leave no number",
            );
        }
    }
    range
}

/// Reads one bound of a range. If both spellings are present, the stricter one holds.
fn bound(
    fields: &Fields<'_>,
    inclusive: &str,
    exclusive: &str,
    findings: &mut ManifestFindings,
) -> Option<RangeBound> {
    let within = fields::number(fields, inclusive, findings);
    let without = match fields
        .get(exclusive)
        .map(|node| (&node.kind, node.boolean()))
    {
        // Draft 4 writes `exclusiveMaximum: true` in addition to a maximum.
        Some((Yaml::Bool(_), Some(flag))) => {
            return within.map(|value| RangeBound {
                value,
                exclusive: flag,
            });
        }
        Some(_) => fields::number(fields, exclusive, findings),
        None => None,
    };
    let narrower = if inclusive == "maximum" {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    let (value, exclusive) = match (within, without) {
        (Some(within), Some(without)) => {
            let looser = scalars::compare(&without, &within) == narrower;
            if looser {
                (within, false)
            } else {
                (without, true)
            }
        }
        (Some(within), None) => (within, false),
        (None, Some(without)) => (without, true),
        (None, None) => return None,
    };
    Some(RangeBound { value, exclusive })
}

fn object(fields: &Fields<'_>, findings: &mut ManifestFindings) -> ValueKind {
    let path = fields.path_of("properties");
    let properties = fields.get("properties");
    let known = properties.map(|node| parameter::properties(node, &path, findings));
    let open = fields.boolean("additional_properties", findings);
    ValueKind::Object {
        // An object without described properties accepts any.
        open: open.unwrap_or(known.is_none()),
        properties: known.unwrap_or_default(),
    }
}

fn array(fields: &Fields<'_>, findings: &mut ManifestFindings) -> ValueKind {
    let items = fields.fields("items", &KEYS, findings);
    let items = items.and_then(|items| read(&items, findings)).map(Box::new);
    let min_items = fields.count("min_items", findings);
    let max_items = fields.count("max_items", findings);
    if let (Some(min), Some(max)) = (min_items, max_items)
        && min > max
    {
        let place = fields.place_of("min_items");
        let path = fields.path_of("min_items");
        findings.fault(place, &path, "must not be more than max_items");
    }
    ValueKind::Array {
        items,
        min_items,
        max_items,
    }
}

/// Reads the choices, converted to the type: a list of `"1"` and `"2"` for a number is 1 and 2.
fn choices(
    value_type: &ValueType,
    fields: &Fields<'_>,
    findings: &mut ManifestFindings,
) -> Option<Vec<Value>> {
    let items = fields.list("enum", findings)?;
    let path = fields.path_of("enum");
    let place = fields.place_of("enum");
    if matches!(
        value_type.kind,
        ValueKind::Object { .. } | ValueKind::Array { .. }
    ) {
        let reason = "cannot be given for this type; describe its items or properties";
        findings.fault(place, &path, reason);
        return None;
    }
    if items.is_empty() || items.len() > CHOICES_MAX {
        let reason = format!("must have between 1 and {CHOICES_MAX} choices");
        findings.doubt(place, &path, &reason, "it is left out");
        return None;
    }
    let mut choices: Vec<Value> = Vec::with_capacity(items.len());
    for (nth, item) in items.iter().enumerate() {
        let path = format!("{path}[{nth}]");
        match value_type.typed(item) {
            Ok(value)
                if choices
                    .iter()
                    .any(|there| validate::same_value(there, &value)) =>
            {
                findings.doubt(item.place, &path, "is there already", "it is left out");
            }
            Ok(value) => choices.push(value),
            Err(reason) => findings.fault(item.place, &path, reason),
        }
    }
    Some(choices)
}

/// Warns about rules that do not apply to the type.
fn foreign_rules(kind: &ValueKind, fields: &Fields<'_>, findings: &mut ManifestFindings) {
    const TEXT: [&str; 4] = ["pattern", "max_length", "min_length", "maxlength"];
    const NUMBER: [&str; 5] = [
        "multiple_of",
        "maximum",
        "minimum",
        "exclusive_maximum",
        "exclusive_minimum",
    ];
    const ARRAY: [&str; 3] = ["items", "min_items", "max_items"];
    const OBJECT: [&str; 2] = ["properties", "additional_properties"];
    let own: &[&str] = match kind {
        ValueKind::Text { .. } => &TEXT,
        ValueKind::Integer(_) | ValueKind::Number(_) => &NUMBER,
        ValueKind::Boolean | ValueKind::Null => &[],
        ValueKind::Object { .. } => &OBJECT,
        ValueKind::Array { .. } => &ARRAY,
    };
    let all = TEXT.iter().chain(&NUMBER).chain(&ARRAY).chain(&OBJECT);
    for rule in all.filter(|rule| !own.contains(rule)) {
        // Old manifests have `max_length: 0` on every parameter.
        let zero = fields.get(rule).and_then(Node::text).as_deref() == Some("0");
        if fields.get(rule).is_some() && !(zero && findings.form == ManifestForm::Apb) {
            let reason = format!("means nothing for the type {}", kind.name());
            let place = fields.place_of(rule);
            findings.doubt(place, &fields.path_of(rule), &reason, "it is left out");
        }
    }
}
