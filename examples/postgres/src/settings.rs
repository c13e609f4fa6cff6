//! Settings from the environment. Pure, except for reading secret files.
//!
//! Secrets come from a variable or from a file, never from the command line, which all users of the machine can
//! read.

use crate::names::Prefix;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

const ADMIN_URL: &str = "POSTGRES_ADMIN_URL";
const ADMIN_URL_FILE: &str = "POSTGRES_ADMIN_URL_FILE";
const ADDRESS: &str = "POSTGRES_ADDRESS";
const PREFIX: &str = "POSTGRES_PREFIX";
const ATTEMPTS: &str = "POSTGRES_ATTEMPTS";
const LISTEN: &str = "POSTGRES_BROKER_LISTEN";
const DB: &str = "POSTGRES_BROKER_DB";
const CATALOG: &str = "POSTGRES_BROKER_CATALOG";

/// Attempts of about one minute, with waits doubling from half a second.
const ATTEMPTS_DEFAULT: u32 = 8;
const ATTEMPTS_MAX: u32 = 100;

/// All settings.
pub struct Settings {
    /// Connection of the broker's own role.
    pub(crate) admin: PgConnectOptions,
    /// Address of the server for applications.
    pub address: ServerAddress,
    /// Prefix of the names of databases and roles.
    pub prefix: Prefix,
    /// Number of attempts of an operation while the server is down.
    pub attempts: u32,
    /// Where the broker listens.
    pub listen: String,
    /// The database file of the broker; its key file is next to it.
    pub db: PathBuf,
    /// A catalog instead of the built-in one.
    pub catalog: Option<PathBuf>,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A missing or invalid setting. Never quotes a value, which may be a secret.
#[derive(Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The URL of the server is missing.
    NoAdminUrl,
    /// The URL of the server is invalid.
    BadAdminUrl,
    /// The file with the URL of the server cannot be read.
    UnreadableFile(PathBuf, std::io::ErrorKind),
    /// The server is reached by a socket, which applications elsewhere cannot use.
    NoAddress,
    /// This variable is invalid.
    Bad(&'static str, &'static str),
}

impl Settings {
    /// Reads the settings from variables.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let url = admin_url(&variable)?;
        let admin = PgConnectOptions::from_str(url.expose_secret());
        let admin = admin.map_err(|_| SettingsError::BadAdminUrl)?;
        let address = match variable(ADDRESS) {
            Some(text) => text.parse()?,
            None if admin.get_socket().is_some() || admin.get_host().starts_with('/') => {
                return Err(SettingsError::NoAddress);
            }
            None => ServerAddress {
                host: admin.get_host().trim_matches(['[', ']']).to_owned(),
                port: admin.get_port(),
            },
        };
        let prefix = variable(PREFIX).unwrap_or("sutler".to_owned());
        let prefix = prefix.parse().map_err(|_| {
            SettingsError::Bad(
                PREFIX,
                "at most 24 letters a-z, digits and _, beginning with a letter",
            )
        })?;
        Ok(Self {
            admin,
            address,
            prefix,
            attempts: attempts(variable(ATTEMPTS))?,
            listen: variable(LISTEN).unwrap_or("127.0.0.1:8080".to_owned()),
            db: variable(DB).map_or("postgres-broker.db".into(), PathBuf::from),
            catalog: variable(CATALOG).map(PathBuf::from),
        })
    }
}

fn admin_url(variable: impl Fn(&str) -> Option<String>) -> Result<SecretString, SettingsError> {
    if let Some(url) = variable(ADMIN_URL) {
        return Ok(url.into());
    }
    let path = PathBuf::from(variable(ADMIN_URL_FILE).ok_or(SettingsError::NoAdminUrl)?);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().into()),
        Err(error) => Err(SettingsError::UnreadableFile(path, error.kind())),
    }
}

fn attempts(text: Option<String>) -> Result<u32, SettingsError> {
    let Some(text) = text else {
        return Ok(ATTEMPTS_DEFAULT);
    };
    let number = text.parse().ok();
    number
        .filter(|it| (1..=ATTEMPTS_MAX).contains(it))
        .ok_or(SettingsError::Bad(ATTEMPTS, "a number from 1 to 100"))
}

impl FromStr for ServerAddress {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let bad = SettingsError::Bad(ADDRESS, "a host and a port, as in db.example.com:5432");
        let Some((host, port)) = text.rsplit_once(':') else {
            return Err(bad);
        };
        let host = host.trim_matches(['[', ']']);
        let plain = |it: char| it.is_ascii_alphanumeric() || ".-_:".contains(it);
        match port.parse() {
            Ok(port) if !host.is_empty() && host.chars().all(plain) => Ok(Self {
                host: host.to_owned(),
                port,
            }),
            _ => Err(bad),
        }
    }
}

/// The host as in a URI: an IPv6 address in brackets.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdminUrl => write!(
                f,
                "set {ADMIN_URL} to postgres://user:password@host:port/postgres, or {ADMIN_URL_FILE} \
                 to a file that holds it"
            ),
            Self::BadAdminUrl => write!(
                f,
                "{ADMIN_URL} cannot be read: write postgres://user:password@host:port/postgres, with \
                 special characters of the password as %40 and the like"
            ),
            Self::UnreadableFile(path, kind) => write!(
                f,
                "{ADMIN_URL_FILE} names {}, which cannot be read ({kind}): let the broker's user read it",
                path.display()
            ),
            Self::NoAddress => write!(
                f,
                "set {ADDRESS} to the host and port that applications reach the server by: the broker \
                 itself uses a socket"
            ),
            Self::Bad(name, wanted) => write!(f, "{name} must be {wanted}"),
        }
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests {
    use super::{ServerAddress, Settings, SettingsError};
    use std::cell::RefCell;

    const URL: &str = "postgres://admin:hunter2@db.example.com:6432/postgres";

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn fault(variables: &[(&str, &str)]) -> String {
        match read(variables) {
            Ok(_) => panic!("it was taken"),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn one_variable_is_enough() {
        let settings = read(&[("POSTGRES_ADMIN_URL", URL)]).expect("settings");
        assert_eq!(settings.address.to_string(), "db.example.com:6432");
        assert_eq!(settings.attempts, 8);
    }

    #[test]
    fn the_url_may_be_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("url");
        std::fs::write(&path, format!("{URL}\n")).expect("it is written");
        let path = path.to_str().expect("a path");
        let settings = read(&[("POSTGRES_ADMIN_URL_FILE", path)]).expect("settings");
        assert_eq!(settings.address.port, 6432);
    }

    #[test]
    fn invalid_settings_are_named_with_a_hint_and_without_the_secret() {
        let url = ("POSTGRES_ADMIN_URL", URL);
        for (variables, expected) in [
            (vec![], "set POSTGRES_ADMIN_URL"),
            (vec![("POSTGRES_ADMIN_URL", "hunter2")], "postgres://user"),
            (vec![("POSTGRES_ADMIN_URL_FILE", "/not/there")], "not found"),
            (
                vec![url, ("POSTGRES_ADDRESS", "hunter2")],
                "db.example.com:5432",
            ),
            (
                vec![url, ("POSTGRES_ADDRESS", "a/hunter2:1")],
                "a host and a port",
            ),
            (vec![url, ("POSTGRES_PREFIX", "Hunter2")], "letters a-z"),
            (vec![url, ("POSTGRES_ATTEMPTS", "0")], "from 1 to 100"),
        ] {
            let fault = fault(&variables);
            assert!(fault.contains(expected), "{fault}");
            assert!(!fault.contains("unter2"), "{fault}");
        }
    }

    #[test]
    fn every_variable_is_in_the_readme() {
        let names_read = RefCell::new(Vec::new());
        let ask = |name: &str| {
            names_read.borrow_mut().push(format!("`{name}`"));
            (name == "POSTGRES_ADMIN_URL").then(|| URL.to_owned())
        };
        Settings::read(ask).expect("settings");
        let readme = include_str!("../README.md");
        for name in names_read.into_inner() {
            assert!(readme.contains(&name), "{name}");
        }
    }

    #[test]
    fn an_ipv6_address_is_in_brackets() {
        let address: ServerAddress = "[::1]:5432".parse().expect("an address");
        assert_eq!(address.host, "::1");
        assert_eq!(address.to_string(), "[::1]:5432");
    }
}
