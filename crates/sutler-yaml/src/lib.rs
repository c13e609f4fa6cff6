//! YAML with places: text to a tree, a tree to types, and a sentence with a line for every fault.
//!
//! Start with [`parse`] and [`read`]. `node.rs` is the tree, `text.rs` makes it within limits,
//! `keys.rs` finds keys however they are spelled, `typed.rs` is the way into serde's types. Knows
//! neither catalogs nor configurations.

mod fault;
mod keys;
mod node;
mod text;
mod typed;

pub use fault::{Fault, one_line};
pub use keys::{leaves, nearest, plain, values_at};
pub use node::{Kind, Node, Place};
pub use text::{YAML_BYTES_MAX, YamlFault, parse, straight};
pub use typed::{Read, read};
