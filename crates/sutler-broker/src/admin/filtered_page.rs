//! A page of documents that pass a filter, found by a scan that is bounded.
//!
//! An index narrows the list where there is one; the rest is looked through, at most so many documents
//! for one page. A page may therefore be short, or empty, and still have a next one.

use super::response::AdminError;
use crate::requests::RequestHandler;
use sutler_journal::{Key, List, Position, SealContext};
use sutler_records::Resource;

/// Documents read for one page, at most.
pub(crate) const SCAN_MAX: usize = 2_000;
/// Documents read at a time.
const CHUNK: usize = 200;

/// Some of what a list has, and where to go on.
pub(crate) struct FilteredPage<T> {
    pub items: Vec<T>,
    pub next: Option<Position>,
}

/// Looks through a list until a page is full, the list ends, or enough was read.
pub(crate) async fn scan<S: Resource, T>(
    requests: &RequestHandler,
    list: &List,
    after: Option<Position>,
    limit: usize,
    pass: impl Fn(&Key, &S) -> Option<T>,
) -> Result<FilteredPage<T>, AdminError> {
    let records = &requests.realm_context.records;
    let mut items = Vec::new();
    let mut at = after;
    let mut read = 0;
    loop {
        // Never more than the page can take: the cursor of a page is that of its last document.
        let chunk = CHUNK.min(limit - items.len());
        let page = records.store.list(list, at.as_ref(), chunk).await?;
        read += page.documents.len();
        for document in page.documents {
            let place = SealContext::Document(&document.key);
            let (state, _) = records.open::<S>(place, &document.body)?;
            items.extend(pass(&document.key, &state));
        }
        at = page.next;
        if at.is_none() || items.len() >= limit || read >= SCAN_MAX {
            return Ok(FilteredPage { items, next: at });
        }
    }
}
