//! Bearers of signed tokens (JWT) from trusted issuers.
//!
//! Taken apart in `tokens/jwt.rs`, checked with keys from `tokens/keys.rs`, judged in
//! `tokens/judge.rs`. A token is never logged, nor is anything that it says before its signature was
//! checked.

mod algorithm;
mod fetch;
mod judge;
mod jwt;
mod key_set;
mod keys;
mod schedule;

pub use key_set::KeySet;

use super::fault::AuthFault;
use super::rejection::{Rejection, TokenFault, Ways};
use super::{Caller, Via};
use algorithm::Algorithm;
use fetch::{Remote, Source};
use judge::{ClaimFault, Rules, groups, judge};
use jwt::{Unverified, take_apart};
use keys::{Keys, NoKeys};
use schedule::Rhythm;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Longest token that is looked at, in bytes, unless another bound is set.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// An issuer of tokens that is trusted, and what its tokens must say.
#[derive(Clone)]
pub struct Issuer {
    rules: Rules,
    rhythm: Rhythm,
    algorithms: Vec<Algorithm>,
    token_bytes_max: usize,
    may_be_plain: bool,
    authorities: Option<Vec<u8>>,
    keys_url: Option<String>,
    keys: Option<KeySet>,
}

impl Issuer {
    /// Trusts tokens whose `iss` is exactly this, made for this audience. Their keys are found as
    /// OpenID Connect Discovery says, from the issuer's own description.
    #[must_use]
    pub fn new(issuer: &str, audience: &str) -> Self {
        Self {
            rules: Rules {
                issuer: issuer.to_owned(),
                audiences: vec![audience.to_owned()],
                scopes: Vec::new(),
                skew: Duration::from_secs(60),
                name_claim: "sub".to_owned(),
            },
            rhythm: Rhythm {
                refresh: Duration::from_secs(10 * 60),
                pause: Duration::from_secs(10),
                trusted: Duration::from_secs(24 * 3600),
            },
            algorithms: Algorithm::all(),
            token_bytes_max: TOKEN_BYTES_MAX,
            may_be_plain: false,
            authorities: None,
            keys_url: None,
            keys: None,
        }
    }

    /// Takes tokens for this audience too.
    #[must_use]
    pub fn or_audience(mut self, audience: &str) -> Self {
        self.rules.audiences.push(audience.to_owned());
        self
    }

    /// Demands this scope, beside others that are demanded.
    #[must_use]
    pub fn scope(mut self, scope: &str) -> Self {
        self.rules.scopes.push(scope.to_owned());
        self
    }

    /// How far this machine's clock and the issuer's may be apart; a minute unless set.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.rules.skew = skew;
        self
    }

    /// The claim that names the caller; `sub` unless set.
    #[must_use]
    pub fn name_claim(mut self, claim: &str) -> Self {
        claim.clone_into(&mut self.rules.name_claim);
        self
    }

    /// Takes only tokens signed in these ways: `RS256`, `ES256`, `EdDSA` and their like.
    ///
    /// # Errors
    /// A name is not one of them.
    pub fn algorithms(mut self, names: &[&str]) -> Result<Self, AuthFault> {
        let named = |name: &&str| {
            let unknown = || AuthFault::Algorithm((*name).to_owned());
            Algorithm::named(name).ok_or_else(unknown)
        };
        self.algorithms = names.iter().map(named).collect::<Result<_, _>>()?;
        if self.algorithms.is_empty() {
            return Err(AuthFault::Algorithm(String::new()));
        }
        Ok(self)
    }

    /// Longest token, in bytes.
    #[must_use]
    pub fn token_bytes_max(mut self, bytes: usize) -> Self {
        self.token_bytes_max = bytes;
        self
    }

    /// Fetches keys here, without asking the issuer where they are.
    #[must_use]
    pub fn keys_at(mut self, url: &str) -> Self {
        self.keys_url = Some(url.to_owned());
        self
    }

    /// Uses these keys and never fetches any.
    #[must_use]
    pub fn keys(mut self, keys: KeySet) -> Self {
        self.keys = Some(keys);
        self
    }

    /// How often keys are fetched again; ten minutes unless set.
    #[must_use]
    pub fn refresh_keys_every(mut self, time: Duration) -> Self {
        self.rhythm.refresh = time.max(Duration::from_secs(1));
        self
    }

    /// Least time between two fetches, however many unknown keys tokens name; ten seconds unless set.
    #[must_use]
    pub fn fetch_pause(mut self, time: Duration) -> Self {
        self.rhythm.pause = time;
        self
    }

    /// How long keys go on working while the issuer cannot be reached; a day unless set.
    #[must_use]
    pub fn trust_keys_for(mut self, time: Duration) -> Self {
        self.rhythm.trusted = time;
        self
    }

    /// Trusts only these certificate authorities, in PEM, when it asks the issuer.
    #[must_use]
    pub fn authorities(mut self, pem: &[u8]) -> Self {
        self.authorities = Some(pem.to_owned());
        self
    }

    /// Asks the issuer without TLS if its URL says so: anybody in between can then make tokens.
    #[must_use]
    pub fn allow_plain_http(mut self) -> Self {
        self.may_be_plain = true;
        self
    }

    /// Checks all of it.
    fn ready(self) -> Result<Trusted, AuthFault> {
        let name = || self.rules.issuer.clone();
        let empty = |text: &String| text.is_empty();
        if self.rules.issuer.is_empty() || self.rules.audiences.iter().any(empty) {
            return Err(AuthFault::Audience(name()));
        }
        // As RFC 6749 spells them: they are repeated in a header.
        let spelt = |it: u8| it == b'!' || (b'#'..=b'~').contains(&it) && it != b'\\';
        let wrong = |scope: &&String| scope.is_empty() || !scope.bytes().all(spelt);
        if let Some(scope) = self.rules.scopes.iter().find(wrong) {
            return Err(AuthFault::Scope(scope.clone()));
        }
        let source = match self.keys {
            Some(keys) => Source::Fixed(keys),
            None => {
                let first = self.keys_url.as_ref().unwrap_or(&self.rules.issuer);
                let url = fetch::usable(first, self.may_be_plain);
                let url = url.ok_or_else(|| AuthFault::KeysUrl(name()))?;
                let remote = Remote {
                    issuer: name(),
                    may_be_plain: self.may_be_plain,
                    client: fetch::client(self.authorities.as_deref(), &url)?,
                };
                match self.keys_url {
                    Some(_) => Source::Url(remote, url),
                    None => Source::Discovery(remote),
                }
            }
        };
        Ok(Trusted {
            keys: Keys::new(source, self.rhythm),
            rules: self.rules,
            algorithms: self.algorithms,
            token_bytes_max: self.token_bytes_max,
        })
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.rules.issuer).finish()
    }
}

/// An issuer at work.
struct Trusted {
    rules: Rules,
    keys: Arc<Keys>,
    algorithms: Vec<Algorithm>,
    token_bytes_max: usize,
}

/// All issuers that are trusted.
pub(super) struct Tokens(Vec<Trusted>);

impl Tokens {
    pub(super) fn of(issuers: Vec<Issuer>) -> Result<Option<Self>, AuthFault> {
        let mut trusted: Vec<Trusted> = Vec::with_capacity(issuers.len());
        for issuer in issuers {
            let issuer = issuer.ready()?;
            let name = &issuer.rules.issuer;
            if trusted.iter().any(|it| it.rules.issuer == *name) {
                return Err(AuthFault::DuplicateIssuer(name.clone()));
            }
            trusted.push(issuer);
        }
        Ok((!trusted.is_empty()).then_some(Self(trusted)))
    }

    /// Fetches keys before anybody asks.
    pub(super) fn warm(&self) {
        for issuer in &self.0 {
            issuer.keys.renew_in_background();
        }
    }

    /// Keeps what others fetched from the same issuers.
    pub(super) fn take_over(&self, others: &Self) {
        for (one, other) in self
            .0
            .iter()
            .flat_map(|one| others.0.iter().map(move |it| (one, it)))
        {
            one.keys.take_over(&other.keys);
        }
    }

    pub(super) fn issuers(&self) -> Vec<&str> {
        self.0.iter().map(|it| it.rules.issuer.as_str()).collect()
    }

    /// Who bears this token.
    pub(super) async fn admit(&self, token: &[u8], ways: Ways) -> Result<Caller, Rejection> {
        let invalid = || Rejection::Unproven(ways, Some(TokenFault::Invalid));
        let longest = self.0.iter().map(|it| it.token_bytes_max).max();
        if token.len() > longest.unwrap_or_default() {
            return Err(invalid());
        }
        let taken = take_apart(token).ok_or_else(invalid)?;
        let issuer = taken.claims.get("iss").and_then(|it| it.as_str());
        let issuer = self
            .0
            .iter()
            .find(|it| Some(it.rules.issuer.as_str()) == issuer);
        let issuer = issuer.ok_or_else(invalid)?;
        if token.len() > issuer.token_bytes_max || !issuer.algorithms.contains(&taken.algorithm) {
            return Err(invalid());
        }
        let check = |keys: &KeySet| signed(&taken, keys);
        match issuer.keys.find(check).await {
            Ok(true) => {}
            Ok(false) | Err(NoKeys::Unknown) => return Err(invalid()),
            Err(NoKeys::Unavailable) => return Err(Rejection::IssuerUnavailable),
        }
        match judge(&taken.claims, &issuer.rules, seconds_since_1970()) {
            Ok(name) => Ok(caller_of(&name, taken.claims)),
            Err(ClaimFault::Scope) => {
                let scopes = issuer.rules.scopes.join(" ");
                Err(Rejection::LacksScope(scopes))
            }
            Err(fault) => {
                tracing::debug!(issuer = issuer.rules.issuer, ?fault, "a token was refused");
                Err(invalid())
            }
        }
    }
}

/// The bearer of a token with these claims.
fn caller_of(name: &str, claims: Map<String, Value>) -> Caller {
    Caller {
        uid: claims.get("sub").and_then(Value::as_str).map(Into::into),
        groups: groups(&claims).into(),
        claims: Arc::new(claims),
        ..Caller::new(name, Via::Bearer)
    }
}

/// Whether a token was signed with one of these keys; `None` if other keys could tell otherwise.
fn signed(token: &Unverified<'_>, keys: &KeySet) -> Option<bool> {
    let id = token.key_id.as_deref();
    let algorithm = token.algorithm;
    let verifies = |key: &&jsonwebtoken::DecodingKey| {
        let library = algorithm.library();
        let verified = jsonwebtoken::crypto::verify(token.signature, token.message, key, library);
        verified.unwrap_or(false)
    };
    if keys.fitting(id, algorithm).iter().any(verifies) {
        return Some(true);
    }
    keys.names(id).then_some(false)
}

fn seconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |it| it.as_secs())
}

#[cfg(test)]
mod tests {
    use super::caller_of;
    use serde_json::json;

    #[test]
    fn the_bearer_of_a_token_has_its_id_groups_and_claims() {
        let claims = json!({ "sub": "1234", "email": "a@b.example", "groups": ["admins"] });
        let claims = claims.as_object().expect("an object").clone();
        let caller = caller_of("a@b.example", claims);
        assert_eq!(&*caller.name, "a@b.example");
        assert_eq!(caller.uid.as_deref(), Some("1234"));
        assert_eq!(*caller.groups, ["admins".to_owned()]);
        assert_eq!(caller.claims["email"], "a@b.example");
        assert!(!format!("{caller:?}").contains("email"));
    }
}
