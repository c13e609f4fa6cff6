//! Captures the log lines of one thread, at every level.
//!
//! One subscriber receives all lines of the process and passes each to the capture of its thread.
//! A subscriber per thread does not work: `tracing` caches for each call site whether a subscriber is
//! interested, and queries only the first thread that reaches it. Lines of blocking threads are not captured.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

thread_local! {
    static CAPTURE: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Captured lines.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

/// Captures on this thread until it is dropped.
pub(super) struct CaptureGuard(());

impl Drop for CaptureGuard {
    fn drop(&mut self) {
        CAPTURE.set(None);
    }
}

impl Log {
    /// Captures until the second value is dropped.
    pub(super) fn capture() -> (Self, CaptureGuard) {
        static SUBSCRIBED: Once = Once::new();
        SUBSCRIBED.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(|| ThreadWriter)
                .init();
        });
        let log = Self::default();
        CAPTURE.set(Some(log.clone()));
        (log, CaptureGuard(()))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// Writes to the capture of the current thread, if there is one.
struct ThreadWriter;

impl io::Write for ThreadWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURE.with_borrow(|capture| {
            if let Some(log) = capture {
                log.0.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
