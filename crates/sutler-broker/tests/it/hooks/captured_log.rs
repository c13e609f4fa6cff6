//! All that is logged on one thread, at every level, for tests that read it.
//!
//! One subscriber receives all lines of the process and passes each to the capture of its thread.
//! A subscriber per thread would not do: `tracing` remembers of each place in the code whether
//! anybody cares, and asks only the thread that comes by first. Not for what blocking threads log.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

thread_local! {
    static LISTENER: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Captured lines.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

/// Listens on this thread for as long as it lives.
pub(super) struct Listening(());

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENER.set(None);
    }
}

impl Log {
    /// Listens for as long as the second value lives.
    pub(super) fn listen() -> (Self, Listening) {
        static HEARING: Once = Once::new();
        HEARING.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(|| OfThisThread)
                .init();
        });
        let log = Self::default();
        LISTENER.set(Some(log.clone()));
        (log, Listening(()))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// Writes to the capture of the current thread, if there is one.
struct OfThisThread;

impl io::Write for OfThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LISTENER.with_borrow(|listener| {
            if let Some(log) = listener {
                log.0.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
