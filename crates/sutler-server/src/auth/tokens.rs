//! Authentication by signed bearer tokens (JWT) of trusted issuers.
//!
//! Tokens are parsed in `tokens/jwt.rs`, verified with keys from `tokens/keys.rs`, and their claims checked in
//! `tokens/claims.rs`. A token is never logged, nor is any claim before the signature was verified.

mod algorithm;
mod claims;
mod fetch;
mod jwt;
mod key_set;
mod keys;
mod schedule;

pub use key_set::KeySet;

use super::config_error::AuthConfigError;
use super::rejection::{Challenges, Rejection, TokenError};
use super::{AuthMethod, Caller};
use algorithm::Algorithm;
use claims::{ClaimError, ClaimRules, check_claims, groups};
use fetch::{KeySource, RemoteIssuer};
use jwt::{UnverifiedToken, parse_token};
use keys::{IssuerKeys, KeyLookupError};
use schedule::RefreshSchedule;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Default maximum length of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// A trusted issuer of tokens, and the claims that its tokens must have.
#[derive(Clone)]
pub struct Issuer {
    rules: ClaimRules,
    schedule: RefreshSchedule,
    algorithms: Vec<Algorithm>,
    token_bytes_max: usize,
    may_be_plain: bool,
    authorities: Option<Vec<u8>>,
    keys_url: Option<String>,
    keys: Option<KeySet>,
}

impl Issuer {
    /// Trusts tokens with exactly this `iss`, made for this audience. Their keys are found by OpenID Connect Discovery.
    #[must_use]
    pub fn new(issuer: &str, audience: &str) -> Self {
        Self {
            rules: ClaimRules {
                issuer: issuer.to_owned(),
                audiences: vec![audience.to_owned()],
                scopes: Vec::new(),
                skew: Duration::from_secs(60),
                name_claim: "sub".to_owned(),
            },
            schedule: RefreshSchedule {
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

    /// Accepts tokens for this audience too.
    #[must_use]
    pub fn or_audience(mut self, audience: &str) -> Self {
        self.rules.audiences.push(audience.to_owned());
        self
    }

    /// Requires this scope, in addition to others.
    #[must_use]
    pub fn scope(mut self, scope: &str) -> Self {
        self.rules.scopes.push(scope.to_owned());
        self
    }

    /// Maximum difference between this machine's clock and the issuer's; a minute by default.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.rules.skew = skew;
        self
    }

    /// The claim that names the caller; `sub` by default.
    #[must_use]
    pub fn name_claim(mut self, claim: &str) -> Self {
        claim.clone_into(&mut self.rules.name_claim);
        self
    }

    /// Accepts only tokens signed with these algorithms, such as `RS256`, `ES256` or `EdDSA`.
    ///
    /// # Errors
    /// An unknown algorithm.
    pub fn algorithms(mut self, names: &[&str]) -> Result<Self, AuthConfigError> {
        let named = |name: &&str| {
            let unknown = || AuthConfigError::Algorithm((*name).to_owned());
            Algorithm::named(name).ok_or_else(unknown)
        };
        self.algorithms = names.iter().map(named).collect::<Result<_, _>>()?;
        if self.algorithms.is_empty() {
            return Err(AuthConfigError::Algorithm(String::new()));
        }
        Ok(self)
    }

    /// Maximum length of a token, in bytes.
    #[must_use]
    pub fn token_bytes_max(mut self, bytes: usize) -> Self {
        self.token_bytes_max = bytes;
        self
    }

    /// Fetches keys from this URL, without discovery.
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

    /// Interval between fetches of keys; ten minutes by default.
    #[must_use]
    pub fn refresh_keys_every(mut self, time: Duration) -> Self {
        self.schedule.refresh = time.max(Duration::from_secs(1));
        self
    }

    /// Minimum time between two fetches, however many unknown keys tokens name; ten seconds by default.
    #[must_use]
    pub fn fetch_pause(mut self, time: Duration) -> Self {
        self.schedule.pause = time;
        self
    }

    /// How long keys stay trusted while the issuer is unreachable; a day by default.
    #[must_use]
    pub fn trust_keys_for(mut self, time: Duration) -> Self {
        self.schedule.trusted = time;
        self
    }

    /// Trusts only these certificate authorities, in PEM, for requests to the issuer.
    #[must_use]
    pub fn authorities(mut self, pem: &[u8]) -> Self {
        self.authorities = Some(pem.to_owned());
        self
    }

    /// Allows plain HTTP to the issuer: an attacker on the network path can then forge tokens.
    #[must_use]
    pub fn allow_plain_http(mut self) -> Self {
        self.may_be_plain = true;
        self
    }

    /// Validates the settings.
    fn ready(self) -> Result<TrustedIssuer, AuthConfigError> {
        let name = || self.rules.issuer.clone();
        let empty = |text: &String| text.is_empty();
        if self.rules.issuer.is_empty() || self.rules.audiences.iter().any(empty) {
            return Err(AuthConfigError::Audience(name()));
        }
        // Only the characters of RFC 6749: scopes are repeated in a header.
        let spelt = |it: u8| it == b'!' || (b'#'..=b'~').contains(&it) && it != b'\\';
        let wrong = |scope: &&String| scope.is_empty() || !scope.bytes().all(spelt);
        if let Some(scope) = self.rules.scopes.iter().find(wrong) {
            return Err(AuthConfigError::Scope(scope.clone()));
        }
        let source = match self.keys {
            Some(keys) => KeySource::Fixed(keys),
            None => {
                let first = self.keys_url.as_ref().unwrap_or(&self.rules.issuer);
                let url = fetch::usable(first, self.may_be_plain);
                let url = url.ok_or_else(|| AuthConfigError::KeysUrl(name()))?;
                let remote = RemoteIssuer {
                    issuer: name(),
                    may_be_plain: self.may_be_plain,
                    client: fetch::client(self.authorities.as_deref(), &url)?,
                };
                match self.keys_url {
                    Some(_) => KeySource::Url(remote, url),
                    None => KeySource::Discovery(remote),
                }
            }
        };
        Ok(TrustedIssuer {
            keys: IssuerKeys::new(source, self.schedule),
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

/// A trusted issuer with its keys.
struct TrustedIssuer {
    rules: ClaimRules,
    keys: Arc<IssuerKeys>,
    algorithms: Vec<Algorithm>,
    token_bytes_max: usize,
}

/// All trusted issuers.
pub(super) struct TokenIssuers(Vec<TrustedIssuer>);

impl TokenIssuers {
    pub(super) fn of(issuers: Vec<Issuer>) -> Result<Option<Self>, AuthConfigError> {
        let mut trusted: Vec<TrustedIssuer> = Vec::with_capacity(issuers.len());
        for issuer in issuers {
            let issuer = issuer.ready()?;
            let name = &issuer.rules.issuer;
            if trusted.iter().any(|it| it.rules.issuer == *name) {
                return Err(AuthConfigError::DuplicateIssuer(name.clone()));
            }
            trusted.push(issuer);
        }
        Ok((!trusted.is_empty()).then_some(Self(trusted)))
    }

    /// Fetches keys before the first request.
    pub(super) fn prefetch_keys(&self) {
        for issuer in &self.0 {
            issuer.keys.renew_in_background();
        }
    }

    /// Takes over keys that `others` fetched from the same issuers.
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

    /// Authenticates the bearer of a token.
    pub(super) async fn admit(
        &self,
        token: &[u8],
        challenges: Challenges,
    ) -> Result<Caller, Rejection> {
        let invalid = || Rejection::Unproven(challenges, Some(TokenError::Invalid));
        let longest = self.0.iter().map(|it| it.token_bytes_max).max();
        if token.len() > longest.unwrap_or_default() {
            return Err(invalid());
        }
        let token_parts = parse_token(token).ok_or_else(invalid)?;
        let issuer = token_parts.claims.get("iss").and_then(|it| it.as_str());
        let issuer = self
            .0
            .iter()
            .find(|it| Some(it.rules.issuer.as_str()) == issuer);
        let issuer = issuer.ok_or_else(invalid)?;
        if token.len() > issuer.token_bytes_max
            || !issuer.algorithms.contains(&token_parts.algorithm)
        {
            return Err(invalid());
        }
        let check = |keys: &KeySet| signed(&token_parts, keys);
        match issuer.keys.find(check).await {
            Ok(true) => {}
            Ok(false) | Err(KeyLookupError::Unknown) => return Err(invalid()),
            Err(KeyLookupError::Unavailable) => return Err(Rejection::IssuerUnavailable),
        }
        match check_claims(&token_parts.claims, &issuer.rules, seconds_since_1970()) {
            Ok(name) => Ok(caller_of(&name, token_parts.claims)),
            Err(ClaimError::Scope) => {
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
        ..Caller::new(name, AuthMethod::Bearer)
    }
}

/// Whether a token was signed with one of these keys; `None` if newer keys could give another result.
fn signed(token: &UnverifiedToken<'_>, keys: &KeySet) -> Option<bool> {
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
