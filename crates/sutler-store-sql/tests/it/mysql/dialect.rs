//! As much of MySQL's protocol as the wire of the tests needs.
//!
//! Every packet begins with its length in three bytes and its number in one; a command is number 0.

use crate::proxy::{Dialect, Said};
use std::collections::HashSet;

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const MORE_FOLLOWS: u16 = 0x0008;

/// Which part of an answer comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Head,
    Columns(u8),
    Rows,
}

/// A connection's own state.
pub(crate) struct MySqlDialect {
    next: Next,
    /// A commit is being prepared: the answer will tell its number.
    preparing: bool,
    /// Numbers of prepared statements that commit.
    commits: HashSet<[u8; 4]>,
}

impl Dialect for MySqlDialect {
    fn fresh() -> Self {
        Self {
            next: Next::Head,
            preparing: false,
            commits: HashSet::new(),
        }
    }

    fn client(&mut self, bytes: &[u8]) -> Option<(usize, Said)> {
        let (length, number, body) = packet(bytes)?;
        if number != 0 {
            return Some((length, Said::Other));
        }
        self.next = Next::Head;
        let said = match *body.first()? {
            QUERY => Said::Waits,
            PREPARE => {
                self.preparing = body[1..].starts_with(b"CALL sutler_commit");
                Said::Waits
            }
            EXECUTE if self.commits.contains(body.get(1..5)?) => Said::CommitAndWaits,
            EXECUTE => Said::Waits,
            _ => Said::Other,
        };
        Some((length, said))
    }

    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let (length, _, body) = packet(bytes)?;
        let first = *body.first()?;
        if self.preparing && first == 0 {
            self.preparing = false;
            self.commits.insert(body.get(1..5)?.try_into().ok()?);
            return Some((length, false));
        }
        let ended = match (self.next, first) {
            (Next::Head, 0xff) => true,
            (Next::Head, 0) => status(body) & MORE_FOLLOWS == 0,
            (Next::Head, columns) => {
                self.next = Next::Columns(columns);
                false
            }
            (Next::Columns(left), _) => {
                self.next = if left > 1 {
                    Next::Columns(left - 1)
                } else {
                    Next::Rows
                };
                false
            }
            (Next::Rows, 0xfe | 0xff) => {
                self.next = Next::Head;
                first == 0xff || status(body) & MORE_FOLLOWS == 0
            }
            (Next::Rows, _) => false,
        };
        Some((length, ended))
    }
}

/// The first whole packet: its length, its number, its content.
fn packet(bytes: &[u8]) -> Option<(usize, u8, &[u8])> {
    let [a, b, c, number] = *bytes.first_chunk()?;
    let length = 4 + u32::from_le_bytes([a, b, c, 0]) as usize;
    Some((length, number, bytes.get(4..length)?))
}

/// The flags behind two small counts.
fn status(body: &[u8]) -> u16 {
    match body.get(3..5) {
        Some(flags) => u16::from_le_bytes([flags[0], flags[1]]),
        None => 0,
    }
}
