//! Imports an export into a broker with the same keys and the same realm. Overwrites nothing.
//!
//! The broker of the export may still execute its unfinished operations, so they are refused unless the operator says
//! that it is stopped ([`UnfinishedOperations::Run`]). One commit per resource with its operations. Identical
//! documents are skipped, so an interrupted import can be repeated; a different document with the same key ends the
//! import.

use super::export_format::{DocumentLine, ExportLine, FORM, OperationLine};
use super::response::AdminError;
use crate::audit::{AuditAction, AuditSubject, TrailEntry};
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::requests::RequestHandler;
use crate::resources::{BINDING, INSTANCE, PLAN};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::Serialize;
use std::time::Duration;
use sutler_journal::{
    Commit, CommitError, Document, Key, Operation, SealContext, Term, Write, commit_until_known,
};
use sutler_records::{AUDIT, Actor, AuditResult, Documents, RecordError};

/// Maximum length of a line: more than a whole commit in base64.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum time between two frames of the body.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);

/// Treatment of operations that had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnfinishedOperations {
    /// The import is refused: the broker of the export may execute them.
    Refuse,
    /// They continue here.
    Run,
}

/// Result of an import.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ImportResult {
    /// Documents added.
    pub documents: u64,
    /// Operations added.
    pub operations: u64,
    /// Documents skipped, because they exist and are identical.
    pub already_there: u64,
}

/// Progress of an import within its file.
struct ImportReader {
    unfinished: UnfinishedOperations,
    head_read: bool,
    ended: bool,
    line: u64,
    documents_read: u64,
    done: ImportResult,
}

/// Imports a body, between two audit entries: one before the first commit, one about the end, also about an error.
/// A third state, only the first entry, is an import that was broken off.
pub(crate) async fn run<B>(
    requests: &RequestHandler,
    body: B,
    unfinished: UnfinishedOperations,
    by: &Actor,
) -> Result<ImportResult, AdminError>
where
    B: hyper::body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let entry = |result| {
        let subject = AuditSubject::broker();
        TrailEntry::new(AuditAction::Import, subject, by, result)
    };
    let begun = entry(AuditResult::Started);
    let begun = match unfinished {
        UnfinishedOperations::Run => begun.with_message("unfinished=run"),
        UnfinishedOperations::Refuse => begun,
    };
    requests.file(&begun).await?;
    let done = read(requests, body, unfinished).await;
    let ended = match &done {
        Ok(done) => {
            let message = format!("{} documents added", done.documents);
            entry(AuditResult::Done).with_message(message)
        }
        Err(error) => entry(AuditResult::Refused).with_message(error.description()),
    };
    let noted = requests.file(&ended).await;
    // The error of the import itself is the one to report.
    let done = done?;
    noted?;
    Ok(done)
}

/// Reads a whole body.
async fn read<B>(
    requests: &RequestHandler,
    body: B,
    unfinished: UnfinishedOperations,
) -> Result<ImportResult, AdminError>
where
    B: hyper::body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut kept = BytesMut::new();
    let mut reader = ImportReader {
        unfinished,
        head_read: false,
        ended: false,
        line: 0,
        documents_read: 0,
        done: ImportResult::default(),
    };
    loop {
        let frame = tokio::time::timeout(SILENT_AT_MOST, body.frame()).await;
        let Ok(frame) = frame else {
            return Err(reader.fault("nothing more came for a minute; repeat the import"));
        };
        match frame {
            None => break,
            Some(Err(_)) => return Err(reader.fault("the body broke off; repeat the import")),
            Some(Ok(frame)) => kept.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
        }
        while let Some(at) = kept.iter().position(|byte| *byte == b'\n') {
            let line = kept.split_to(at);
            kept.advance(1);
            reader.take(requests, &line).await?;
        }
        if kept.len() > LINE_BYTES_MAX {
            return Err(reader.fault("it is too long; is this a file of export?"));
        }
    }
    if !kept.is_empty() {
        reader.take(requests, &kept).await?;
    }
    if !reader.ended {
        return Err(reader.fault("the file is cut off before its last line; export it again"));
    }
    Ok(reader.done)
}

impl ImportReader {
    fn fault(&self, sentence: &str) -> AdminError {
        let ImportResult {
            documents,
            already_there,
            ..
        } = self.done;
        AdminError::invalid(format!(
            "Line {}: {sentence}. {documents} documents were added before, {already_there} were there already.",
            self.line
        ))
    }

    /// Refuses operations that the broker of the export may still execute.
    fn check_unfinished(&self, count: u64) -> Result<(), AdminError> {
        if count == 0 || self.unfinished == UnfinishedOperations::Run {
            return Ok(());
        }
        let sentence = format!(
            "operations that had not ended when this was exported: {count}; the broker of the export may still run \
             them. Drain it, wait for them to end and export again; or stop it for good and repeat the import with \
             unfinished=run (--run-unfinished), so that they run here"
        );
        Err(AdminError::conflict(self.fault(&sentence)))
    }

    async fn take(&mut self, requests: &RequestHandler, text: &[u8]) -> Result<(), AdminError> {
        self.line += 1;
        let line: ExportLine = serde_json::from_slice(text)
            .map_err(|_| self.fault("it is not a line of an export; is this the right file?"))?;
        let realm = requests.realm_context.records.realm.as_str();
        match line {
            ExportLine::Head {
                form,
                realm: of,
                unfinished,
            } if !self.head_read => {
                if form != FORM || of != realm {
                    let sentence = format!(
                        "this is form {form} of the realm {of:?}, and form {FORM} of {realm:?} is wanted; choose the realm with ?realm="
                    );
                    return Err(self.fault(&sentence));
                }
                self.check_unfinished(unfinished)?;
                self.head_read = true;
                Ok(())
            }
            ExportLine::Document(line) if self.head_read && !self.ended => {
                self.documents_read += 1;
                self.add(requests, *line).await
            }
            ExportLine::End { documents, .. } if self.head_read && !self.ended => {
                if documents != self.documents_read {
                    return Err(self.fault("lines are missing; export it again"));
                }
                self.ended = true;
                Ok(())
            }
            ExportLine::Head { .. } | ExportLine::Document(_) | ExportLine::End { .. } => {
                Err(self.fault("it is not where it belongs; is this one whole file of export?"))
            }
        }
    }

    async fn add(
        &mut self,
        requests: &RequestHandler,
        line: DocumentLine,
    ) -> Result<(), AdminError> {
        let records = &requests.realm_context.records;
        let body = line.body.0;
        let key = Key::from_bytes(&line.key.0)
            .ok()
            .filter(|key| key.realm() == records.realm.as_str())
            .ok_or_else(|| self.fault("its key is not one of this realm"))?;
        let terms = terms(records, &key, &body)
            .map_err(|_| {
                self.fault("it does not open; is the key ring the one it was sealed with?")
            })?
            .ok_or_else(|| self.fault("a document of this kind is not imported"))?;
        let unfinished = line.operations.iter().filter(|it| it.is_unfinished());
        self.check_unfinished(unfinished.count() as u64)?;
        let operations: Vec<Operation> = line
            .operations
            .into_iter()
            .map(|it: OperationLine| it.operation(&key, &requests.realm_context.queue))
            .collect();
        let count = operations.len() as u64;
        let commit = Commit::new().insert(key.clone(), terms, body.clone());
        let commit = operations.into_iter().fold(commit, |commit, it| {
            commit.write(Write::Import(Box::new(it)))
        });
        match commit_until_known(records.store.as_ref(), &commit).await {
            Ok(()) => {
                self.done.documents += 1;
                self.done.operations += count;
                Ok(())
            }
            Err(CommitError::Stale(_)) => {
                let there = records.store.get(&key).await?;
                // The key of a plan copy is the digest of its content.
                let same = |it: &Document| it.body == body || key.kind() == PLAN.as_str();
                if there.as_ref().is_some_and(same) {
                    self.done.already_there += 1;
                    return Ok(());
                }
                let sentence =
                    format!("{key:?} is there already and is not the same; nothing is overwritten");
                Err(AdminError::conflict(self.fault(&sentence)))
            }
            Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
        }
    }
}

/// Index terms of a document; `None` for kinds that are not exported.
fn terms(records: &Documents, key: &Key, body: &[u8]) -> Result<Option<Vec<Term>>, RecordError> {
    let place = SealContext::Document(key);
    if key.kind() == INSTANCE.as_str() {
        let (at, _) = records.open::<Instance>(place, body)?;
        return Ok(Some(records.terms_of(key, &at)));
    }
    if key.kind() == BINDING.as_str() {
        let (at, _) = records.open::<Binding>(place, body)?;
        return Ok(Some(records.terms_of(key, &at)));
    }
    if key.kind() == AUDIT.as_str() {
        return TrailEntry::open(records, key, body).map(|_| Some(Vec::new()));
    }
    if key.kind() == PLAN.as_str() {
        records.keys.open(place, body)?;
        return Ok(Some(Vec::new()));
    }
    Ok(None)
}
