//! The store that a command works on: from a URL, a variable, or a configuration. URLs are never printed: the
//! name of a store has no user, no password and no options.

use crate::BoxError;
use crate::stores::{self, OpenedStore};
use clap::Args;
use secrecy::ExposeSecret as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler::{FilePath, StoreUrl};
use sutler_journal::{KeyRing, Store};
use sutler_store_sqlite::SqliteOpenError;

/// Help text about URLs.
pub(super) const URLS: &str =
    "URLs: sqlite:FILE, postgres://..., mysql://..., etcd://..., mongodb://...
A URL with a password in it does not belong on a command line, where others can see it: write
'${env:NAME}' or '${file:PATH}' in its place, or set SUTLER_STORE__URL.";

/// Flags that choose one store.
#[derive(Args)]
pub(super) struct TargetStoreArgs {
    /// The store; better in SUTLER_STORE__URL, '${env:NAME}' or '${file:PATH}' if it has a password
    #[arg(
        long,
        value_name = "URL",
        env = "SUTLER_STORE__URL",
        hide_env_values = true,
        value_parser = url
    )]
    url: Option<StoreUrl>,
    /// The configuration of a broker; its store and keys are used unless other flags name them
    #[arg(long, value_name = "FILE", env = "SUTLER_CONFIG")]
    config: Option<PathBuf>,
}

/// Parses a URL; the error does not quote it.
pub(super) fn url(text: &str) -> Result<StoreUrl, String> {
    StoreUrl::try_from(text.to_owned())
}

/// An open store.
pub(super) struct TargetStore {
    pub(super) store: Arc<dyn Store>,
    /// Name of the store, without secrets.
    pub(super) name: String,
    /// Path of the key file, if the configuration has one.
    pub(super) keys: Option<PathBuf>,
}

impl TargetStoreArgs {
    /// Opens the store, which also migrates it.
    pub(super) async fn open(&self) -> Result<TargetStore, BoxError> {
        let (url, keys) = self.resolve()?;
        let url = url.ok_or("name the store: with --url, SUTLER_STORE__URL or --config")?;
        let (store, name) = open(&url).await?;
        Ok(TargetStore { store, name, keys })
    }

    /// As [`open`](Self::open). The error for a file in use suggests the command that works in its broker.
    pub(super) async fn open_or_suggest(&self, online: &str) -> Result<TargetStore, BoxError> {
        self.open().await.map_err(|error| {
            let Some(SqliteOpenError::InUse { path }) = error.downcast_ref() else {
                return error;
            };
            let path = path.display();
            format!(
                "{path} is in use by another process; if that is its broker, run `{online}`, which works while it runs; otherwise stop that process"
            )
            .into()
        })
    }

    /// Path of the key file: the given one, or that of the store; no store is opened.
    pub(super) fn key_file(&self, given: Option<&Path>) -> Result<PathBuf, BoxError> {
        let path = match given {
            Some(path) => Some(path.to_owned()),
            None => self.resolve()?.1,
        };
        let missing = "name the key file with --key-file, or use --config or an sqlite: URL";
        path.ok_or_else(|| missing.into())
    }

    /// The URL and the key file, if they are named.
    fn resolve(&self) -> Result<(Option<StoreUrl>, Option<PathBuf>), BoxError> {
        let config = match &self.config {
            Some(file) => Some(sutler::load(Some(file), &[])?.config.store),
            None => None,
        };
        let keys = config.as_ref().and_then(|it| it.key_file.clone());
        let keys = keys.map(|FilePath(path)| path);
        let url = self.url.clone().or(config.map(|it| it.url));
        let keys = match &url {
            Some(StoreUrl::Sqlite(path)) => keys.or_else(|| Some(path.with_extension("key"))),
            Some(StoreUrl::Memory | StoreUrl::Server(_)) | None => keys,
        };
        Ok((url, keys))
    }
}

/// Path of the key file of a configuration, if it has one.
pub(in crate::commands) fn key_file_of(config: &Path) -> Result<Option<PathBuf>, BoxError> {
    let args = TargetStoreArgs {
        url: None,
        config: Some(config.to_owned()),
    };
    Ok(args.resolve()?.1)
}

/// Opens a store, creating it if it is missing.
pub(super) async fn open(url: &StoreUrl) -> Result<(Arc<dyn Store>, String), BoxError> {
    let name = name(url)?;
    if let StoreUrl::Memory = url {
        return Err("memory: ends with its process; name a persistent store".into());
    }
    let store = match stores::open_url(url).await? {
        OpenedStore::Sqlite(store, _) => store as Arc<dyn Store>,
        OpenedStore::Other(store) => store,
    };
    Ok((store, name))
}

/// Fails if the file of a store is missing.
pub(super) fn must_exist(url: &StoreUrl) -> Result<(), BoxError> {
    match url {
        StoreUrl::Sqlite(path) if !path.exists() => {
            let shown = path.display();
            Err(format!("{shown} does not exist; name the file of a store").into())
        }
        StoreUrl::Sqlite(_) | StoreUrl::Memory | StoreUrl::Server(_) => Ok(()),
    }
}

impl TargetStoreArgs {
    /// As [`must_exist`], for the chosen store, also if a configuration names it.
    pub(super) fn must_exist(&self) -> Result<(), BoxError> {
        self.resolve()?.0.as_ref().map_or(Ok(()), must_exist)
    }
}

/// Reads an existing key file.
pub(in crate::commands) fn keys(path: &Path) -> Result<KeyRing, BoxError> {
    if !path.exists() {
        let shown = path.display();
        return Err(format!("the key file {shown} does not exist; name it with --key-file").into());
    }
    Ok(KeyRing::existing_file(path)?)
}

fn name(url: &StoreUrl) -> Result<String, BoxError> {
    match url {
        StoreUrl::Memory => Ok("memory:".to_owned()),
        StoreUrl::Sqlite(path) => {
            let path = std::path::absolute(path)?;
            Ok(format!("sqlite:{}", path.display()))
        }
        StoreUrl::Server(secret) => {
            let url = secret.reveal(&|name| std::env::var(name).ok());
            let url = url.map_err(|reason| format!("the store's URL {reason}"))?;
            Ok(public_part(url.expose_secret()))
        }
    }
}

/// Scheme, servers and path of a URL, which are not secret. Everything before the last `@` may be part of a
/// password.
fn public_part(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return String::new();
    };
    let rest = rest.rsplit('@').next().unwrap_or_default();
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    format!("{scheme}://{}", rest.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::public_part;

    #[test]
    fn a_name_has_no_secret_in_it() {
        for (url, name) in [
            ("postgres://u:canary@db:5432/one", "postgres://db:5432/one"),
            ("postgres://u:ca@nary@db/one?x=1", "postgres://db/one"),
            ("mysql://u:can/ary@db/one", "mysql://db/one"),
            ("postgres://db/one?password=canary", "postgres://db/one"),
            ("etcd://a:1,b:2/prefix?tls#canary", "etcd://a:1,b:2/prefix"),
            (
                "mongodb://u:canary@a,b/one?replicaSet=r",
                "mongodb://a,b/one",
            ),
            ("canary", ""),
        ] {
            assert_eq!(public_part(url), name);
        }
    }
}
