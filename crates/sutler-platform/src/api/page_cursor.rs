//! The position in a list as text: callers get it with a page and send it back for the next one.
//!
//! It is opaque, and not secret: it has what the page showed last. One that comes from elsewhere leads to no other list,
//! because a list has its own bounds.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sutler_journal::{Key, Position};

/// A position as text.
pub(crate) fn cursor(position: &Position) -> String {
    let length = u16::try_from(position.value.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(&position.value);
    bytes.extend_from_slice(position.key.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position that a text stands for.
pub(crate) fn position(text: &str) -> Option<Position> {
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
    use super::{cursor, position};
    use crate::records::PlatformKeys;
    use sutler_journal::Position;
    use uuid::Uuid;

    #[test]
    fn a_position_is_read_as_it_was_written_and_other_texts_are_none() {
        let key = PlatformKeys::default().instance("app", Uuid::nil());
        for value in [&b""[..], b"app\0db"] {
            let value = value.to_vec();
            let key = key.clone();
            let written = Position { value, key };
            assert_eq!(position(&cursor(&written)), Some(written));
        }
        for text in ["", "x", "AAAA", "!!!", "____", "AAAAAA"] {
            assert_eq!(position(text), None, "{text}");
        }
    }
}
