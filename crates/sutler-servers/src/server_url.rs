//! URL of a server, parsed as far as tests need it.
//!
//! Contains user, host, database or prefix, and query. Stores parse more of their URLs themselves.

/// Parsed URL of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// Scheme: `postgres`, `mysql`, `etcd` …
    pub scheme: String,
    /// User and, if there is one, password.
    pub user: Option<(String, Option<String>)>,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Database, prefix or number, without a slash.
    pub path: String,
    /// Query, without the question mark.
    pub query: String,
}

impl ServerUrl {
    /// Parses a URL; `port` is the default port.
    ///
    /// # Panics
    /// If it is not a URL: a variable of the tests is set wrongly.
    #[must_use]
    pub fn of(url: &str, port: u16) -> Self {
        let (scheme, rest) = url.split_once("://").expect("SCHEME://HOST");
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, at) = match authority.rsplit_once('@') {
            Some((user, at)) => (Some(user), at),
            None => (None, authority),
        };
        let user = user.map(|it| match it.split_once(':') {
            Some((name, password)) => (name.to_owned(), Some(password.to_owned())),
            None => (it.to_owned(), None),
        });
        let (host, port) = match at.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().expect("a port is a number")),
            None => (at, port),
        };
        Self {
            scheme: scheme.to_owned(),
            user,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            query: query.to_owned(),
        }
    }

    /// The same URL through a proxy on another port of this machine.
    #[must_use]
    pub fn through(&self, port: u16) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            ..self.clone()
        }
    }

    /// The same URL with another database or prefix.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// The same URL for another user.
    #[must_use]
    pub fn with_user(&self, name: &str, password: &str) -> Self {
        Self {
            user: Some((name.to_owned(), Some(password.to_owned()))),
            ..self.clone()
        }
    }

    /// Formats the URL.
    #[must_use]
    pub fn url(&self) -> String {
        let Self { scheme, host, .. } = self;
        let user = match &self.user {
            Some((name, Some(password))) => format!("{name}:{password}@"),
            Some((name, None)) => format!("{name}@"),
            None => String::new(),
        };
        let query = match self.query.as_str() {
            "" => String::new(),
            query => format!("?{query}"),
        };
        format!("{scheme}://{user}{host}:{}/{}{query}", self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_round_trips() {
        for url in [
            "postgres://postgres:pass@127.0.0.1:5432/db?sslmode=disable",
            "mysql://root@db.example:3306/",
            "etcd://127.0.0.1:2379/a/b",
        ] {
            assert_eq!(ServerUrl::of(url, 1).url(), url);
        }
        let bare = ServerUrl::of("etcd://host", 2379);
        assert_eq!(bare.url(), "etcd://host:2379/");
        let other = bare.through(7).at("x").with_user("me", "word");
        assert_eq!(other.url(), "etcd://me:word@127.0.0.1:7/x");
    }
}
