//! State of the writer: its statements, and its memory between groups.
//!
//! All of the memory can be read from the file again, and is, whenever a transaction is
//! rolled back ([`WriterState::reload`]). Only the expiry of leases is not in the file (`lease_table.rs`).

use super::index_backfill::BackfillRun;
use super::leases::{LeaseCounts, RunningLease, RunningOperations};
use super::recent_commits::RecentCommits;
use super::statements::Statements;
use crate::codec::{self, Subjects};
use crate::interned_strings::Word;
use crate::poll_cache::TouchedOperations;
use crate::sql;
use crate::store::SqliteShared;
use crate::unindexed_documents::UnindexedDocument;
use rusqlite::{Connection, OptionalExtension, Result};
use std::collections::HashMap;
use sutler_journal::{OperationId, StoreTime, WorkerId};
use uuid::Uuid;

/// The counters in the file's one-row table.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) boot: i64,
    pub(super) accepted: i64,
    pub(super) terminal: i64,
    pub(super) cleaned: i64,
    /// The feed is trimmed up to this number.
    pub(super) trimmed: i64,
    /// All documents up to this number are in the indexes.
    pub(super) indexed: i64,
    /// The largest number of a lane without a document; it is not assigned again.
    pub(super) last: i64,
    /// Number of lanes without a document.
    pub(super) lanes: i64,
}

/// The last numbers assigned.
#[derive(Default)]
pub(super) struct LastNumbers {
    pub(super) doc: i64,
    pub(super) op: i64,
    pub(super) seq: i64,
    /// No operation has a larger id.
    pub(super) op_id: u128,
}

/// In-memory state of the writer.
#[derive(Default)]
pub(super) struct WriterState {
    pub(super) running: RunningOperations,
    pub(super) recent: RecentCommits,
    pub(super) last: LastNumbers,
    pub(super) tally: Tally,
    /// The counters in the file.
    written: Tally,
    /// Claims of the open transaction, by number and fence.
    pub(super) claimed: Vec<(i64, i64)>,
    /// Unindexed documents are being indexed.
    pub(super) backfill: Option<BackfillRun>,
}

impl WriterState {
    /// Starts a new boot: all leases of earlier ones are void.
    pub(super) fn of_new_boot(db: &Connection) -> Result<Self> {
        let mut memory = Self::default();
        memory.reload_numbers(db)?;
        memory.tally.boot += 1;
        write_tally(&mut db.prepare(sql::TALLY_WRITE)?, memory.tally)?;
        memory.written = memory.tally;
        Ok(memory)
    }

    /// Reads everything from the file again; the expiry of leases stays.
    pub(super) fn reload(&mut self, db: &Connection) -> Result<()> {
        // The workers of a group of unknown outcome got no response, so none of these is running.
        for claim in &self.claimed {
            db.execute(sql::OP_UNCLAIM, *claim)?;
        }
        self.claimed.clear();
        self.reload_numbers(db)?;
        self.reload_running(db)
    }

    fn reload_numbers(&mut self, db: &Connection) -> Result<()> {
        self.tally = db.query_row(sql::TALLY_READ, [], |row| {
            Ok(Tally {
                boot: row.get(0)?,
                accepted: row.get(1)?,
                terminal: row.get(2)?,
                cleaned: row.get(3)?,
                trimmed: row.get(4)?,
                indexed: row.get(5)?,
                last: row.get(6)?,
                lanes: row.get(7)?,
            })
        })?;
        self.written = self.tally;
        let (last, commit) = db.query_row(sql::LAST_NUMBERS, [], |row| {
            let id = |column| -> Result<u128> {
                let id: Option<Vec<u8>> = row.get(column)?;
                Ok(id.map_or(0, |id| number_of(&id)))
            };
            let last = LastNumbers {
                doc: row.get(0)?,
                op: row.get(1)?,
                seq: row.get(2)?,
                op_id: id(3)?,
            };
            Ok((last, id(4)?))
        })?;
        self.last = last;
        // No number is assigned twice, even if its row is gone.
        self.last.doc = self.last.doc.max(self.tally.indexed);
        self.last.seq = self.last.seq.max(self.tally.trimmed);
        self.recent = RecentCommits::above(commit);
        Ok(())
    }

    fn reload_running(&mut self, db: &Connection) -> Result<()> {
        self.running.forget();
        let mut statement = db.prepare(sql::OP_RUNNING)?;
        let mut rows = statement.query([self.tally.boot])?;
        while let Some(row) = rows.next()? {
            let id: [u8; 16] = row.get(1)?;
            let worker: [u8; 16] = row.get(5)?;
            let running = RunningLease {
                id: OperationId(Uuid::from_bytes(id)),
                queue: row.get(2)?,
                due: row.get(3)?,
                cancel: row.get(4)?,
            };
            let worker = WorkerId(Uuid::from_bytes(worker));
            self.running.give(worker, row.get(0)?, running);
        }
        Ok(())
    }
}

fn number_of(id: &[u8]) -> u128 {
    codec::uuid(id).map_or(u128::MAX, |id| id.as_u128())
}

fn write_tally(statement: &mut rusqlite::Statement<'_>, tally: Tally) -> Result<()> {
    statement.execute((
        tally.boot,
        tally.accepted,
        tally.terminal,
        tally.cleaned,
        tally.trimmed,
        tally.indexed,
        tally.last,
        tally.lanes,
    ))?;
    Ok(())
}

/// The writer with an open file.
pub(crate) struct WriteSession<'c> {
    pub(super) sql: Statements<'c>,
    pub(super) db: &'c Connection,
    pub(super) memory: &'c mut WriterState,
    pub(super) shared: &'c SqliteShared,
    pub(super) subjects: Subjects,
    /// An operation may have become claimable in this group.
    pub(super) hint: bool,
    /// The feed has grown in this group.
    pub(super) feed_hint: bool,
    /// Strings of this group; published once it is durable.
    learnt: Vec<(Word, i64)>,
    /// Changes of this group to unindexed documents; published once it is durable.
    unindexed: HashMap<Box<[u8]>, Option<UnindexedDocument>>,
    /// Operations this group wrote to; removed from the poll cache once it is durable.
    pub(super) touched: TouchedOperations,
}

impl<'c> WriteSession<'c> {
    pub(super) fn new(
        db: &'c Connection,
        shared: &'c SqliteShared,
        memory: &'c mut WriterState,
    ) -> Result<Self> {
        Ok(Self {
            sql: Statements::prepare(db)?,
            db,
            memory,
            shared,
            subjects: Subjects::default(),
            hint: false,
            feed_hint: false,
            learnt: Vec::new(),
            unindexed: HashMap::new(),
            touched: TouchedOperations::default(),
        })
    }

    pub(super) fn now(&self) -> StoreTime {
        self.shared.settings.clock.now()
    }

    pub(super) fn begin(&mut self) -> Result<()> {
        self.sql.begin.execute([])?;
        Ok(())
    }

    pub(super) fn commit_transaction(&mut self) -> Result<()> {
        self.sql.commit.execute([])?;
        self.memory.written = self.memory.tally;
        Ok(())
    }

    /// Writes one row per group, and only if a counter changed.
    pub(super) fn write_tally(&mut self) -> Result<()> {
        if self.memory.tally == self.memory.written {
            return Ok(());
        }
        write_tally(&mut self.sql.tally_write, self.memory.tally)
    }

    /// Rolls the open transaction back, if the database has not, and reads the memory from the
    /// file again. Returns `false` if that failed.
    pub(super) fn rolled_back(&mut self) -> bool {
        let ended = self.abandon();
        if ended {
            self.memory.claimed.clear();
        }
        ended && self.memory.reload(self.db).is_ok()
    }

    /// Drops a group of unknown outcome; the memory is read again when the file is opened
    /// again. Claims of the group are kept until then: no worker knows of them.
    pub(super) fn abandon(&mut self) -> bool {
        self.hint = false;
        self.feed_hint = false;
        self.learnt.clear();
        self.unindexed.clear();
        self.touched.all();
        self.shared.polls.invalidate(&mut self.touched);
        self.memory.backfill = None;
        self.db.is_autocommit() || self.db.execute_batch("ROLLBACK").is_ok()
    }

    /// After the responses to a group: wakes workers and readers of the feed.
    pub(super) fn give_hints(&mut self) {
        self.memory.claimed.clear();
        if std::mem::take(&mut self.hint) {
            self.shared.hints.send_modify(|hints| *hints += 1);
        }
        if std::mem::take(&mut self.feed_hint) {
            self.shared.feed_hints.send_modify(|hints| *hints += 1);
        }
    }

    /// Counts of leases.
    pub(crate) fn leases(&self, now: StoreTime) -> LeaseCounts {
        self.memory.running.counts(&self.shared.leases, now)
    }

    /// An unindexed document, including the changes of this group.
    pub(super) fn find_unindexed(&self, key: &[u8]) -> Option<UnindexedDocument> {
        match self.unindexed.get(key) {
            Some(known) => known.clone(),
            None => self.shared.unindexed.find(key),
        }
    }

    /// Records the new state of an unindexed document; `None`: it must be read from the file.
    pub(super) fn set_unindexed(&mut self, key: &[u8], doc: Option<UnindexedDocument>) {
        self.unindexed.insert(key.into(), doc);
    }

    /// Before the responses to a durable group: publishes its strings, documents and claims.
    pub(super) fn publish(&mut self) {
        self.shared.polls.invalidate(&mut self.touched);
        self.memory.running.publish(&self.shared.leases);
        let changes = self.unindexed.drain();
        self.shared.unindexed.publish(self.memory.last.seq, changes);
        for (word, number) in self.learnt.drain(..) {
            self.shared.words.learn(word, number);
        }
    }

    /// Assigns a number to a string.
    pub(crate) fn learn(&mut self, word: &Word) -> Result<i64> {
        let known = self.known_word(word)?;
        let number = match known {
            Some(number) => number,
            None => self.sql.word_add.insert([word])?,
        };
        self.learnt.push((word.clone(), number));
        Ok(number)
    }

    pub(super) fn known_word(&mut self, word: &Word) -> Result<Option<i64>> {
        let find = &mut self.sql.word_number;
        find.query_row([word], |row| row.get(0)).optional()
    }
}
