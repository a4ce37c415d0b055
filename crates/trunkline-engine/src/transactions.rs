//! The fate of transactions in a cluster: commit log and multixacts.
//!
//! ```text
//!   a row without hint bits ──▶ Lookup: the last answers ──▶ Transactions: cached pages ──▶ files
//!                               one scan's own               shared, 128 pages               read by a handle
//! ```
//! Rows tell by themselves once a server has looked at them; the others are asked for here, by
//! `trunkline_format::judge` through [`Lookup`]. A page of 8 KiB answers for 32,768 transactions, so
//! few are read, and what was read is kept in a cache of one mebibyte.
//!
//! # Not in the buffer pool
//!
//! The pool knows relations: its pages have headers that are verified, its blocks lie in segments of
//! a gibibyte, its files are named by three numbers. These pages have no header, lie in files of 32
//! pages with names of their own, and a file that is missing or short reads as zeros. Each of the
//! three would be an exception in the pool's read path, for a handful of reads in the life of a
//! command. So a session reads them by a handle of its own, into a frame that it leases for the
//! moment. Servers too keep them apart, and never read them past the page cache.

mod cache;
mod error;

use std::io;
use std::path::PathBuf;

use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Class, File, Session, Slots, Status};
use trunkline_format::transam::multixact::{
    self, MEMBERS_MAX, Member, MultixactLayout, member_at, member_place, next_multi,
};
use trunkline_format::transam::{SlruPosition, XidStatus, XidStatusLookup, commit_log, precedes};
use trunkline_format::{BLOCK_SIZE, ControlFile, PageBytes, PgVersion};

use crate::datadir::DataDir;
use crate::storage::Storage;
use cache::Cache;

pub use error::{MultixactProblem, TransactionError};

/// Reads of one page that may bring less of it than there is.
const READS_MAX: u32 = 8;

/// One of the three kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    CommitLog,
    Offsets,
    Members,
}

/// See the module. Shared by all scans of a cluster.
#[derive(Debug)]
pub struct Transactions {
    storage: Storage,
    layout: MultixactLayout,
    /// The oldest transaction that has a record.
    oldest_xid: u32,
    oldest_multi: u32,
    next_multi: u32,
    /// The first member of the next multixact.
    next_member: u64,
    cache: Mutex<Cache>,
}

impl Transactions {
    /// Of an open data directory whose files are `storage`'s. Reads nothing yet.
    pub fn of_datadir(dir: &DataDir, storage: &Storage) -> Self {
        Self::new(dir.control(), storage)
    }

    /// Of the cluster that has this control file.
    pub fn new(control: &ControlFile, storage: &Storage) -> Self {
        let checkpoint = &control.checkpoint;
        Self {
            storage: storage.clone(),
            layout: MultixactLayout::of(control.version),
            oldest_xid: checkpoint.oldest_xid,
            oldest_multi: checkpoint.oldest_multi,
            next_multi: checkpoint.next_multi,
            next_member: checkpoint.next_multi_offset,
            cache: Mutex::new(Cache::default()),
        }
    }

    /// For relations of our own, which have no commit log: all of their rows are frozen.
    pub fn all_frozen(storage: &Storage) -> Self {
        Self {
            storage: storage.clone(),
            layout: MultixactLayout::of(PgVersion::V18),
            oldest_xid: 0,
            oldest_multi: 0,
            next_multi: 0,
            next_member: 0,
            cache: Mutex::new(Cache::default()),
        }
    }

    /// What became of a transaction, an ordinary one. What is beyond the end of the log counts as in
    /// progress.
    ///
    /// # Errors
    /// See [`TransactionError`]; `NotRecorded` for one that is so old that its part of the log is
    /// gone: the row that names it is damaged.
    pub fn fate(&self, session: &mut Session, xid: u32) -> Result<XidStatus, TransactionError> {
        let place = commit_log::place(xid);
        let look = |page: &PageBytes| page.get(place.byte).copied();
        match self.look(session, Kind::CommitLog, place, look)? {
            Some(byte) => Ok(XidStatus::in_byte(byte.unwrap_or_default(), xid)),
            None if precedes(xid, self.oldest_xid) => Err(TransactionError::NotRecorded {
                xid,
                oldest: self.oldest_xid,
                path: self.path(Kind::CommitLog, place.segment()),
            }),
            None => Ok(XidStatus::InProgress),
        }
    }

    /// The members of a multixact, those without a transaction left out.
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

    /// The member of a multixact that updated or deleted its row, if there is one.
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

    /// Answers of this cluster for rows that are judged one after the other.
    pub fn lookup<'t>(&'t self, session: &'t mut Session, memo: &'t mut Memo) -> Lookup<'t> {
        Lookup { transactions: self, session, memo }
    }

    fn each_member(
        &self,
        session: &mut Session,
        multi: u32,
        mut each: impl FnMut(Member),
    ) -> Result<(), TransactionError> {
        // Ids of multixacts go round like those of transactions, but all are ordinary.
        let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        if multi == 0 || before(multi, self.oldest_multi) {
            let problem = MultixactProblem::TooOld { oldest: self.oldest_multi };
            return Err(self.multixact(multi, problem));
        }
        if !before(multi, self.next_multi) {
            let problem = MultixactProblem::TooNew { next: self.next_multi };
            return Err(self.multixact(multi, problem));
        }
        let first = self.first_member(session, multi)?;
        let next = match next_multi(multi) {
            next if next == self.next_multi => self.next_member,
            next => self.first_member(session, next)?,
        };
        let count = self.layout.count(first, next);
        if first == 0 || next == 0 || count > MEMBERS_MAX {
            return Err(self.multixact(multi, MultixactProblem::Members { first, next }));
        }
        for index in 0..count {
            let number = self.layout.member(first, index);
            let place = member_place(number);
            let look = |page: &PageBytes| member_at(page, place.byte, number);
            let found = self.look(session, Kind::Members, place, look)?.flatten();
            if let Some(member) = found.filter(|member| member.xid != 0) {
                each(member);
            }
        }
        Ok(())
    }

    /// The number of a multixact's first member; 0 if it was never written.
    fn first_member(&self, session: &mut Session, multi: u32) -> Result<u64, TransactionError> {
        let place = self.layout.offset_place(multi);
        let look = |page: &PageBytes| self.layout.offset_at(page, place.byte);
        Ok(self.look(session, Kind::Offsets, place, look)?.flatten().unwrap_or_default())
    }

    fn multixact(&self, multi: u32, problem: MultixactProblem) -> TransactionError {
        let place = self.layout.offset_place(multi);
        let path = self.path(Kind::Offsets, place.segment());
        TransactionError::Multixact { multi, path, problem }
    }

    /// Looks at a page, reading it if it is not cached; `None` if its file is missing.
    fn look<T>(
        &self,
        session: &mut Session,
        kind: Kind,
        place: SlruPosition,
        look: impl Fn(&PageBytes) -> T,
    ) -> Result<Option<T>, TransactionError> {
        let key = (kind, place.page);
        if let Some(found) = self.cache.lock().get(&key, &look) {
            return Ok(found);
        }
        let page = self.read(session, kind, place)?;
        let found = page.as_deref().map(&look);
        self.cache.lock().insert(key, page);
        Ok(found)
    }

    /// Reads a page; what the file does not have is zero. `None` if there is no file.
    fn read(
        &self,
        session: &mut Session,
        kind: Kind,
        place: SlruPosition,
    ) -> Result<Option<Box<PageBytes>>, TransactionError> {
        let path = self.path(kind, place.segment());
        let offset = SlruPosition { byte: 0, ..place }.offset();
        let io = |source: io::Error| TransactionError::Io {
            path: path.clone(),
            offset,
            source: Arc::new(source),
        };
        let system = self.storage.system();
        // Servers do not read them past the page cache either.
        let file = match system.open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        for _ in 0..READS_MAX {
            let length = system.length(&file).map_err(io)?.saturating_sub(offset);
            let wanted = length.min(BLOCK_SIZE as u64) as usize;
            let (page, found) = match read_page(session, &file, offset)? {
                Ok(read) => read,
                Err(error) => return Err(io(error)),
            };
            if found >= wanted {
                return Ok(Some(page));
            }
        }
        Err(io(io::ErrorKind::UnexpectedEof.into()))
    }

    fn path(&self, kind: Kind, segment: u64) -> PathBuf {
        let (directory, name) = match kind {
            Kind::CommitLog => (commit_log::DIRECTORY, commit_log::segment_name(segment)),
            Kind::Offsets => (multixact::OFFSETS_DIRECTORY, self.layout.offsets_name(segment)),
            Kind::Members => (multixact::MEMBERS_DIRECTORY, self.layout.members_name(segment)),
        };
        self.storage.root().join(directory).join(name)
    }
}

/// Reads what there is of a page by a handle, and how many bytes that is; the rest is zero.
fn read_page(
    session: &mut Session,
    file: &File,
    offset: u64,
) -> Result<io::Result<(Box<PageBytes>, usize)>, TransactionError> {
    let lease = session.lease(1).ok_or(TransactionError::Memory)?;
    let mut operations = Slots::new(1);
    if let Some(memory) = operations.memory(0) {
        memory.push(lease);
    }
    let io = session.acquire(Class::Foreground)?.needed_now();
    if let Err(error) = io.read(file, offset, BLOCK_SIZE as u32, &mut operations, 0) {
        return Ok(Err(io::Error::other(error)));
    }
    let outcome = session.wait(&mut operations, 0)?;
    if outcome.status == Status::Error {
        return Ok(Err(io::Error::from_raw_os_error(outcome.detail as i32)));
    }
    let mut page = Box::new([0; BLOCK_SIZE]);
    let found = (outcome.count as usize).min(BLOCK_SIZE);
    let frame = operations.memory(0).and_then(|memory| memory.first());
    for (place, byte) in
        page.iter_mut().zip(frame.iter().flat_map(|lease| lease.iter())).take(found)
    {
        *place = *byte;
    }
    Ok(Ok((page, found)))
}

/// Transactions whose fates a scan remembers.
const MEMO_MAX: u32 = 64;

/// The answers that one scan got last: most rows of a page were written by a few transactions.
#[derive(Debug, Default)]
pub struct Memo(Map<u32, (u32, XidStatus)>);

/// What a scan asks while it judges rows.
#[derive(Debug)]
pub struct Lookup<'t> {
    transactions: &'t Transactions,
    session: &'t mut Session,
    memo: &'t mut Memo,
}

impl XidStatusLookup for Lookup<'_> {
    type Error = TransactionError;

    fn fate(&mut self, xid: u32) -> Result<XidStatus, TransactionError> {
        if let Some(&(known, fate)) = self.memo.0.get(&(xid % MEMO_MAX))
            && known == xid
        {
            return Ok(fate);
        }
        let fate = self.transactions.fate(self.session, xid)?;
        self.memo.0.insert(xid % MEMO_MAX, (xid, fate));
        Ok(fate)
    }

    fn updater(&mut self, multi: u32) -> Result<Option<u32>, TransactionError> {
        self.transactions.updater(self.session, multi)
    }
}
