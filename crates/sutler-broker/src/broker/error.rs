//! Errors of starting a broker and of replacing its catalog. Each message contains advice.

use crate::catalog::CatalogError;
use crate::catalog_file::CatalogFileError;
use crate::platform::PrefixError;
use sutler_osb::CatalogFaults;
use sutler_records::VerifyKeysError;
use sutler_schema::SchemaError;
use sutler_server::{AuthConfigError, TlsConfigError};

/// Error of starting a broker or replacing its catalog, with advice.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The catalog breaks rules of the specification.
    #[error("the catalog is not valid:\n{0}")]
    Catalog(CatalogFaults),
    /// The catalog's file cannot be used.
    #[error(transparent)]
    CatalogFile(#[from] CatalogFileError),
    /// A parameter schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// An offering without a service.
    #[error(
        "the catalog offers {0:?}, but no service of that name or id was registered: call .service({0:?}, …)"
    )]
    NoService(String),
    /// An update keeps an offering that is not offered.
    #[error("the offering {0:?} is not offered now, so it cannot stay as it is: give it anew")]
    NotOffered(String),
    /// Binds are asynchronous, but bindings cannot be fetched.
    #[error(
        "the binds of {0:?} must be asynchronous, so its offering must say bindings_retrievable: true"
    )]
    AsyncBindNotRetrievable(String),
    /// No store was chosen.
    #[error(
        "a broker needs a store: call .store(…, keys), or .in_memory() to forget everything at the end"
    )]
    NoStore,
    /// No authentication was chosen.
    #[error(
        "a broker needs authentication: call .basic_auth(user, password), or .without_auth() to serve everybody"
    )]
    NoAuth,
    /// The settings of authentication are invalid.
    #[error(transparent)]
    Auth(#[from] AuthConfigError),
    /// Credentials are missing in the environment.
    #[error(
        "set {0} to serve with basic authentication; to serve everybody, call .without_auth() instead"
    )]
    NoCredentials(&'static str),
    /// The realm's name cannot be used.
    #[error("the realm's name cannot be used: {0}")]
    Realm(#[from] sutler_journal::KeyError),
    /// A platform's prefix cannot be used.
    #[error("the prefix {0:?} cannot be used: {1}")]
    Prefix(String, #[source] PrefixError),
    /// Two platforms would share their records.
    #[error("two platforms have the realm {0:?}; give each its own with .realm(…)")]
    RealmTwice(String),
    /// A platform without authentication.
    #[error(
        "the platform at {0} needs authentication: call .basic_auth(user, password) on it, or .without_auth() to serve everybody"
    )]
    PlatformWithoutAuth(String),
    /// The key ring does not open the store.
    #[error("the key ring does not open this store: {0}")]
    Keys(#[from] sutler_journal::SealError),
    /// The store does not answer.
    #[error("the store cannot be used: {0}")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store is the target of an unfinished copy, or was moved to another store.
    #[error(transparent)]
    UnusableStore(#[from] sutler_journal::copy::UnusableStoreError),
    /// A value of the framework does not serialise; a bug.
    #[error("the catalog cannot be written as JSON")]
    Form(#[source] serde_json::Error),
    /// TLS cannot be served with these files.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(String, #[source] std::io::Error),
}

impl From<CatalogError> for BuildError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Catalog(faults) => Self::Catalog(faults),
            CatalogError::Schema(fault) => Self::Schema(fault),
            CatalogError::NoService(name) => Self::NoService(name),
            CatalogError::NotOffered(name) => Self::NotOffered(name),
            CatalogError::AsyncBindNotRetrievable(name) => Self::AsyncBindNotRetrievable(name),
            CatalogError::Form(error) => Self::Form(error),
            CatalogError::Key(error) => Self::Realm(error),
            CatalogError::Store(error) => Self::Store(error),
        }
    }
}

impl From<VerifyKeysError> for BuildError {
    fn from(error: VerifyKeysError) -> Self {
        match error {
            VerifyKeysError::Keys(error) => Self::Keys(error),
            VerifyKeysError::Read(error) => Self::Store(error.into()),
            VerifyKeysError::Write(error) => Self::Store(error.into()),
        }
    }
}
