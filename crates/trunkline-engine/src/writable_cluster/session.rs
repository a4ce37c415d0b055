//! One session of a cluster that is open for writing.

use std::fmt;
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_format::calendar::UNIX_TO_2000_S;
use trunkline_format::transam::XidStatus;
use trunkline_format::wal::NewRecord;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::resource_manager::xlog_operation::NEXT_OID;
use trunkline_format::{Fork, Lsn, Oid};

use super::error::WritableClusterError;
use super::shared::Shared;
use crate::heap_writer::HeapSession;
use crate::log::Log;
use crate::page_change::Changer;
use crate::pool::Backend;
use crate::storage::{Relation, RelationLocator, StorageError};

/// Operations: of transactions, of storage, and of the commit log.
const COMMIT: u8 = 0x00;
const ABORT: u8 = 0x20;
const CREATE: u8 = 0x10;
const ZERO_PAGE: u8 = 0x00;

/// A transaction that has begun, and has not ended. If it is dropped, it never commits.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a transaction that is dropped never commits"]
pub struct Transaction {
    xid: u32,
}

impl Transaction {
    /// Its XID.
    pub fn xid(&self) -> u32 {
        self.xid
    }
}

/// A session that may begin transactions and change pages. Only one thread may use it at a time.
pub struct WriteSession {
    // Dropped in this order: when the last reference to what is shared is gone, so are the others.
    pub(super) backend: Backend,
    pub(super) changer: Changer,
    pub(super) shared: Arc<Shared>,
}

/// Whether a commit waits for the WAL (`synchronous_commit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The commit is durable when it returns.
    Now,
    /// It becomes durable within three times `wal_writer_delay`. If the process crashes before that, or the cluster is
    /// dropped without [`WritableCluster::close`](super::WritableCluster::close), the whole commit may be lost.
    Soon,
}

impl WriteSession {
    /// Begins a transaction, and assigns its XID.
    ///
    /// # Errors
    /// [`WritableClusterError`].
    pub fn begin(&mut self) -> Result<Transaction, WritableClusterError> {
        loop {
            let (shared, backend) = (&self.shared, &mut self.backend);
            let next_page = shared.commit_log.next_page(backend, || shared.ids.next_page())?;
            let mut room = self.changer.room(backend.session(), (1, 0, 8))?;
            let mut locked = next_page.as_ref().map(|next| next.lock(backend)).transpose()?;
            let inserter = self.changer.inserter();
            let assigned = shared.ids.assign_xid(|page| {
                let Some((_, bytes)) = locked.as_mut().filter(|(locked, _)| *locked == page) else {
                    return Ok(false);
                };
                let main_data: &[&[u8]] = &[&u64::from(page).to_le_bytes()];
                let record = NewRecord::plain(number::CLOG, ZERO_PAGE, 0, main_data);
                let place = inserter.insert(&mut room, &record)?;
                bytes.raise_lsn(place.end);
                Ok(true)
            })?;
            if let Some(xid) = assigned {
                return Ok(Transaction { xid });
            }
        }
    }

    /// Commits a transaction. Returns the end of its record.
    ///
    /// # Errors
    /// [`WritableClusterError::CommitNotDurable`]: it has committed, but was not waited for.
    /// [`LogWriterError::Failed`](crate::log_writer::LogWriterError::Failed): the outcome is unknown, and nothing can be committed any more. Any other error: it
    /// will never commit.
    pub fn commit(
        &mut self,
        transaction: Transaction,
        durability: Durability,
    ) -> Result<Lsn, WritableClusterError> {
        self.end(transaction, (COMMIT, XidStatus::Committed), durability)
    }

    /// Aborts a transaction. What it has written stays on the pages, and is not visible.
    ///
    /// # Errors
    /// [`WritableClusterError`]. It will never commit.
    pub fn abort(&mut self, transaction: Transaction) -> Result<(), WritableClusterError> {
        self.end(transaction, (ABORT, XidStatus::Aborted), Durability::Soon).map(drop)
    }

    fn end(
        &mut self,
        Transaction { xid }: Transaction,
        (operation, status): (u8, XidStatus),
        durability: Durability,
    ) -> Result<Lsn, WritableClusterError> {
        let place = self.shared.commit_log.reserve(&mut self.backend, xid)?;
        let mut room = self.changer.room(self.backend.session(), (1, 0, 8))?;
        let time = clock::unix_micros() - UNIX_TO_2000_S * 1_000_000;
        let main_data: &[&[u8]] = &[&time.to_le_bytes()];
        let record = NewRecord::plain(number::TRANSACTION, operation, xid, main_data);
        let in_commit = self.shared.commit_gate.enter();
        let end = self.changer.inserter().insert(&mut room, &record)?.end;
        drop(room);
        // From here on, the record is in the WAL, so the status must be set unless the WAL has failed: a checkpoint
        // that begins now relies on it.
        let flushed = match durability {
            Durability::Now => self.shared.log.flush(self.backend.session(), end),
            Durability::Soon => Ok(()),
        };
        if let Some(failure) = self.shared.log.failure() {
            return Err(failure.into());
        }
        let is_durable = durability == Durability::Now && flushed.is_ok();
        place.set(&mut self.backend, status, if is_durable { Lsn(0) } else { end });
        drop(in_commit);
        match flushed {
            Ok(()) => Ok(end),
            Err(_) => Err(WritableClusterError::CommitNotDurable { lsn: end }),
        }
    }

    /// How a transaction has ended, or that it is in progress or was interrupted by a crash.
    ///
    /// # Errors
    /// [`WritableClusterError::CommitLog`].
    pub fn status(&mut self, xid: u32) -> Result<XidStatus, WritableClusterError> {
        self.shared.commit_log.status(&mut self.backend, xid)
    }

    /// A number that no relation of this database in this tablespace has (`GetNewRelFileNumber`).
    ///
    /// # Errors
    /// [`WritableClusterError::Log`] or [`WritableClusterError::Storage`].
    pub fn new_number(
        &mut self,
        tablespace: Oid,
        database: Oid,
    ) -> Result<u32, WritableClusterError> {
        loop {
            let mut room = self.changer.room(self.backend.session(), (1, 0, 4))?;
            let (shared, inserter) = (&self.shared, self.changer.inserter());
            let relfilenode = shared.ids.assign_oid(|end| {
                let main_data: &[&[u8]] = &[&end.to_le_bytes()];
                let record = NewRecord::plain(number::XLOG, NEXT_OID, 0, main_data);
                inserter.insert(&mut room, &record)?;
                Ok(())
            })?;
            drop(room);
            // A crash may have left a file whose number is not in the WAL.
            match self.relation(RelationLocator { tablespace, database, relfilenode }).blocks() {
                Ok(_) => {}
                Err(StorageError::SegmentMissing { .. }) => return Ok(relfilenode),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Creates the main fork of a relation, which is empty. Its file exists immediately, and stays if the transaction does
    /// not commit: there are no pending deletes (`PendingRelDelete`) yet.
    ///
    /// # Errors
    /// [`WritableClusterError`].
    ///
    /// # Panics
    /// As [`WriteSession::relation`].
    pub fn create(
        &mut self,
        transaction: &Transaction,
        locator: RelationLocator,
    ) -> Result<Relation, WritableClusterError> {
        let relation = self.relation(locator);
        relation.create()?;
        let mut room = self.changer.room(self.backend.session(), (1, 0, 16))?;
        let RelationLocator { tablespace, database, relfilenode } = locator;
        let words = [tablespace.0, database.0, relfilenode, Fork::Main as u32];
        let main_data: &[&[u8]] = &[&words.map(u32::to_le_bytes).concat()];
        let info = CREATE | NewRecord::CHANGES_FILES;
        let record = NewRecord::plain(number::STORAGE, info, transaction.xid, main_data);
        self.changer.inserter().insert(&mut room, &record)?;
        Ok(relation)
    }

    /// The main fork of a relation that exists.
    ///
    /// # Panics
    /// If the locator is that of an SLRU: only commits change the commit log, and redo refuses records about it.
    pub fn relation(&self, locator: RelationLocator) -> Relation {
        assert!(locator.slru().is_none(), "{locator} is not a relation");
        self.shared.storage.relation(locator, Fork::Main)
    }

    /// For writing rows ([`crate::heap_writer`]) in a transaction.
    pub fn heap(&mut self, transaction: &Transaction) -> HeapSession<'_> {
        let (backend, changer) = (&mut self.backend, &mut self.changer);
        let (statuses, multixacts) = (&self.shared.commit_log, &self.shared.multixacts);
        HeapSession { backend, changer, statuses, multixacts, xid: transaction.xid }
    }

    /// The session of the engine, for reading pages.
    pub fn backend(&mut self) -> &mut Backend {
        &mut self.backend
    }
}

impl fmt::Debug for WriteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteSession({:?})", self.changer)
    }
}
