//! Sentences about parameters that break a rule, and about schemas that are not valid.
//!
//! A sentence contains the rule, which is public in the catalog, and the names on the path to the value.
//! It never contains the value, which may be a password; therefore the validator's own text is not used
//! for parameters.

use crate::compiled_schema::CompileError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value};

/// Longest quoted name or rule, in characters.
const QUOTED_CHARS_MAX: usize = 100;

/// Longest path to a parameter, in characters; longer paths lose their beginning.
const PATH_CHARS_MAX: usize = 150;

/// Most unexpected names in one sentence.
const NAMES_MAX: usize = 3;

/// Names a parameter and the rule it breaks, e.g. "`size` must be at least 1".
pub(crate) fn broken_rule(error: &ValidationError<'_>, parameters: &Value) -> String {
    let at = error.instance_path();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("{} is required", path(at, Some(name)))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => not_allowed(at, unexpected),
        // The validator reports this where no names are allowed at all; it does not list the names.
        ValidationErrorKind::FalseSchema if forbids_names(error) => {
            let object = parameters.pointer(at.as_str()).and_then(Value::as_object);
            let names: Vec<&String> = object.into_iter().flat_map(Map::keys).collect();
            not_allowed(at, &names)
        }
        ValidationErrorKind::PropertyNames { error } => {
            format!("a name in {} {}", path(at, None), rule(error.kind()))
        }
        kind => format!("{} {}", path(at, None), rule(kind)),
    }
}

fn forbids_names(error: &ValidationError<'_>) -> bool {
    let rule = error.schema_path().as_str();
    let keywords = ["/additionalProperties", "/unevaluatedProperties"];
    keywords.into_iter().any(|keyword| rule.ends_with(keyword))
}

fn not_allowed<T: AsRef<str>>(at: &Location, unexpected: &[T]) -> String {
    let shown = unexpected.iter().take(NAMES_MAX);
    let names: Vec<String> = shown.map(|name| path(at, Some(name.as_ref()))).collect();
    let more = unexpected.len().saturating_sub(NAMES_MAX);
    let names = names.join(", ");
    match (unexpected.len(), more) {
        (0, _) => format!("{} has an entry that is not allowed", path(at, None)),
        (1, _) => format!("{names} is not allowed"),
        (_, 0) => format!("{names} are not allowed"),
        (_, more) => format!("{names} and {more} more are not allowed"),
    }
}

/// Describes where and why a schema does not compile. A schema is public, so it may be quoted.
pub(crate) fn invalid_schema(error: &ValidationError<'_>) -> CompileError {
    let path: String = error
        .instance_path()
        .segments()
        .map(|segment| match segment {
            LocationSegment::Property(name) => format!(".{}", quotable(&name)),
            LocationSegment::Index(nth) => format!("[{nth}]"),
        })
        .collect();
    let reason = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            "is no pattern that can be matched in linear time; back-references and look-around \
             cannot be used, nor repetitions that make it very large"
                .to_owned()
        }
        _ => format!("is not valid JSON Schema: {}", quotable(&error.to_string())),
    };
    CompileError::Invalid {
        pointer: error.instance_path().to_string(),
        message: error.to_string(),
        path,
        reason,
    }
}

/// `servers[0].name` in quotes, or "the parameters" themselves.
fn path(location: &Location, last: Option<&str>) -> String {
    let mut path = String::new();
    let push_name = |path: &mut String, name: &str| {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&quotable(name));
    };
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => push_name(&mut path, &name),
            LocationSegment::Index(nth) => path.push_str(&format!("[{nth}]")),
        }
    }
    if let Some(name) = last {
        push_name(&mut path, name);
    }
    if path.is_empty() {
        return "the parameters as a whole".to_owned();
    }
    // The end of a long path is more useful than the beginning.
    match path.char_indices().rev().nth(PATH_CHARS_MAX) {
        Some((start, _)) => format!("`…{}`", &path[start..]),
        None => format!("`{path}`"),
    }
}

/// The rule, in words that follow the name of the value.
fn rule(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Type { kind } => format!("must be {}", types(kind)),
        Kind::Enum { options } => format!("must be {}", one_of(options)),
        Kind::Constant { expected_value } => format!("must be {}", quoted(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} entries"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} entries"),
        Kind::Pattern { pattern } => format!("must match the pattern `{}`", quotable(pattern)),
        Kind::Format { format } => format!("must be in the format `{}`", quotable(format)),
        Kind::ContentEncoding { content_encoding } => {
            format!("must be encoded as `{}`", quotable(content_encoding))
        }
        Kind::ContentMediaType { content_media_type } => {
            format!(
                "must be of the media type `{}`",
                quotable(content_media_type)
            )
        }
        Kind::FromUtf8 { .. } => "must be UTF-8 text when decoded".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            "must have one of the forms that the schema lists, but has none of them".to_owned()
        }
        Kind::OneOfMultipleValid { .. } => {
            "must have exactly one of the forms that the schema lists, but has several".to_owned()
        }
        Kind::Not { .. } => "must not have the form that the schema excludes".to_owned(),
        Kind::Contains => "must contain an item that the schema demands".to_owned(),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::UnevaluatedItems { .. } => "must not have more items than are allowed".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        // `broken_rule` has longer sentences for these.
        Kind::Required { .. } => "lacks an entry that is required".to_owned(),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            "has an entry that is not allowed".to_owned()
        }
        Kind::PropertyNames { .. } => "has a name that is not allowed".to_owned(),
        Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Referencing(_)
        | Kind::Custom { .. } => "cannot be checked against the schema".to_owned(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => type_name(*one).to_owned(),
        TypeKind::Multiple(several) => {
            let names: Vec<&str> = several.iter().map(type_name).collect();
            names.join(" or ")
        }
    }
}

fn type_name(json_type: JsonType) -> &'static str {
    match json_type {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "text",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}

fn one_of(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let listed: Vec<String> = options.iter().map(quoted).collect();
    let listed = listed.join(", ");
    if listed.chars().count() <= 3 * QUOTED_CHARS_MAX {
        format!("one of {listed}")
    } else {
        format!("one of the {} values that the schema lists", options.len())
    }
}

/// A value of the schema in quotes.
fn quoted(value: &Value) -> String {
    format!("`{}`", quotable(&value.to_string()))
}

/// Shortens a text and removes control characters, for one line of a message.
fn quotable(text: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut quotable: String = text.chars().take(QUOTED_CHARS_MAX).map(one_line).collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        quotable.push('…');
    }
    quotable
}
