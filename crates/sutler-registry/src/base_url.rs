//! Base URL of a server: validated once, then joined with paths.

use reqwest::Url;

/// A base URL without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(String);

impl BaseUrl {
    /// Parses the URL of a server; without a scheme, `https` is used.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let url = Self::file(text)?;
        let base = url.as_str().trim_end_matches('/');
        Ok(Self(base.strip_suffix("/v2").unwrap_or(base).to_owned()))
    }

    /// Parses the URL of a single file.
    pub(crate) fn file(text: &str) -> Result<Url, String> {
        let refuse = |why: &str| {
            Err(format!(
                "the registry's URL {why}, such as https://registry.example:5000"
            ))
        };
        let whole = match text.contains("://") {
            true => text.to_owned(),
            false => format!("https://{text}"),
        };
        let Ok(url) = Url::parse(&whole) else {
            return refuse("cannot be read; it must be a whole URL");
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return refuse("must begin with http:// or https://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must not hold a user or a password; give them apart");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("must end with its path");
        }
        Ok(url)
    }

    /// Joins a path that is already percent-encoded.
    pub(crate) fn at(&self, path: &str) -> Result<Url, String> {
        let whole = format!("{}{path}", self.0);
        Url::parse(&whole).map_err(|_| "cannot be asked for this".to_owned())
    }

    /// The base URL itself.
    pub(crate) fn url(&self) -> Url {
        // `parse` has validated it.
        Url::parse(&self.0).unwrap_or_else(|_| unreachable!("a checked URL"))
    }

    /// Host, port and path, as in the names of images.
    pub(crate) fn host(&self) -> String {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_up_to_its_version_and_without_a_scheme() {
        for (text, host) in [
            ("https://registry.example/", "registry.example"),
            ("http://127.0.0.1:5000/v2/", "127.0.0.1:5000"),
            ("registry.example:5000", "registry.example:5000"),
            ("https://one.example/all/v2", "one.example/all"),
        ] {
            assert_eq!(
                BaseUrl::parse(text).map(|it| it.host()),
                Ok(host.to_owned())
            );
        }
        for text in ["", "ftp://x", "https://u:p@x", "https://x?y", "https://x#y"] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }
}
