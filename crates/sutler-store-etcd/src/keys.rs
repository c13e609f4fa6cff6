//! Keys in etcd: the prefix of the store, a NUL byte, one letter, and a name.
//!
//! | letter | name | holds |
//! |---|---|---|
//! | `C` | commit id | record of an applied commit, its time and changes: the feed |
//! | `D` | document key | a document: version, terms, body |
//! | `F` | – | the layout version |
//! | `H` | – | the time; written by every change, so its revision is that of the newest change |
//! | `K` | – | number of swept operations |
//! | `N` | worker | that this worker id was used, and when |
//! | `O` | operation id | an operation: its row, and its small contents |
//! | `T` | – | the revision up to which the feed was trimmed |
//! | `W` | worker | a live lease: etcd deletes the key when the lease expires |
//! | `b` | commit id | an *overflow value*: the larger contents of operations that a commit wrote |
//! | `l` | operation id | number of chunks and bytes of the log |
//! | `l` | operation id, number | a chunk of the log |
//! | `v` | commit id | that every attempt of a commit so far is void |
//!
//! Capital letters are followed by every replica (`watch_view.rs`), small ones are read when needed.
//! Names are raw bytes: etcd sorts them as the journal does. A prefix has no NUL byte, so no store
//! contains another.

use sutler_journal::{CommitId, Key, OperationId, WorkerId};
use uuid::Uuid;

const COMMIT: u8 = b'C';
const DOCUMENT: u8 = b'D';
const FORMAT: u8 = b'F';
const HEAD: u8 = b'H';
const CLEANED: u8 = b'K';
const NAME: u8 = b'N';
const OPERATION: u8 = b'O';
const TRIMMED: u8 = b'T';
const WORKER: u8 = b'W';
const OVERFLOW: u8 = b'b';
const LOG: u8 = b'l';
const VOID: u8 = b'v';

/// Target of a watched key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyTarget<'a> {
    Commit(CommitId),
    Document(&'a [u8]),
    Head,
    Cleaned,
    Name(WorkerId),
    Operation(OperationId),
    Trimmed,
    Worker(WorkerId),
    /// A key that is not needed in the view.
    Other,
}

/// Builds and parses the keys of one store.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: Vec<u8>,
}

impl Keys {
    /// Keys of the store with this prefix.
    pub(crate) fn below(prefix: &str) -> Self {
        let mut prefix = prefix.as_bytes().to_vec();
        prefix.push(0);
        Self { prefix }
    }

    fn key(&self, letter: u8, name: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 1 + name.len());
        key.extend_from_slice(&self.prefix);
        key.push(letter);
        key.extend_from_slice(name);
        key
    }

    pub(crate) fn commit(&self, id: CommitId) -> Vec<u8> {
        self.key(COMMIT, id.0.as_bytes())
    }

    pub(crate) fn document(&self, key: &Key) -> Vec<u8> {
        self.key(DOCUMENT, key.as_bytes())
    }

    pub(crate) fn format(&self) -> Vec<u8> {
        self.key(FORMAT, &[])
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        self.key(HEAD, &[])
    }

    pub(crate) fn cleaned(&self) -> Vec<u8> {
        self.key(CLEANED, &[])
    }

    pub(crate) fn name(&self, worker: WorkerId) -> Vec<u8> {
        self.key(NAME, worker.0.as_bytes())
    }

    pub(crate) fn operation(&self, id: OperationId) -> Vec<u8> {
        self.key(OPERATION, id.0.as_bytes())
    }

    pub(crate) fn trimmed(&self) -> Vec<u8> {
        self.key(TRIMMED, &[])
    }

    pub(crate) fn worker(&self, worker: WorkerId) -> Vec<u8> {
        self.key(WORKER, worker.0.as_bytes())
    }

    pub(crate) fn overflow(&self, commit: CommitId) -> Vec<u8> {
        self.key(OVERFLOW, commit.0.as_bytes())
    }

    /// Range of all overflow values; the end is exclusive.
    pub(crate) fn overflows(&self) -> (Vec<u8>, Vec<u8>) {
        (self.key(OVERFLOW, &[]), self.key(OVERFLOW + 1, &[]))
    }

    pub(crate) fn void(&self, commit: CommitId) -> Vec<u8> {
        self.key(VOID, commit.0.as_bytes())
    }

    pub(crate) fn log_chunk(&self, operation: OperationId, number: u32) -> Vec<u8> {
        let mut key = self.key(LOG, operation.0.as_bytes());
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// Length of an operation's log; sorts before its chunks.
    pub(crate) fn log_length(&self, operation: OperationId) -> Vec<u8> {
        self.key(LOG, operation.0.as_bytes())
    }

    /// Range of the whole log of an operation; the end is exclusive.
    pub(crate) fn log(&self, operation: OperationId) -> (Vec<u8>, Vec<u8>) {
        let from = self.key(LOG, operation.0.as_bytes());
        let mut to = from.clone();
        to.extend_from_slice(&[u8::MAX; 5]);
        (from, to)
    }

    /// Range of all logs; the end is exclusive.
    pub(crate) fn logs(&self) -> (Vec<u8>, Vec<u8>) {
        (self.key(LOG, &[]), self.key(LOG + 1, &[]))
    }

    /// The operation of a key of a log or of one of its chunks.
    pub(crate) fn log_of(&self, key: &[u8]) -> Option<OperationId> {
        let (letter, name) = key.strip_prefix(self.prefix.as_slice())?.split_first()?;
        let id = Uuid::from_slice(name.get(..16)?).ok()?;
        (*letter == LOG).then_some(OperationId(id))
    }

    /// Range of all keys that replicas follow; the end is exclusive.
    pub(crate) fn followed(&self) -> (Vec<u8>, Vec<u8>) {
        (self.key(b'A', &[]), self.key(b'Z' + 1, &[]))
    }

    /// Target of a key; `None` if it does not belong to this store.
    pub(crate) fn place<'a>(&self, key: &'a [u8]) -> Option<KeyTarget<'a>> {
        let (letter, name) = key.strip_prefix(self.prefix.as_slice())?.split_first()?;
        Some(match *letter {
            COMMIT => KeyTarget::Commit(CommitId(Uuid::from_slice(name).ok()?)),
            DOCUMENT => KeyTarget::Document(name),
            HEAD => KeyTarget::Head,
            CLEANED => KeyTarget::Cleaned,
            NAME => KeyTarget::Name(WorkerId(Uuid::from_slice(name).ok()?)),
            OPERATION => KeyTarget::Operation(OperationId(Uuid::from_slice(name).ok()?)),
            TRIMMED => KeyTarget::Trimmed,
            WORKER => KeyTarget::Worker(WorkerId(Uuid::from_slice(name).ok()?)),
            _ => KeyTarget::Other,
        })
    }

    /// The commit of an overflow value's key.
    pub(crate) fn overflow_of(&self, key: &[u8]) -> Option<CommitId> {
        let (letter, name) = key.strip_prefix(self.prefix.as_slice())?.split_first()?;
        let id = Uuid::from_slice(name).ok()?;
        (*letter == OVERFLOW).then_some(CommitId(id))
    }

    /// The number in a log chunk's key.
    pub(crate) fn chunk_number(&self, key: &[u8]) -> Option<u32> {
        let number = key.get(self.prefix.len() + 17..)?;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyTarget, Keys};
    use sutler_journal::{CommitId, Key, Kind, OperationId, Realm, WorkerId};

    #[test]
    fn every_key_parses_to_its_target() {
        let keys = Keys::below("sutler");
        let key = Key::new(&Realm::new("r").unwrap(), Kind::new("k"), &["a/b"]).unwrap();
        let (commit, operation) = (CommitId(uuid::Uuid::max()), OperationId::fresh());
        let worker = WorkerId::fresh();
        for (made, place) in [
            (keys.commit(commit), KeyTarget::Commit(commit)),
            (keys.document(&key), KeyTarget::Document(key.as_bytes())),
            (keys.head(), KeyTarget::Head),
            (keys.cleaned(), KeyTarget::Cleaned),
            (keys.name(worker), KeyTarget::Name(worker)),
            (keys.operation(operation), KeyTarget::Operation(operation)),
            (keys.trimmed(), KeyTarget::Trimmed),
            (keys.worker(worker), KeyTarget::Worker(worker)),
            (keys.format(), KeyTarget::Other),
        ] {
            assert_eq!(keys.place(&made), Some(place));
            let (from, to) = keys.followed();
            assert!(from <= made && made < to, "{place:?} is followed");
        }
        assert_eq!(keys.overflow_of(&keys.overflow(commit)), Some(commit));
        assert_eq!(keys.log_of(&keys.log_chunk(operation, 7)), Some(operation));
        assert_eq!(keys.chunk_number(&keys.log_chunk(operation, 7)), Some(7));
    }

    #[test]
    fn no_store_contains_another() {
        let (outer, inner) = (Keys::below("a"), Keys::below("a/D"));
        let (from, to) = outer.followed();
        let key = inner.head();
        assert!(key < from || key >= to);
        assert_eq!(outer.place(&key), None);
    }
}
