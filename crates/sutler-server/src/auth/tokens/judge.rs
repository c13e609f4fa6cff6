//! Whether the claims of a token let its bearer in: pure, the time is given.
//!
//! Its signature was checked before (`tokens.rs`). Which claim was wrong is for the log, never for the
//! caller.

use serde_json::{Map, Value};
use std::time::Duration;

/// Longest name of a caller, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// What an issuer's tokens must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub issuer: String,
    /// One of them must be meant.
    pub audiences: Vec<String>,
    /// All of them must be granted.
    pub scopes: Vec<String>,
    /// How far clocks may be apart.
    pub skew: Duration,
    /// The claim that names the caller.
    pub name_claim: String,
}

/// What is wrong with a token's claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimFault {
    Issuer,
    Audience,
    NoExpiry,
    Expired,
    NotYet,
    /// A time that is none.
    Time,
    Name,
    Scope,
}

/// The caller's name, or what is wrong. `now` is in seconds since 1970. A missing scope is found last:
/// it is the one fault that a caller is told.
pub(crate) fn judge(
    claims: &Map<String, Value>,
    rules: &Rules,
    now: u64,
) -> Result<String, ClaimFault> {
    if claims.get("iss").and_then(Value::as_str) != Some(&rules.issuer) {
        return Err(ClaimFault::Issuer);
    }
    let audiences = words(claims.get("aud")).ok_or(ClaimFault::Audience)?;
    if !rules
        .audiences
        .iter()
        .any(|it| audiences.contains(&it.as_str()))
    {
        return Err(ClaimFault::Audience);
    }
    judge_times(claims, rules.skew, now)?;
    let name = claims.get(&rules.name_claim).and_then(Value::as_str);
    let usable = |name: &&str| {
        (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control)
    };
    let name = name.filter(usable).ok_or(ClaimFault::Name)?;
    let granted = granted(claims);
    if !rules.scopes.iter().all(|it| granted.contains(&it.as_str())) {
        return Err(ClaimFault::Scope);
    }
    Ok(name.to_owned())
}

fn judge_times(claims: &Map<String, Value>, skew: Duration, now: u64) -> Result<(), ClaimFault> {
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(time) if time.is_finite() && time >= 0.0 => Ok(Some(time)),
            Some(_) | None => Err(ClaimFault::Time),
        },
    };
    let skew = skew.as_secs_f64();
    let now = Duration::from_secs(now).as_secs_f64();
    let expires = time("exp")?.ok_or(ClaimFault::NoExpiry)?;
    if now >= expires + skew {
        return Err(ClaimFault::Expired);
    }
    for start in [time("nbf")?, time("iat")?].into_iter().flatten() {
        if now + skew < start {
            return Err(ClaimFault::NotYet);
        }
    }
    Ok(())
}

/// `scope` is a text of words, `scp` a list, or the other way round.
fn granted(claims: &Map<String, Value>) -> Vec<&str> {
    let lists = ["scope", "scp"].map(|name| words(claims.get(name)).unwrap_or_default());
    lists
        .into_iter()
        .flatten()
        .flat_map(str::split_ascii_whitespace)
        .collect()
}

/// The groups of the bearer: `groups` is a text or a list of texts.
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
    use super::{ClaimFault, Rules, groups, judge};
    use serde_json::{Value, json};
    use std::time::Duration;

    const NOW: u64 = 1_000_000;

    fn rules() -> Rules {
        Rules {
            issuer: "https://issuer".to_owned(),
            audiences: vec!["sutler".to_owned(), "other".to_owned()],
            scopes: vec!["broker".to_owned(), "write".to_owned()],
            skew: Duration::from_secs(60),
            name_claim: "sub".to_owned(),
        }
    }

    /// The verdict on good claims with some of them changed; null takes one away.
    fn verdict(changes: Value) -> Result<String, ClaimFault> {
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
        judge(claims, &rules(), NOW)
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
            (json!({ "iss": null }), ClaimFault::Issuer),
            (json!({ "iss": "https://issuer/" }), ClaimFault::Issuer),
            (json!({ "iss": ["https://issuer"] }), ClaimFault::Issuer),
            (json!({ "aud": null }), ClaimFault::Audience),
            (json!({ "aud": "Sutler" }), ClaimFault::Audience),
            (json!({ "aud": [] }), ClaimFault::Audience),
            (json!({ "aud": ["sutler", 1] }), ClaimFault::Audience),
            (json!({ "aud": { "sutler": true } }), ClaimFault::Audience),
            (json!({ "exp": null }), ClaimFault::NoExpiry),
            (json!({ "exp": NOW - 60 }), ClaimFault::Expired),
            (json!({ "exp": 0 }), ClaimFault::Expired),
            (json!({ "exp": "1e9" }), ClaimFault::Time),
            (json!({ "exp": -1 }), ClaimFault::Time),
            (json!({ "nbf": NOW + 61 }), ClaimFault::NotYet),
            (json!({ "iat": NOW + 61 }), ClaimFault::NotYet),
            (json!({ "iat": "now" }), ClaimFault::Time),
            (json!({ "sub": null }), ClaimFault::Name),
            (json!({ "sub": "" }), ClaimFault::Name),
            (json!({ "sub": 7 }), ClaimFault::Name),
            (json!({ "sub": "a\nb" }), ClaimFault::Name),
            (json!({ "sub": "x".repeat(257) }), ClaimFault::Name),
            (json!({ "scope": "broker" }), ClaimFault::Scope),
            (json!({ "scope": "brokerwrite" }), ClaimFault::Scope),
            (json!({ "scope": null }), ClaimFault::Scope),
            (json!({ "scope": null, "exp": 1 }), ClaimFault::Expired),
        ];
        for (changes, fault) in cases {
            assert_eq!(verdict(changes.clone()), Err(fault), "{changes}");
        }
    }
}
