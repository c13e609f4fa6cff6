//! Questions to a server over HTTP: bounded in time and size, repeated a few times where that may help.
//!
//! Redirects are never followed here, and no status is judged but those that are worth another try. What an
//! answer means: `trouble.rs`. Who asks: `door.rs`.

pub(crate) mod pace;

pub use pace::Pace;

use crate::trouble::Trouble;
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, IF_NONE_MATCH, RETRY_AFTER};
use reqwest::{Certificate, NoProxy, Proxy, Url};
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long an unused connection is kept.
const UNUSED_FOR: Duration = Duration::from_secs(20);
/// After so many questions without any answer, or with none but that there were too many, no more are asked
/// until the next listing: a thousand items of a host that is down must not take a thousand times as long as one.
const SILENT_MAX: u32 = 24;

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Certificate authorities to trust besides the system's, in PEM form.
    pub authorities: Option<Vec<u8>>,
    /// A proxy in place of the one that the environment names; it may hold a password.
    pub proxy: Option<SecretString>,
    /// How long one answer may take.
    pub answer_within: Duration,
    /// How often and when a question is repeated.
    pub pace: Pace,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            authorities: None,
            proxy: None,
            answer_within: Duration::from_secs(30),
            pace: Pace::default(),
        }
    }
}

/// What is asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Head,
    Post,
}

/// What proves who asks, for one question.
#[derive(Clone)]
pub(crate) enum Proof {
    Basic(String, SecretString),
    Bearer(SecretString),
}

/// One question.
pub(crate) struct Ask {
    pub(crate) verb: Verb,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
    pub(crate) proof: Option<Proof>,
    /// A version that need not be sent again.
    pub(crate) unless: Option<String>,
    /// JSON to send.
    pub(crate) body: Option<Bytes>,
    /// Longest answer that is read.
    pub(crate) bytes_max: usize,
}

impl Ask {
    /// Reads a URL.
    pub(crate) fn get(url: Url, bytes_max: usize) -> Self {
        Self {
            verb: Verb::Get,
            url,
            accept: "application/json",
            proof: None,
            unless: None,
            body: None,
            bytes_max,
        }
    }
}

/// One whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A way out to one server and to those it refers to.
pub(crate) struct Web {
    http: reqwest::Client,
    answer_within: Duration,
    pace: Pace,
    silent: AtomicU32,
}

impl Web {
    /// Sets up what is needed; asks nothing.
    pub(crate) fn new(reach: &Reach) -> Result<Self, String> {
        let authorities = authorities(reach)?;
        let proxy = proxy(reach)?;
        let merged = builder(reach, proxy.clone()).tls_certs_merge(authorities.clone());
        // A machine without certificates of its own will do where ours are enough, or none is needed.
        let http = merged
            .build()
            .or_else(|_| builder(reach, proxy).tls_certs_only(authorities).build());
        let http = http.map_err(|error| {
            let why = innermost(&error.without_url());
            format!("no connection can be set up: {why}; check the files of TLS on this machine")
        })?;
        Ok(Self {
            http,
            answer_within: reach.answer_within,
            pace: reach.pace.clone(),
            silent: AtomicU32::new(0),
        })
    }

    /// Forgets that nobody answered.
    pub(crate) fn begin(&self) {
        self.silent.store(0, Ordering::Relaxed);
    }

    /// Asks, and asks again where that may help. What still asks for patience then is an answer like others.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer, Trouble> {
        let mut tried = 0;
        loop {
            if self.silent.load(Ordering::Relaxed) >= SILENT_MAX {
                return Err(Trouble::Silent(
                    "stopped answering, or wants fewer requests, and is not asked any more until the next \
                     refresh: see whether it runs, and what it allows"
                        .to_owned(),
                ));
            }
            tried += 1;
            let outcome = self.once(ask).await;
            let after = match &outcome {
                Ok(answer) => {
                    match answer.status {
                        // It has enough of us: whoever goes on asking for thousands of items takes hours.
                        429 => drop(self.silent.fetch_add(1, Ordering::Relaxed)),
                        _ => self.begin(),
                    }
                    retry_after(answer)
                }
                Err(Trouble::Silent(_)) => {
                    self.silent.fetch_add(1, Ordering::Relaxed);
                    Some(None)
                }
                Err(_) => None,
            };
            // Nothing to be gained, or enough.
            let wait = after.and_then(|asked_for| self.pace.wait(tried, asked_for));
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return outcome,
            }
        }
    }

    async fn once(&self, ask: &Ask) -> Result<Answer, Trouble> {
        match tokio::time::timeout(self.answer_within, self.exchange(ask)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Trouble::Silent(format!(
                "gave no whole answer within {:?}: see whether it runs and can be reached",
                self.answer_within
            ))),
        }
    }

    async fn exchange(&self, ask: &Ask) -> Result<Answer, Trouble> {
        let mut response = self.outgoing(ask).send().await.map_err(silence)?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let too_much = || {
            let max = ask.bytes_max;
            Trouble::TooMuch(format!(
                "answered with more than {max} bytes, which is more than is read: check that the URL is right"
            ))
        };
        let max = ask.bytes_max as u64;
        let length = response.content_length().filter(|_| ask.verb != Verb::Head);
        if length.is_some_and(|it| it > max) {
            return Err(too_much());
        }
        // What is said to come has room from the start; what grows has twice the room it needs.
        let room = usize::try_from(length.unwrap_or_default()).unwrap_or_default();
        let mut body = BytesMut::with_capacity(room);
        while let Some(chunk) = response.chunk().await.map_err(silence)? {
            if body.len() + chunk.len() > ask.bytes_max {
                return Err(too_much());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status,
            headers,
            body: body.freeze(),
        })
    }

    fn outgoing(&self, ask: &Ask) -> reqwest::RequestBuilder {
        let method = match ask.verb {
            Verb::Get => reqwest::Method::GET,
            Verb::Head => reqwest::Method::HEAD,
            Verb::Post => reqwest::Method::POST,
        };
        let mut outgoing = self.http.request(method, ask.url.clone());
        outgoing = outgoing.header(ACCEPT, ask.accept);
        outgoing = match &ask.proof {
            None => outgoing,
            Some(Proof::Basic(user, password)) => {
                outgoing.basic_auth(user, Some(password.expose_secret()))
            }
            Some(Proof::Bearer(token)) => outgoing.bearer_auth(token.expose_secret()),
        };
        if let Some(version) = &ask.unless {
            outgoing = outgoing.header(IF_NONE_MATCH, version);
        }
        match &ask.body {
            Some(body) => outgoing
                .header(CONTENT_TYPE, "application/json")
                .body(Bytes::clone(body)),
            None => outgoing,
        }
    }
}

/// Everything but whom to trust.
fn builder(reach: &Reach, proxy: Option<Proxy>) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN.min(reach.answer_within))
        .pool_idle_timeout(UNUSED_FOR)
        // A few bytes could become gigabytes: what is encoded stays as it came.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    }
}

fn authorities(reach: &Reach) -> Result<Vec<Certificate>, String> {
    let Some(pem) = &reach.authorities else {
        return Ok(Vec::new());
    };
    let found = Certificate::from_pem_bundle(pem).ok();
    let none = "there is no certificate in PEM form to trust: check the file of the authority";
    found
        .filter(|it| !it.is_empty())
        .ok_or_else(|| none.to_owned())
}

fn proxy(reach: &Reach) -> Result<Option<Proxy>, String> {
    let Some(proxy) = &reach.proxy else {
        return Ok(None);
    };
    let none = "the proxy is no URL: use one such as http://proxy.example:3128";
    let proxy = Proxy::all(proxy.expose_secret()).map_err(|_| none.to_owned())?;
    Ok(Some(proxy.no_proxy(NoProxy::from_env())))
}

/// Whether an answer is worth another try, and after how long the server says.
fn retry_after(answer: &Answer) -> Option<Option<Duration>> {
    let again = matches!(answer.status, 429 | 500 | 502 | 503 | 504);
    let header = answer.header(RETRY_AFTER.as_str());
    again.then(|| header.and_then(|it| pace::retry_after(it, SystemTime::now())))
}

/// Why nothing came. The URL is left out: it may hold what nobody should read.
fn silence(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    if error.is_builder() {
        return Trouble::Denied(
            "cannot be asked with these credentials: they hold what no header may hold, such as a line break; \
             replace them"
                .to_owned(),
        );
    }
    let what = match error.is_connect() {
        true => "cannot be reached",
        false => "did not answer to the end",
    };
    let why = innermost(&error);
    Trouble::Silent(format!("{what} ({why}): {}", advice(&why)))
}

/// What to do about a cause. Nobody types these words but the libraries below us.
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

/// The first cause; what lies around it names what is known.
fn innermost(error: &reqwest::Error) -> String {
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
    fn what_is_wrong_with_tls_or_names_is_told_with_what_to_do() {
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
