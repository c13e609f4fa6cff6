//! Opens stores: [`open`] the configured one with its keys, [`open_url`] any store by its URL.
//!
//! Each kind of server is a cargo feature. The configuration of a store is in the library
//! (`config/blocks/store.rs`), the stores are crates of their own.

use crate::BoxError;
use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler::{StoreConfig, StoreServer, StoreUrl};
use sutler_broker::Backup;
use sutler_journal::{KeyRing, MemoryStore, Store};
use sutler_store_sqlite::SqliteStore;

/// A store that outlives the process, with its keys.
pub(crate) struct PersistentStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: KeyRing,
    /// Copies of the database while it is in use, and the folder they are written to; SQLite only.
    pub(crate) backup: Option<(Arc<dyn Backup>, PathBuf)>,
}

/// Opens the configured store and its keys; `None` if nothing outlives the process.
pub(crate) async fn open(config: &StoreConfig) -> Result<Option<PersistentStore>, BoxError> {
    let Some(keys) = config.key_path()? else {
        return Ok(None);
    };
    let (store, backup): (Arc<dyn Store>, _) = match open_url(&config.url).await? {
        OpenedStore::Sqlite(store, path) => {
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            let backup: Arc<dyn Backup> = Arc::new(SqliteBackup(store.clone()));
            (store, Some((backup, folder)))
        }
        OpenedStore::Other(store) => (store, None),
    };
    sutler_journal::copy::check_usable(store.as_ref()).await?;
    has_its_keys(store.as_ref(), &keys).await?;
    Ok(Some(PersistentStore {
        store,
        keys: KeyRing::file(keys)?,
        backup,
    }))
}

/// Copies of an SQLite database, for operators.
struct SqliteBackup(Arc<SqliteStore>);

#[async_trait]
impl Backup for SqliteBackup {
    async fn copy_to(&self, path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.backup(path, |_| {}).await?)
    }
}

/// An open store, by its capabilities.
pub(crate) enum OpenedStore {
    /// An SQLite file, which can be copied while it is in use.
    Sqlite(Arc<SqliteStore>, PathBuf),
    /// Any other store.
    Other(Arc<dyn Store>),
}

/// Opens the store of a URL.
pub(crate) async fn open_url(url: &StoreUrl) -> Result<OpenedStore, BoxError> {
    match url {
        StoreUrl::Memory => Ok(OpenedStore::Other(Arc::new(MemoryStore::new()))),
        StoreUrl::Sqlite(path) => {
            let store = SqliteStore::open(path).await?;
            Ok(OpenedStore::Sqlite(Arc::new(store), path.clone()))
        }
        StoreUrl::Server(secret) => {
            let url = secret.reveal(&|name| std::env::var(name).ok());
            let url = url.map_err(|reason| format!("the store's URL {reason}"))?;
            Ok(OpenedStore::Other(server(&url).await?))
        }
    }
}

/// Refuses a store with records whose key file is missing: a new key would open none of them.
async fn has_its_keys(store: &dyn Store, keys: &Path) -> Result<(), BoxError> {
    if keys.exists() || store.scan_documents(&[], 1).await?.is_empty() {
        return Ok(());
    }
    let keys = keys.display();
    Err(format!(
        "the key file {keys} does not exist, and the store has records that only its keys open: restore it, or name it with store.key_file"
    )
    .into())
}

async fn server(url: &SecretString) -> Result<Arc<dyn Store>, BoxError> {
    let server = StoreServer::of(url.expose_secret());
    if let Some(left_out) = server.and_then(left_out) {
        return Err(left_out.into());
    }
    match server {
        #[cfg(feature = "postgres")]
        Some(StoreServer::Postgres) => {
            Ok(Arc::new(sutler_store_sql::PostgresStore::open(url).await?))
        }
        #[cfg(feature = "mysql")]
        Some(StoreServer::MySql) => Ok(Arc::new(sutler_store_sql::MySqlStore::open(url).await?)),
        #[cfg(feature = "mongodb")]
        Some(StoreServer::MongoDb) => {
            Ok(Arc::new(sutler_store_mongodb::MongoStore::open(url).await?))
        }
        #[cfg(feature = "etcd")]
        Some(StoreServer::Etcd) => Ok(Arc::new(sutler_store_etcd::EtcdStore::open(url).await?)),
        _ => Err("the store's URL names no server that is known".into()),
    }
}

/// Error text for a server whose feature is not built in.
fn left_out(server: StoreServer) -> Option<String> {
    let (name, feature, is_there) = match server {
        StoreServer::Postgres => ("PostgreSQL", "postgres", cfg!(feature = "postgres")),
        StoreServer::MySql => ("MySQL", "mysql", cfg!(feature = "mysql")),
        StoreServer::MongoDb => ("MongoDB", "mongodb", cfg!(feature = "mongodb")),
        StoreServer::Etcd => ("etcd", "etcd", cfg!(feature = "etcd")),
    };
    (!is_there).then(|| {
        format!(
            "this sutler was built without {name}; use one that has it: \
             cargo build --release --features {feature}"
        )
    })
}
