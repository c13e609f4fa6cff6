//! The URL of a server: checked once, and put together with paths.

use reqwest::Url;

/// Where a server is, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(String);

impl BaseUrl {
    /// Reads the URL of a server; one without a scheme is reached by TLS.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let url = Self::file(text)?;
        let base = url.as_str().trim_end_matches('/');
        Ok(Self(base.strip_suffix("/v2").unwrap_or(base).to_owned()))
    }

    /// Reads the URL of one file, as it is.
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

    /// A path below it, which must be fit for a URL as it is.
    pub(crate) fn at(&self, path: &str) -> Result<Url, String> {
        let whole = format!("{}{path}", self.0);
        Url::parse(&whole).map_err(|_| "cannot be asked for this".to_owned())
    }

    /// The server itself.
    pub(crate) fn url(&self) -> Url {
        // It was read before.
        Url::parse(&self.0).unwrap_or_else(|_| unreachable!("a checked URL"))
    }

    /// Host, port and path, as images are called.
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
