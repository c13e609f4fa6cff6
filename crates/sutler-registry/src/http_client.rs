//! HTTP requests: bounded in time and size, retried a few times where a retry may succeed.
//!
//! Redirects are never followed here, and only statuses worth a retry are examined. Statuses are classified in
//! `http_error.rs`; authentication is in `auth.rs`.

pub(crate) mod retry;

pub use retry::RetrySchedule;

use crate::http_error::HttpError;
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, IF_NONE_MATCH, RETRY_AFTER};
use reqwest::{Certificate, NoProxy, Proxy, Url};
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// After this many requests in a row without a response, or with 429, no more are sent until the next listing:
/// a thousand items of an unreachable host must not take a thousand times as long as one.
const FAILURES_MAX: u32 = 24;

/// Settings of the HTTP client.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Certificate authorities to trust in addition to those of the system, in PEM form.
    pub ca_certificates: Option<Vec<u8>>,
    /// Proxy in place of the one in the environment; may contain a password.
    pub proxy: Option<SecretString>,
    /// Maximum time of one response.
    pub response_timeout: Duration,
    /// Schedule of retries.
    pub retry: RetrySchedule,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            ca_certificates: None,
            proxy: None,
            response_timeout: Duration::from_secs(30),
            retry: RetrySchedule::default(),
        }
    }
}

/// HTTP methods in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpMethod {
    Get,
    Head,
    Post,
}

/// Value of the `Authorization` header of one request.
#[derive(Clone)]
pub(crate) enum Authorization {
    Basic(String, SecretString),
    Bearer(SecretString),
}

/// One request.
pub(crate) struct HttpRequest {
    pub(crate) method: HttpMethod,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
    pub(crate) authorization: Option<Authorization>,
    /// ETag for `If-None-Match`.
    pub(crate) if_none_match: Option<String>,
    /// JSON body.
    pub(crate) body: Option<Bytes>,
    /// Maximum length of the response body, in bytes.
    pub(crate) bytes_max: usize,
}

impl HttpRequest {
    /// A GET request.
    pub(crate) fn get(url: Url, bytes_max: usize) -> Self {
        Self {
            method: HttpMethod::Get,
            url,
            accept: "application/json",
            authorization: None,
            if_none_match: None,
            body: None,
            bytes_max,
        }
    }
}

/// A whole response.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// HTTP client for one server and the hosts that it refers to.
pub(crate) struct HttpClient {
    http: reqwest::Client,
    response_timeout: Duration,
    retry: RetrySchedule,
    failures_in_a_row: AtomicU32,
}

impl HttpClient {
    /// Builds the client; sends no request.
    pub(crate) fn new(settings: &HttpSettings) -> Result<Self, String> {
        let ca_certificates = ca_certificates(settings)?;
        let proxy = proxy(settings)?;
        let merged = builder(settings, proxy.clone()).tls_certs_merge(ca_certificates.clone());
        // A system without certificates is sufficient if ours are enough, or if TLS is not used.
        let http = merged.build().or_else(|_| {
            builder(settings, proxy)
                .tls_certs_only(ca_certificates)
                .build()
        });
        let http = http.map_err(|error| {
            let why = root_cause(&error.without_url());
            format!("no connection can be set up: {why}; check the files of TLS on this machine")
        })?;
        Ok(Self {
            http,
            response_timeout: settings.response_timeout,
            retry: settings.retry.clone(),
            failures_in_a_row: AtomicU32::new(0),
        })
    }

    /// Resets the count of failed requests.
    pub(crate) fn reset_failures(&self) {
        self.failures_in_a_row.store(0, Ordering::Relaxed);
    }

    /// Sends a request, and retries it where that may succeed. A last response that asks to retry is returned like
    /// any other.
    pub(crate) async fn send(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut tried = 0;
        loop {
            if self.failures_in_a_row.load(Ordering::Relaxed) >= FAILURES_MAX {
                return Err(HttpError::Silent(
                    "stopped answering, or wants fewer requests, and is not asked any more until the next \
                     refresh: see whether it runs, and what it allows"
                        .to_owned(),
                ));
            }
            tried += 1;
            let outcome = self.send_once(request).await;
            let after = match &outcome {
                Ok(response) => {
                    match response.status {
                        // Continuing with thousands of items would take hours.
                        429 => drop(self.failures_in_a_row.fetch_add(1, Ordering::Relaxed)),
                        _ => self.reset_failures(),
                    }
                    retry_after(response)
                }
                Err(HttpError::Silent(_)) => {
                    self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
                    Some(None)
                }
                Err(_) => None,
            };
            // No retry, or the last attempt.
            let wait = after.and_then(|asked_for| self.retry.wait(tried, asked_for));
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return outcome,
            }
        }
    }

    async fn send_once(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        match tokio::time::timeout(self.response_timeout, self.exchange(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(HttpError::Silent(format!(
                "gave no whole answer within {:?}: see whether it runs and can be reached",
                self.response_timeout
            ))),
        }
    }

    async fn exchange(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut response = self
            .build_request(request)
            .send()
            .await
            .map_err(transport_error)?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let too_much = || {
            let max = request.bytes_max;
            HttpError::TooMuch(format!(
                "answered with more than {max} bytes, which is more than is read: check that the URL is right"
            ))
        };
        let max = request.bytes_max as u64;
        let length = response
            .content_length()
            .filter(|_| request.method != HttpMethod::Head);
        if length.is_some_and(|it| it > max) {
            return Err(too_much());
        }
        // Reserves the announced length; a growing buffer would take twice as much.
        let room = usize::try_from(length.unwrap_or_default()).unwrap_or_default();
        let mut body = BytesMut::with_capacity(room);
        while let Some(chunk) = response.chunk().await.map_err(transport_error)? {
            if body.len() + chunk.len() > request.bytes_max {
                return Err(too_much());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse {
            status,
            headers,
            body: body.freeze(),
        })
    }

    fn build_request(&self, request: &HttpRequest) -> reqwest::RequestBuilder {
        let method = match request.method {
            HttpMethod::Get => reqwest::Method::GET,
            HttpMethod::Head => reqwest::Method::HEAD,
            HttpMethod::Post => reqwest::Method::POST,
        };
        let mut build_request = self.http.request(method, request.url.clone());
        build_request = build_request.header(ACCEPT, request.accept);
        build_request = match &request.authorization {
            None => build_request,
            Some(Authorization::Basic(user, password)) => {
                build_request.basic_auth(user, Some(password.expose_secret()))
            }
            Some(Authorization::Bearer(token)) => build_request.bearer_auth(token.expose_secret()),
        };
        if let Some(version) = &request.if_none_match {
            build_request = build_request.header(IF_NONE_MATCH, version);
        }
        match &request.body {
            Some(body) => build_request
                .header(CONTENT_TYPE, "application/json")
                .body(Bytes::clone(body)),
            None => build_request,
        }
    }
}

/// The builder without trusted certificates.
fn builder(settings: &HttpSettings, proxy: Option<Proxy>) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT.min(settings.response_timeout))
        .pool_idle_timeout(IDLE_TIMEOUT)
        // A few compressed bytes could expand to gigabytes, so bodies are not decompressed.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    }
}

fn ca_certificates(settings: &HttpSettings) -> Result<Vec<Certificate>, String> {
    let Some(pem) = &settings.ca_certificates else {
        return Ok(Vec::new());
    };
    let found = Certificate::from_pem_bundle(pem).ok();
    let none = "there is no certificate in PEM form to trust: check the file of the authority";
    found
        .filter(|it| !it.is_empty())
        .ok_or_else(|| none.to_owned())
}

fn proxy(settings: &HttpSettings) -> Result<Option<Proxy>, String> {
    let Some(proxy) = &settings.proxy else {
        return Ok(None);
    };
    let none = "the proxy is not a URL: use one such as http://proxy.example:3128";
    let proxy = Proxy::all(proxy.expose_secret()).map_err(|_| none.to_owned())?;
    Ok(Some(proxy.no_proxy(NoProxy::from_env())))
}

/// Whether a response is worth a retry, and after what time according to the server.
fn retry_after(response: &HttpResponse) -> Option<Option<Duration>> {
    let again = matches!(response.status, 429 | 500 | 502 | 503 | 504);
    let header = response.header(RETRY_AFTER.as_str());
    again.then(|| header.and_then(|it| retry::retry_after(it, SystemTime::now())))
}

/// Describes a transport error. The URL is left out, because it may contain secrets.
fn transport_error(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    if error.is_builder() {
        return HttpError::Denied(
            "cannot be asked with these credentials: they hold what no header may hold, such as a line break; \
             replace them"
                .to_owned(),
        );
    }
    let what = match error.is_connect() {
        true => "cannot be reached",
        false => "did not answer to the end",
    };
    let why = root_cause(&error);
    HttpError::Silent(format!("{what} ({why}): {}", advice(&why)))
}

/// Remedy for a cause. The matched words come from the libraries below, not from users.
fn advice(why: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|it| why.contains(it));
    if says(&["UnknownIssuer", "CaUsedAsEndEntity", "BadSignature"]) {
        return "name the file of its authority under `ca`";
    }
    if says(&["invalid peer certificate"]) {
        return "have its certificate renewed, or use the name in it";
    }
    if says(&["InvalidContentType", "corrupt message"]) {
        return "it speaks no TLS there; check the port, or write http:// if that is meant";
    }
    if says(&["failed to lookup address", "dns error"]) {
        return "check the host in its URL, and how this machine finds names";
    }
    "see that it runs and that the way there is open"
}

/// The innermost cause; the outer ones repeat what is known.
fn root_cause(error: &reqwest::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = inner.to_string();
        cause = inner.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn errors_of_tls_and_dns_are_reported_with_a_hint() {
        for (why, what) in [
            ("invalid peer certificate: UnknownIssuer", "`ca`"),
            ("invalid peer certificate: Expired", "renewed"),
            (
                "received corrupt message of type InvalidContentType",
                "http://",
            ),
            (
                "failed to lookup address information: Name or service not known",
                "host",
            ),
            ("connection refused", "runs"),
        ] {
            assert!(advice(why).contains(what), "{why}");
        }
    }
}
