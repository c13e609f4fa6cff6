//! Connection to a broker: URL, credentials, trusted certificates, time and size limits.
//!
//! Redirects are never followed: they would send the credentials to another server.

use super::exchange::{Answer, Method, Proof, Request, TransportError};
use super::transport_error::{classify_error, innermost};
use bytes::{Bytes, BytesMut};
use reqwest::{Certificate, Identity, Url};
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use std::time::{Duration, Instant};

/// Timeout of establishing a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a whole exchange may take: the usual timeout of platforms (P-008).
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long an unused connection is kept. Some servers close theirs after five seconds, and a
/// request that is sent just then has no answer.
const UNUSED_FOR: Duration = Duration::from_secs(4);
/// Password or token sent for `Proof::Wrong`.
const WRONG_SECRET: &str = "sutler-wrong-on-purpose";

/// Why a connection cannot be set up. Contains advice and no secrets.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConnectionError(String);

enum Credentials {
    None,
    Basic(String, SecretString),
    Bearer(SecretString),
}

/// Connection to a broker. Cheap to clone.
#[derive(Clone)]
pub struct Connection {
    http: reqwest::Client,
    /// Without a slash at the end.
    base: String,
    credentials: std::sync::Arc<Credentials>,
    answer_within: Duration,
    answer_bytes_max: usize,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// Settings of a [`Connection`].
pub struct ConnectionBuilder {
    url: String,
    credentials: Credentials,
    roots: Vec<Certificate>,
    identity: Option<Identity>,
    connect_within: Duration,
    answer_within: Duration,
    answer_bytes_max: usize,
}

impl Connection {
    /// The broker at a URL: everything before `/v2`.
    pub fn to(url: &str) -> ConnectionBuilder {
        ConnectionBuilder {
            url: url.to_owned(),
            credentials: Credentials::None,
            roots: Vec::new(),
            identity: None,
            connect_within: CONNECT_WITHIN,
            answer_within: ANSWER_WITHIN,
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }

    /// The broker's URL, without credentials.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether requests carry credentials.
    pub fn is_authenticated(&self) -> bool {
        !matches!(*self.credentials, Credentials::None)
    }

    /// How long one exchange may take.
    pub fn answer_within(&self) -> Duration {
        self.answer_within
    }

    /// Sends one request and reads its answer to the end.
    ///
    /// # Errors
    /// There was no complete answer: nothing was sent, or it timed out, broke off, or was too long.
    pub async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        let started = Instant::now();
        match tokio::time::timeout(self.answer_within, self.exchange(request, started)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(TransportError::TimedOut(self.answer_within)),
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        started: Instant,
    ) -> Result<Answer, TransportError> {
        if let Some(reason) = request.unsendable() {
            return Err(TransportError::NotSent(reason));
        }
        let mut response = self
            .outgoing(request)
            .send()
            .await
            .map_err(|error| classify_error(&error, self.answer_within))?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let too_long = || TransportError::TooLong(self.answer_bytes_max);
        let announced = response.content_length().map(usize::try_from);
        if announced.is_some_and(|it| it.map_or(true, |bytes| bytes > self.answer_bytes_max)) {
            return Err(too_long());
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| classify_error(&error, self.answer_within))?
        {
            if body.len() + chunk.len() > self.answer_bytes_max {
                return Err(too_long());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status,
            headers,
            body: body.freeze(),
            took: started.elapsed(),
        })
    }

    fn outgoing(&self, request: &Request) -> reqwest::RequestBuilder {
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
            Method::Post => reqwest::Method::POST,
        };
        let mut outgoing = self
            .http
            .request(method, format!("{}{}", self.base, request.target()));
        outgoing = match (&*self.credentials, request.proof) {
            (_, Proof::Missing) | (Credentials::None, _) => outgoing,
            (Credentials::Basic(user, password), Proof::Right) => {
                outgoing.basic_auth(user, Some(password.expose_secret()))
            }
            (Credentials::Basic(user, _), Proof::Wrong) => {
                outgoing.basic_auth(user, Some(WRONG_SECRET))
            }
            (Credentials::Bearer(token), Proof::Right) => {
                outgoing.bearer_auth(token.expose_secret())
            }
            (Credentials::Bearer(_), Proof::Wrong) => outgoing.bearer_auth(WRONG_SECRET),
        };
        for (name, value) in &request.headers {
            outgoing = outgoing.header(name, value);
        }
        match &request.body {
            Some(body) => outgoing.body(Bytes::clone(body)),
            None => outgoing,
        }
    }
}

impl ConnectionBuilder {
    /// Basic authentication.
    #[must_use]
    pub fn basic(mut self, user: &str, password: SecretString) -> Self {
        self.credentials = Credentials::Basic(user.to_owned(), password);
        self
    }

    /// A bearer token.
    #[must_use]
    pub fn bearer(mut self, token: SecretString) -> Self {
        self.credentials = Credentials::Bearer(token);
        self
    }

    /// Certificate authorities to trust besides the system's, in PEM form.
    ///
    /// # Errors
    /// The text contains no certificate.
    pub fn trust(mut self, pem: &[u8]) -> Result<Self, InvalidConnectionError> {
        let roots = Certificate::from_pem_bundle(pem)
            .ok()
            .filter(|it| !it.is_empty())
            .ok_or_else(|| {
                InvalidConnectionError("there is no certificate in PEM form to trust".to_owned())
            })?;
        self.roots.extend(roots);
        Ok(self)
    }

    /// The client's own certificate and key, concatenated in PEM form.
    ///
    /// # Errors
    /// The text contains no certificate with its key.
    pub fn identity(mut self, pem: &SecretString) -> Result<Self, InvalidConnectionError> {
        let identity = Identity::from_pem(pem.expose_secret().as_bytes()).map_err(|_| {
            InvalidConnectionError(
                "the client's certificate and its key must both be in PEM form".to_owned(),
            )
        })?;
        self.identity = Some(identity);
        Ok(self)
    }

    /// Timeout of establishing a connection.
    #[must_use]
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.connect_within = time;
        self
    }

    /// How long a whole exchange may take.
    #[must_use]
    pub fn answer_within(mut self, time: Duration) -> Self {
        self.answer_within = time;
        self
    }

    /// Longest answer that is read.
    #[must_use]
    pub fn answer_bytes_max(mut self, bytes: usize) -> Self {
        self.answer_bytes_max = bytes;
        self
    }

    /// The connection; nothing is sent yet.
    ///
    /// # Errors
    /// The URL cannot be used, or no certificates are to be found on this machine.
    pub fn build(self) -> Result<Connection, InvalidConnectionError> {
        let base = checked(&self.url)?;
        if matches!(&self.credentials, Credentials::Basic(user, _) if user.contains(':')) {
            return Err(InvalidConnectionError(
                "a user of basic authentication cannot have a colon in its name; use another user"
                    .to_owned(),
            ));
        }
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect_within.min(self.answer_within))
            .pool_idle_timeout(UNUSED_FOR)
            .no_proxy()
            // A few compressed bytes could become gigabytes, so bodies are not decompressed.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        builder = if base.starts_with("https:") {
            builder.tls_certs_merge(self.roots)
        } else {
            // Plain HTTP needs no trusted certificates, so the machine may have none.
            builder.tls_certs_only([])
        };
        if let Some(identity) = self.identity {
            builder = builder.identity(identity);
        }
        let http = builder.build().map_err(|error| {
            InvalidConnectionError(format!(
                "no connection can be set up: {}",
                innermost(&error)
            ))
        })?;
        Ok(Connection {
            http,
            base,
            credentials: std::sync::Arc::new(self.credentials),
            answer_within: self.answer_within,
            answer_bytes_max: self.answer_bytes_max,
        })
    }
}

fn checked(url: &str) -> Result<String, InvalidConnectionError> {
    let refuse = |reason: &str| {
        Err(InvalidConnectionError(format!(
            "the broker's URL {reason}, such as https://broker.example:8080"
        )))
    };
    let Ok(parsed) = Url::parse(url) else {
        return refuse("cannot be read; it must be a whole URL");
    };
    if !matches!(parsed.scheme(), "http" | "https") {
        return refuse("must begin with http:// or https://");
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return refuse("must not hold a user or a password; give them apart");
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return refuse("must end with its path");
    }
    let base = parsed.as_str().trim_end_matches('/');
    Ok(base.strip_suffix("/v2").unwrap_or(base).to_owned())
}

#[cfg(test)]
mod tests {
    use super::Connection;

    #[test]
    fn a_url_is_taken_up_to_its_version() {
        let base = |url: &str| {
            Connection::to(url)
                .build()
                .map(|it| it.base().to_owned())
                .map_err(|it| it.to_string())
        };
        assert_eq!(
            base("http://127.0.0.1:8080/"),
            Ok("http://127.0.0.1:8080".to_owned())
        );
        assert_eq!(
            base("http://127.0.0.1/cf/v2/"),
            Ok("http://127.0.0.1/cf".to_owned())
        );
        for unusable in ["127.0.0.1:8080", "ftp://x", "http://u:p@x", "http://x?y"] {
            assert!(base(unusable).is_err(), "{unusable}");
        }
    }
}
