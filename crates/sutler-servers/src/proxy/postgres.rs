//! The part of the protocol of PostgreSQL that the proxy needs, and the statement of a commit.

use super::{Dialect, Message};
use std::collections::HashMap;

/// Beginning of a commit of the store.
const COMMIT: &[u8] = b"SELECT sutler_commit";
/// Maximum length of the recorded text of a statement.
const WORDS: usize = 60;

/// State of one connection. After the first message, every message begins with a letter and a length.
#[derive(Default)]
pub struct PostgresDialect {
    begun: bool,
    /// Texts of prepared statements, by name.
    prepared: HashMap<Vec<u8>, Vec<u8>>,
    /// Statements since the client last waited.
    statement: Vec<u8>,
}

impl Dialect for PostgresDialect {
    fn fresh() -> Self {
        Self::default()
    }

    fn client(&mut self, bytes: &[u8]) -> Option<Message> {
        let mut message = Message::default();
        if !self.begun {
            message.length = length(bytes)?;
            self.begun = true;
            return Some(message);
        }
        message.length = 1 + length(bytes.get(1..)?)?;
        let body = bytes.get(5..message.length)?;
        let mut words = body.split(|byte| *byte == 0);
        match bytes.first()? {
            // Parse: name, then text.
            b'P' => {
                let name = words.next()?.to_vec();
                self.statement = words.next()?.to_vec();
                self.prepared.insert(name, self.statement.clone());
            }
            // Bind: portal, then statement.
            b'B' => {
                let text = self.prepared.get(words.nth(1)?);
                self.statement = text.cloned().unwrap_or_default();
                message.commits = self.statement.starts_with(COMMIT);
            }
            b'Q' => {
                let text = words.next()?;
                message.asks = Some(short_text(text));
            }
            b'S' => message.asks = Some(short_text(&self.statement)),
            _ => {}
        }
        Some(message)
    }

    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let length = 1 + length(bytes.get(1..)?)?;
        Some((length, *bytes.first()? == b'Z'))
    }
}

fn short_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(WORDS)]).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The length at this position, if it is complete.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    (bytes.len() >= length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        [&[letter], &length[..], body].concat()
    }

    #[test]
    fn a_prepared_commit_is_known_wherever_it_is_bound() {
        let mut dialect = PostgresDialect::fresh();
        let hello = [0, 0, 0, 8, 0, 3, 0, 0];
        assert_eq!(dialect.client(&hello).map(|it| it.length), Some(8));
        let parse = message(b'P', b"s1\0SELECT sutler_commit($1)\0\0\0");
        assert!(!dialect.client(&parse).expect("whole").commits);
        for _ in 0..2 {
            let bind = dialect.client(&message(b'B', b"\0s1\0\0\0"));
            assert!(bind.expect("whole").commits);
            let sync = dialect.client(&message(b'S', b"")).expect("whole");
            assert_eq!(sync.asks.as_deref(), Some("SELECT sutler_commit($1)"));
        }
        assert_eq!(dialect.client(&parse[..7]), None, "not yet whole");
    }
}
