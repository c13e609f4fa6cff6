//! Keys of the documents of a list, page by page: a task reads each document itself when it is its turn, so one that cannot
//! be opened delays no other.

use super::task_run_error::TaskRunError;
use crate::context::PlatformContext;
use sutler_journal::{Key, List, Lost, Position, Run};

/// Documents that are listed at once.
const PAGE: usize = 100;

/// The keys of a list, in its order.
pub(super) struct ListedKeys<'a> {
    context: &'a PlatformContext,
    run: &'a Run,
    list: List,
    next: NextPage,
}

/// Where the next page begins.
enum NextPage {
    First,
    After(Position),
    None,
}

impl<'a> ListedKeys<'a> {
    /// The keys of a list, for a run.
    pub(super) fn of(context: &'a PlatformContext, run: &'a Run, list: List) -> Self {
        Self {
            context,
            run,
            list,
            next: NextPage::First,
        }
    }

    /// The next page; `None` after the last one.
    ///
    /// # Errors
    /// The store does not answer, or the claim was lost.
    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<Key>>, TaskRunError> {
        let after = match &self.next {
            NextPage::First => None,
            NextPage::After(position) => Some(position),
            NextPage::None => return Ok(None),
        };
        if self.run.lost().is_cancelled() {
            return Err(Lost.into());
        }
        let store = &self.context.records.documents.store;
        let page = store.list(&self.list, after, PAGE).await?;
        self.next = match page.next {
            Some(position) => NextPage::After(position),
            None => NextPage::None,
        };
        let keys = page.documents.into_iter().map(|document| document.key);
        Ok(Some(keys.collect()))
    }
}
