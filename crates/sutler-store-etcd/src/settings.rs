//! Settings of the connection to etcd, and parsing them from a URL.
//!
//! `etcd://user:password@host:2379,host2:2379/prefix?tls=true&ca=FILE&cert=FILE&key=FILE`. Passwords
//! are secret types from the start: no message here repeats any part of a URL that may hold one.

use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use std::path::PathBuf;
use std::time::Duration;

const SCHEME: &str = "etcd://";
const PORT: u16 = 2379;
/// Prefix of a store whose URL has no path.
const PREFIX: &str = "sutler";
/// Longest prefix, in bytes: every key begins with it.
const PREFIX_BYTES_MAX: usize = 128;
/// Maximum endpoints; etcd clusters have up to seven members.
const ENDPOINTS_MAX: usize = 16;

/// Settings of the connection.
#[derive(Clone, Debug)]
pub struct EtcdSettings {
    /// `host:port` of every member, at least one.
    pub endpoints: Vec<String>,
    /// Prefix of all keys; stores with different prefixes are independent.
    pub prefix: String,
    /// Credentials, if etcd requires them.
    pub login: Option<Login>,
    /// TLS, or none.
    pub tls: Option<Tls>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Time limit for a response.
    pub request_timeout: Duration,
}

/// A user of etcd.
#[derive(Clone, Debug)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: SecretString,
}

/// Files for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// CA certificates for the servers; without: those of the system.
    pub ca: Option<PathBuf>,
    /// This client's certificate and key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why a URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL of an etcd store {0}")]
pub struct InvalidUrlError(&'static str);

impl EtcdSettings {
    /// Settings for these endpoints, with defaults for everything else.
    pub fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            prefix: PREFIX.to_owned(),
            login: None,
            tls: None,
            connect_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(3),
        }
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// Describes the missing or unknown part, without repeating the URL.
    pub fn from_url(url: &str) -> Result<Self, InvalidUrlError> {
        let rest = url
            .strip_prefix(SCHEME)
            .ok_or(InvalidUrlError("begins with etcd://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(read_login(login)?), hosts),
            None => (None, authority),
        };
        let mut settings = Self::new(read_hosts(hosts)?);
        settings.login = login;
        settings.prefix = read_prefix(path)?;
        settings.read_query(query)?;
        Ok(settings)
    }

    fn read_query(&mut self, query: &str) -> Result<(), InvalidUrlError> {
        let (mut tls, mut ca, mut cert, mut key) = (None, None, None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or(InvalidUrlError("has parameters of the form name=value"))?;
            let value = decode(value)?;
            match name {
                "tls" => {
                    tls = Some(match value.as_str() {
                        "true" => true,
                        "false" => false,
                        _ => return Err(InvalidUrlError("has tls=true or tls=false")),
                    });
                }
                "ca" => ca = Some(PathBuf::from(value)),
                "cert" => cert = Some(PathBuf::from(value)),
                "key" => key = Some(PathBuf::from(value)),
                "timeout" => self.request_timeout = read_seconds(&value)?,
                "connect_timeout" => self.connect_timeout = read_seconds(&value)?,
                _ => {
                    return Err(InvalidUrlError(
                        "knows the parameters tls, ca, cert, key, timeout and connect_timeout only",
                    ));
                }
            }
        }
        let identity = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(InvalidUrlError("has cert and key together, or neither")),
        };
        let files = ca.is_some() || identity.is_some();
        self.tls = match tls {
            Some(false) if files => return Err(InvalidUrlError("has files for TLS and tls=false")),
            Some(false) => None,
            None if !files => None,
            Some(true) | None => Some(Tls { ca, identity }),
        };
        Ok(())
    }

    /// URLs of the members.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let endpoints = self.endpoints.iter();
        endpoints.map(|it| format!("{scheme}://{it}")).collect()
    }
}

fn decode(text: &str) -> Result<String, InvalidUrlError> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded =
        decoded.map_err(|_| InvalidUrlError("has text in UTF-8 behind its percent signs"))?;
    Ok(decoded.into_owned())
}

fn read_login(text: &str) -> Result<Login, InvalidUrlError> {
    let (user, password) = text.split_once(':').ok_or(InvalidUrlError(
        "has a user and a password, with a colon between",
    ))?;
    let user = decode(user)?;
    if user.is_empty() {
        return Err(InvalidUrlError("has a user before the password"));
    }
    Ok(Login {
        user,
        password: decode(password)?.into(),
    })
}

fn read_hosts(text: &str) -> Result<Vec<String>, InvalidUrlError> {
    let endpoints: Vec<String> = text.split(',').map(read_host).collect::<Result<_, _>>()?;
    if endpoints.len() > ENDPOINTS_MAX {
        return Err(InvalidUrlError("names at most 16 endpoints"));
    }
    Ok(endpoints)
}

fn read_host(host: &str) -> Result<String, InvalidUrlError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return Err(InvalidUrlError(
            "names hosts like etcd-1:2379,etcd-2:2379 behind etcd://",
        ));
    }
    // An IPv6 address is in brackets; its colons do not separate a port.
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    match behind.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(host.to_owned()),
        Some(_) => Err(InvalidUrlError("has ports from 1 to 65535")),
        None => Ok(format!("{host}:{PORT}")),
    }
}

fn read_prefix(path: &str) -> Result<String, InvalidUrlError> {
    let prefix = decode(path.trim_end_matches('/'))?;
    if prefix.contains('\0') || prefix.len() > PREFIX_BYTES_MAX {
        return Err(InvalidUrlError(
            "has a path of at most 128 bytes without NUL: the prefix of all keys",
        ));
    }
    match prefix.as_str() {
        "" => Ok(PREFIX.to_owned()),
        _ => Ok(prefix),
    }
}

fn read_seconds(text: &str) -> Result<Duration, InvalidUrlError> {
    match text.parse::<u64>() {
        Ok(seconds @ 1..=60) => Ok(Duration::from_secs(seconds)),
        Ok(_) | Err(_) => Err(InvalidUrlError("has timeouts of 1 to 60 seconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::{EtcdSettings, Tls};
    use secrecy::ExposeSecret;
    use std::time::Duration;

    #[test]
    fn a_url_names_everything_that_is_needed() {
        let url =
            "etcd://me:p%40ss@one:1,[::1],three/a%20b/?tls=true&ca=/c&cert=/d&key=/e&timeout=9";
        let settings = EtcdSettings::from_url(url).unwrap();
        assert_eq!(settings.endpoints, ["one:1", "[::1]:2379", "three:2379"]);
        assert_eq!(settings.prefix, "a b");
        let login = settings.login.as_ref().unwrap();
        assert_eq!(
            (login.user.as_str(), login.password.expose_secret()),
            ("me", "p@ss")
        );
        let files = Tls {
            ca: Some("/c".into()),
            identity: Some(("/d".into(), "/e".into())),
        };
        assert_eq!(settings.tls, Some(files));
        assert_eq!(settings.request_timeout, Duration::from_secs(9));
        assert_eq!(settings.addresses()[0], "https://one:1");
        assert!(!format!("{settings:?}").contains("p@ss"));
    }

    #[test]
    fn a_short_url_is_enough() {
        let settings = EtcdSettings::from_url("etcd://localhost").unwrap();
        assert_eq!(settings.addresses(), ["http://localhost:2379"]);
        assert_eq!((settings.prefix.as_str(), settings.tls), ("sutler", None));
        assert!(settings.login.is_none());
    }

    #[test]
    fn a_bad_url_is_refused_without_being_repeated() {
        for url in [
            "http://one",
            "etcd://",
            "etcd://secret@one",
            "etcd://:secret@one",
            "etcd://me:secret@one,,two",
            "etcd://me:secret@one:http",
            "etcd://me:secret@one/?tls=maybe",
            "etcd://me:secret@one/?cert=/c",
            "etcd://me:secret@one/?tls=false&ca=/c",
            "etcd://me:secret@one/?secret=1",
            "etcd://me:secret@one/?timeout=0",
            "etcd://me:secret@one/a%00b",
        ] {
            let error = EtcdSettings::from_url(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
