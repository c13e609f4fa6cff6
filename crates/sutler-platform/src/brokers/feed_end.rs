//! Finds the present end of the feed, without reading what is in it.
//!
//! Cursors of all stores are numbers that grow with the commits, and what is after a cursor is nothing from the last
//! commit on. So the end is found by halving.

use sutler_journal::{Cursor, Store, StoreError};

/// A cursor behind which nothing was when this was called, except perhaps commits of this moment: they are read twice.
pub(super) async fn end_of_feed(store: &dyn Store) -> Result<Cursor, StoreError> {
    let (mut from, mut to) = (0_u64, 1_u64);
    while has_changes_after(store, to).await? {
        from = to;
        to = to.saturating_mul(2);
    }
    // After `from` there is something, unless it is the beginning; after `to` there is nothing.
    while from + 1 < to {
        let middle = from + (to - from) / 2;
        match has_changes_after(store, middle).await? {
            true => from = middle,
            false => to = middle,
        }
    }
    match has_changes_after(store, from).await? {
        true => Ok(Cursor::of_number(to)),
        false => Ok(Cursor::of_number(from)),
    }
}

async fn has_changes_after(store: &dyn Store, number: u64) -> Result<bool, StoreError> {
    let found = store.changes(&Cursor::of_number(number), 1).await?;
    Ok(!found.changes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::end_of_feed;
    use crate::records::{PlatformKeys, ResourceName};
    use bytes::Bytes;
    use sutler_journal::{Commit, MemoryStore, Store, Write};

    #[tokio::test]
    async fn the_end_is_behind_the_last_commit() {
        let store = MemoryStore::new();
        let name = ResourceName::try_from("n").expect("a name");
        let key = PlatformKeys::default().namespace(&name);
        for commits in 0..40_usize {
            let end = end_of_feed(&store).await.expect("it answers");
            let before = store.changes(&Default::default(), 100).await;
            let before = before.expect("it answers");
            assert_eq!(before.changes.len(), commits);
            assert_eq!(before.next, end, "after {commits} commits");
            let write = Write::Put {
                key: key.clone(),
                terms: Vec::new(),
                body: Bytes::new(),
            };
            let commit = Commit::new().write(write);
            store.commit(&commit).await.expect("it is written");
            let after = store.changes(&end, 100).await.expect("it answers");
            assert_eq!(after.changes.len(), 1);
        }
    }
}
