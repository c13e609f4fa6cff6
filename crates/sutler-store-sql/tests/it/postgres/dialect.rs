//! As much of PostgreSQL's protocol as the wire of the tests needs.

use crate::proxy::{Dialect, Said};
use std::collections::HashSet;

/// A connection's own state. After its first message every one begins with a letter and a length.
#[derive(Default)]
pub(crate) struct PgDialect {
    begun: bool,
    /// Names of prepared statements that commit.
    commits: HashSet<Vec<u8>>,
}

impl Dialect for PgDialect {
    fn fresh() -> Self {
        Self::default()
    }

    fn client(&mut self, bytes: &[u8]) -> Option<(usize, Said)> {
        if !self.begun {
            let length = length(bytes)?;
            self.begun = true;
            return Some((length, Said::Other));
        }
        let length = 1 + length(bytes.get(1..)?)?;
        let body = bytes.get(5..length)?;
        let mut words = body.split(|byte| *byte == 0);
        let said = match bytes.first()? {
            // Parse: the name, then the text.
            b'P' => {
                let name = words.next()?.to_vec();
                let text = words.next()?;
                if text.starts_with(b"SELECT sutler_commit") {
                    self.commits.insert(name);
                }
                Said::Other
            }
            // Bind: the portal, then the statement.
            b'B' if self.commits.contains(words.nth(1)?) => Said::Commit,
            b'S' | b'Q' => Said::Waits,
            _ => Said::Other,
        };
        Some((length, said))
    }

    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let length = 1 + length(bytes.get(1..)?)?;
        Some((length, *bytes.first()? == b'Z'))
    }
}

/// The length that stands here, if so much is there.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    (bytes.len() >= length).then_some(length)
}
