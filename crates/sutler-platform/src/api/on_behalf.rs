//! The header by which a front end acts for a person: `Sutler-On-Behalf-Of`.
//!
//! Its value is a JSON object in ASCII, e.g. `{"username": "ada", "uid": "7", "groups": ["dev"]}`; other characters are
//! written as `\u` escapes. Who may send it is decided in `access.rs`.

use super::problem::Problem;
use crate::author::RepresentedPerson;
use axum::http::HeaderMap;

/// The header.
pub(crate) const ON_BEHALF_OF: &str = "sutler-on-behalf-of";
/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 8 * 1024;
/// Longest user name and longest uid, in bytes, as of callers.
const NAME_BYTES_MAX: usize = 256;

/// The person for whom a request is sent, if the header says so.
pub(crate) fn represented_person(
    headers: &HeaderMap,
) -> Result<Option<RepresentedPerson>, Problem> {
    let mut values = headers.get_all(ON_BEHALF_OF).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(_), Some(_)) => return Err(invalid("must be sent once")),
        (Some(value), None) => value,
    };
    if value.len() > VALUE_BYTES_MAX {
        let reason = format!("must not be longer than {VALUE_BYTES_MAX} bytes");
        return Err(invalid(&reason));
    }
    let text = value
        .to_str()
        .map_err(|_| invalid("must be ASCII; write other characters as \\u escapes"))?;
    let person: RepresentedPerson = serde_json::from_str(text).map_err(|error| {
        invalid(&format!(
            "must be a JSON object with username and uid: {error}"
        ))
    })?;
    for (field, text) in [("username", &person.username), ("uid", &person.uid)] {
        let is_usable =
            (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
        if !is_usable {
            let reason = format!(
                "must have a `{field}` of 1 to {NAME_BYTES_MAX} bytes without control characters"
            );
            return Err(invalid(&reason));
        }
    }
    Ok(Some(person))
}

fn invalid(reason: &str) -> Problem {
    Problem::invalid(format!("The header Sutler-On-Behalf-Of {reason}."))
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, ON_BEHALF_OF, VALUE_BYTES_MAX, represented_person};
    use axum::http::{HeaderMap, HeaderValue};
    use serde_json::json;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_str(value).expect("a header");
            headers.append(ON_BEHALF_OF, value);
        }
        headers
    }

    #[test]
    fn a_person_is_read_with_groups_and_attributes() {
        let value = json!({ "username": "Ada", "uid": "7", "groups": ["dev"],
            "extra": { "scopes": ["a", "b"] } });
        let person = represented_person(&headers(&[&value.to_string()])).expect("a person");
        let person = person.expect("the header is there");
        assert_eq!(
            (person.username.as_str(), person.uid.as_str()),
            ("Ada", "7")
        );
        assert_eq!(person.groups, ["dev"]);
        assert_eq!(person.extra["scopes"], ["a", "b"]);
        let escaped = "{\"username\": \"\\u00c4da\", \"uid\": \"7\"}";
        let person = represented_person(&headers(&[escaped])).expect("a person");
        assert_eq!(person.expect("the header is there").username, "Äda");
    }

    #[test]
    fn a_request_without_the_header_is_the_callers_own() {
        assert_eq!(represented_person(&headers(&[])).expect("no header"), None);
    }

    #[test]
    fn what_names_nobody_is_refused() {
        let long_name = json!({ "username": "x".repeat(NAME_BYTES_MAX + 1), "uid": "7" });
        let too_long =
            json!({ "username": "x", "uid": "7", "groups": ["x".repeat(VALUE_BYTES_MAX)] });
        for values in [
            &["ada"][..],
            &["{}"],
            &[r#"{"username": "", "uid": "7"}"#],
            &[r#"{"username": "ada", "uid": ""}"#],
            &[r#"{"username": "a\nb", "uid": "7"}"#],
            &[r#"{"username": "ada", "uid": "7", "admin": true}"#],
            &[r#"{"username": "ada", "uid": 7}"#],
            &[&long_name.to_string()],
            &[&too_long.to_string()],
            &[
                r#"{"username": "a", "uid": "1"}"#,
                r#"{"username": "b", "uid": "2"}"#,
            ],
        ] {
            assert!(represented_person(&headers(values)).is_err(), "{values:?}");
        }
    }
}
