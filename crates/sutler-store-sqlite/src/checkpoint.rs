//! Checkpoints: copies the write-ahead log into the file, concurrently with commits.
//!
//! A separate thread copies while the writer continues; the writer itself copies only the
//! short rest, between two groups, after which the log restarts from its beginning. So the log
//! stays bounded and no commit waits for a long copy.

use crate::sql;
use crate::store::SqliteShared;
use rusqlite::Connection;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Length of the log at which copying begins: 8 MiB.
const PAGES_TO_COPY: i32 = 2_000;
/// Length at which the writer copies by itself without waiting: 128 MiB.
const PAGES_MAX: i32 = 32_000;

thread_local! {
    /// Length of the log after the last commit of this thread, in pages.
    static LOG_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// Handle of the writer.
pub(crate) struct Checkpoints {
    ask: Option<SyncSender<()>>,
    copied: Arc<AtomicBool>,
    requested_at: i32,
    watching: bool,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread.
pub(crate) fn start(shared: Arc<SqliteShared>) -> std::io::Result<Checkpoints> {
    let (ask, requests) = sync_channel(1);
    let copied = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&copied);
    let thread = thread::Builder::new()
        .name("sutler-sqlite-checkpoint".to_owned())
        .spawn(move || copy_on_request(&shared, &requests, &done))?;
    Ok(Checkpoints {
        ask: Some(ask),
        copied,
        requested_at: 0,
        watching: false,
        thread: Some(thread),
    })
}

fn copy_on_request(shared: &SqliteShared, requests: &Receiver<()>, done: &AtomicBool) {
    while requests.recv().is_ok() {
        let Ok(reader) = shared.readers.take() else {
            continue;
        };
        match copy(&reader) {
            Ok(()) => done.store(true, Ordering::Release),
            // The log stays complete until a copy succeeds; the writer's own copy will report the failure.
            Err(cause) => tracing::warn!(
                error = &cause as &dyn std::error::Error,
                "the write-ahead log could not be copied into the store's file"
            ),
        }
    }
}

fn copy(db: &Connection) -> rusqlite::Result<()> {
    db.query_row(sql::CHECKPOINT, [], |_| Ok(()))
}

impl Checkpoints {
    /// Called by the writer between two groups.
    pub(crate) fn after_group(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if !self.watching {
            self.watching = true;
            db.wal_hook(Some(|_, pages| {
                LOG_PAGES.set(pages);
                Ok(())
            }));
        }
        let pages = LOG_PAGES.get();
        if pages < self.requested_at {
            self.requested_at = 0;
        }
        if pages >= PAGES_TO_COPY && self.copied.swap(false, Ordering::AcqRel) || pages >= PAGES_MAX
        {
            self.requested_at = 0;
            LOG_PAGES.set(0);
            return copy(db);
        }
        if pages >= self.requested_at + PAGES_TO_COPY
            && let Some(ask) = &self.ask
        {
            self.requested_at = pages;
            // A full channel means that a request is pending already.
            let _ = ask.try_send(());
        }
        Ok(())
    }

    /// Installs the hook on the new connection after the file was opened again.
    pub(crate) fn watch_again(&mut self) {
        self.watching = false;
    }

    /// Ends the thread.
    pub(crate) fn stop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
