//! Reads of the whole store, for copies and inspections. Not here: reads of a broker (`read.rs`).

use crate::client::EtcdError;
use crate::read::{READS_MAX, key_of, restless};
use crate::rows::read_document;
use crate::store::EtcdStore;
use crate::view::View;
use crate::wire::Range;
use std::collections::BTreeSet;
use sutler_journal::{Document, IndexedDocument, OperationId, StoreError, StoreInfo, Term};

/// Maximum log keys per read.
const KEYS_MAX: usize = 10_000;

impl EtcdStore {
    pub(crate) async fn documents_with_terms(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        for _ in 0..READS_MAX {
            let find = |view: &View| {
                let keys = view.keys_from(from, limit).into_iter();
                keys.map(|key| key_of(&key)).collect::<Result<Vec<_>, _>>()
            };
            let (keys, revision) = self.follower.current(find).await?;
            let places: Vec<Vec<u8>> = keys.iter().map(|key| self.keys.document(key)).collect();
            let found = match self.client.get_all(&places, Some(revision)).await {
                Ok(found) => found,
                Err(EtcdError::Compacted) => continue,
                Err(other) => return Err(other.into()),
            };
            let mut indexed = Vec::with_capacity(keys.len());
            for (key, kv) in keys.into_iter().zip(&found) {
                let Some(kv) = kv else { continue };
                let read = read_document(&kv.value.0)?;
                let terms = read.terms.into_iter();
                let terms = terms.map(|(name, value)| Term::read(name, value)).collect();
                let document = Document {
                    key,
                    version: read.version,
                    body: read.body,
                };
                indexed.push(IndexedDocument::new(document, terms));
            }
            return Ok(indexed);
        }
        Err(restless())
    }

    /// Without a size: etcd reports its total size, but not that of one store.
    pub(crate) async fn read_info(&self) -> Result<StoreInfo, StoreError> {
        let logs = self.operations_with_logs().await?;
        let look = |view: &View| {
            let names = view.names.len();
            let stray = logs.iter().filter(|id| view.operations.get(**id).is_none());
            Ok(StoreInfo {
                layout: self.layout,
                documents: view.count() as u64,
                leases: view.workers.len() as u64,
                leases_over: names.saturating_sub(view.workers.len()) as u64,
                abandoned: view.orphans().count() as u64,
                feed: view.feed.len() as u64,
                stray_logs: stray.count() as u64,
                bytes: None,
            })
        };
        Ok(self.follower.current(look).await?.0)
    }

    async fn operations_with_logs(&self) -> Result<BTreeSet<OperationId>, StoreError> {
        let (mut from, to) = self.keys.logs();
        let mut found = BTreeSet::new();
        loop {
            let mut range = Range::between((from, to.clone())).limit(KEYS_MAX);
            range.keys_only = true;
            let page = self.client.range(&range).await?;
            let keys = page.kvs.iter().map(|kv| &kv.key.0);
            found.extend(keys.filter_map(|key| self.keys.log_of(key)));
            match page.kvs.last() {
                Some(last) if page.more => from = [&last.key.0[..], &[0]].concat(),
                Some(_) | None => return Ok(found),
            }
        }
    }
}
