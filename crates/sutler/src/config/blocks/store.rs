//! Store block: the URL of the store and its key file. Stores are opened by the executable (`stores.rs`).

use crate::config::findings::CheckFindings;
use crate::config::secret::{EnvLookup, HIDDEN, SecretSource};
use crate::config::value_types::{DurationText, FilePath};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;
use sutler_broker::FeedRetention;

/// Where everything is kept.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "StoreSource")]
pub struct StoreConfig {
    /// `sqlite:FILE`, made if it is not there; `memory:`, forgotten at the end; or a server that replicas
    /// share: `postgres://…`, `mysql://…`, `mongodb://…`, `etcd://…`, also as `${env:NAME}` or `${file:PATH}`.
    pub url: StoreUrl,
    /// The keys that seal what is kept; created with a new key if the file is missing and the store is empty; a
    /// broker refuses a store with records and no key file. The database's name with `.key`, if none is given.
    /// Replicas of one store need the same keys: for a server they must be named.
    pub key_file: Option<FilePath>,
    /// How long the feed of changes is kept; at least a quarter of an hour. Applied every ten minutes.
    /// `sutler store copy` follows the feed; a copy that is slower begins again.
    pub feed_kept: DurationText,
    /// How many commits the feed keeps at most; those of the last quarter of an hour are kept in any case.
    pub feed_commits: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let feed = FeedRetention::default();
        Self {
            url: StoreUrl::Sqlite("sutler.db".into()),
            key_file: None,
            feed_kept: DurationText(feed.age),
            feed_commits: feed.commits_max,
        }
    }
}

impl StoreConfig {
    /// How much of the feed is kept.
    pub fn feed(&self) -> FeedRetention {
        FeedRetention {
            age: self.feed_kept.0,
            commits_max: self.feed_commits,
        }
    }

    /// Checks that URL and key file go together.
    pub(in crate::config) fn check(&self, path: &str, findings: &mut CheckFindings) {
        match (&self.url, &self.key_file) {
            (StoreUrl::Memory, Some(_)) => {
                let reason = "means nothing for a store in memory; remove it";
                findings.fault(format!("{path}.key_file"), reason);
            }
            (StoreUrl::Server(_), None) => {
                let reason = "needs `key_file` beside it: every replica must have the same keys";
                findings.fault(format!("{path}.url"), reason);
            }
            (StoreUrl::Memory, None)
            | (StoreUrl::Server(_), Some(_))
            | (StoreUrl::Sqlite(_), _) => {}
        }
    }

    /// Reads the URL of a server, and adds a fault if it is missing or is not the URL of a known server.
    pub(in crate::config) fn check_secrets(
        &self,
        path: &str,
        variable: &EnvLookup<'_>,
        findings: &mut CheckFindings,
    ) {
        if let StoreUrl::Server(url) = &self.url
            && let Err(reason) = names_a_server(url, variable)
        {
            findings.fault(format!("{path}.url"), reason);
        }
    }

    /// The path of the URL, if it is written into the configuration itself and may hold a password.
    pub(in crate::config) fn plain_secret(&self, path: &str) -> Option<String> {
        matches!(self.url, StoreUrl::Server(SecretSource::Plain(_))).then(|| format!("{path}.url"))
    }

    /// The URL of the server as it is now, wherever it is kept; `None` for a store without a server and for a
    /// URL that cannot be read.
    pub fn server_url(&self, variable: &EnvLookup<'_>) -> Option<SecretString> {
        match &self.url {
            StoreUrl::Server(secret) => secret.reveal(variable).ok(),
            StoreUrl::Sqlite(_) | StoreUrl::Memory => None,
        }
    }

    /// The key file: the configured one, or that of SQLite by its default name. `None` for a store in memory.
    ///
    /// # Errors
    /// A server needs a configured key file.
    pub fn key_path(&self) -> Result<Option<PathBuf>, String> {
        match (&self.key_file, &self.url) {
            (Some(FilePath(path)), _) => Ok(Some(path.clone())),
            (None, StoreUrl::Sqlite(path)) => Ok(Some(path.with_extension("key"))),
            (None, StoreUrl::Memory) => Ok(None),
            (None, StoreUrl::Server(_)) => {
                Err("name the keys of the store with store.key_file".to_owned())
            }
        }
    }
}

/// Checks that a URL can be read, and that it is one of a server that can hold a store.
fn names_a_server(url: &SecretSource, variable: &EnvLookup<'_>) -> Result<(), String> {
    let url = url.reveal(variable)?;
    match StoreServer::of(url.expose_secret()) {
        Some(_) => Ok(()),
        None => Err(
            "must begin with postgres://, mysql://, mongodb:// or etcd:// where it is kept"
                .to_owned(),
        ),
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

/// Valid forms of a store URL.
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
    fn a_server_is_recognised_by_its_scheme_and_its_url_is_never_shown() {
        let url = StoreUrl::try_from("postgres://me:hush@host/db".to_owned());
        let shown = url.map(|it| (format!("{it:?}"), String::from(it)));
        let (debug, shown) = shown.expect("a URL of a server");
        assert_eq!(shown, "postgres://(hidden)");
        assert!(!debug.contains("hush"), "{debug}");
        assert_eq!(StoreServer::of("mariadb://x/y"), Some(StoreServer::MySql));
        assert_eq!(StoreServer::of("redis://x"), None);
    }

    #[test]
    fn a_url_may_be_read_from_a_file_or_variable() {
        let url = StoreUrl::try_from("${env:STORE}".to_owned()).map(String::from);
        assert_eq!(url, Ok("${env:STORE}".to_owned()));
        assert!(StoreUrl::try_from("${STORE}".to_owned()).is_err());
        assert!(StoreUrl::try_from("redis://x".to_owned()).is_err());
    }
}
