//! Why a catalog or an offering cannot be used.
//!
//! Authors see these as a `BuildError` (`broker.rs`).

use sutler_journal::KeyError;
use sutler_osb::CatalogFaults;
use sutler_schema::SchemaError;

/// Why a catalog or an offering cannot be used.
#[derive(Debug)]
pub(crate) enum CatalogError {
    /// It breaks rules of the specification.
    Catalog(CatalogFaults),
    /// A parameter schema cannot be used.
    Schema(SchemaError),
    /// An offering has no service.
    NoService(String),
    /// An offering that is to stay as it is offered is not offered.
    NotOffered(String),
    /// Binds are asynchronous, and bindings cannot be fetched.
    AsyncBindNotRetrievable(String),
    /// It does not serialise.
    Form(serde_json::Error),
    /// The realm has no valid key for copies of plans.
    Key(KeyError),
    /// The store does not take the copies of plans.
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
