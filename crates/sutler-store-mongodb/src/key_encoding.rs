//! Encoding of keys, term names and term values as text that MongoDB sorts as bytes.
//!
//! MongoDB sorts binary data by its length first, so keys cannot be binary data. Text without
//! a collation is sorted by its code points: so every byte is written as the character of that number,
//! and lists are in the order of the bytes. All text for lookups, lists and indexes is built here.

use sutler_journal::Key;

/// Separates the parts of a term's entry.
const END: char = '\0';
/// The character after [`END`].
const AFTER_END: char = '\u{1}';
/// Sorts above every character that encodes a byte.
const ABOVE: char = '\u{100}';

/// Bytes as text in the same order.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Decodes [`text`]; `None` if the text is not an encoding of bytes.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars()
        .map(|it| u8::try_from(u32::from(it)).ok())
        .collect()
}

/// The text of a key.
pub(crate) fn key(key: &Key) -> String {
    text(key.as_bytes())
}

/// The text above everything with this prefix.
pub(crate) fn above(prefix: &str) -> String {
    format!("{prefix}{ABOVE}")
}

/// The field of a term; names may contain any character.
pub(crate) fn field(name: &str) -> String {
    let mut field = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => field.push(byte.into()),
            _ => field.push_str(&format!("%{byte:02x}")),
        }
    }
    field
}

/// The name of the term in a field; `None` if it is not an encoded name.
pub(crate) fn name(field: &str) -> Option<String> {
    let mut name = Vec::with_capacity(field.len());
    let mut rest = field.bytes();
    while let Some(byte) = rest.next() {
        name.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            _ => byte,
        });
    }
    String::from_utf8(name).ok()
}

/// Value of that field: realm, kind, value and key, sorted in this order.
pub(crate) fn entry(realm: &str, kind: &str, value: &[u8], key: &[u8]) -> String {
    format!("{}{END}{}", value_of(realm, kind, value), text(key))
}

/// The smallest entry with at least this value.
pub(crate) fn first_entry(realm: &str, kind: &str, value: &[u8]) -> String {
    format!("{}{END}", value_of(realm, kind, value))
}

/// The text above every entry with at most this value.
pub(crate) fn past_entry(realm: &str, kind: &str, value: &[u8]) -> String {
    format!("{}{AFTER_END}", value_of(realm, kind, value))
}

/// The value in an entry; `None` if it is not an encoded entry.
pub(crate) fn value(entry: &str) -> Option<Vec<u8>> {
    let moved = entry.split(END).nth(2)?;
    let byte = |it: char| u8::try_from(u32::from(it).checked_sub(1)?).ok();
    moved.chars().map(byte).collect()
}

/// The bytes of a value are increased by one, so that the end of the value sorts before all of them.
fn value_of(realm: &str, kind: &str, value: &[u8]) -> String {
    let mut place = text(realm.as_bytes());
    place.push(END);
    place.push_str(&text(kind.as_bytes()));
    place.push(END);
    let moved = value.iter().map(|byte| u32::from(*byte) + 1);
    place.extend(moved.filter_map(char::from_u32));
    place
}

#[cfg(test)]
mod tests {
    use super::{above, bytes, entry, field, first_entry, past_entry, text, value};

    const VALUES: [&[u8]; 9] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\x01",
        b"\x01",
        b"a",
        b"a\0b",
        b"\x7f\x80",
        b"\xff\xff",
    ];

    #[test]
    fn text_sorts_like_its_bytes_and_round_trips() {
        for value in VALUES {
            assert_eq!(bytes(&text(value)).as_deref(), Some(value));
        }
        assert!(VALUES.map(text).is_sorted());
        assert_eq!(bytes("\u{100}"), None);
    }

    #[test]
    fn a_prefix_ends_after_everything_that_begins_with_it() {
        let prefix = text(b"a\xff");
        assert!(text(b"a\xff\xff\xff") < above(&prefix));
        assert!(text(b"b") > above(&prefix));
    }

    #[test]
    fn entries_are_in_the_order_of_values_then_keys() {
        let mut entries = Vec::new();
        for value in VALUES {
            for key in ["", "a", "b"] {
                entries.push(entry("r", "k", value, key.as_bytes()));
            }
        }
        assert!(entries.is_sorted());
        for found in VALUES {
            let entry = entry("r", "k", found, b"r\0k\0key");
            assert_eq!(value(&entry).as_deref(), Some(found));
        }
    }

    #[test]
    fn a_range_takes_its_values_and_no_neighbours() {
        for (n, from) in VALUES.iter().enumerate() {
            for (m, to) in VALUES.iter().enumerate() {
                let range = first_entry("r", "k", from)..past_entry("r", "k", to);
                for (i, value) in VALUES.iter().enumerate() {
                    let found = range.contains(&entry("r", "k", value, b"key"));
                    assert_eq!(
                        found,
                        (n..=m).contains(&i),
                        "{value:?} in {from:?}..={to:?}"
                    );
                }
            }
        }
        let other = entry("r", "kk", b"a", b"key");
        assert!(!(first_entry("r", "k", b"")..past_entry("r", "k", b"\xff")).contains(&other));
    }

    #[test]
    fn any_name_is_one_field() {
        assert_eq!(field("plan"), "plan");
        assert_eq!(field("a.b$%"), "a%2eb%24%25");
        for name in ["plan", "a.b$%", "ä", ""] {
            assert_eq!(super::name(&field(name)).as_deref(), Some(name));
        }
        assert_eq!(super::name("%2"), None);
    }
}
