//! Checks the preconditions of a commit against the file, and applies it.
//!
//! [`WriteSession::commit`] checks every expectation and every write before it changes anything: so a stale
//! commit has written nothing. `Commit::check` ensures that no two writes contend for one
//! record, so checking the state before the commit is enough. Rows read by the checks are cached
//! ([`CommitCache`]), so that nothing is looked up twice. Operations are in `operations.rs`.

use super::job::JobError;
use super::operations::OperationHead;
use super::recent_commits::CommitIdLookup;
use super::write_session::WriteSession;
use crate::codec;
use crate::staged_commit::{StagedCommit, WriteExtra};
use crate::unindexed_documents::UnindexedDocument;
use rusqlite::Result;
use sutler_journal::{
    Commit, Expect, Key, OperationId, StaleItem, Start, StoreTime, Version, Write,
};

/// Result of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ApplyResult {
    /// It is applied, now or before.
    Applied,
    /// A condition did not hold, and nothing was written.
    Stale(StaleItem),
}

/// A document as found.
pub(super) struct FoundDocument {
    pub(super) number: i64,
    version: [u8; 16],
    terms: Vec<u8>,
    /// It is not in the indexes yet.
    unindexed: bool,
}

/// Rows that a commit has read, and its lanes.
#[derive(Default)]
pub(super) struct CommitCache<'a> {
    documents: Vec<(&'a Key, Option<FoundDocument>)>,
    operations: Vec<(OperationId, Option<OperationHead>)>,
    pub(super) lanes: Vec<(&'a Key, i64)>,
}

impl WriteSession<'_> {
    /// Applies a commit completely or not at all.
    pub(super) fn commit(
        &mut self,
        staged: &StagedCommit,
        now: StoreTime,
    ) -> Result<ApplyResult, JobError> {
        let commit = &staged.commit;
        if self.was_applied(commit)? {
            return Ok(ApplyResult::Applied);
        }
        let mut cache = CommitCache::default();
        for (n, expect) in commit.expects().iter().enumerate() {
            if !self.expectation_holds(expect, &mut cache, now)? {
                return Ok(ApplyResult::Stale(StaleItem::Expect(n)));
            }
        }
        for (n, write) in commit.writes().iter().enumerate() {
            if !self.write_allowed(write, &mut cache, now)? {
                return Ok(ApplyResult::Stale(StaleItem::Write(n)));
            }
        }
        self.subjects.clear();
        for (write, extra) in commit.writes().iter().zip(&staged.extras) {
            self.write(commit, write, extra, &mut cache, now)?;
        }
        self.remember(commit, now)?;
        Ok(ApplyResult::Applied)
    }

    fn was_applied(&mut self, commit: &Commit) -> Result<bool> {
        match self.memory.recent.lookup(commit.id().0.as_u128()) {
            CommitIdLookup::Known => Ok(true),
            CommitIdLookup::New => Ok(false),
            CommitIdLookup::CheckFile => {
                let id = commit.id().0.into_bytes();
                self.sql.feed_knows.exists([&id[..]])
            }
        }
    }

    fn expectation_holds<'a>(
        &mut self,
        expect: &'a Expect,
        cache: &mut CommitCache<'a>,
        now: StoreTime,
    ) -> Result<bool> {
        match expect {
            Expect::Absent(key) => Ok(self.cached_document(key, cache)?.is_none()),
            Expect::Version(key, Version(read)) | Expect::Unchanged(key, Version(read)) => {
                let found = self.cached_document(key, cache)?;
                Ok(found.is_some_and(|found| found.version == *read.0.as_bytes()))
            }
            Expect::Fence(id, fence) => {
                let boot = self.memory.tally.boot;
                let Some(head) = self.cached_operation(*id, cache)? else {
                    return Ok(false);
                };
                let claimed = head.runs_in(boot) && head.fence == fence.0 as i64;
                let worker = head.worker;
                Ok(claimed && worker.is_some_and(|worker| self.shared.leases.holds(worker, now)))
            }
        }
    }

    fn write_allowed<'a>(
        &mut self,
        write: &'a Write,
        cache: &mut CommitCache<'a>,
        now: StoreTime,
    ) -> Result<bool> {
        match write {
            Write::Start(new) => {
                let alive = match new.start {
                    Start::Waiting | Start::Ready(_) => true,
                    Start::Claimed(worker) => self.shared.leases.holds(worker, now),
                };
                Ok(alive && self.is_free(new.id, cache)?)
            }
            Write::Import(operation) => self.is_free(operation.row.id, cache),
            Write::Advance { operation, .. } => {
                let head = self.cached_operation(*operation, cache)?;
                Ok(head.is_some_and(|head| !head.is_done()))
            }
            Write::Reseal {
                operation, read, ..
            } => match self
                .cached_operation(*operation, cache)?
                .map(|head| head.number)
            {
                Some(number) => self.is_as_read(number, (&read.0, &read.1)),
                None => Ok(false),
            },
            Write::Put { .. }
            | Write::Remove(_)
            | Write::Cancel(_)
            | Write::Wake(_)
            | Write::Unpin(_) => Ok(true),
        }
    }

    /// Ids are created in nearly ascending order: one above all others is not looked up.
    fn is_free(&mut self, id: OperationId, cache: &mut CommitCache<'_>) -> Result<bool> {
        if id.0.as_u128() > self.memory.last.op_id {
            return Ok(true);
        }
        Ok(self.cached_operation(id, cache)?.is_none())
    }

    pub(super) fn cached_operation<'s>(
        &mut self,
        id: OperationId,
        cache: &'s mut CommitCache<'_>,
    ) -> Result<Option<&'s OperationHead>> {
        let place = cache.operations.iter().position(|(other, _)| *other == id);
        let place = match place {
            Some(place) => place,
            None => {
                cache.operations.push((id, self.find_operation(id)?));
                cache.operations.len() - 1
            }
        };
        Ok(cache
            .operations
            .get(place)
            .and_then(|(_, head)| head.as_ref()))
    }

    fn cached_document<'s, 'a>(
        &mut self,
        key: &'a Key,
        cache: &'s mut CommitCache<'a>,
    ) -> Result<Option<&'s FoundDocument>> {
        let place = cache.documents.iter().position(|(other, _)| *other == key);
        let place = match place {
            Some(place) => place,
            None => {
                cache.documents.push((key, self.find_document(key)?));
                cache.documents.len() - 1
            }
        };
        Ok(cache
            .documents
            .get(place)
            .and_then(|(_, found)| found.as_ref()))
    }

    fn find_document(&mut self, key: &Key) -> Result<Option<FoundDocument>> {
        if let Some(doc) = self.find_unindexed(key.as_bytes()) {
            return Ok(Some(FoundDocument {
                number: doc.number,
                version: doc.version,
                terms: doc.terms,
                unindexed: true,
            }));
        }
        let mut rows = self.sql.doc_find.query([key.as_bytes()])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        Ok(Some(FoundDocument {
            number: row.get(0)?,
            version: row.get(1)?,
            terms: row.get_ref(2)?.as_blob()?.to_vec(),
            unindexed: false,
        }))
    }

    fn write<'a>(
        &mut self,
        commit: &Commit,
        write: &'a Write,
        extra: &WriteExtra,
        cache: &mut CommitCache<'a>,
        now: StoreTime,
    ) -> Result<(), JobError> {
        match (write, extra) {
            (Write::Put { key, body, .. }, WriteExtra::Terms(terms)) => {
                self.put(commit, key, terms, body, cache)?;
            }
            (Write::Remove(key), _) => self.remove(key, cache)?,
            (Write::Start(new), WriteExtra::QueueAndVerb { queue, verb }) => {
                self.start(new, (*queue, *verb), cache, now)?;
            }
            (Write::Import(operation), WriteExtra::QueueAndVerb { queue, verb }) => {
                self.import(operation, (*queue, *verb), cache, now)?;
            }
            (
                Write::Advance {
                    operation,
                    next,
                    detail,
                    progress,
                },
                _,
            ) => self.advance(*operation, *next, (detail, progress), cache, now)?,
            (Write::Cancel(id), _) => self.cancel(*id)?,
            (Write::Wake(id), _) => self.wake(*id, now)?,
            (Write::Unpin(id), _) => self.unpin(*id)?,
            (
                Write::Reseal {
                    operation,
                    detail,
                    request,
                    progress,
                    ..
                },
                _,
            ) => self.reseal(*operation, (detail, request, progress))?,
            (Write::Put { .. } | Write::Start(_) | Write::Import(_), _) => {
                return Err(sutler_journal::StoreError::new("a commit was staged wrongly").into());
            }
        }
        Ok(())
    }

    fn put<'a>(
        &mut self,
        commit: &Commit,
        key: &'a Key,
        terms: &[u8],
        body: &[u8],
        cache: &mut CommitCache<'a>,
    ) -> Result<()> {
        let id = commit.id().0.into_bytes();
        let version = &id[..];
        let found = self.cached_document(key, cache)?;
        let found = found.map(|found| (found.number, found.unindexed, found.terms.clone()));
        let number = match found {
            Some((number, unindexed, old)) => {
                self.sql
                    .doc_replace
                    .execute((number, version, terms, body))?;
                match unindexed {
                    true => self.put_unindexed(number, key, id, terms),
                    false => self.change_terms(number, key, &old, terms)?,
                }
                number
            }
            None => self.add_document(id, key, terms, body)?,
        };
        cache.lanes.push((key, number));
        self.subjects.put(key);
        Ok(())
    }

    fn add_document(
        &mut self,
        version: [u8; 16],
        key: &Key,
        terms: &[u8],
        body: &[u8],
    ) -> Result<i64> {
        let lane = self.find_bare_lane(key)?;
        let number = lane.unwrap_or(self.memory.last.doc + 1);
        self.sql
            .doc_add
            .execute((number, &version[..], key.as_bytes(), terms, body))?;
        if lane.is_some() {
            // Its number is below the range in which unindexed documents are searched.
            self.delete_bare_lane(key.as_bytes())?;
            self.sql.doc_file.execute((key.as_bytes(), number))?;
            self.enter_terms(number, key.as_bytes(), terms)?;
        } else {
            self.memory.last.doc = number;
            self.put_unindexed(number, key, version, terms);
        }
        Ok(number)
    }

    fn put_unindexed(&mut self, number: i64, key: &Key, version: [u8; 16], terms: &[u8]) {
        let doc = UnindexedDocument {
            number,
            version,
            terms: terms.to_vec(),
        };
        self.set_unindexed(key.as_bytes(), Some(doc));
    }

    /// Changes only the terms that differ.
    fn change_terms(&mut self, number: i64, key: &Key, old: &[u8], new: &[u8]) -> Result<()> {
        if old == new {
            return Ok(());
        }
        let ids = codec::ids_of(key.as_bytes());
        for term in codec::terms(old) {
            if !codec::terms(new).any(|other| other == term) {
                self.sql.term_delete.execute((term.0, term.1, ids))?;
            }
        }
        for term in codec::terms(new) {
            if !codec::terms(old).any(|other| other == term) {
                self.sql.term_add.execute((term.0, term.1, ids, number))?;
            }
        }
        Ok(())
    }

    /// Removes a document. Its lane stays while there are operations in it.
    fn remove<'a>(&mut self, key: &'a Key, cache: &mut CommitCache<'a>) -> Result<()> {
        let Some(found) = self.cached_document(key, cache)? else {
            return Ok(());
        };
        let (number, unindexed, old) = (found.number, found.unindexed, found.terms.clone());
        if unindexed {
            self.set_unindexed(key.as_bytes(), None);
        } else {
            self.change_terms(number, key, &old, &[])?;
            self.sql.doc_unfile.execute([key.as_bytes()])?;
        }
        self.sql.doc_delete.execute([number])?;
        cache.lanes.retain(|(other, _)| *other != key);
        if self.sql.lane_is_used.exists([number])? {
            self.add_bare_lane(key, number)?;
        }
        self.subjects.removed(key);
        Ok(())
    }

    pub(super) fn delete_bare_lane(&mut self, key: &[u8]) -> Result<()> {
        let deleted = self.sql.lane_delete.execute([key])?;
        self.memory.tally.lanes -= deleted as i64;
        Ok(())
    }

    pub(super) fn find_bare_lane(&mut self, key: &Key) -> Result<Option<i64>> {
        if self.memory.tally.lanes == 0 {
            return Ok(None);
        }
        let mut rows = self.sql.lane_find.query([key.as_bytes()])?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    fn add_bare_lane(&mut self, key: &Key, number: i64) -> Result<()> {
        self.sql.lane_add.execute((key.as_bytes(), number))?;
        let tally = &mut self.memory.tally;
        tally.last = number.max(tally.last);
        tally.lanes += 1;
        Ok(())
    }

    /// The number of a lane; assigns one if it has neither a document nor operations yet.
    pub(super) fn lane_number<'a>(
        &mut self,
        key: &'a Key,
        cache: &mut CommitCache<'a>,
    ) -> Result<i64> {
        if let Some((_, number)) = cache.lanes.iter().find(|(other, _)| *other == key) {
            return Ok(*number);
        }
        // Documents in `cache` are from before this commit: it may have removed them since.
        let number = match self.find_document(key)? {
            Some(found) => found.number,
            None => match self.find_bare_lane(key)? {
                Some(number) => number,
                None => {
                    self.memory.last.doc += 1;
                    let number = self.memory.last.doc;
                    self.add_bare_lane(key, number)?;
                    number
                }
            },
        };
        cache.lanes.push((key, number));
        Ok(number)
    }

    /// Writes the one row of the feed that also records the commit's id.
    fn remember(&mut self, commit: &Commit, now: StoreTime) -> Result<()> {
        self.memory.last.seq += 1;
        let id = commit.id().0.into_bytes();
        let row = (
            self.memory.last.seq,
            now.0,
            &id[..],
            self.subjects.encoded(),
        );
        self.sql.feed_add.execute(row)?;
        self.feed_hint = true;
        self.memory.recent.add(commit.id().0.as_u128());
        Ok(())
    }
}
