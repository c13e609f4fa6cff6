//! Changes of a key file: a key is added as the last one, made the first one, or removed.
//!
//! The file is replaced by a new one in one step, so a reader sees all of a change or nothing, and a crash
//! leaves one of the two. Comments stay. A removed id is remembered in a comment and never given to another
//! key: records or backups of the old one may still exist. A removed key is kept in a file of its own
//! (`retired_keys.rs`). Not here: whether records still use a key (`rekey.rs`).

use super::{
    FIRST_KEY, KeyFileError, check_size, create, draft_of, read, retired_keys, set_owner,
    sync_folder,
};
use crate::seal::{KeyId, KeyIdError, KeyRing, KeyRingError};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Beginning of the comment that remembers a removed key.
const RETIRED: &str = "# retired:";

/// Why a key file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditKeyFileError {
    /// It cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// Not an id.
    #[error(transparent)]
    Id(#[from] KeyIdError),
    /// The id belongs to a key, or belonged to one.
    #[error("the id {0} is taken, by a key of the file or by one that was retired: choose another")]
    Taken(KeyId),
    /// There is no such key.
    #[error("the key file has no key {0}")]
    NoKey(KeyId),
    /// The key that seals cannot be removed.
    #[error("the key {0} seals: make another one current first, with `sutler store keys use`")]
    Current(KeyId),
    /// The result would not be a key ring.
    #[error(transparent)]
    Ring(#[from] KeyRingError),
    /// Another process changed the file.
    #[error(
        "the key file {0} was changed meanwhile, so nothing was written: run the command again"
    )]
    ChangedMeanwhile(PathBuf),
}

/// A key file that is being changed; locked against other changes until it is dropped.
pub struct KeyFileEdit {
    path: PathBuf,
    /// Holds the lock.
    file: File,
    /// The content that was read.
    before: Zeroizing<String>,
    text: Zeroizing<String>,
    /// Lines of removed keys.
    removed: Zeroizing<String>,
}

impl KeyFileEdit {
    /// Creates a file with a fresh key, and returns the key's id.
    ///
    /// # Errors
    /// The id is not one, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, id: Option<&str>) -> Result<KeyId, EditKeyFileError> {
        let path = path.as_ref();
        let id = KeyId::parse(id.unwrap_or(FIRST_KEY))?;
        let io = |error| KeyFileError::Io(path.to_owned(), error);
        if path.exists() {
            return Err(io(std::io::ErrorKind::AlreadyExists.into()).into());
        }
        create(path, id.as_str()).map_err(io)?;
        Ok(id)
    }

    /// Opens an existing file, and waits for another process that changes it.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it is not a key ring.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, EditKeyFileError> {
        let named = path.as_ref();
        let io = |error| KeyFileError::Io(named.to_owned(), error);
        // A link is kept: the file that it names is replaced.
        let path = named.canonicalize().map_err(io)?;
        let file = File::open(&path).map_err(io)?;
        file.lock().map_err(io)?;
        let text = read(&path, &file)?;
        let content = |error| KeyFileError::Content(named.to_owned(), error);
        KeyRing::parse(&text).map_err(content)?;
        Ok(Self {
            path,
            file,
            before: text.clone(),
            text,
            removed: Zeroizing::default(),
        })
    }

    /// The keys, with all changes so far.
    ///
    /// # Panics
    /// Never: every change leaves a key ring.
    pub fn ring(&self) -> KeyRing {
        KeyRing::parse(&self.text).expect("a change leaves a key ring")
    }

    /// Adds a fresh key as the last one: it opens and does not seal yet. Without an id it gets the next number.
    ///
    /// # Errors
    /// The id is not one, or is or was in use; or there are too many keys.
    pub fn make(&mut self, id: Option<&str>) -> Result<KeyId, EditKeyFileError> {
        let taken = [self.ring().ids(), self.retired()].concat();
        let id = match id {
            Some(id) => KeyId::parse(id)?,
            None => next_id(&taken)?,
        };
        if taken.contains(&id) {
            return Err(EditKeyFileError::Taken(id));
        }
        let line = KeyRing::fresh_line(id.as_str());
        let lines = self.text.lines().chain(line.lines());
        self.set(joined(lines))?;
        Ok(id)
    }

    /// Makes a key the first one: it seals from now on.
    ///
    /// # Errors
    /// There is no such key.
    pub fn make_current(&mut self, id: &KeyId) -> Result<(), EditKeyFileError> {
        let (own, others) = self.split(id)?;
        // Comments at the beginning describe the file and stay there.
        let is_comment = |line: &&&str| line.is_empty() || line.starts_with('#');
        let head = others.iter().take_while(is_comment).count();
        let (head, rest) = others.split_at(head);
        let lines = head.iter().chain([&own]).chain(rest).copied();
        self.set(joined(lines))
    }

    /// Removes a key that does not seal.
    ///
    /// # Errors
    /// There is no such key, or it seals.
    pub fn remove(&mut self, id: &KeyId) -> Result<(), EditKeyFileError> {
        let (own, others) = self.split(id)?;
        if self.ring().current() == *id {
            return Err(EditKeyFileError::Current(id.clone()));
        }
        let note = format!("{RETIRED} {id}");
        let lines = others.iter().copied().chain([note.as_str()]);
        let (text, removed) = (joined(lines), joined(std::iter::once(own)));
        self.set(text)?;
        self.removed.push_str(&removed);
        Ok(())
    }

    /// Path of the file that [`save`](Self::save) appends removed keys to: that of the key file with `.retired`.
    pub fn retired_file(&self) -> PathBuf {
        retired_keys::path_of(&self.path)
    }

    /// Replaces the file: with mode 600 and the owner of the old one. Removed keys are written to
    /// [`retired_file`](Self::retired_file) before.
    ///
    /// # Errors
    /// It cannot be written, or was changed meanwhile; the old file stays.
    pub fn save(self) -> Result<(), EditKeyFileError> {
        let io = |error| KeyFileError::Io(self.path.clone(), error);
        let old = self.file.metadata().map_err(io)?;
        let present = File::open(&self.path).map_err(io)?;
        let now = present.metadata().map_err(io)?;
        let is_same = (old.dev(), old.ino()) == (now.dev(), now.ino());
        if !is_same || read(&self.path, &present)? != self.before {
            return Err(EditKeyFileError::ChangedMeanwhile(self.path));
        }
        if !self.removed.is_empty() {
            retired_keys::append(&self.path, &self.removed, &old)?;
        }
        let (mut file, draft) = draft_of(&self.path).map_err(io)?;
        let written = set_owner(&file, &old)
            .and_then(|()| file.write_all(self.text.as_bytes()))
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&draft, &self.path));
        if written.is_err() {
            // Nothing of a key is left behind; the first error is the one to report.
            let _ = std::fs::remove_file(&draft);
        }
        written.map_err(io)?;
        Ok(sync_folder(&self.path).map_err(io)?)
    }

    /// The line of a key, and all other lines.
    fn split(&self, id: &KeyId) -> Result<(&str, Vec<&str>), EditKeyFileError> {
        let is_own = |line: &&str| line.trim().split(':').next() == Some(id.as_str());
        let own = self.text.lines().find(is_own);
        let own = own.ok_or_else(|| EditKeyFileError::NoKey(id.clone()))?;
        let others = self.text.lines().filter(|line| !is_own(line));
        Ok((own, others.collect()))
    }

    fn retired(&self) -> Vec<KeyId> {
        let noted = self.text.lines();
        let noted = noted.filter_map(|line| line.strip_prefix(RETIRED));
        noted
            .filter_map(|id| KeyId::parse(id.trim()).ok())
            .collect()
    }

    fn set(&mut self, text: Zeroizing<String>) -> Result<(), EditKeyFileError> {
        KeyRing::parse(&text)?;
        check_size(&self.path, &text)?;
        self.text = text;
        Ok(())
    }
}

fn joined<'l>(lines: impl Iterator<Item = &'l str>) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// `k` and a number that is greater than all others of that form.
fn next_id(taken: &[KeyId]) -> Result<KeyId, KeyIdError> {
    let numbers = taken.iter().filter_map(|id| {
        let number = id.as_str().strip_prefix('k')?;
        number.parse::<u32>().ok()
    });
    let next = numbers.max().unwrap_or(0).saturating_add(1);
    KeyId::parse(&format!("k{next}"))
}

#[cfg(test)]
mod tests {
    use super::{EditKeyFileError, KeyFileEdit};
    use crate::seal::{KeyId, KeyRing};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    fn key_file(folder: &Path) -> PathBuf {
        let path = folder.join("keys");
        KeyRing::file(&path).unwrap();
        path
    }

    fn ids(path: &Path) -> Vec<String> {
        let ring = KeyRing::existing_file(path).unwrap();
        ring.ids().iter().map(KeyId::to_string).collect()
    }

    fn edit(path: &Path, change: impl FnOnce(&mut KeyFileEdit)) {
        let mut edit = KeyFileEdit::open(path).unwrap();
        change(&mut edit);
        edit.save().unwrap();
    }

    #[test]
    fn a_key_is_known_then_current_then_the_old_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let id = |id: &str| KeyId::parse(id).unwrap();
        let first = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("# ours\n{}", first.trim_end())).unwrap();
        edit(&path, |it| assert_eq!(it.make(None).unwrap(), id("k2")));
        assert_eq!(ids(&path), ["k1", "k2"]);
        edit(&path, |it| it.make_current(&id("k2")).unwrap());
        assert_eq!(ids(&path), ["k2", "k1"]);
        edit(&path, |it| {
            let refused = it.remove(&id("k2")).unwrap_err();
            assert!(matches!(refused, EditKeyFileError::Current(_)), "{refused}");
            it.remove(&id("k1")).unwrap();
        });
        assert_eq!(ids(&path), ["k2"]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ours\nk2:"), "{text}");
        assert!(text.ends_with("# retired: k1\n"), "{text}");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "no draft is left");
    }

    #[test]
    fn a_removed_key_is_kept_in_a_file_that_only_its_owner_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let id = |id: &str| KeyId::parse(id).unwrap();
        edit(&path, |it| {
            it.make(None).unwrap();
            it.make(None).unwrap();
        });
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        edit(&path, |it| it.remove(&id("k3")).unwrap());
        edit(&path, |it| it.remove(&id("k2")).unwrap());
        let kept = folder.path().join("keys.retired");
        let found = std::fs::read_to_string(&kept).unwrap();
        assert_eq!(found.lines().collect::<Vec<_>>(), [lines[2], lines[1]]);
        let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&kept, readable).unwrap();
        edit(&path, |it| {
            it.make(None).unwrap();
        });
        let mut refused = KeyFileEdit::open(&path).unwrap();
        refused.remove(&id("k4")).unwrap();
        let refused = refused.save().unwrap_err();
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
        assert_eq!(ids(&path), ["k1", "k4"]);
    }

    /// A key file with a second key, and the error of removing that key.
    fn refused_removal(path: &Path) -> String {
        let before = std::fs::read(path).unwrap();
        let mut edit = KeyFileEdit::open(path).unwrap();
        edit.remove(&KeyId::parse("k2").unwrap()).unwrap();
        let refused = edit.save().unwrap_err().to_string();
        assert_eq!(std::fs::read(path).unwrap(), before, "the key file stays");
        refused
    }

    #[test]
    fn removed_keys_are_never_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        edit(&path, |it| {
            it.make(None).unwrap();
        });
        let kept = folder.path().join("keys.retired");
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, &kept).unwrap();
        let refused = refused_removal(&path);
        assert!(refused.contains("remove it"), "{refused}");
        assert!(!target.exists(), "a missing target is not created");
        std::fs::write(&target, "theirs").unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&target, private).unwrap();
        let refused = refused_removal(&path);
        assert!(refused.contains("remove it"), "{refused}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "theirs");
        std::fs::remove_file(&kept).unwrap();
        std::fs::hard_link(&target, &kept).unwrap();
        let refused = refused_removal(&path);
        assert!(refused.contains("remove it"), "{refused}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "theirs");
        std::fs::remove_file(&kept).unwrap();
        std::fs::create_dir(&kept).unwrap();
        refused_removal(&path);
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_and_not_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let first = std::fs::read_to_string(&path).unwrap();
        let last = KeyRing::fresh_line("last");
        let comment = format!("# {}\n", "x".repeat(64 * 1024));
        std::fs::write(&path, format!("{first}{comment}{}", *last)).unwrap();
        let refused = KeyRing::existing_file(&path).unwrap_err();
        assert!(refused.to_string().contains("larger than"), "{refused}");
        assert!(KeyFileEdit::open(&path).is_err());
    }

    #[test]
    fn a_change_of_a_file_that_was_written_in_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let mut late = KeyFileEdit::open(&path).unwrap();
        late.make(Some("late")).unwrap();
        let first = std::fs::read_to_string(&path).unwrap();
        let other = KeyRing::fresh_line("other");
        std::fs::write(&path, format!("{first}{}", *other)).unwrap();
        let refused = late.save().unwrap_err();
        assert!(refused.to_string().contains("run the command again"));
        assert_eq!(ids(&path), ["k1", "other"]);
    }

    #[test]
    fn an_id_is_never_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let mut edit = KeyFileEdit::open(&path).unwrap();
        edit.make(Some("k7")).unwrap();
        edit.remove(&KeyId::parse("k7").unwrap()).unwrap();
        for taken in ["k1", "k7"] {
            let refused = edit.make(Some(taken)).unwrap_err();
            assert!(matches!(refused, EditKeyFileError::Taken(_)), "{refused}");
        }
        assert!(edit.make(Some("no spaces")).is_err());
        assert_eq!(edit.make(None).unwrap().as_str(), "k8");
        let absent = KeyId::parse("k9").unwrap();
        let refused = edit.make_current(&absent).unwrap_err();
        assert!(matches!(refused, EditKeyFileError::NoKey(_)), "{refused}");
    }

    #[test]
    fn a_change_of_a_replaced_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let mut late = KeyFileEdit::open(&path).unwrap();
        late.make(Some("late")).unwrap();
        let copy = folder.path().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        std::fs::rename(&copy, &path).unwrap();
        let refused = late.save().unwrap_err();
        assert!(refused.to_string().contains("run the command again"));
        assert_eq!(ids(&path), ["k1"]);
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        edit(&link, |it| {
            it.make(None).unwrap();
        });
        assert!(link.is_symlink());
        assert_eq!(ids(&path), ["k1", "k2"]);
    }
}
