//! The part of the protocol of MongoDB that the proxy needs: the end of a message, and its command.
//! Messages that drivers send by themselves (greetings, streams) are not counted.

use super::{Dialect, Message};

/// Opcode of a message with a command; others are legacy greetings.
const COMMAND: i32 = 2013;
/// Bytes before the document of the command: header, flags, kind of the first section.
const HEAD: usize = 21;
/// Commands that are not counted.
const UNASKED: [&str; 8] = [
    "hello",
    "isMaster",
    "ismaster",
    "ping",
    "getMore",
    "endSessions",
    "saslStart",
    "saslContinue",
];

/// Stateless: every message is self-contained.
#[derive(Default)]
pub struct MongoDialect;

impl Dialect for MongoDialect {
    fn fresh() -> Self {
        Self
    }

    fn client(&mut self, bytes: &[u8]) -> Option<Message> {
        let length = length(bytes)?;
        let name = command(bytes.get(..length)?).unwrap_or_default();
        Some(Message {
            length,
            commits: name == "commitTransaction",
            asks: (!name.is_empty() && !UNASKED.contains(&name)).then(|| name.to_owned()),
        })
    }

    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        Some((length(bytes)?, true))
    }
}

/// The length at the beginning, if it is complete.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    (bytes.len() >= length).then_some(length)
}

/// Name of a command: the first field of its document.
fn command(message: &[u8]) -> Option<&str> {
    let code = i32::from_le_bytes(message.get(12..16)?.try_into().ok()?);
    let fields = message.get(HEAD + 5..).filter(|_| code == COMMAND)?;
    let name = fields.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str) -> Vec<u8> {
        let mut message = vec![0; 12];
        message.extend(COMMAND.to_le_bytes());
        message.extend([0; HEAD - 16 + 4]);
        message.push(16);
        message.extend(name.as_bytes());
        message.extend([0, 1, 0, 0, 0, 0]);
        let length = i32::try_from(message.len()).expect("short");
        message[..4].copy_from_slice(&length.to_le_bytes());
        message
    }

    #[test]
    fn a_commit_is_known_by_its_name() {
        let commit = message("commitTransaction");
        let parsed = MongoDialect.client(&commit).expect("whole");
        assert!(parsed.commits && parsed.length == commit.len());
        assert_eq!(MongoDialect.client(&commit[..9]), None, "not yet whole");
        let other = MongoDialect.client(&message("bulkWrite")).expect("whole");
        assert_eq!(other.asks.as_deref(), Some("bulkWrite"));
        let hello = MongoDialect.client(&message("hello")).expect("whole");
        assert_eq!(hello.asks, None);
    }
}
