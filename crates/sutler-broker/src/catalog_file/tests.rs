//! Loading of catalog files, and diagnostics of invalid ones.

mod icons;
mod invalid_files;
mod metadata;
mod settings;
mod settings_without_catalog;
mod spelling;

use super::{CatalogFile, CatalogFileError, FileDiagnostic};
use serde_json::Value;
use std::path::Path;

/// A minimal offering, at the top of a file.
const OFFERING: &str = "
services:
- id: s
  name: store
  description: Stores things.
  bindable: true
  plans:
  - {id: p, name: small, description: A small one.}
";

fn parse(yaml: &str) -> CatalogFile {
    match CatalogFile::parse(yaml, None) {
        Ok(file) => file,
        Err(error) => panic!("{error}\n{yaml}"),
    }
}

/// The body of `GET /v2/catalog`.
fn served(file: &CatalogFile) -> Value {
    serde_json::to_value(&file.catalog).unwrap()
}

fn faults(yaml: &str, directory: Option<&Path>) -> Vec<FileDiagnostic> {
    match CatalogFile::parse(yaml, directory) {
        Err(CatalogFileError::Faulty(faults)) => faults,
        other => panic!("expected faults, not {other:?}"),
    }
}
