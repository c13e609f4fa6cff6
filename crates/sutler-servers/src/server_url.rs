//! The URL of a server, taken apart as far as tests need it.
//!
//! Stores understand far more of their URLs; this knows who logs in, where the server is, which
//! database or prefix is meant, and what else is asked for.

/// Where a server is, and how one is let in.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// `postgres`, `mysql`, `etcd` …
    pub scheme: String,
    /// Name and, if there is one, password.
    pub user: Option<(String, Option<String>)>,
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database, prefix or number; without a slash.
    pub path: String,
    /// What comes after the question mark.
    pub query: String,
}

impl ServerUrl {
    /// Reads a URL; a missing port is the given one.
    ///
    /// # Panics
    /// If it is none: whoever set a variable for the tests must hear of it.
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

    /// The same through another port of this machine: a proxy's.
    #[must_use]
    pub fn through(&self, port: u16) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            ..self.clone()
        }
    }

    /// The same with another database or prefix.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// The same for another user.
    #[must_use]
    pub fn with_user(&self, name: &str, password: &str) -> Self {
        Self {
            user: Some((name.to_owned(), Some(password.to_owned()))),
            ..self.clone()
        }
    }

    /// The whole of it.
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
    fn a_url_is_put_together_as_it_was_taken_apart() {
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
