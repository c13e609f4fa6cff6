//! Encoding of numbers and bytes inside values. Not here: the values (`rows.rs`).

use sutler_journal::StoreError;
use uuid::Uuid;

/// Appends a number in groups of seven bits, the lowest first; the top bit marks that more follow.
pub(crate) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends bytes with a length prefix.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Reads a value from start to end. Returns `None` for unreadable data.
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub(crate) fn uuid(&mut self) -> Option<Uuid> {
        Uuid::from_slice(self.take(16)?).ok()
    }

    pub(crate) fn time(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Error for a value that was not written by this store.
pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::new(format!(
        "{what} in etcd cannot be read back: look for other programs that write below the store's prefix, or restore a snapshot"
    ))
}

#[cfg(test)]
mod tests {
    use super::{ByteReader, put_bytes, put_number};

    #[test]
    fn numbers_and_bytes_come_back_as_they_were_put() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut encoded = Vec::new();
        for number in numbers {
            put_number(&mut encoded, number);
        }
        put_bytes(&mut encoded, b"");
        put_bytes(&mut encoded, &[7; 300]);
        let mut reader = ByteReader(&encoded);
        for number in numbers {
            assert_eq!(reader.number(), Some(number));
        }
        assert_eq!(reader.bytes(), Some(&b""[..]));
        assert_eq!(reader.bytes(), Some(&[7; 300][..]));
        assert!(reader.is_empty());
        assert_eq!(reader.number(), None);
    }

    #[test]
    fn truncated_values_are_not_read() {
        assert_eq!(ByteReader(&[5, 1, 2]).bytes(), None);
        assert_eq!(ByteReader(&[0x80]).number(), None);
        assert_eq!(ByteReader(&[0; 15]).uuid(), None);
    }
}
