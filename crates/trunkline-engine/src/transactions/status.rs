//! Transaction status lookup: whether a transaction has committed, and which members a multixact
//! has.
//!
//! The cached pages ([`SlruFiles`]) are shared by all scans. In addition, each scan remembers the
//! statuses that it has looked up most recently. PostgreSQL's `transam.c` does the same, but for
//! only one transaction (`cachedFetchXid`).

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

/// Transaction status lookup for one cluster, shared by all scans of that cluster. We take the
/// limits from the checkpoint in the control file. They are exact if the cluster was shut down
/// cleanly.
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
    /// Creates the lookup for an open data directory, whose files are in `storage`. Doesn't read
    /// anything yet.
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

    /// Creates the lookup for relations that this engine has created itself. They have no commit
    /// log and don't need one, because all of their rows are frozen, so we should never have to
    /// look up a transaction.
    pub fn all_frozen(storage: &Storage) -> Self {
        Self {
            files: SlruFiles::new(storage, PgVersion::V18),
            oldest_xid: 0,
            oldest_multi: 0,
            next_multi: 0,
            next_member: 0,
        }
    }

    /// Looks up the status of a normal transaction. If the transaction is beyond the end of the
    /// commit log, we report it as in progress, because its outcome was never recorded.
    ///
    /// # Errors
    /// See [`TransactionError`]. `NotRecorded` means that the commit log has been truncated and no
    /// longer covers this transaction. In that case, the row that refers to the transaction is
    /// damaged.
    pub fn fate(&self, session: &mut Session, xid: u32) -> Result<XidStatus, TransactionError> {
        // The commit log has two bits per transaction, so we can compute their position from the
        // transaction id.
        let place = commit_log::place(xid);
        let look = |page: &PageBytes| page.get(place.byte).copied();
        match self.files.look(session, Slru::CommitLog, place, look)? {
            Some(byte) => Ok(XidStatus::in_byte(byte.unwrap_or_default(), xid)),
            // The file doesn't exist. That's OK if it would be at the end of the commit log,
            // because PostgreSQL creates commit log files only when they are needed. Otherwise,
            // VACUUM has truncated the commit log, which no longer covers this transaction.
            None if precedes(xid, self.oldest_xid) => Err(TransactionError::NotRecorded {
                xid,
                oldest: self.oldest_xid,
                path: self.files.path(Slru::CommitLog, place.segment()),
            }),
            None => Ok(XidStatus::InProgress),
        }
    }

    /// Returns the members of a multixact. We skip any member that has no transaction id: when
    /// member numbers wrap around, slot 0 of the member array remains unused.
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

    /// Returns the member of a multixact that updated or deleted the row, if there is one. All
    /// other members have only locked the row.
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

    /// Combines this lookup with the session and the cache of one scan.
    pub fn lookup<'t>(
        &'t self,
        session: &'t mut Session,
        statuses: &'t mut XidStatusCache,
    ) -> Lookup<'t> {
        Lookup { transactions: self, session, statuses }
    }

    /// Calls `each` for every member of a multixact. The members of all multixacts are stored in
    /// one array. For each multixact, `pg_multixact/offsets` contains the number of its first
    /// member. Its members end where the members of the next multixact begin or, for the last
    /// multixact, at the offset in the control file.
    fn each_member(
        &self,
        session: &mut Session,
        multi: u32,
        mut each: impl FnMut(Member),
    ) -> Result<(), TransactionError> {
        // Like transaction ids, multixact ids wrap around, but 0 is the only id with a special
        // meaning.
        let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        if multi == 0 || before(multi, self.oldest_multi) {
            let problem = MultixactProblem::TooOld { oldest: self.oldest_multi };
            return Err(self.multixact(multi, problem));
        }
        if !before(multi, self.next_multi) {
            let problem = MultixactProblem::TooNew { next: self.next_multi };
            return Err(self.multixact(multi, problem));
        }
        // A multixact's members are numbered from its own offset up to, but not including, the next
        // multixact's offset.
        let first = self.first_member(session, multi)?;
        let next = match next_multi(multi) {
            next if next == self.next_multi => self.next_member,
            next => self.first_member(session, next)?,
        };
        let count = self.files.layout().count(first, next);
        // An offset of 0 means that the entry was never written, because member numbers start at 1.
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

    /// Returns the number of a multixact's first member, or 0 if it was never written.
    fn first_member(&self, session: &mut Session, multi: u32) -> Result<u64, TransactionError> {
        let place = self.files.layout().offset_place(multi);
        let look = |page: &PageBytes| self.files.layout().offset_at(page, place.byte);
        Ok(self.files.look(session, Slru::Offsets, place, look)?.flatten().unwrap_or_default())
    }

    /// Creates an error about a multixact. The error always refers to the offsets file, because
    /// that is where we start to look up the multixact.
    fn multixact(&self, multi: u32, problem: MultixactProblem) -> TransactionError {
        let place = self.files.layout().offset_place(multi);
        let path = self.files.path(Slru::Offsets, place.segment());
        TransactionError::Multixact { multi, path, problem }
    }
}

/// Entries of an [`XidStatusCache`].
const STATUSES_MAX: u32 = 64;

/// The statuses that one scan has looked up most recently. This is a direct-mapped cache: the index
/// is the transaction id modulo the size of the cache. Usually just a few transactions have written
/// most of the rows on a page, so even with a small cache a scan rarely has to lock the shared
/// pages.
#[derive(Debug, Default)]
pub struct XidStatusCache(Map<u32, (u32, XidStatus)>);

/// Looks up transaction statuses for the rows of one scan. This combines the shared lookup with the
/// scan's own session and cache.
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
