//! Serde's side: a node as a `Deserializer` that knows its path.
//!
//! Lenient where the meaning is clear (a number in quotes is a number, an absent value is an empty list),
//! strict otherwise. Values from the environment are always text.

use super::SkippedNodes;
use super::error::Error;
use crate::node::{Kind, Node};
use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt;

/// The path of a node, from the node upwards.
#[derive(Clone, Copy)]
pub(super) enum Path<'t> {
    Top,
    Key(&'t Path<'t>, &'t str),
    Nth(&'t Path<'t>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Key(Path::Top, key) => f.write_str(key),
            Self::Key(above, key) => write!(f, "{above}.{key}"),
            Self::Nth(above, nth) => write!(f, "{above}[{nth}]"),
        }
    }
}

/// A node, its path, and the nodes to skip below it.
#[derive(Clone, Copy)]
pub(super) struct Reader<'n, 't> {
    pub(super) node: &'n Node,
    pub(super) trail: Path<'t>,
    pub(super) skipped: &'t SkippedNodes,
}

impl Reader<'_, '_> {
    fn wanted<T>(&self, wanted: &str) -> Result<T, Error> {
        Err(Error::wanted(wanted, self.node).at(self.node, &self.trail))
    }

    fn placed<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.at(self.node, &self.trail))
    }

    fn number<'de, V: Visitor<'de>>(self, visitor: V, wanted: &str) -> Result<V::Value, Error> {
        let Some(text) = self.node.text() else {
            return self.wanted(wanted);
        };
        let text = text.trim();
        // `1_000` is a number in YAML, but not here.
        let visited = if let Kind::Number(number, _) = &self.node.kind {
            match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            }
        } else if let Ok(number) = text.parse::<u64>() {
            visitor.visit_u64(number)
        } else if let Ok(number) = text.parse::<i64>() {
            visitor.visit_i64(number)
        } else {
            return self.wanted(wanted);
        };
        self.placed(visited)
    }

    fn items(&self) -> Option<&[Node]> {
        match &self.node.kind {
            Kind::List(items) => Some(items),
            Kind::Null => Some(&[]),
            Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::Mapping(_) => None,
        }
    }
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.number(visitor, "a whole number")
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.kind {
            Kind::Null => self.placed(visitor.visit_unit()),
            Kind::Bool(value) => self.placed(visitor.visit_bool(*value)),
            Kind::Number(..) => self.number(visitor, "a number"),
            Kind::Text(text) => self.placed(visitor.visit_str(text)),
            Kind::List(_) => self.deserialize_seq(visitor),
            Kind::Mapping(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.boolean() {
            Some(value) => self.placed(visitor.visit_bool(value)),
            None => self.wanted("true or false"),
        }
    }

    whole_numbers! {
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.text() {
            Some(text) => self.placed(visitor.visit_string(text)),
            None => self.wanted("text"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.kind {
            Kind::Null => visitor.visit_none(),
            Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::List(_) | Kind::Mapping(_) => {
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.placed(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Some(items) = self.items() else {
            return self.wanted("a list");
        };
        let items = Items {
            of: &self,
            items: items.iter().enumerate(),
        };
        self.placed(visitor.visit_seq(items))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let entries = match &self.node.kind {
            Kind::Mapping(entries) => entries.as_slice(),
            Kind::Null => &[],
            Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) | Kind::List(_) => {
                return self.wanted("a mapping");
            }
        };
        let entries = Entries {
            of: &self,
            entries: entries.iter(),
            current: None,
        };
        self.placed(visitor.visit_map(entries))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Some(text) = self.node.text() else {
            return self.wanted(&format!("one of `{}`", variants.join("`, `")));
        };
        self.placed(visitor.visit_enum(Word(text)))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Items<'n, 't> {
    of: &'t Reader<'n, 't>,
    items: std::iter::Enumerate<std::slice::Iter<'t, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let skipped = self.of.skipped;
        let Some((nth, node)) = self.items.find(|(_, node)| !skipped.has(node)) else {
            return Ok(None);
        };
        let trail = Path::Nth(&self.of.trail, nth);
        let value = seed.deserialize(Reader {
            node,
            trail,
            skipped,
        });
        value.map(Some).map_err(|error| error.at(node, &trail))
    }
}

struct Entries<'n, 't> {
    of: &'t Reader<'n, 't>,
    entries: std::slice::Iter<'t, (String, Node)>,
    current: Option<&'t (String, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let skipped = self.of.skipped;
        let Some(entry) = self.entries.find(|(_, node)| !skipped.has(node)) else {
            return Ok(None);
        };
        self.current = Some(entry);
        let (key, node) = entry;
        let text: StrDeserializer<'_, Error> = key.as_str().into_deserializer();
        let trail = Path::Key(&self.of.trail, key);
        let key = seed.deserialize(text);
        key.map(Some).map_err(|error| error.at_key(node, &trail))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((key, node)) = self.current.take() else {
            return Err(Error::new("has a value without a key".to_owned()));
        };
        let trail = Path::Key(&self.of.trail, key);
        let value = seed.deserialize(Reader {
            node,
            trail,
            skipped: self.of.skipped,
        });
        value.map_err(|error| error.at(node, &trail))
    }
}

/// A variant without content.
struct Word(String);

impl<'de> EnumAccess<'de> for Word {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let word: StringDeserializer<Error> = self.0.clone().into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Error> {
        Err(Error::new("cannot be written as a word".to_owned()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::new("cannot be written as a word".to_owned()))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        Err(Error::new("cannot be written as a word".to_owned()))
    }
}
