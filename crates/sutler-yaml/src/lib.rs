//! YAML with places: text to a tree, a tree to types, and a sentence with a line for every fault.
//!
//! Start with [`parse`] and [`read`]. `node.rs` is the tree, `parse.rs` makes it within limits,
//! `keys.rs` finds keys however they are spelled, `deserialize.rs` is the way into serde's types. Knows
//! neither catalogs nor configurations.

mod deserialize;
mod diagnostic;
mod keys;
mod node;
mod parse;

pub use deserialize::{ReadResult, read};
pub use diagnostic::{Diagnostic, one_line};
pub use keys::{leaves, nearest, plain, values_at};
pub use node::{Kind, Location, Node};
pub use parse::{ParseError, YAML_BYTES_MAX, parse, parse_into};
