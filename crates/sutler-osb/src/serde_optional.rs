//! Serde adapters: how optional fields of a body are read.
//!
//! Three rules: an object must be an object (serde would also accept an array for a struct), `null` means
//! absent, and `""` means absent where some senders write it so. The bodies that use them are in
//! `instance.rs`, `binding.rs` and `operation.rs`.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Reads `T` from an object; `null` is `None`; anything else is refused without being quoted, because a
/// misplaced value may be a secret.
pub(crate) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ObjectVisitor {
        null: Null::IsAbsent,
        kind: PhantomData,
    })
}

/// Reads `T` from an object and from nothing else.
pub(crate) fn required<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let visitor = ObjectVisitor {
        null: Null::IsRefused,
        kind: PhantomData,
    };
    match deserializer.deserialize_any(visitor)? {
        Some(object) => Ok(object),
        None => Err(refusal("null")),
    }
}

/// Reads an optional string-like value; `null` and `""` are `None`.
pub(crate) fn empty_is_absent<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<String, Error: fmt::Display>,
{
    match Option::<String>::deserialize(deserializer)? {
        Some(text) if !text.is_empty() => T::try_from(text).map(Some).map_err(D::Error::custom),
        Some(_) | None => Ok(None),
    }
}

/// Whether an optional string is left out when it is written.
pub(crate) fn is_empty_or_absent(text: &Option<String>) -> bool {
    text.as_ref().is_none_or(String::is_empty)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    IsAbsent,
    IsRefused,
}

struct ObjectVisitor<T> {
    null: Null,
    kind: PhantomData<T>,
}

fn refusal<E: Error>(found: &str) -> E {
    E::custom(format_args!(
        "invalid type: {found}, expected a JSON object"
    ))
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        match self.null {
            Null::IsAbsent => Ok(None),
            Null::IsRefused => Err(refusal("null")),
        }
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(refusal("string"))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Err(refusal("boolean"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(refusal("number"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Err(refusal("number"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(refusal("number"))
    }
}
