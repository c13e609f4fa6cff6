//! Export of a realm as JSON lines, streamed with bounded memory.
//!
//! Each resource is written with the operations it refers to, as one consistent snapshot. For a snapshot of the
//! whole realm, drain the broker first. The format of the lines is in `export_format.rs`.

use super::export_format::{Base64Bytes, DocumentLine, ExportLine, FORM, OperationLine};
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::requests::RequestHandler;
use crate::resources::{BINDING, INSTANCE, PLAN};
use bytes::Bytes;
use std::io;
use sutler_journal::{
    Document, Key, List, OperationFilter, OperationId, OperationList, SealContext, StoreError,
};
use sutler_records::{AUDIT, RecordError, Resource};
use sutler_server::ChunkSender;

/// Documents read at a time.
const CHUNK: usize = 50;
/// Operations read at a time.
const OPERATIONS: usize = 500;
/// Maximum attempts to read a resource that keeps changing.
const TRIES: u32 = 20;

/// Reason for the early end of an export.
enum ExportError {
    /// The client disconnected.
    Left,
    /// The store or a record cannot be read.
    Broken(RecordError),
}

impl From<RecordError> for ExportError {
    fn from(error: RecordError) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Broken(error.into())
    }
}

/// Writes the export. An incomplete export has no last line.
pub(crate) async fn write(requests: RequestHandler, pieces: ChunkSender) {
    if let Err(ExportError::Broken(error)) = write_all(&requests, &pieces).await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "an export broke off"
        );
        let _ = pieces
            .send(Err(io::Error::other("the export broke off")))
            .await;
    }
}

async fn write_all(requests: &RequestHandler, pieces: &ChunkSender) -> Result<(), ExportError> {
    let records = &requests.realm_context.records;
    let realm = records.realm.as_str().to_owned();
    let head = ExportLine::Head {
        form: FORM,
        realm,
        unfinished: unfinished(requests).await?,
    };
    line(pieces, &head).await?;
    let (mut documents, mut operations) = (0, 0);
    for kind in [PLAN, INSTANCE, BINDING, AUDIT] {
        let list = List::Prefix(Key::prefix(&records.realm, kind, &[]).unwrap_or_default());
        let mut at = None;
        loop {
            let page = records.store.list(&list, at.as_ref(), CHUNK).await?;
            for document in page.documents {
                let Some(written) = snapshot_of(requests, document).await? else {
                    continue;
                };
                documents += 1;
                operations += written.operations.len() as u64;
                line(pieces, &ExportLine::Document(Box::new(written))).await?;
            }
            at = page.next;
            if at.is_none() {
                break;
            }
        }
    }
    let end = ExportLine::End {
        documents,
        operations,
    };
    line(pieces, &end).await
}

/// Number of unfinished operations of instances and bindings of the realm.
async fn unfinished(requests: &RequestHandler) -> Result<u64, StoreError> {
    let records = &requests.realm_context.records;
    let (mut count, mut before) = (0, None);
    loop {
        let list = OperationList {
            filter: OperationFilter::Unfinished,
            before,
            limit: OPERATIONS,
        };
        let rows = records.store.operations(&list).await?;
        let Some(last) = rows.last() else {
            return Ok(count);
        };
        before = Some(last.id);
        let exported = rows.iter().filter(|row| {
            let kind = row.lane.kind();
            row.lane.realm() == records.realm.as_str()
                && (kind == INSTANCE.as_str() || kind == BINDING.as_str())
        });
        count += exported.count() as u64;
    }
}

/// Consistent snapshot of a document and the operations it refers to; `None` if it was deleted meanwhile.
async fn snapshot_of(
    requests: &RequestHandler,
    listed: Document,
) -> Result<Option<DocumentLine>, ExportError> {
    let records = &requests.realm_context.records;
    let mut document = listed;
    for _ in 0..TRIES {
        let mut operations = Vec::new();
        for id in pins(requests, &document)? {
            let found = records.store.operation(id).await?;
            operations.extend(found.as_ref().map(OperationLine::of));
        }
        let version = document.version;
        match records.store.get(&document.key).await? {
            None => return Ok(None),
            Some(again) if again.version == version => {
                return Ok(Some(DocumentLine {
                    key: Base64Bytes(Bytes::copy_from_slice(again.key.as_bytes())),
                    body: Base64Bytes(again.body),
                    operations,
                }));
            }
            Some(again) => document = again,
        }
    }
    let sentence = "a resource changes faster than it can be read; drain the broker first";
    Err(StoreError::new(sentence).into())
}

fn pins(requests: &RequestHandler, document: &Document) -> Result<Vec<OperationId>, RecordError> {
    let (records, place) = (
        &requests.realm_context.records,
        SealContext::Document(&document.key),
    );
    if document.key.kind() == INSTANCE.as_str() {
        let (at, _) = records.open::<Instance>(place, &document.body)?;
        return Ok(Resource::referenced_operations(&at));
    }
    if document.key.kind() == BINDING.as_str() {
        let (at, _) = records.open::<Binding>(place, &document.body)?;
        return Ok(Resource::referenced_operations(&at));
    }
    Ok(Vec::new())
}

async fn line(pieces: &ChunkSender, line: &ExportLine) -> Result<(), ExportError> {
    let mut text = serde_json::to_vec(line).expect("our own types serialise");
    text.push(b'\n');
    let sent = pieces.send(Ok(text.into())).await;
    sent.map_err(|_| ExportError::Left)
}
