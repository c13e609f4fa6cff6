//! Short functions for the tests of this crate.

use bytes::Bytes;
use std::path::PathBuf;
use sutler_journal::{Commit, Key, Kind, List, Realm, Store, Term};
use tempfile::TempDir;

pub(crate) const THING: Kind = Kind::new("thing");

/// A directory on a real disk.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// Path of the store in it.
pub(crate) fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("store.db")
}

pub(crate) fn realm() -> Realm {
    Realm::new("test").expect("a realm")
}

pub(crate) fn key(id: &str) -> Key {
    Key::new(&realm(), THING, &[id]).expect("a key")
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
