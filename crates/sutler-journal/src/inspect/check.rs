//! Consistency check of a store.
//!
//! Documents are read first, then operations. A store in use may change between the two, so every
//! suspect is read again on its own before it is reported.

use super::finding::{CheckReport, Finding, Severity};
use super::references::every_broken_reference;
use super::{
    DocumentFacts, ProgressCallback, RealmReaders, SealedReader, every_document, some_operations,
};
use crate::copy;
use crate::document::IndexedDocument;
use crate::key::Key;
use crate::operation::{Operation, OperationId, OperationRow, State};
use crate::store::{Store, StoreError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Maximum findings reported; the rest is counted.
const FINDINGS_MAX: usize = 1000;
/// Operations read concurrently.
const AT_ONCE: usize = 16;
/// Attempts to read a lane that keeps changing.
const LOOKS_MAX: usize = 10;

/// State of a check.
#[derive(Default)]
struct Notes {
    checked: CheckReport,
    /// Operations that documents point to.
    pointed_to: HashMap<OperationId, Key>,
    /// Kinds whose documents point to operations.
    kinds: BTreeSet<(String, String)>,
    known_operations: HashSet<OperationId>,
    running: BTreeMap<Key, Vec<OperationId>>,
    /// Keys of lanes to read again.
    suspects: BTreeSet<Key>,
    /// Records of realms without a reader.
    unknown: BTreeMap<String, u64>,
    findings: BTreeSet<Finding>,
    more: u64,
}

impl Notes {
    fn find(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.insert(finding);
        } else {
            self.more += 1;
        }
    }

    fn is_unknown(&mut self, key: &Key) {
        let records = self.unknown.entry(key.realm().to_owned()).or_default();
        *records += 1;
    }

    fn document(&mut self, indexed: &IndexedDocument, readers: Option<&RealmReaders>) {
        self.checked.documents += 1;
        let key = &indexed.document.key;
        let Some(readers) = readers else { return };
        let Some(reader) = readers.of(key.realm()) else {
            self.is_unknown(key);
            return;
        };
        match reader.document(indexed) {
            Ok(DocumentFacts {
                points_to,
                misfiled,
                refers_to: _,
            }) => {
                if misfiled {
                    self.find(Finding::Misfiled(key.clone()));
                }
                if let Some(ids) = points_to {
                    let kind = (key.realm().to_owned(), key.kind().to_owned());
                    self.kinds.insert(kind);
                    self.pointed_to
                        .extend(ids.into_iter().map(|id| (id, key.clone())));
                }
            }
            Err(reason) => self.find(Finding::SealedDocument(key.clone(), reason.0)),
        }
    }

    fn operation(&mut self, row: &OperationRow) {
        self.checked.operations += 1;
        self.known_operations.insert(row.id);
        if row.state == State::Running {
            let of_lane = self.running.entry(row.lane.clone()).or_default();
            of_lane.push(row.id);
            if of_lane.len() > 1 {
                self.suspects.insert(row.lane.clone());
            }
        }
        let pointed_to = self.pointed_to.contains_key(&row.id);
        let kind = (row.lane.realm().to_owned(), row.lane.kind().to_owned());
        if self.kinds.contains(&kind) && pointed_to != row.pinned {
            self.suspects.insert(row.lane.clone());
        }
    }

    /// Records documents that point to operations that were not found.
    fn dangling(&mut self) {
        let missing = self.pointed_to.iter();
        let missing = missing.filter(|(id, _)| !self.known_operations.contains(id));
        let keys: Vec<Key> = missing.map(|(_, key)| key.clone()).collect();
        self.suspects.extend(keys);
    }

    fn finish(mut self) -> CheckReport {
        for (realm, records) in std::mem::take(&mut self.unknown) {
            self.find(Finding::UnknownRealm(realm, records));
        }
        if self.more > 0 {
            self.findings.insert(Finding::AndMore(self.more));
        }
        self.checked.findings = self.findings.into_iter().collect();
        let order = |it: &Finding| (Reverse(it.verdict()), it.clone());
        self.checked.findings.sort_by_cached_key(order);
        self.checked
    }
}

/// Reads everything and reports inconsistencies. Without readers, sealed bodies are skipped, and so are
/// the links from documents to operations; the same holds for realms without a reader, which are reported.
///
/// # Errors
/// The store did not answer.
pub async fn check(
    store: &Arc<dyn Store>,
    readers: Option<&RealmReaders>,
    progress: ProgressCallback<'_>,
) -> Result<CheckReport, StoreError> {
    let mut notes = Notes::default();
    every_document(&**store, |indexed| {
        notes.document(&indexed, readers);
        progress(notes.checked.documents, 0);
    })
    .await?;
    let mut before = None;
    loop {
        let rows = some_operations(&**store, before).await?;
        let Some(last) = rows.last() else { break };
        before = Some(last.id);
        for row in &rows {
            notes.operation(row);
        }
        if let Some(readers) = readers {
            open_all(store, &rows, readers, &mut notes).await?;
        }
        progress(notes.checked.documents, notes.checked.operations);
    }
    notes.dangling();
    for key in std::mem::take(&mut notes.suspects) {
        let reader = readers.and_then(|readers| readers.of(key.realm()));
        for finding in recheck_lane(&**store, &key, reader).await? {
            notes.find(finding);
        }
    }
    if let Some(readers) = readers {
        every_broken_reference(&**store, readers, |finding| notes.find(finding)).await?;
    }
    let info = store.info().await?;
    for (count, finding) in [
        (info.stray_logs, Finding::StrayLogs(info.stray_logs)),
        (info.abandoned, Finding::Abandoned(info.abandoned)),
    ] {
        if count > 0 {
            notes.find(finding);
        }
    }
    if copy::is_unfinished(&**store).await? {
        notes.find(Finding::UnfinishedCopy);
    }
    if let Some(to) = copy::moved_to(&**store).await? {
        notes.find(Finding::Moved(to));
    }
    Ok(notes.finish())
}

async fn open_all(
    store: &Arc<dyn Store>,
    rows: &[OperationRow],
    readers: &RealmReaders,
    notes: &mut Notes,
) -> Result<(), StoreError> {
    for some in rows.chunks(AT_ONCE) {
        let read = some.iter().map(|row| {
            let (store, id) = (Arc::clone(store), row.id);
            tokio::spawn(async move { store.operation(id).await })
        });
        for task in read.collect::<Vec<_>>() {
            let read = task.await;
            let read = read.map_err(|cause| StoreError::caused("a read was broken off", cause))?;
            // An absent one was swept meanwhile.
            let Some(operation) = read? else { continue };
            match readers
                .of(operation.row.lane.realm())
                .map(|it| it.operation(&operation))
            {
                Some(Ok(())) => {}
                Some(Err(reason)) => {
                    notes.find(Finding::SealedOperation(operation.row.id, reason.0));
                }
                None => notes.is_unknown(&operation.row.lane),
            }
        }
    }
    Ok(())
}

/// Reads one lane on its own: its document and its operations at one moment.
async fn recheck_lane(
    store: &dyn Store,
    key: &Key,
    reader: Option<&dyn SealedReader>,
) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    for _ in 0..LOOKS_MAX {
        let before = one(store, key).await?;
        let meaning = before.as_ref().zip(reader);
        let meaning = meaning.and_then(|(indexed, reader)| reader.document(indexed).ok());
        let points_to = meaning.unwrap_or_default().points_to.unwrap_or_default();
        let operations = of_lane(store, key, &points_to).await?;
        findings = lane_findings(key, &points_to, &operations);
        if reader.is_none() {
            // Without bodies only running operations can be checked.
            findings.retain(|it| matches!(it, Finding::TwoRun(..)));
        }
        let after = one(store, key).await?;
        let version =
            |indexed: &Option<IndexedDocument>| indexed.as_ref().map(|it| it.document.version);
        if findings.is_empty() || version(&before) == version(&after) {
            return Ok(findings);
        }
    }
    findings.retain(|it| it.verdict() == Severity::Fault);
    Ok(findings)
}

/// Inconsistencies of a lane whose document points to these operations.
fn lane_findings(key: &Key, points_to: &[OperationId], operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for id in points_to {
        match operations.iter().find(|it| it.row.id == *id) {
            None => findings.push(Finding::NoOperation(key.clone(), *id)),
            Some(it) if !it.row.pinned => findings.push(Finding::Unpinned(key.clone(), *id)),
            Some(_) => {}
        }
    }
    for row in operations.iter().map(|it| &it.row) {
        match (points_to.contains(&row.id), row.finished, row.pinned) {
            (false, None, _) => findings.push(Finding::NoDocument(key.clone(), row.id)),
            (false, Some(_), true) => {
                findings.push(Finding::PinnedInVain(key.clone(), row.id));
            }
            (true, _, _) | (false, Some(_), false) => {}
        }
    }
    let running = operations
        .iter()
        .filter(|it| it.row.state == State::Running);
    let running: Vec<OperationId> = running.map(|it| it.row.id).collect();
    if let [one, other, ..] = running[..] {
        findings.push(Finding::TwoRun(key.clone(), one, other));
    }
    findings
}

async fn one(store: &dyn Store, key: &Key) -> Result<Option<IndexedDocument>, StoreError> {
    let found = store.scan_documents(key.as_bytes(), 1).await?;
    let mut found = found.into_iter();
    Ok(found.next().filter(|indexed| indexed.document.key == *key))
}

/// The operations of a lane that have not ended or are pinned, and those that its document points to.
async fn of_lane(
    store: &dyn Store,
    lane: &Key,
    points_to: &[OperationId],
) -> Result<Vec<Operation>, StoreError> {
    let mut ids: BTreeSet<OperationId> = points_to.iter().copied().collect();
    let mut before = None;
    loop {
        let rows = lane_page(store, lane, before).await?;
        let Some(last) = rows.last() else { break };
        before = Some(last.id);
        let pinned_rows = rows
            .iter()
            .filter(|row| row.pinned || row.finished.is_none());
        ids.extend(pinned_rows.map(|row| row.id));
    }
    let mut operations = Vec::new();
    for id in ids {
        operations.extend(store.operation(id).await?);
    }
    Ok(operations)
}

async fn lane_page(
    store: &dyn Store,
    lane: &Key,
    before: Option<OperationId>,
) -> Result<Vec<OperationRow>, StoreError> {
    let list = crate::query::OperationList {
        filter: crate::query::OperationFilter::Lane(lane.clone()),
        before,
        limit: super::PAGE,
    };
    store.operations(&list).await
}
