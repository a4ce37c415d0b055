//! Transaction status lookup: whether transactions committed, and the members of multixacts.
//!
//! All scans share the cached pages ([`SlruFiles`]). In addition, each scan remembers the statuses
//! it looked up most recently, just as PostgreSQL's `transam.c` remembers one (`cachedFetchXid`).

use trunkline_aio::Session;
use trunkline_aio::facade::hash::Map;
use trunkline_format::transam::multixact::{
    MEMBERS_MAX, Member, member_at, member_place, next_multi,
};
use trunkline_format::transam::{XidStatus, XidStatusLookup, commit_log, precedes};
use trunkline_format::{ControlFile, PageBytes, PgVersion};

use super::error::{MultixactProblem, TransactionError};
use super::page_cache::Slru;
use super::slru::SlruFiles;
use crate::datadir::DataDir;
use crate::storage::Storage;

/// Transaction status lookup for one cluster. All scans of the cluster share it. The limits come
/// from the checkpoint in the control file; a clean shutdown makes them exact.
#[derive(Debug)]
pub struct Transactions {
    files: SlruFiles,
    /// The oldest transaction that the commit log covers. VACUUM has frozen everything before it.
    oldest_xid: u32,
    /// The oldest multixact whose members still exist.
    oldest_multi: u32,
    /// The next multixact to be created.
    next_multi: u32,
    /// The first member of the next multixact.
    next_member: u64,
}

impl Transactions {
    /// For an open data directory whose files are in `storage`. Reads nothing yet.
    pub fn of_datadir(dir: &DataDir, storage: &Storage) -> Self {
        Self::new(dir.control(), storage)
    }

    /// For the cluster with this control file.
    pub fn new(control: &ControlFile, storage: &Storage) -> Self {
        let checkpoint = &control.checkpoint;
        Self {
            files: SlruFiles::new(storage, control.version),
            oldest_xid: checkpoint.oldest_xid,
            oldest_multi: checkpoint.oldest_multi,
            next_multi: checkpoint.next_multi,
            next_member: checkpoint.next_multi_offset,
        }
    }

    /// For relations that this engine created itself. They have no commit log, and don't need one
    /// because all their rows are frozen. There should never be a lookup.
    pub fn all_frozen(storage: &Storage) -> Self {
        Self {
            files: SlruFiles::new(storage, PgVersion::V18),
            oldest_xid: 0,
            oldest_multi: 0,
            next_multi: 0,
            next_member: 0,
        }
    }

    /// Looks up the status of a normal transaction. A transaction beyond the end of the commit log
    /// counts as in progress, because no outcome was ever recorded for it.
    ///
    /// # Errors
    /// See [`TransactionError`]. `NotRecorded` means that the commit log was truncated past the
    /// transaction, so the row that refers to it is damaged.
    pub fn fate(&self, session: &mut Session, xid: u32) -> Result<XidStatus, TransactionError> {
        // Two bits per transaction; the address follows directly from the transaction id.
        let place = commit_log::place(xid);
        let look = |page: &PageBytes| page.get(place.byte).copied();
        match self.files.look(session, Slru::CommitLog, place, look)? {
            Some(byte) => Ok(XidStatus::in_byte(byte.unwrap_or_default(), xid)),
            // The file is missing. That's fine at the end of the commit log, which grows on demand,
            // but at its beginning it means that VACUUM truncated the log past this transaction.
            None if precedes(xid, self.oldest_xid) => Err(TransactionError::NotRecorded {
                xid,
                oldest: self.oldest_xid,
                path: self.files.path(Slru::CommitLog, place.segment()),
            }),
            None => Ok(XidStatus::InProgress),
        }
    }

    /// The members of a multixact. Members without a transaction are skipped: slot 0 of the member
    /// array stays unused when member numbers wrap around.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn members(
        &self,
        session: &mut Session,
        multi: u32,
    ) -> Result<Vec<Member>, TransactionError> {
        let mut members = Vec::new();
        self.each_member(session, multi, |member| members.push(member))?;
        Ok(members)
    }

    /// The member of a multixact that updated or deleted the row, if there is one. The other
    /// members only locked the row.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn updater(
        &self,
        session: &mut Session,
        multi: u32,
    ) -> Result<Option<u32>, TransactionError> {
        let (mut updater, mut unknown) = (None, None);
        self.each_member(session, multi, |member| match member.status {
            Ok(status) if status.is_update() => updater = Some(member.xid),
            Ok(_) => {}
            Err(status) => unknown = Some(status),
        })?;
        match unknown {
            Some(status) => Err(self.multixact(multi, MultixactProblem::Status { status })),
            None => Ok(updater),
        }
    }

    /// Combines this lookup with one scan's session and cache.
    pub fn lookup<'t>(
        &'t self,
        session: &'t mut Session,
        statuses: &'t mut XidStatusCache,
    ) -> Lookup<'t> {
        Lookup { transactions: self, session, statuses }
    }

    /// Calls `each` for the members of a multixact. All multixacts' members form one array, and
    /// `pg_multixact/offsets` holds the number of each multixact's first member. The next
    /// multixact's offset ends the range; for the last multixact, that offset is in the control
    /// file.
    fn each_member(
        &self,
        session: &mut Session,
        multi: u32,
        mut each: impl FnMut(Member),
    ) -> Result<(), TransactionError> {
        // Multixact ids wrap around like transaction ids, but no value is special except 0.
        let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        if multi == 0 || before(multi, self.oldest_multi) {
            let problem = MultixactProblem::TooOld { oldest: self.oldest_multi };
            return Err(self.multixact(multi, problem));
        }
        if !before(multi, self.next_multi) {
            let problem = MultixactProblem::TooNew { next: self.next_multi };
            return Err(self.multixact(multi, problem));
        }
        // The multixact's members are those from its own offset up to the next multixact's offset.
        let first = self.first_member(session, multi)?;
        let next = match next_multi(multi) {
            next if next == self.next_multi => self.next_member,
            next => self.first_member(session, next)?,
        };
        let count = self.files.layout().count(first, next);
        // Offset 0 means that the entry was never written: member numbers start at 1.
        if first == 0 || next == 0 || count > MEMBERS_MAX {
            return Err(self.multixact(multi, MultixactProblem::Members { first, next }));
        }
        for index in 0..count {
            let number = self.files.layout().member(first, index);
            let place = member_place(number);
            let look = |page: &PageBytes| member_at(page, place.byte, number);
            let found = self.files.look(session, Slru::Members, place, look)?.flatten();
            if let Some(member) = found.filter(|member| member.xid != 0) {
                each(member);
            }
        }
        Ok(())
    }

    /// The number of a multixact's first member; 0 if that number was never written.
    fn first_member(&self, session: &mut Session, multi: u32) -> Result<u64, TransactionError> {
        let place = self.files.layout().offset_place(multi);
        let look = |page: &PageBytes| self.files.layout().offset_at(page, place.byte);
        Ok(self.files.look(session, Slru::Offsets, place, look)?.flatten().unwrap_or_default())
    }

    /// Makes an error about a multixact. The error always names the offsets file, because looking
    /// up a multixact's members starts there.
    fn multixact(&self, multi: u32, problem: MultixactProblem) -> TransactionError {
        let place = self.files.layout().offset_place(multi);
        let path = self.files.path(Slru::Offsets, place.segment());
        TransactionError::Multixact { multi, path, problem }
    }
}

/// Entries of an [`XidStatusCache`].
const STATUSES_MAX: u32 = 64;

/// The statuses that one scan looked up most recently. It is a direct-mapped cache, indexed by the
/// transaction id modulo its size. Most of a page's rows were written by a few transactions, so
/// even a small cache avoids nearly all locking of the shared pages.
#[derive(Debug, Default)]
pub struct XidStatusCache(Map<u32, (u32, XidStatus)>);

/// Transaction status lookup for the rows of one scan: the shared lookup with the scan's own
/// session and cache.
#[derive(Debug)]
pub struct Lookup<'t> {
    transactions: &'t Transactions,
    session: &'t mut Session,
    statuses: &'t mut XidStatusCache,
}

impl XidStatusLookup for Lookup<'_> {
    type Error = TransactionError;

    fn fate(&mut self, xid: u32) -> Result<XidStatus, TransactionError> {
        if let Some(&(known, fate)) = self.statuses.0.get(&(xid % STATUSES_MAX))
            && known == xid
        {
            return Ok(fate);
        }
        let fate = self.transactions.fate(self.session, xid)?;
        self.statuses.0.insert(xid % STATUSES_MAX, (xid, fate));
        Ok(fate)
    }

    fn updater(&mut self, multi: u32) -> Result<Option<u32>, TransactionError> {
        self.transactions.updater(self.session, multi)
    }
}
