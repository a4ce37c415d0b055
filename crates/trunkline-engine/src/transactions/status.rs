//! Transaction status lookup: whether a transaction has committed, and which members a multixact
//! has.
//!
//! The functions whose names begin with `find` never read a page. They look only at the pages that
//! a scan holds and at the shared cache ([`StatusPages`]). The others wait until each page they
//! need has been read.

use std::task::Poll;

use trunkline_aio::{Cancelled, Session};
use trunkline_format::transam::multixact::{
    MEMBERS_MAX, Member, member_at, member_place, next_multi,
};
use trunkline_format::transam::{
    FIRST_NORMAL_XID, RowState, Slru, XidStatus, XidStatusLookup, commit_log, precedes, row_state,
};
use trunkline_format::{ControlFile, HeapTuple, PageBytes, PgVersion};

use super::error::{MultixactProblem, StatusId, TransactionError};
use super::slru::SlruFiles;
use super::status_pages::StatusPages;
use crate::datadir::DataDir;
use crate::storage::Storage;
use crate::waiting::{Waiting, slept};

/// Transaction status lookup for one cluster, shared by all scans of that cluster. We take the
/// limits from the checkpoint in the control file. They are exact if the cluster was shut down
/// cleanly.
#[derive(Debug)]
pub struct Transactions {
    files: SlruFiles,
    /// The oldest transaction that the commit log covers. VACUUM has frozen everything before it.
    oldest_xid: u32,
    /// The next transaction to be assigned; 0 if unknown. After a crash, transactions from this one
    /// on may exist too.
    next_xid: u32,
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
            // The lower half of the full id.
            next_xid: checkpoint.next_xid as u32,
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
            next_xid: 0,
            oldest_multi: 0,
            next_multi: 0,
            next_member: 0,
        }
    }

    /// Looks up the status of a normal transaction.
    ///
    /// The server adds a page to the commit log before it assigns the first transaction on that
    /// page, and doesn't remove a file until no row needs it any more. All pages from the oldest
    /// transaction up to the newest one must therefore exist, even right after `pg_upgrade`. Beyond
    /// the newest page, we report a transaction as in progress if it has no page, because its
    /// outcome was never recorded.
    ///
    /// Pass the same `pages` to look up many transactions. They keep the last few pages, even one
    /// that could not be read, so that it isn't read again for each of its transactions.
    ///
    /// # Errors
    /// See [`TransactionError`]. `NotRecorded` means that the commit log has been truncated and no
    /// longer covers this transaction. In that case, the row that refers to the transaction is
    /// damaged.
    pub fn fate(
        &self,
        session: &mut Session,
        pages: &mut StatusPages,
        xid: u32,
    ) -> Result<XidStatus, TransactionError> {
        pages.trim();
        self.load_and_find(session, pages, |pages| self.find_fate(pages, xid))
    }

    /// [`Transactions::fate`] from the pages at hand.
    fn find_fate(&self, pages: &mut StatusPages, xid: u32) -> Result<XidStatus, TransactionError> {
        // The commit log has two bits per transaction, so we can compute their position from the
        // transaction id.
        let place = commit_log::place(xid);
        let look = |page: &PageBytes| page.get(place.byte).copied().unwrap_or_default();
        let id = StatusId::Transaction(xid);
        match pages.look(&self.files, id, Slru::CommitLog, place, look) {
            Ok(byte) => Ok(XidStatus::in_byte(byte, xid)),
            Err(TransactionError::Status { fault, .. }) if fault.is_absent() => {
                if precedes(xid, self.oldest_xid) {
                    let oldest = self.oldest_xid;
                    return Err(TransactionError::NotRecorded { xid, oldest, fault });
                }
                if self.must_have_page(xid) {
                    return Err(TransactionError::Status { id, fault });
                }
                Ok(XidStatus::InProgress)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the commit log must have a page for a transaction that isn't older than
    /// `oldest_xid`. After a crash, the control file's next transaction is too low, but
    /// transactions that were assigned since then may be on the same page as the one before it, so
    /// we go by the page rather than by the transaction.
    fn must_have_page(&self, xid: u32) -> bool {
        // No valid control file has such a next transaction. It is safest to require all pages.
        if self.next_xid < FIRST_NORMAL_XID {
            return true;
        }
        let newest = match self.next_xid.wrapping_sub(1) {
            xid if xid < FIRST_NORMAL_XID => u32::MAX,
            xid => xid,
        };
        precedes(xid, self.next_xid)
            || commit_log::place(xid).page == commit_log::place(newest).page
    }

    /// Returns the members of a multixact. We skip member 0 if it has no transaction id: when
    /// member numbers wrap around, slot 0 of the member array remains unused. The server doesn't
    /// remove the pages of the oldest multixact, of later multixacts, or of their members.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn members(
        &self,
        session: &mut Session,
        multi: u32,
    ) -> Result<Vec<Member>, TransactionError> {
        self.load_and_find(session, &mut StatusPages::default(), |pages| {
            let mut members = Vec::new();
            self.each_member(pages, multi, |member| members.push(member))?;
            Ok(members)
        })
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
        let find = |pages: &mut StatusPages| self.find_updater(pages, multi);
        self.load_and_find(session, &mut StatusPages::default(), find)
    }

    /// [`Transactions::updater`] from the pages at hand.
    fn find_updater(
        &self,
        pages: &mut StatusPages,
        multi: u32,
    ) -> Result<Option<u32>, TransactionError> {
        let (mut updater, mut unknown) = (None, None);
        self.each_member(pages, multi, |member| match member.status {
            Ok(status) if status.is_update() => updater = Some(member.xid),
            Ok(_) => {}
            Err(status) => unknown = Some(status),
        })?;
        match unknown {
            Some(status) => Err(self.multixact(multi, MultixactProblem::Status { status })),
            None => Ok(updater),
        }
    }

    /// Determines the state of one tuple.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn row_state(
        &self,
        session: &mut Session,
        tuple: &HeapTuple<'_>,
    ) -> Result<RowState, TransactionError> {
        let find = |pages: &mut StatusPages| row_state(tuple, &mut self.lookup(pages));
        self.load_and_find(session, &mut StatusPages::default(), find)
    }

    /// Reads the pages that lookups have missed. The caller must not hold a content lock.
    ///
    /// # Errors
    /// The session was cancelled. If a page can't be read, later lookups return the error.
    pub(crate) fn load(
        &self,
        pages: &mut StatusPages,
        session: &mut Session,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(), Cancelled>> {
        pages.load(&self.files, session, waiting)
    }

    /// Calls `find` until every page that it needs has been read. The thread sleeps during the
    /// reads.
    fn load_and_find<T>(
        &self,
        session: &mut Session,
        pages: &mut StatusPages,
        find: impl Fn(&mut StatusPages) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        loop {
            match find(pages) {
                Err(TransactionError::NotLoaded { .. }) => {
                    slept(self.load(pages, session, &mut Waiting::Sleep))?;
                }
                found => return found,
            }
        }
    }

    /// Combines this lookup with the pages of one scan.
    pub fn lookup<'t>(&'t self, pages: &'t mut StatusPages) -> Lookup<'t> {
        Lookup { transactions: self, pages }
    }

    /// Calls `each` for every member of a multixact. The members of all multixacts are stored in
    /// one array. For each multixact, `pg_multixact/offsets` contains the number of its first
    /// member. Its members end where the members of the next multixact begin or, for the last
    /// multixact, at the offset in the control file.
    fn each_member(
        &self,
        pages: &mut StatusPages,
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
        let first = self.first_member(pages, multi)?;
        let next = next_multi(multi);
        let is_last = next == self.next_multi || multi.wrapping_add(1) == self.next_multi;
        let next = if is_last { self.next_member } else { self.first_member(pages, next)? };
        let count = self.files.layout().count(first, next);
        // An offset of 0 means that the entry was never written, because member numbers start at 1.
        // Only the control file may have it, right after member numbers have wrapped around.
        if first == 0 || (next == 0 && !is_last) || count == 0 || count > MEMBERS_MAX {
            return Err(self.multixact(multi, MultixactProblem::Members { first, next }));
        }
        for index in 0..count {
            let number = self.files.layout().member(first, index);
            let place = member_place(number);
            let look = |page: &PageBytes| member_at(page, place.byte, number);
            let id = StatusId::Multixact(multi);
            let found = pages.look(&self.files, id, Slru::Members, place, look)?;
            match found.filter(|member| member.xid != 0) {
                Some(member) => each(member),
                None if number == 0 => {}
                // The lost member may be the one that deleted the row.
                None => {
                    return Err(self.multixact(multi, MultixactProblem::NoMember { number }));
                }
            }
        }
        Ok(())
    }

    /// Returns the number of a multixact's first member, or 0 if it was never written.
    fn first_member(&self, pages: &mut StatusPages, multi: u32) -> Result<u64, TransactionError> {
        let place = self.files.layout().offset_place(multi);
        let look = |page: &PageBytes| self.files.layout().offset_at(page, place.byte);
        let id = StatusId::Multixact(multi);
        Ok(pages.look(&self.files, id, Slru::Offsets, place, look)?.unwrap_or_default())
    }

    /// Creates an error about a multixact. The error always refers to the offsets file, because
    /// that is where we start to look up the multixact.
    fn multixact(&self, multi: u32, problem: MultixactProblem) -> TransactionError {
        let place = self.files.layout().offset_place(multi);
        let path = self.files.path(Slru::Offsets, place.segment());
        TransactionError::Multixact { multi, path, problem }
    }
}

/// Looks up transaction statuses for the rows of one scan, without reading anything.
#[derive(Debug)]
pub struct Lookup<'t> {
    transactions: &'t Transactions,
    pages: &'t mut StatusPages,
}

impl XidStatusLookup for Lookup<'_> {
    type Error = TransactionError;

    fn fate(&mut self, xid: u32) -> Result<XidStatus, TransactionError> {
        self.transactions.find_fate(self.pages, xid)
    }

    fn updater(&mut self, multi: u32) -> Result<Option<u32>, TransactionError> {
        self.transactions.find_updater(self.pages, multi)
    }
}
