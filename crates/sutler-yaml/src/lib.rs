//! YAML with locations: text to a tree, a tree to types, and one diagnostic with a line for every problem.
//!
//! Start with [`parse`] and [`read`]. `node.rs` is the tree, `parse.rs` creates it within limits,
//! `keys.rs` finds keys in any spelling, `fields.rs` reads mappings key by key, `deserialize.rs` reads trees into
//! types by serde, `amounts.rs` reads durations and sizes. Knows neither catalogs nor configurations.

mod amounts;
mod deserialize;
mod diagnostic;
mod fields;
mod keys;
mod node;
mod parse;

pub use amounts::{AmountError, DURATION_UNITS, amount_text, parse_amount};
pub use deserialize::{ReadResult, read};
pub use diagnostic::{Diagnostic, one_line};
pub use fields::{FieldFindings, Fields};
pub use keys::{leaves, nearest, plain, values_at};
pub use node::{Kind, Location, Node};
pub use parse::{ParseError, YAML_BYTES_MAX, parse, parse_into};
