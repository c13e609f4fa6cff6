//! The part of the protocol of MySQL that the proxy needs, and the statement of a commit.
//!
//! Every packet begins with its length in three bytes and its number in one; a command is number 0.

use super::{Dialect, Message};
use std::collections::HashMap;

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const MORE_FOLLOWS: u16 = 0x0008;
/// Beginning of a commit of the store.
const COMMIT: &[u8] = b"CALL sutler_commit";
/// Maximum length of the recorded text of a statement.
const WORDS: usize = 60;

/// Next part of a response.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum NextReply {
    #[default]
    Head,
    Columns(u8),
    Rows,
}

/// State of one connection.
#[derive(Default)]
pub struct MySqlDialect {
    next: NextReply,
    /// Text of a statement that is being prepared; the response contains its number.
    preparing: Option<Vec<u8>>,
    /// Texts of prepared statements, by number.
    prepared: HashMap<[u8; 4], Vec<u8>>,
}

impl Dialect for MySqlDialect {
    fn fresh() -> Self {
        Self::default()
    }

    fn client(&mut self, bytes: &[u8]) -> Option<Message> {
        let (length, number, body) = packet(bytes)?;
        let mut message = Message {
            length,
            ..Message::default()
        };
        if number != 0 {
            return Some(message);
        }
        self.next = NextReply::Head;
        match *body.first()? {
            QUERY => message.asks = Some(short_text(&body[1..])),
            PREPARE => {
                self.preparing = Some(body[1..].to_vec());
                message.asks = Some(format!("prepare {}", short_text(&body[1..])));
            }
            EXECUTE => {
                let text = self.prepared.get(body.get(1..5)?);
                let text = text.map(Vec::as_slice).unwrap_or_default();
                message.commits = text.starts_with(COMMIT);
                message.asks = Some(short_text(text));
            }
            _ => {}
        }
        Some(message)
    }

    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let (length, _, body) = packet(bytes)?;
        let first = *body.first()?;
        if first == 0
            && let Some(text) = self.preparing.take()
        {
            self.prepared.insert(body.get(1..5)?.try_into().ok()?, text);
            return Some((length, false));
        }
        let ended = match (self.next, first) {
            (NextReply::Head, 0xff) => true,
            (NextReply::Head, 0) => status(body) & MORE_FOLLOWS == 0,
            (NextReply::Head, columns) => {
                self.next = NextReply::Columns(columns);
                false
            }
            (NextReply::Columns(left), _) => {
                self.next = if left > 1 {
                    NextReply::Columns(left - 1)
                } else {
                    NextReply::Rows
                };
                false
            }
            (NextReply::Rows, 0xfe | 0xff) => {
                self.next = NextReply::Head;
                first == 0xff || status(body) & MORE_FOLLOWS == 0
            }
            (NextReply::Rows, _) => false,
        };
        Some((length, ended))
    }
}

fn short_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(WORDS)]).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first whole packet: its length, number and content.
fn packet(bytes: &[u8]) -> Option<(usize, u8, &[u8])> {
    let [a, b, c, number] = *bytes.first_chunk()?;
    let length = 4 + u32::from_le_bytes([a, b, c, 0]) as usize;
    Some((length, number, bytes.get(4..length)?))
}

/// Status flags, after two length-encoded numbers.
fn status(body: &[u8]) -> u16 {
    match body.get(3..5) {
        Some(flags) => u16::from_le_bytes([flags[0], flags[1]]),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_of(body: &[u8]) -> Vec<u8> {
        let length = u8::try_from(body.len()).expect("short");
        [&[length, 0, 0, 0], body].concat()
    }

    #[test]
    fn a_prepared_commit_is_known_by_its_number() {
        let mut dialect = MySqlDialect::fresh();
        let prepare = packet_of(b"\x16CALL sutler_commit(?)");
        let asks = dialect.client(&prepare).expect("whole").asks;
        assert_eq!(asks.as_deref(), Some("prepare CALL sutler_commit(?)"));
        let answer = packet_of(&[0, 7, 0, 0, 0, 1, 0]);
        assert_eq!(dialect.server(&answer), Some((answer.len(), false)));
        let execute = packet_of(&[EXECUTE, 7, 0, 0, 0, 0]);
        let message = dialect.client(&execute).expect("whole");
        assert!(message.commits);
        let other = packet_of(&[EXECUTE, 8, 0, 0, 0, 0]);
        assert!(!dialect.client(&other).expect("whole").commits);
        assert_eq!(dialect.client(&execute[..3]), None, "not yet whole");
    }
}
