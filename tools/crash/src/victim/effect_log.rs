//! The victim's log: one line for each effect and for each durable change.
//!
//! Lines are appended atomically, so their order is the order of the events. Written by the
//! victim, checked by `effects.rs`.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectEntry {
    /// A step of an operation had its external effect.
    Effect {
        /// Operation.
        operation: String,
        /// Verb.
        verb: String,
        /// Step, from 1.
        step: u32,
        /// Attempt, as passed to the hook.
        attempt: u32,
        /// Number of the start of the victim.
        boot: u64,
    },
    /// The store has committed the memos of an operation.
    Memo {
        /// Operation.
        operation: String,
        /// Number of the start of the victim.
        boot: u64,
    },
    /// The store has committed the end of an operation.
    Done {
        /// Operation.
        operation: String,
        /// Number of the start of the victim.
        boot: u64,
    },
}

impl fmt::Display for EffectEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Effect {
                operation,
                verb,
                step,
                attempt,
                boot,
            } => {
                write!(f, "effect {operation} {verb} {step} {attempt} {boot}")
            }
            Self::Memo { operation, boot } => write!(f, "memo {operation} {boot}"),
            Self::Done { operation, boot } => write!(f, "done {operation} {boot}"),
        }
    }
}

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a line of the ledger: {0:?}")]
pub struct ParseError(String);

impl FromStr for EffectEntry {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        let words: Vec<&str> = line.split(' ').collect();
        let wrong = || ParseError(line.to_owned());
        let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
        let small = |word: &str| word.parse::<u32>().map_err(|_| wrong());
        match words.as_slice() {
            ["effect", operation, verb, step, attempt, boot] => Ok(Self::Effect {
                operation: (*operation).to_owned(),
                verb: (*verb).to_owned(),
                step: small(step)?,
                attempt: small(attempt)?,
                boot: number(boot)?,
            }),
            ["memo", operation, boot] => Ok(Self::Memo {
                operation: (*operation).to_owned(),
                boot: number(boot)?,
            }),
            ["done", operation, boot] => Ok(Self::Done {
                operation: (*operation).to_owned(),
                boot: number(boot)?,
            }),
            _ => Err(wrong()),
        }
    }
}

/// Writer of the log.
#[derive(Debug)]
pub struct EffectLog {
    file: File,
    boot: u64,
}

impl EffectLog {
    /// Appends to a log, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, boot: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file, boot })
    }

    /// Number of the start of the victim.
    pub fn boot(&self) -> u64 {
        self.boot
    }

    /// Writes a line that survives even a power cut.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn effect(&self, entry: &EffectEntry) -> io::Result<()> {
        self.note(entry)?;
        self.file.sync_data()
    }

    /// Writes a line that survives the process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&self, entry: &EffectEntry) -> io::Result<()> {
        // One call, so that a kill leaves all of it or nothing.
        (&self.file).write_all(format!("{entry}\n").as_bytes())
    }
}
