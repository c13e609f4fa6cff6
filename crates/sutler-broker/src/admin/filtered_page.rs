//! A page of documents that match a filter, found by a bounded scan.
//!
//! An index narrows the list if there is one; the rest is scanned, at most [`SCAN_MAX`] documents for one page.
//! A page can therefore be short or empty and still have a next one.

use super::response::AdminError;
use crate::requests::RequestHandler;
use sutler_journal::{Key, List, Position, SealContext};
use sutler_records::Resource;

/// Maximum documents read for one page.
pub(crate) const SCAN_MAX: usize = 2_000;
/// Documents read at a time.
const CHUNK: usize = 200;

/// Items of one page, and the position of the next.
pub(crate) struct FilteredPage<T> {
    pub items: Vec<T>,
    pub next: Option<Position>,
}

/// Scans a list until the page is full, the list ends, or [`SCAN_MAX`] documents were read.
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
        // Never more than the page can hold: the cursor of a page is that of its last document.
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
