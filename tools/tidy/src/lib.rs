//! Reads the repository so that tests can check the house rules.
//!
//! [`Repository`] lists files, [`Source`] is one Rust file with strings and comments blanked,
//! [`Workspace`] is the metadata of cargo, [`licence`] checks licence expressions, [`Document`] is one
//! Markdown page. [`product`] is the code without tests, of which [`figures`] counts [`names`],
//! [`cycles`] and lines; [`picture`] draws the crates. The rules themselves are the tests in `tests/it/`.

pub mod cycles;
mod document;
pub mod figures;
pub mod licence;
pub mod names;
pub mod picture;
pub mod product;
mod repository;
mod source;
mod workspace;

pub use document::Document;
pub use repository::Repository;
pub use source::{Function, Source};
pub use workspace::{Arrow, ArrowKind, Package, Workspace};
