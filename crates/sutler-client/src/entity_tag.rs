//! The entity tag of a catalog: what a broker calls its present version (`ETag`).
//!
//! Its text is never interpreted; `request_builder.rs` sends it back in `If-None-Match`.

use crate::wire::Answer;
use serde::{Deserialize, Serialize};

/// Longest entity tag, in bytes: a digest needs 130.
const ENTITY_TAG_BYTES_MAX: usize = 1024;

/// An entity tag, as the broker sent it. Servers that leave out the quotation marks are accepted too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntityTag(String);

/// A text that is not an entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entity tag has 1 to {ENTITY_TAG_BYTES_MAX} visible ASCII characters and is not `*`")]
pub struct EntityTagError;

impl EntityTag {
    /// The tag of an answer; `None` if there is none, or none that can be sent back.
    pub fn of(answer: &Answer) -> Option<Self> {
        Self::try_from(answer.header("ETag")?.to_owned()).ok()
    }

    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EntityTag {
    type Error = EntityTagError;

    fn try_from(text: String) -> Result<Self, EntityTagError> {
        let is_visible = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        let is_tag = (1..=ENTITY_TAG_BYTES_MAX).contains(&text.len())
            && text.bytes().all(is_visible)
            && text.trim() == text
            // In `If-None-Match` this means any version at all.
            && text != "*";
        is_tag.then_some(Self(text)).ok_or(EntityTagError)
    }
}

impl From<EntityTag> for String {
    fn from(tag: EntityTag) -> Self {
        tag.0
    }
}

#[cfg(test)]
mod tests {
    use super::EntityTag;
    use crate::wire::Answer;

    #[test]
    fn a_tag_is_returned_as_the_broker_sent_it() {
        for sent in ["\"v1\"", "W/\"7, 8\"", "unquoted-9f86d081"] {
            let tag = EntityTag::of(&Answer::new(200, &[("ETag", sent)], ""));
            assert_eq!(tag.as_ref().map(EntityTag::as_str), Some(sent));
        }
    }

    #[test]
    fn a_tag_that_cannot_be_sent_back_counts_as_absent() {
        let long = "x".repeat(1025);
        for sent in ["", " ", "*", "a\tb", &long] {
            let answer = Answer::new(200, &[("ETag", sent)], "");
            assert_eq!(EntityTag::of(&answer), None, "{sent:?}");
        }
        assert_eq!(EntityTag::of(&Answer::new(200, &[], "")), None);
    }
}
