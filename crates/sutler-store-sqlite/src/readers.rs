//! Connections that read while the writer writes.
//!
//! A reader sees every commit that was acknowledged before it began. One is taken for each read and
//! returned; point reads hold theirs for microseconds on the caller's own thread. When the file must
//! be opened again, all of them are closed first, and reads wait ([`Readers::until_open`]).

use crate::rows::unreadable;
use crate::schema;
use rusqlite::Connection;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::StoreError;
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum idle readers; each costs some 100 kB.
const IDLE_MAX: usize = 4;

/// Time limit of a read for the file to be opened again.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Whether the file can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It can be read.
    Open,
    /// It is being opened again.
    Reopening,
    /// The store is closed.
    Closed,
}

/// Why no reader is available.
pub(crate) enum ReaderError {
    /// The file is being opened again.
    NotNow,
    /// Anything else.
    Failed(StoreError),
}

impl From<ReaderError> for StoreError {
    fn from(reason: ReaderError) -> Self {
        match reason {
            ReaderError::NotNow => {
                Self::new("the store's file is being opened again after a failed write; try again")
            }
            ReaderError::Failed(cause) => cause,
        }
    }
}

/// All readers of one store.
pub(crate) struct Readers {
    path: PathBuf,
    cache_kib: u32,
    state: Mutex<State>,
    returned: Condvar,
    phase: watch::Sender<Phase>,
}

struct State {
    idle: Vec<Connection>,
    taken: usize,
    phase: Phase,
}

impl Readers {
    pub(crate) fn of(path: PathBuf, cache_kib: u32) -> Self {
        Self {
            path,
            cache_kib,
            state: Mutex::new(State {
                idle: Vec::new(),
                taken: 0,
                phase: Phase::Open,
            }),
            returned: Condvar::new(),
            phase: watch::Sender::new(Phase::Open),
        }
    }

    /// Takes an idle reader, or opens one more.
    pub(crate) fn take(&self) -> Result<Reader<'_>, ReaderError> {
        let idle = {
            let mut state = self.lock();
            match state.phase {
                Phase::Open => {}
                Phase::Reopening => return Err(ReaderError::NotNow),
                Phase::Closed => {
                    return Err(ReaderError::Failed(StoreError::new("the store is closed")));
                }
            }
            state.taken += 1;
            state.idle.pop()
        };
        let mut reader = Reader {
            of: self,
            connection: idle,
        };
        if reader.connection.is_none() {
            let opened = schema::open_reader(&self.path, self.cache_kib);
            reader.connection =
                Some(opened.map_err(|cause| ReaderError::Failed(unreadable(cause)))?);
        }
        Ok(reader)
    }

    /// Waits while the file is being opened again, up to a limit.
    pub(crate) async fn until_open(&self) -> Result<(), StoreError> {
        let mut phase = self.phase.subscribe();
        let changed = phase.wait_for(|phase| *phase != Phase::Reopening);
        match timeout(WAIT_MAX, changed).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ReaderError::NotNow.into()),
        }
    }

    /// Whether reads may continue; long reads check this between their steps.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().phase == Phase::Open
    }

    /// Closes every reader; waits for those in use.
    pub(crate) fn close(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        self.phase.send_replace(phase);
        state.idle.clear();
        while state.taken > 0 {
            state = self
                .returned
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Allows readers to be opened again.
    pub(crate) fn open(&self) {
        self.lock().phase = Phase::Open;
        self.phase.send_replace(Phase::Open);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader in use.
pub(crate) struct Reader<'r> {
    of: &'r Readers,
    connection: Option<Connection>,
}

impl Deref for Reader<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.connection {
            Some(connection) => connection,
            // `take` returns no reader without one.
            None => unreachable!("a reader has a connection until it is dropped"),
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.taken -= 1;
        match self.connection.take() {
            Some(connection) if state.phase == Phase::Open && state.idle.len() < IDLE_MAX => {
                state.idle.push(connection);
            }
            // Closed before the waiting `close` continues.
            other => drop(other),
        }
        drop(state);
        self.of.returned.notify_all();
    }
}
