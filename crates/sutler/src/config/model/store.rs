//! Where everything is kept: which store, and with which keys. Opening one is the commands' business.

use crate::config::secret::{HIDDEN, SecretSource};
use crate::config::value_types::FilePath;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// Where everything is kept.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "StoreSource")]
pub struct StoreConfig {
    /// `sqlite:FILE`, made if it is not there; `memory:`, forgotten at the end; or a server that replicas
    /// share: `postgres://…`, `mysql://…`, `mongodb://…`, `etcd://…`, also as `${env:NAME}` or `${file:PATH}`.
    pub url: StoreUrl,
    /// The keys that seal what is kept; made if they are not there. The database's name with `.key`,
    /// if none is given. Replicas of one store need the same keys: for a server they must be named.
    pub key_file: Option<FilePath>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: StoreUrl::Sqlite("sutler.db".into()),
            key_file: None,
        }
    }
}

/// Which store.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum StoreUrl {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// Nothing that lasts.
    Memory,
    /// A server; its URL may hold a password.
    Server(SecretSource),
}

/// A make of server that can keep a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreServer {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// MongoDB.
    MongoDb,
    /// etcd.
    Etcd,
}

impl StoreServer {
    /// The make that a URL names by its scheme.
    pub fn of(url: &str) -> Option<Self> {
        let (scheme, _) = url.split_once("://")?;
        match scheme {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::MySql),
            "mongodb" | "mongodb+srv" => Some(Self::MongoDb),
            "etcd" => Some(Self::Etcd),
            _ => None,
        }
    }
}

/// What every URL of a store looks like.
const FORMS: &str = "`sqlite:FILE`, `memory:`, or a URL that begins with postgres://, mysql://, mongodb:// or etcd://";

impl TryFrom<String> for StoreUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with("${") {
            return SecretSource::parse(text).map(Self::Server);
        }
        match text.split_once(':') {
            Some(("sqlite", file)) if !file.is_empty() && !file.contains('\0') => {
                Ok(Self::Sqlite(file.into()))
            }
            Some(("memory", "")) => Ok(Self::Memory),
            Some(_) if StoreServer::of(text).is_some() => {
                Ok(Self::Server(SecretSource::Plain(text.into())))
            }
            Some(_) | None => Err(format!("must be {FORMS}")),
        }
    }
}

impl From<StoreUrl> for String {
    fn from(url: StoreUrl) -> String {
        match url {
            StoreUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
            StoreUrl::Memory => "memory:".to_owned(),
            StoreUrl::Server(SecretSource::Variable(name)) => format!("${{env:{name}}}"),
            StoreUrl::Server(SecretSource::File(path)) => format!("${{file:{}}}", path.display()),
            StoreUrl::Server(SecretSource::Plain(url)) => {
                let scheme = url.expose_secret().split_once("://");
                format!("{}://{HIDDEN}", scheme.map_or("", |(scheme, _)| scheme))
            }
        }
    }
}

impl JsonSchema for StoreUrl {
    fn schema_name() -> Cow<'static, str> {
        "StoreUrl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "store", "examples": ["sqlite:sutler.db"] })
    }
}

#[cfg(test)]
mod tests {
    use super::{StoreServer, StoreUrl};

    #[test]
    fn a_server_is_told_by_its_scheme_and_its_url_is_never_shown() {
        let url = StoreUrl::try_from("postgres://me:hush@host/db".to_owned());
        let shown = url.map(|it| (format!("{it:?}"), String::from(it)));
        let (debug, shown) = shown.expect("a URL of a server");
        assert_eq!(shown, "postgres://(hidden)");
        assert!(!debug.contains("hush"), "{debug}");
        assert_eq!(StoreServer::of("mariadb://x/y"), Some(StoreServer::MySql));
        assert_eq!(StoreServer::of("redis://x"), None);
    }

    #[test]
    fn a_url_may_be_kept_elsewhere() {
        let url = StoreUrl::try_from("${env:STORE}".to_owned()).map(String::from);
        assert_eq!(url, Ok("${env:STORE}".to_owned()));
        assert!(StoreUrl::try_from("${STORE}".to_owned()).is_err());
        assert!(StoreUrl::try_from("redis://x".to_owned()).is_err());
    }
}
