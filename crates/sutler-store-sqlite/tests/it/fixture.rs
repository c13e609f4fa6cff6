//! Short functions for the tests of this crate.

use bytes::Bytes;
use std::path::PathBuf;
pub(crate) use sutler_journal::conformance::samples::{THING, key, realm};
use sutler_journal::{Commit, Key, List, Store, Term};
use tempfile::TempDir;

/// A directory on a real disk.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// Path of the store in it.
pub(crate) fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("store.db")
}

/// A commit that creates a document with one term.
pub(crate) fn insert(id: &str) -> Commit {
    let terms = vec![Term::new("plan", "small")];
    Commit::new().insert(key(id), terms, Bytes::from_static(b"body"))
}

/// Every id in the store, in order.
pub(crate) async fn ids(store: &dyn Store) -> Vec<String> {
    let list = List::Prefix(Key::prefix(&realm(), THING, &[]).expect("a prefix"));
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = store
            .list(&list, after.as_ref(), 100)
            .await
            .expect("a page");
        ids.extend(page.documents.iter().map(|d| d.key.id(0).to_owned()));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}
