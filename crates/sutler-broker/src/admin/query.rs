//! Query of a list: filters, limit and position. No I/O.
//!
//! An unknown parameter is an error, so that a misspelt filter is never ignored.

use super::response::AdminError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use sutler_journal::{Key, OperationId, Position};

/// Default and maximum number of items on a page.
pub(crate) const LIMIT_DEFAULT: usize = 50;
pub(crate) const LIMIT_MAX: usize = 200;
/// Maximum length of a query, in bytes.
const QUERY_BYTES_MAX: usize = 8 * 1024;

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub realm: Option<String>,
    pub limit: usize,
    pub after: Option<String>,
    filters: BTreeMap<&'static str, String>,
}

impl Query {
    /// Parses a query with these optional parameters.
    pub(crate) fn parse(raw: &str, known: Vec<&'static str>) -> Result<Self, AdminError> {
        if raw.len() > QUERY_BYTES_MAX {
            return Err(AdminError::invalid(
                "The query is too long; leave filters out.",
            ));
        }
        let mut filters = BTreeMap::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name)?;
            let Some(own) = known.iter().find(|it| **it == name) else {
                let sentence = format!(
                    "The query knows no such parameter; use {}.",
                    known.join(", ")
                );
                return Err(AdminError::invalid(sentence));
            };
            if filters.insert(*own, decoded(value)?).is_some() {
                return Err(AdminError::invalid(format!("Name {own} only once.")));
            }
        }
        let limit = match filters.remove("limit") {
            None => LIMIT_DEFAULT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|limit| (1..=LIMIT_MAX).contains(limit))
                .ok_or_else(|| {
                    AdminError::invalid(format!("limit must be a number from 1 to {LIMIT_MAX}."))
                })?,
        };
        Ok(Self {
            realm: filters.remove("realm"),
            after: filters.remove("after"),
            limit,
            filters,
        })
    }

    /// A filter's value, if it is set.
    pub(crate) fn filter(&self, name: &str) -> Option<&str> {
        self.filters.get(name).map(String::as_str)
    }

    /// A filter with one of these values.
    pub(crate) fn word(&self, name: &str, words: &[&str]) -> Result<Option<&str>, AdminError> {
        match self.filter(name) {
            Some(word) if !words.contains(&word) => Err(AdminError::invalid(format!(
                "{name} must be one of {}.",
                words.join(", ")
            ))),
            other => Ok(other),
        }
    }

    /// Start position in a list of documents.
    pub(crate) fn position(&self) -> Result<Option<Position>, AdminError> {
        self.after
            .as_deref()
            .map(|text| position_of(text).ok_or_else(bad_cursor))
            .transpose()
    }

    /// Start position in a list of operations.
    pub(crate) fn before(&self) -> Result<Option<OperationId>, AdminError> {
        self.after
            .as_deref()
            .map(|text| OperationId::parse(text).ok_or_else(bad_cursor))
            .transpose()
    }
}

fn decoded(text: &str) -> Result<String, AdminError> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| AdminError::invalid("The query is not UTF-8; percent-encode it again."))
}

fn bad_cursor() -> AdminError {
    AdminError::invalid("after is not what a list has handed out as next; begin without it.")
}

/// A position as text, opaque to callers.
pub(crate) fn cursor(position: &Position) -> String {
    let mut bytes = Vec::new();
    let length = u16::try_from(position.value.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&position.value);
    bytes.extend_from_slice(position.key.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn position_of(text: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (value, key) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some(Position {
        value: value.to_vec(),
        key: Key::from_bytes(key).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{LIMIT_DEFAULT, Query, cursor, position_of};
    use sutler_journal::{Key, Kind, Position, Realm};

    fn parse(raw: &str) -> Option<Query> {
        Query::parse(raw, vec!["realm", "limit", "after", "plan"]).ok()
    }

    #[test]
    fn a_misspelt_or_doubled_parameter_is_refused() {
        assert!(parse("plam=small").is_none());
        assert!(parse("plan=a&plan=b").is_none());
        assert!(parse("limit=0").is_none());
        assert!(parse("limit=201").is_none());
        let query = parse("plan=a%20b+c").expect("a good query");
        assert_eq!(query.filter("plan"), Some("a b c"));
        assert_eq!(query.limit, LIMIT_DEFAULT);
    }

    #[test]
    fn a_cursor_is_read_as_its_position_and_other_texts_are_refused() {
        let realm = Realm::new("broker").expect("a realm");
        let key = Key::new(&realm, Kind::new("instance"), &["a/b"]).expect("a key");
        let value = b"small".to_vec();
        let position = Position { value, key };
        assert_eq!(position_of(&cursor(&position)), Some(position));
        for text in ["", "x", "AAAA", "!!!", "____"] {
            assert_eq!(position_of(text), None, "{text}");
        }
    }
}
