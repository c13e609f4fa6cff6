//! Errors of catalogs and offerings.
//!
//! Authors see these as a `BuildError` (`broker.rs`).

use sutler_journal::KeyError;
use sutler_osb::CatalogFaults;
use sutler_schema::SchemaError;

/// Error of a catalog or an offering.
#[derive(Debug)]
pub(crate) enum CatalogError {
    /// It breaks rules of the specification.
    Catalog(CatalogFaults),
    /// A parameter schema cannot be used.
    Schema(SchemaError),
    /// An offering has no service.
    NoService(String),
    /// An update keeps an offering that is not offered.
    NotOffered(String),
    /// Binds are asynchronous, and bindings cannot be fetched.
    AsyncBindNotRetrievable(String),
    /// The catalog does not serialise.
    Form(serde_json::Error),
    /// The realm has no valid key for copies of plans.
    Key(KeyError),
    /// The copies of plans cannot be stored.
    Store(Box<dyn std::error::Error + Send + Sync>),
}

impl From<SchemaError> for CatalogError {
    fn from(fault: SchemaError) -> Self {
        Self::Schema(fault)
    }
}

impl From<KeyError> for CatalogError {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}
