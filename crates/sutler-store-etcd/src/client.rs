//! Client of etcd's JSON gateway: reads, transactions, leases; one member after the other.
//!
//! A read is tried at every member. A write is tried at the next member only if it certainly had no
//! effect; otherwise the result is [`EtcdError::Unanswered`]. Passwords and tokens are sent in
//! headers and bodies, and never included in an error. Not here: watching (`watch.rs`).

use crate::clock::{DateVerdict, ServerClock};
use crate::settings::{EtcdSettings, Login, Tls};
use crate::wire::{
    EtcdErrorBody, KeyValue, LeaseGrantResponse, Range, RangeResponse, RequestOp, StreamLine, Txn,
    TxnResponse,
};
use reqwest::header::{AUTHORIZATION, DATE};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sutler_journal::StoreError;

/// Longest response: a page of the largest values, in base64.
const ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Time after which an idle connection is checked: a watch may be silent for hours.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Maximum idle connections per member.
const IDLE_MAX: usize = 32;
/// Maximum keys read by one transaction; etcd accepts 128 operations by default.
pub(crate) const STEPS_MAX: usize = 100;

/// Errors of a request.
#[derive(Debug)]
pub(crate) enum EtcdError {
    /// Nothing was done.
    NotDone(StoreError),
    /// It is unknown whether anything was done.
    Unanswered(StoreError),
    /// etcd has compacted the requested revision.
    Compacted,
}

impl From<EtcdError> for StoreError {
    fn from(trouble: EtcdError) -> Self {
        match trouble {
            EtcdError::NotDone(error) | EtcdError::Unanswered(error) => error,
            EtcdError::Compacted => Self::new(
                "etcd forgot the revision that was being read; ask again, and compact less often if this returns",
            ),
        }
    }
}

/// Effect of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEffect {
    /// No effect: it can be repeated.
    Reads,
    /// An effect, at most once.
    Writes,
}

/// A connection to a cluster.
pub(crate) struct Client {
    http: reqwest::Client,
    addresses: Vec<String>,
    /// Index of the member that responded last.
    current: AtomicUsize,
    login: Option<Login>,
    token: Mutex<Option<SecretString>>,
    timeout: Duration,
    pub(crate) clock: Arc<ServerClock>,
}

impl Client {
    pub(crate) fn new(settings: &EtcdSettings) -> Result<Self, StoreError> {
        let mut http = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            .tcp_nodelay(true)
            .tcp_keepalive(KEEPALIVE)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(settings.connect_timeout)
            .pool_max_idle_per_host(IDLE_MAX);
        if let Some(tls) = &settings.tls {
            http = with_tls(http, tls)?;
        }
        let http = http.build().map_err(|cause| {
            StoreError::caused(
                "the connection to etcd cannot be set up: check the files for TLS",
                cause.without_url(),
            )
        })?;
        Ok(Self {
            http,
            clock: Arc::new(ServerClock::new(settings.endpoints.len())),
            addresses: settings.addresses(),
            current: AtomicUsize::new(0),
            login: settings.login.clone(),
            token: Mutex::new(None),
            timeout: settings.request_timeout,
        })
    }

    /// Reads a range; includes everything acknowledged before.
    pub(crate) async fn range(&self, range: &Range) -> Result<RangeResponse, EtcdError> {
        self.call("/v3/kv/range", range, RequestEffect::Reads).await
    }

    /// Runs a transaction.
    pub(crate) async fn txn(
        &self,
        txn: &Txn,
        effect: RequestEffect,
    ) -> Result<TxnResponse, EtcdError> {
        self.call("/v3/kv/txn", txn, effect).await
    }

    /// Reads many keys at one revision; the current one if none is given.
    pub(crate) async fn get_all(
        &self,
        keys: &[Vec<u8>],
        mut revision: Option<i64>,
    ) -> Result<Vec<Option<KeyValue>>, EtcdError> {
        let mut found = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(STEPS_MAX) {
            let read = |key: &Vec<u8>| RequestOp::Range(Range::one(key.clone()).at(revision));
            let txn = Txn {
                success: chunk.iter().map(read).collect(),
                ..Txn::default()
            };
            let answer = self.txn(&txn, RequestEffect::Reads).await?;
            found.extend(answer.ranges().map(|it| it.kvs.first().cloned()));
            revision = revision.or(Some(answer.header.revision.0));
        }
        Ok(found)
    }

    /// Grants a lease; returns its id.
    pub(crate) async fn grant(&self, seconds: i64) -> Result<i64, EtcdError> {
        let body = serde_json::json!({ "TTL": seconds });
        let lease: LeaseGrantResponse = self
            .call("/v3/lease/grant", &body, RequestEffect::Writes)
            .await?;
        Ok(lease.id.0)
    }

    /// Extends a lease; returns whether it still exists.
    pub(crate) async fn keep_alive(&self, lease: i64) -> Result<bool, EtcdError> {
        let body = serde_json::json!({ "ID": lease });
        let line: StreamLine<LeaseGrantResponse> = self
            .call("/v3/lease/keepalive", &body, RequestEffect::Reads)
            .await?;
        match (line.result, line.error) {
            (Some(lease), _) => Ok(lease.ttl.0 > 0),
            (None, Some(refusal)) => Err(decide(&refusal)),
            (None, None) => Err(EtcdError::NotDone(StoreError::new(
                "etcd ended a renewal without a word; ask again",
            ))),
        }
    }

    /// Revokes a lease; a missing one counts as revoked.
    pub(crate) async fn revoke(&self, lease: i64) {
        let body = serde_json::json!({ "ID": lease });
        let ended: Result<serde_json::Value, EtcdError> = self
            .call("/v3/lease/revoke", &body, RequestEffect::Reads)
            .await;
        if ended.is_err() {
            tracing::debug!("a lease was not given back to etcd; it runs out by itself");
        }
    }

    /// Sends a request to one member after the other, as far as that is safe.
    async fn call<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        effect: RequestEffect,
    ) -> Result<A, EtcdError> {
        let body = serde_json::to_vec(body).map_err(|cause| {
            EtcdError::NotDone(StoreError::caused("a request cannot be written", cause))
        })?;
        let body = bytes::Bytes::from(body);
        let mut logins = 0;
        let mut left = self.addresses.len();
        loop {
            let member = self.current.load(Ordering::Relaxed);
            let token = self.token().await?;
            let (trouble, next) = match self.ask(member, path, body.clone(), token.as_ref()).await {
                Ok(answer) => return Ok(answer),
                Err(MemberRefusal::TokenRefused) if self.login.is_some() && logins == 0 => {
                    logins += 1;
                    self.forget(token);
                    continue;
                }
                Err(MemberRefusal::TokenRefused) => return Err(EtcdError::NotDone(not_allowed())),
                Err(MemberRefusal::Refused(trouble)) => return Err(trouble),
                Err(MemberRefusal::Elsewhere(trouble)) => {
                    let safe =
                        effect == RequestEffect::Reads || matches!(trouble, EtcdError::NotDone(_));
                    (trouble, safe)
                }
            };
            self.leave(member);
            left -= 1;
            if !next || left == 0 {
                return Err(trouble);
            }
        }
    }

    /// Switches to the next member, unless another call already did.
    pub(crate) fn leave(&self, member: usize) {
        let next = (member + 1) % self.addresses.len().max(1);
        let _ = self
            .current
            .compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        member: usize,
        path: &str,
        body: bytes::Bytes,
        token: Option<&SecretString>,
    ) -> Result<A, MemberRefusal> {
        let sent = Instant::now();
        let request = self
            .request(member, path, body, token)
            .timeout(self.timeout);
        let mut response = request.send().await.map_err(unanswered)?;
        if let Some(date) = response.headers().get(DATE).and_then(|it| it.to_str().ok())
            && self.clock.received(member, sent, date) == DateVerdict::Contradicts
        {
            self.leave(member);
        }
        let fine = response.status().is_success();
        let missing = response.status() == reqwest::StatusCode::NOT_FOUND;
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unanswered)? {
            if answer.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(MemberRefusal::Refused(EtcdError::Unanswered(
                    StoreError::new(
                        "etcd gave an answer of more than 512 MB: list in smaller pages",
                    ),
                )));
            }
            answer.extend_from_slice(&chunk);
        }
        if !fine {
            return Err(refused(missing, &answer));
        }
        serde_json::from_slice(&answer).map_err(|cause| {
            MemberRefusal::Refused(EtcdError::Unanswered(StoreError::caused(
                "an answer of etcd cannot be read: is there something else at this address?",
                cause,
            )))
        })
    }

    /// A request to one member, without a time limit.
    pub(crate) fn request(
        &self,
        member: usize,
        path: &str,
        body: bytes::Bytes,
        token: Option<&SecretString>,
    ) -> reqwest::RequestBuilder {
        let address = self.addresses.get(member).map_or("", String::as_str);
        let request = self.http.post(format!("{address}{path}")).body(body);
        match token {
            Some(token) => request.header(AUTHORIZATION, token.expose_secret()),
            None => request,
        }
    }

    /// The member to use, and the token for it.
    pub(crate) async fn member(&self) -> Result<(usize, Option<SecretString>), EtcdError> {
        let token = self.token().await?;
        Ok((self.current.load(Ordering::Relaxed), token))
    }

    /// The token for a request, if etcd requires one.
    async fn token(&self) -> Result<Option<SecretString>, EtcdError> {
        let Some(login) = &self.login else {
            return Ok(None);
        };
        if let Some(token) = self.known_token() {
            return Ok(Some(token));
        }
        let mut trouble = EtcdError::NotDone(not_allowed());
        for _ in &self.addresses {
            let member = self.current.load(Ordering::Relaxed);
            match self.log_in(member, login).await {
                Ok(token) => {
                    *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
                    return Ok(token);
                }
                Err(MemberRefusal::Elsewhere(other)) => trouble = not_done(other),
                Err(MemberRefusal::TokenRefused) => return Err(EtcdError::NotDone(not_allowed())),
                Err(MemberRefusal::Refused(other)) => return Err(not_done(other)),
            }
            self.leave(member);
        }
        Err(trouble)
    }

    async fn log_in(
        &self,
        member: usize,
        login: &Login,
    ) -> Result<Option<SecretString>, MemberRefusal> {
        #[derive(serde::Deserialize)]
        struct Token {
            token: SecretString,
        }
        let body = serde_json::json!({
            "name": login.user,
            "password": login.password.expose_secret(),
        });
        let body = body.to_string().into();
        match self.ask(member, "/v3/auth/authenticate", body, None).await {
            Ok(Token { token }) => Ok(Some(token)),
            Err(error) => Err(error),
        }
    }

    fn known_token(&self) -> Option<SecretString> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        token.clone()
    }

    /// Drops a token that etcd no longer accepts, unless it was replaced already.
    pub(crate) fn forget(&self, refused: Option<SecretString>) {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let same = token.as_ref().map(ExposeSecret::expose_secret)
            == refused.as_ref().map(ExposeSecret::expose_secret);
        if same {
            *token = None;
        }
    }
}

/// A request that was never sent had no effect, whatever the result of the login before it.
fn not_done(trouble: EtcdError) -> EtcdError {
    EtcdError::NotDone(trouble.into())
}

/// Why one member did not serve a request.
enum MemberRefusal {
    /// The token expired.
    TokenRefused,
    /// Every member would refuse it.
    Refused(EtcdError),
    /// Another member may serve it.
    Elsewhere(EtcdError),
}

fn unanswered(cause: reqwest::Error) -> MemberRefusal {
    let unsent = cause.is_connect() || cause.is_builder();
    let error = StoreError::caused(
        "etcd does not answer: check that it runs, and that its address is right",
        cause.without_url(),
    );
    MemberRefusal::Elsewhere(if unsent {
        EtcdError::NotDone(error)
    } else {
        EtcdError::Unanswered(error)
    })
}

/// gRPC status codes.
const INVALID_ARGUMENT: i64 = 3;
const NOT_FOUND: i64 = 5;
const PERMISSION_DENIED: i64 = 7;
const RESOURCE_EXHAUSTED: i64 = 8;
const FAILED_PRECONDITION: i64 = 9;
const OUT_OF_RANGE: i64 = 11;
const UNAUTHENTICATED: i64 = 16;

fn refused(missing: bool, answer: &[u8]) -> MemberRefusal {
    let refusal = serde_json::from_slice::<EtcdErrorBody>(answer);
    if missing && refusal.is_err() {
        return MemberRefusal::Elsewhere(EtcdError::NotDone(StoreError::new(
            "there is no gateway of etcd 3.4 or later at this address: upgrade etcd, or name another",
        )));
    }
    let refusal = refusal.unwrap_or_default();
    if refusal.code == UNAUTHENTICATED {
        return MemberRefusal::TokenRefused;
    }
    let trouble = decide(&refusal);
    match refusal.code {
        INVALID_ARGUMENT | NOT_FOUND | PERMISSION_DENIED | RESOURCE_EXHAUSTED
        | FAILED_PRECONDITION | OUT_OF_RANGE => MemberRefusal::Refused(trouble),
        _ => MemberRefusal::Elsewhere(trouble),
    }
}

/// Meaning of a refusal.
pub(crate) fn decide(refusal: &EtcdErrorBody) -> EtcdError {
    let with_message = |what: &str| StoreError::new(format!("{what} ({})", refusal.message));
    match refusal.code {
        OUT_OF_RANGE if refusal.message.contains("compacted") => EtcdError::Compacted,
        RESOURCE_EXHAUSTED => EtcdError::NotDone(with_message(
            "etcd is full or busy: give it more room, or compact and defragment it",
        )),
        INVALID_ARGUMENT if refusal.message.contains("auth") => EtcdError::NotDone(not_allowed()),
        PERMISSION_DENIED | UNAUTHENTICATED => EtcdError::NotDone(not_allowed()),
        INVALID_ARGUMENT | NOT_FOUND | FAILED_PRECONDITION | OUT_OF_RANGE => EtcdError::NotDone(
            with_message("etcd refuses: check its version and its limits"),
        ),
        _ if refusal.message.contains("no leader") => EtcdError::NotDone(with_message(
            "etcd has no leader: see that most of its members run",
        )),
        _ => EtcdError::Unanswered(with_message("etcd did not say what became of a request")),
    }
}

fn not_allowed() -> StoreError {
    StoreError::new(
        "etcd does not let this user in: check name, password and its role's access to the prefix",
    )
}

fn with_tls(http: reqwest::ClientBuilder, tls: &Tls) -> Result<reqwest::ClientBuilder, StoreError> {
    let mut http = http;
    if let Some(path) = &tls.ca {
        let certificates = reqwest::Certificate::from_pem_bundle(&read(path)?)
            .map_err(|cause| unreadable(path, cause))?;
        http = http.tls_certs_only(certificates);
    }
    if let Some((certificate, key)) = &tls.identity {
        let mut pem = read(certificate)?;
        pem.push(b'\n');
        pem.extend(read(key)?);
        let identity =
            reqwest::Identity::from_pem(&pem).map_err(|cause| unreadable(certificate, cause))?;
        http = http.identity(identity);
    }
    Ok(http)
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|cause| unreadable(path, cause))
}

fn unreadable(
    path: &std::path::Path,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    let sentence = format!("{} cannot be read as PEM", path.display());
    StoreError::caused(sentence, cause)
}

#[cfg(test)]
mod tests;
