//! The audit file: one JSON object per line, append-only, readable by its owner only.
//!
//! A line is written without buffering before the event returns. A line that cannot be written is counted
//! (`sutler_audit_records_total{result="failed"}`) and logged with its whole content, so that it is not lost.

use super::json_fields::{JsonFieldVisitor, timestamp};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_broker::AUDIT_TARGET;
use sutler_broker::metrics::{self, Success};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// File mode: only the owner can read.
const MODE: u32 = 0o600;

/// The open file.
pub(super) struct AuditSink {
    path: PathBuf,
    file: Mutex<File>,
}

impl AuditSink {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(open(path)?),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Continues in the file that has the name now.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let file = open(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }

    fn write(&self, line: &str) -> io::Result<()> {
        // One write, so that lines of two processes do not mix.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)
}

/// Whether an event belongs to the audit.
pub(super) fn is_audit(metadata: &Metadata<'_>) -> bool {
    metadata.target() == AUDIT_TARGET
}

/// Writes audit events to the file, and nothing else.
pub(super) struct AuditLayer(Arc<AuditSink>);

impl AuditLayer {
    pub(super) fn new(sink: Arc<AuditSink>) -> Self {
        Self(sink)
    }
}

impl<S: Subscriber> Layer<S> for AuditLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !is_audit(event.metadata()) {
            return;
        }
        let mut entry = Map::new();
        entry.insert("timestamp".to_owned(), timestamp().into());
        event.record(&mut JsonFieldVisitor(&mut entry));
        entry.remove("message");
        let mut line = Value::Object(entry).to_string();
        line.push('\n');
        let written = self.0.write(&line);
        metrics::audited(Success::from(&written));
        if let Err(error) = written {
            let entry = line.trim_end();
            tracing::error!(%error, entry, "an audit line could not be written; make room for it, then keep this one");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditLayer, AuditSink};
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;
    use sutler_broker::{AuditEntry, AuditOutcome, audit};
    use tracing_subscriber::layer::SubscriberExt as _;

    #[test]
    fn only_audit_lines_are_written_to_a_private_file_that_can_be_reopened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let sink = Arc::new(AuditSink::open(&path).unwrap());
        let subscriber = tracing_subscriber::registry().with(AuditLayer::new(sink.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("something else");
            let entry = AuditEntry {
                caller: Some("operator"),
                instance: Some("i-1"),
                ..AuditEntry::default()
            };
            audit("purge", AuditOutcome::Accepted, &entry);
            std::fs::rename(&path, folder.path().join("audit.1")).unwrap();
            sink.reopen().unwrap();
            audit("retry", AuditOutcome::Refused, &entry);
        });
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let (old, new) = (read("audit.1"), read("audit.jsonl"));
        assert_eq!((old.lines().count(), new.lines().count()), (1, 1));
        let entry: serde_json::Value = serde_json::from_str(&old).unwrap();
        assert_eq!(entry["verb"], "purge");
        assert_eq!(entry["caller"], "operator");
        assert_eq!(entry["instance.id"], "i-1");
        assert_eq!(entry["outcome"], "accepted");
        assert!(new.contains("\"retry\""));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
