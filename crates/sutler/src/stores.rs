//! Opens the store that a URL names. Which stores this program knows was chosen when it was built:
//! each make of server is a cargo feature.

use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::sync::Arc;
use sutler::{StoreServer, StoreUrl};
use sutler_journal::{MemoryStore, Store};
use sutler_store_sqlite::SqliteStore;

type BoxError = Box<dyn std::error::Error>;

/// A store at work.
pub(crate) enum OpenedStore {
    /// A file of SQLite, which can be copied while it is used.
    Sqlite(Arc<SqliteStore>, PathBuf),
    /// Any other.
    Other(Arc<dyn Store>),
}

/// Opens a store.
pub(crate) async fn open(url: &StoreUrl) -> Result<OpenedStore, BoxError> {
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

/// Refuses a store that another one is still copied into.
pub(crate) async fn is_whole(store: &dyn Store) -> Result<(), BoxError> {
    match sutler_journal::copy::is_unfinished(store).await? {
        false => Ok(()),
        true => Err("a copy into this store is not finished: finish it with `sutler store copy --finish`, or use the store that it is copied from".into()),
    }
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

/// What to do about a store that was left out when this program was built.
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
