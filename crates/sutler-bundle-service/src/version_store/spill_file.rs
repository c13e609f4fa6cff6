//! Texts by name in an unnamed file, so that tens of thousands of them take no memory.
//!
//! The file disappears with the process; its contents are stored elsewhere too. If the disk refuses a text, it is
//! kept in memory.

use super::TEMP_PREFIX;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Texts by name.
#[derive(Debug)]
pub(super) struct SpillFile {
    folder: PathBuf,
    known: Mutex<SpillIndex>,
}

#[derive(Debug, Default)]
struct SpillIndex {
    /// Created with the first text.
    file: Option<Arc<File>>,
    /// Offset of the next text.
    end: u64,
    places: HashMap<Box<str>, TextLocation>,
    /// Whether the failure of the disk was logged; it is logged once.
    warned: bool,
}

/// Location of a text.
#[derive(Clone, Debug)]
enum TextLocation {
    OnDisk { at: u64, bytes: usize },
    InMemory(Arc<[u8]>),
}

impl SpillFile {
    /// An empty set; the file is created in this folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SpillIndex> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.lock().places.contains_key(name)
    }

    /// Adds a text. The first one of a name stays.
    pub(super) fn keep(&self, name: &str, text: Vec<u8>) {
        let mut known = self.lock();
        if known.places.contains_key(name) {
            return;
        }
        let place = self.append(&mut known, &text).unwrap_or_else(|error| {
            if !std::mem::replace(&mut known.warned, true) {
                let folder = self.folder.display();
                tracing::warn!(%error, %folder, "what bundles say is kept in memory: make room on the disk");
            }
            TextLocation::InMemory(text.into())
        });
        known.places.insert(name.into(), place);
    }

    fn append(&self, known: &mut SpillIndex, text: &[u8]) -> io::Result<TextLocation> {
        let file = match &known.file {
            Some(file) => file.clone(),
            None => known.file.insert(Arc::new(nameless(&self.folder)?)).clone(),
        };
        let (at, bytes) = (known.end, text.len());
        // A partially written text is overwritten.
        file.write_all_at(text, at)?;
        known.end += bytes as u64;
        Ok(TextLocation::OnDisk { at, bytes })
    }

    /// A text, or why it cannot be read.
    pub(super) fn get(&self, name: &str) -> Option<io::Result<Vec<u8>>> {
        let known = self.lock();
        let place = known.places.get(name)?.clone();
        let file = known.file.clone();
        drop(known);
        match (place, file) {
            (TextLocation::InMemory(text), _) => Some(Ok(text.to_vec())),
            (TextLocation::OnDisk { .. }, None) => None,
            (TextLocation::OnDisk { at, bytes }, Some(file)) => {
                let mut text = vec![0; bytes];
                Some(file.read_exact_at(&mut text, at).map(|()| text))
            }
        }
    }
}

/// Creates a file and removes its name.
fn nameless(folder: &Path) -> io::Result<File> {
    // If the process dies in between, the file counts as an unfinished copy.
    let path = folder.join(format!("{TEMP_PREFIX}{}", uuid::Uuid::new_v4()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::SpillFile;
    use std::fs;

    #[test]
    fn texts_are_found_by_their_names_and_leave_nothing_in_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let texts = SpillFile::in_folder(folder.path());
        for (name, text) in [("a", "first"), ("b", ""), ("c", "third"), ("a", "other")] {
            texts.keep(name, text.into());
        }
        for (name, text) in [("a", "first"), ("b", ""), ("c", "third")] {
            let found = texts
                .get(name)
                .expect("it is kept")
                .expect("it can be read");
            assert_eq!(found, text.as_bytes(), "{name}");
        }
        assert!(texts.get("d").is_none() && !texts.has("d") && texts.has("c"));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_text_that_the_disk_does_not_take_is_kept_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let texts = SpillFile::in_folder(&folder.path().join("missing"));
        texts.keep("a", b"first".to_vec());
        let found = texts.get("a").expect("it is kept").expect("it can be read");
        assert_eq!(found, b"first");
    }
}
