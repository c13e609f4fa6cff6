//! Parses YAML text into a tree with locations.
//!
//! The only file that uses the YAML library. Booleans are only `true` and `false`, so that `no` in a
//! free-form value stays text; boolean fields accept the other spellings (`Node::boolean`). Size, nesting
//! and aliases are bounded here.

use crate::diagnostic::one_line;
use crate::node::{Kind, Location, Node};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;
use std::fmt;

/// Longest file, in bytes. The largest catalogs in the field have some 200 kB.
pub const YAML_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Deepest nesting. A schema inside a catalog begins about ten levels down.
const DEPTH_MAX: usize = 64;

/// Most values that aliases may add. A YAML bomb expands a few lines to billions of values.
const ALIASED_EVENTS_MAX: usize = 50_000;

/// Most aliases.
const ALIASES_MAX: usize = 1_000;

/// Most documents in a file.
const DOCUMENTS_MAX: usize = 64;

/// A text that is not YAML, or exceeds a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Location where parsing stopped.
    pub place: Option<Location>,
    /// Reason, in one line.
    pub reason: String,
}

/// Parses every document of a text.
///
/// # Errors
/// The text is too long, is not YAML, has a duplicate key, or exceeds the limits on aliases and nesting.
pub fn parse(text: &str) -> Result<Vec<Node>, ParseError> {
    if is_too_long(text) {
        let reason = format!(
            "the text must not be longer than {YAML_BYTES_MAX} bytes, but has {}",
            text.len()
        );
        return Err(ParseError {
            place: None,
            reason,
        });
    }
    let documents: Vec<Spanned<RawValue>> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| fault(&error))?;
    Ok(documents
        .into_iter()
        .map(|document| node(document, text))
        .collect())
}

/// Reads a text of one document into a type without a tree, which would take many times the memory of the
/// text. Returns `None` if that fails; parse the tree to get the reason.
pub fn parse_into<T: DeserializeOwned>(text: &str) -> Option<T> {
    match is_too_long(text) {
        true => None,
        false => serde_saphyr::from_str_with_options(text, options()).ok(),
    }
}

fn is_too_long(text: &str) -> bool {
    text.len() > YAML_BYTES_MAX
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_documents: DOCUMENTS_MAX,
            max_aliases: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIASED_EVENTS_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn fault(error: &serde_saphyr::Error) -> ParseError {
    let place = error.location().map(place);
    let reason = error.without_snippet().to_string();
    // The library may append a snippet of the source and advice for programmers.
    let reason = reason.lines().next().unwrap_or_default();
    let reason = reason.split(", set DuplicateKeyPolicy").next();
    ParseError {
        place: place.filter(|place| place.line > 0),
        reason: one_line(reason.unwrap_or_default()),
    }
}

fn place(location: serde_saphyr::Location) -> Location {
    Location {
        line: location.line(),
        column: location.column(),
    }
}

/// A value as the library returns it, with the locations of the values below it.
#[derive(Clone, Debug)]
enum RawValue {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<RawValue>>),
    Mapping(Vec<(Spanned<String>, Spanned<RawValue>)>),
}

fn node(written: Spanned<RawValue>, source: &str) -> Node {
    let kind = match written.value {
        RawValue::Null => Kind::Null,
        RawValue::Bool(value) => Kind::Bool(value),
        RawValue::Number(number) => {
            let spelling = spelling(&written.defined, source).unwrap_or_else(|| number.to_string());
            Kind::Number(number, spelling)
        }
        RawValue::Text(text) => Kind::Text(text),
        RawValue::List(items) => {
            Kind::List(items.into_iter().map(|item| node(item, source)).collect())
        }
        RawValue::Mapping(entries) => Kind::Mapping(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let at = place(key.referenced);
                    let mut value = node(value, source);
                    value.key = (at.line > 0).then_some(at);
                    (key.value, value)
                })
                .collect(),
        ),
    };
    Node {
        place: place(written.referenced),
        key: None,
        kind,
    }
}

/// The source text of a number.
fn spelling(location: &serde_saphyr::Location, source: &str) -> Option<String> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    let text = source.get(start..start.checked_add(length)?)?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawValueVisitor)
    }
}

struct RawValueVisitor;

impl<'de> Visitor<'de> for RawValueVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can express")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawValue, E> {
        Ok(RawValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawValue, E> {
        Ok(RawValue::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawValue, E> {
        Ok(RawValue::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<RawValue, E> {
        match Number::from_f64(value) {
            Some(number) => Ok(RawValue::Number(number)),
            None => Err(E::custom("JSON has no such number")),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawValue, A::Error> {
        let mut mapping = Vec::new();
        // Key and value in separate calls, so that a level of nesting takes little stack.
        while let Some(key) = key(&mut entries)? {
            let value = entries.next_value()?;
            mapping.push((key, value));
        }
        Ok(RawValue::Mapping(mapping))
    }
}

#[inline(never)]
fn key<'de, A: MapAccess<'de>>(entries: &mut A) -> Result<Option<Spanned<String>>, A::Error> {
    entries.next_key()
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, YAML_BYTES_MAX, parse, parse_into};
    use std::collections::BTreeMap;

    fn nested(levels: usize) -> String {
        let level = |nth: usize| format!("{}a:\n", " ".repeat(nth));
        (0..levels).map(level).collect()
    }

    #[test]
    fn the_deepest_nesting_fits_on_the_stack_of_a_thread() {
        assert!(parse(&nested(DEPTH_MAX - 2)).is_ok());
        assert!(parse(&nested(500)).is_err());
    }

    #[test]
    fn alias_bombs_and_oversized_texts_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for nth in 1..12 {
            let inner = vec![format!("*a{}", nth - 1); 10].join(", ");
            bomb.push_str(&format!("a{nth}: &a{nth} [{inner}]\n"));
        }
        let flow = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
        let large = format!("a: 1 # {}", "x".repeat(YAML_BYTES_MAX));
        let documents = "---\na: 1\n".repeat(10_000);
        for text in [bomb, flow, large, documents] {
            assert!(parse(&text).is_err());
            assert!(parse_into::<serde_json::Value>(&text).is_none());
        }
    }

    #[test]
    fn a_text_is_read_into_a_type_with_and_without_a_tree_alike() {
        let text = "a: 1.10\nb: yes\nc: {d: [x, 'y']}\n";
        let tree = parse(text).expect("YAML");
        let read: serde_json::Value = parse_into(text).expect("YAML");
        assert_eq!(read, tree[0].to_json());
        // A number that is read as a name keeps its spelling.
        let names: BTreeMap<String, String> = parse_into("a: 1.10\nb: 007\n").expect("texts");
        assert_eq!((&*names["a"], &*names["b"]), ("1.10", "007"));
        for text in ["a: 1\na: 2\n", "a: 1\n---\na: 2\n", "a: [", "- 1\n"] {
            let read = parse_into::<BTreeMap<String, serde_json::Value>>(text);
            assert!(read.is_none(), "{text}");
        }
    }

    #[test]
    fn keys_and_values_have_their_locations() {
        let documents = parse("a: 1\nb:\n  'c d': [x]\n").expect("YAML");
        let inner = documents[0].get("b").and_then(|it| it.get("c d"));
        let inner = inner.expect("it is there");
        assert_eq!(inner.begins().to_string(), "line 3, column 3");
        assert_eq!(inner.place.to_string(), "line 3, column 10");
    }
}
