//! Checks the claims of a token. Pure; the caller passes the time.
//!
//! The signature was verified before (`tokens.rs`). Which claim was wrong is logged, and never sent to the caller.

use serde_json::{Map, Value};
use std::time::Duration;

/// Maximum length of a caller's name, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Required claims of an issuer's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimRules {
    pub issuer: String,
    /// One of them must be in `aud`.
    pub audiences: Vec<String>,
    /// All of them must be granted.
    pub scopes: Vec<String>,
    /// Maximum difference of clocks.
    pub skew: Duration,
    /// The claim that names the caller.
    pub name_claim: String,
}

/// Error in the claims of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimError {
    Issuer,
    Audience,
    NoExpiry,
    Expired,
    NotYet,
    /// A time that is not a number.
    Time,
    Name,
    Scope,
}

/// The caller's name. `now` is in seconds since 1970. The scope is checked last: it is the only error that is reported
/// to the caller.
pub(crate) fn check_claims(
    claims: &Map<String, Value>,
    rules: &ClaimRules,
    now: u64,
) -> Result<String, ClaimError> {
    if claims.get("iss").and_then(Value::as_str) != Some(&rules.issuer) {
        return Err(ClaimError::Issuer);
    }
    let audiences = words(claims.get("aud")).ok_or(ClaimError::Audience)?;
    if !rules
        .audiences
        .iter()
        .any(|it| audiences.contains(&it.as_str()))
    {
        return Err(ClaimError::Audience);
    }
    check_times(claims, rules.skew, now)?;
    let name = claims.get(&rules.name_claim).and_then(Value::as_str);
    let usable = |name: &&str| {
        (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control)
    };
    let name = name.filter(usable).ok_or(ClaimError::Name)?;
    let granted = granted(claims);
    if !rules.scopes.iter().all(|it| granted.contains(&it.as_str())) {
        return Err(ClaimError::Scope);
    }
    Ok(name.to_owned())
}

fn check_times(claims: &Map<String, Value>, skew: Duration, now: u64) -> Result<(), ClaimError> {
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(time) if time.is_finite() && time >= 0.0 => Ok(Some(time)),
            Some(_) | None => Err(ClaimError::Time),
        },
    };
    let skew = skew.as_secs_f64();
    let now = Duration::from_secs(now).as_secs_f64();
    let expires = time("exp")?.ok_or(ClaimError::NoExpiry)?;
    if now >= expires + skew {
        return Err(ClaimError::Expired);
    }
    for start in [time("nbf")?, time("iat")?].into_iter().flatten() {
        if now + skew < start {
            return Err(ClaimError::NotYet);
        }
    }
    Ok(())
}

/// Scopes of a token: `scope` and `scp`, each a text of words or a list.
fn granted(claims: &Map<String, Value>) -> Vec<&str> {
    let lists = ["scope", "scp"].map(|name| words(claims.get(name)).unwrap_or_default());
    lists
        .into_iter()
        .flatten()
        .flat_map(str::split_ascii_whitespace)
        .collect()
}

/// Groups of the bearer: `groups` is a text or a list of texts.
pub(crate) fn groups(claims: &Map<String, Value>) -> Vec<String> {
    let groups = words(claims.get("groups")).unwrap_or_default();
    groups.into_iter().map(str::to_owned).collect()
}

/// A text, or a list of texts.
fn words(value: Option<&Value>) -> Option<Vec<&str>> {
    match value? {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ClaimError, ClaimRules, check_claims, groups};
    use serde_json::{Value, json};
    use std::time::Duration;

    const NOW: u64 = 1_000_000;

    fn rules() -> ClaimRules {
        ClaimRules {
            issuer: "https://issuer".to_owned(),
            audiences: vec!["sutler".to_owned(), "other".to_owned()],
            scopes: vec!["broker".to_owned(), "write".to_owned()],
            skew: Duration::from_secs(60),
            name_claim: "sub".to_owned(),
        }
    }

    /// The verdict on good claims with these changes; null removes a claim.
    fn verdict(changes: Value) -> Result<String, ClaimError> {
        let mut claims = json!({
            "iss": "https://issuer", "aud": "sutler", "sub": "cf", "exp": NOW + 300,
            "iat": NOW, "scope": "broker write",
        });
        let claims = claims.as_object_mut().expect("an object");
        for (name, value) in changes.as_object().expect("an object") {
            match value {
                Value::Null => claims.remove(name),
                value => claims.insert(name.clone(), value.clone()),
            };
        }
        check_claims(claims, &rules(), NOW)
    }

    #[test]
    fn good_claims_name_their_caller() {
        for changes in [
            json!({}),
            json!({ "aud": ["x", "other"] }),
            json!({ "exp": NOW - 59 }),
            json!({ "exp": NOW as f64 + 0.5 }),
            json!({ "nbf": NOW + 60, "iat": NOW + 60 }),
            json!({ "iat": null }),
            json!({ "scope": null, "scp": ["write", "broker", "more"] }),
            json!({ "scope": "broker", "scp": "write" }),
            json!({ "scope": ["broker write"] }),
        ] {
            assert_eq!(verdict(changes.clone()), Ok("cf".to_owned()), "{changes}");
        }
    }

    #[test]
    fn groups_are_a_text_or_a_list_of_texts() {
        let groups_of = |claims: Value| groups(claims.as_object().expect("an object"));
        assert_eq!(groups_of(json!({ "groups": ["a", "b c"] })), ["a", "b c"]);
        assert_eq!(groups_of(json!({ "groups": "a" })), ["a"]);
        for claims in [
            json!({}),
            json!({ "groups": 7 }),
            json!({ "groups": ["a", 1] }),
        ] {
            assert!(groups_of(claims.clone()).is_empty(), "{claims}");
        }
    }

    #[test]
    fn any_wrong_claim_refuses() {
        let cases = [
            (json!({ "iss": null }), ClaimError::Issuer),
            (json!({ "iss": "https://issuer/" }), ClaimError::Issuer),
            (json!({ "iss": ["https://issuer"] }), ClaimError::Issuer),
            (json!({ "aud": null }), ClaimError::Audience),
            (json!({ "aud": "Sutler" }), ClaimError::Audience),
            (json!({ "aud": [] }), ClaimError::Audience),
            (json!({ "aud": ["sutler", 1] }), ClaimError::Audience),
            (json!({ "aud": { "sutler": true } }), ClaimError::Audience),
            (json!({ "exp": null }), ClaimError::NoExpiry),
            (json!({ "exp": NOW - 60 }), ClaimError::Expired),
            (json!({ "exp": 0 }), ClaimError::Expired),
            (json!({ "exp": "1e9" }), ClaimError::Time),
            (json!({ "exp": -1 }), ClaimError::Time),
            (json!({ "nbf": NOW + 61 }), ClaimError::NotYet),
            (json!({ "iat": NOW + 61 }), ClaimError::NotYet),
            (json!({ "iat": "now" }), ClaimError::Time),
            (json!({ "sub": null }), ClaimError::Name),
            (json!({ "sub": "" }), ClaimError::Name),
            (json!({ "sub": 7 }), ClaimError::Name),
            (json!({ "sub": "a\nb" }), ClaimError::Name),
            (json!({ "sub": "x".repeat(257) }), ClaimError::Name),
            (json!({ "scope": "broker" }), ClaimError::Scope),
            (json!({ "scope": "brokerwrite" }), ClaimError::Scope),
            (json!({ "scope": null }), ClaimError::Scope),
            (json!({ "scope": null, "exp": 1 }), ClaimError::Expired),
        ];
        for (changes, fault) in cases {
            assert_eq!(verdict(changes.clone()), Err(fault), "{changes}");
        }
    }
}
