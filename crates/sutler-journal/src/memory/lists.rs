//! Lists from the tables: pages of documents, operations, counts.
//!
//! Every list is a range of an ordered index: a page costs its own length, at any position. The
//! exception is the count of the queues, which visits all unfinished operations.

use super::tables::{Tables, TermEntry};
use crate::clock::StoreTime;
use crate::document::{Document, IndexedDocument};
use crate::operation::{OperationId, OperationRow, WorkerId};
use crate::query::{
    Layout, List, OperationFilter, OperationList, Page, Position, QueueStats, Stats, StoreInfo,
};
use std::borrow::Cow;
use std::ops::Bound;
use uuid::Uuid;

impl Tables {
    pub(super) fn list(&self, list: &List, after: Option<&Position>, limit: usize) -> Page {
        match list {
            List::Prefix(prefix) => self.list_by_key(prefix, after, limit),
            List::Term {
                realm,
                kind,
                name,
                from,
                to,
            } => {
                let first = TermEntry {
                    realm: realm.as_str().to_owned(),
                    kind: kind.as_str().to_owned(),
                    name: Cow::Borrowed(name),
                    value: from.clone(),
                    key: Box::default(),
                };
                self.list_by_term(first, to, after, limit)
            }
        }
    }

    fn list_by_key(&self, prefix: &[u8], after: Option<&Position>, limit: usize) -> Page {
        let start = match after {
            Some(position) if position.key.as_bytes() >= prefix => {
                Bound::Excluded(position.key.as_bytes())
            }
            Some(_) | None => Bound::Included(prefix),
        };
        let found = self
            .documents
            .range::<[u8], _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(_, indexed)| (Vec::new(), &indexed.document));
        page(found, limit)
    }

    fn list_by_term(
        &self,
        first: TermEntry,
        to: &[u8],
        after: Option<&Position>,
        limit: usize,
    ) -> Page {
        let start = match after {
            Some(position) if position.value >= first.value => Bound::Excluded(TermEntry {
                value: position.value.clone(),
                key: position.key.as_bytes().into(),
                ..first.clone()
            }),
            Some(_) | None => Bound::Included(first.clone()),
        };
        let found = self
            .terms
            .range((start, Bound::Unbounded))
            .take_while(|entry| {
                entry.realm == first.realm
                    && entry.kind == first.kind
                    && entry.name == first.name
                    && entry.value.as_slice() <= to
            })
            .filter_map(|entry| {
                let indexed = self.documents.get(&entry.key)?;
                Some((entry.value.clone(), &indexed.document))
            });
        page(found, limit)
    }

    pub(super) fn scan_documents(&self, from: &[u8], limit: usize) -> Vec<IndexedDocument> {
        let bounds = (Bound::Included(from), Bound::Unbounded);
        let found = self.documents.range::<[u8], _>(bounds).take(limit);
        found.map(|(_, indexed)| indexed.clone()).collect()
    }

    pub(super) fn info(&self, now: StoreTime) -> StoreInfo {
        let alive = |worker: &&WorkerId| self.holds_lease(**worker, now);
        let leases = self.leases.keys().filter(alive).count();
        let dead = self.held.iter().filter(|(worker, _)| !alive(worker));
        let strays = self
            .logs
            .keys()
            .filter(|id| !self.operations.contains_key(id));
        StoreInfo {
            layout: Layout { found: 1, now: 1 },
            documents: self.documents.len() as u64,
            leases: leases as u64,
            leases_over: (self.leases.len() - leases) as u64,
            abandoned: dead.map(|(_, held)| held.operations.len() as u64).sum(),
            feed: self.feed.len() as u64,
            stray_logs: strays.count() as u64,
            bytes: None,
        }
    }

    pub(super) fn list_operations(&self, list: &OperationList) -> Vec<OperationRow> {
        let end = list.before.map_or(Bound::Unbounded, Bound::Excluded);
        let below = (Bound::Unbounded, end);
        let row = |id: &OperationId| self.operation(*id).map(|operation| operation.row.clone());
        match &list.filter {
            OperationFilter::All => {
                let operations = self.operations.range(below).rev().take(list.limit);
                operations
                    .map(|(_, entry)| entry.operation.row.clone())
                    .collect()
            }
            OperationFilter::Unfinished => {
                let ids = self.unfinished.range(below).rev().take(list.limit);
                ids.filter_map(row).collect()
            }
            OperationFilter::Lane(lane) => {
                let start = Bound::Included((lane.clone(), OperationId(Uuid::nil())));
                let end = match list.before {
                    Some(before) => Bound::Excluded((lane.clone(), before)),
                    None => Bound::Included((lane.clone(), OperationId(Uuid::max()))),
                };
                let ids = self.lanes.range((start, end)).rev().take(list.limit);
                ids.filter_map(|(_, id)| row(id)).collect()
            }
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let unfinished = self.unfinished.iter().filter_map(|id| self.operation(*id));
        Stats {
            accepted: self.accepted,
            live: self.unfinished.len() as u64,
            terminal: (self.operations.len() - self.unfinished.len()) as u64,
            cleaned: self.cleaned,
            queues: QueueStats::count(unfinished.map(|operation| &operation.row)),
        }
    }
}

/// The first `limit` results; a next position only if there are more.
fn page<'a>(mut found: impl Iterator<Item = (Vec<u8>, &'a Document)>, limit: usize) -> Page {
    let mut documents = Vec::new();
    let mut last = None;
    for (value, document) in found.by_ref().take(limit) {
        last = Some((value, document));
        documents.push(document.clone());
    }
    let next = match last {
        Some((value, document)) if found.next().is_some() => Some(Position {
            value,
            key: document.key.clone(),
        }),
        Some(_) | None => None,
    };
    Page { documents, next }
}
