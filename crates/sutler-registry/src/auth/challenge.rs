//! Parses challenges: the `WWW-Authenticate` headers of a 401. Pure.

/// Maximum length of a header, in bytes.
const HEADER_BYTES_MAX: usize = 8 * 1024;

/// Authentication scheme that a registry requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password.
    Basic,
    /// A token from the service at `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// The preferred challenge of all headers: a token, if that is possible.
pub(crate) fn best<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut found: Vec<Challenge> = headers.filter_map(read).collect();
    let token = |it: &Challenge| matches!(it, Challenge::Bearer { .. });
    let at = found.iter().position(token).unwrap_or(0);
    (!found.is_empty()).then(|| found.swap_remove(at))
}

fn read(header: &str) -> Option<Challenge> {
    if header.len() > HEADER_BYTES_MAX {
        return None;
    }
    let header = header.trim();
    let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let fields = fields(rest);
    let field = |name: &str| {
        let found = fields.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone())
    };
    Some(Challenge::Bearer {
        realm: field("realm")?,
        service: field("service"),
        scope: field("scope"),
    })
}

/// Parses `a="x, y", b=z`: quoted values may contain commas.
fn fields(text: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => until_quote(quoted),
            None => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        let name = name.trim_matches(|it: char| it == ',' || it.is_whitespace());
        fields.push((name.to_owned(), value));
        rest = left;
    }
    fields
}

/// Splits a quoted value, without its backslashes, from the rest.
fn until_quote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => {
                value.push(letter);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &text[at + 1..]),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        })
    }

    #[test]
    fn a_bearer_challenge_has_all_its_fields() {
        let header = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#;
        let expected = bearer(
            "https://auth.example/token",
            Some("registry.example"),
            Some("repository:a/b:pull,push"),
        );
        assert_eq!(read(header), expected);
    }

    #[test]
    fn spaces_case_and_bare_values_do_not_matter() {
        let header = r#"bearer  Realm=https://a/t , SERVICE = "b\"c""#;
        assert_eq!(read(header), bearer("https://a/t", Some("b\"c"), None));
    }

    #[test]
    fn a_token_is_preferred_and_unknown_schemes_are_skipped() {
        let headers = ["Negotiate", "Basic realm=\"x\"", "Bearer realm=\"y\""];
        assert_eq!(best(headers.into_iter()), bearer("y", None, None));
        let headers = ["Digest realm=\"x\"", "Basic realm=\"x\""];
        assert_eq!(best(headers.into_iter()), Some(Challenge::Basic));
        assert_eq!(best(["", "Bearer service=\"x\""].into_iter()), None);
    }
}
