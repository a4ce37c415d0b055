//! The commit log of a cluster that is open for writing: two bits for each transaction (`pg_xact`).
//!
//! Pages are loaded on first use, and checkpoints write the dirty ones. WAL before data: a page
//! must not be written until the WAL is durable up to its commits, which matters after asynchronous commits.
//!
//! These pages are not in the buffer pool yet. A page holds 32,768 transactions, so memory grows by 256 kB for each
//! million; a checkpoint drops pages that are clean, apart from the newest.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_aio::facade::Mutex;
use trunkline_aio::{Aio, Session};
use trunkline_format::transam::commit_log::{self, XIDS_PER_PAGE};
use trunkline_format::transam::multixact::MultixactLayout;
use trunkline_format::transam::{Slru, SlruPosition, XidStatus};
use trunkline_format::{BLOCK_SIZE, Lsn, PageBytes, PgVersion};

use super::error::WritableClusterError;
use crate::durable_page::write_pages;
use crate::heap_writer::{StatusError, TransactionStatuses};
use crate::log::Log;
use crate::log_writer::{Lane, LogWriter, LogWriterError};
use crate::page_reader::PageReader;
use crate::storage::WritableFiles;

/// How many clean pages a checkpoint leaves in memory.
const CLEAN_PAGES: usize = 16;

struct Page {
    bytes: Box<PageBytes>,
    is_dirty: bool,
    /// Up to where the WAL must be durable before the page is written.
    lsn: Lsn,
    /// How many transactions are about to set their status here.
    reserved: u32,
}

/// The commit log.
pub(super) struct CommitLog {
    files: Arc<dyn WritableFiles>,
    root: PathBuf,
    layout: MultixactLayout,
    pages: Mutex<BTreeMap<u64, Page>>,
    /// Its lock is held while a page is read; that of the pages is not.
    reader: Mutex<PageReader>,
}

/// A transaction's place in the commit log, in memory until it is dropped.
pub(super) struct StatusPlace<'l> {
    log: &'l CommitLog,
    xid: u32,
}

impl Page {
    fn new(bytes: Box<PageBytes>) -> Self {
        Self { bytes, is_dirty: false, lsn: Lsn(0), reserved: 0 }
    }
}

impl CommitLog {
    /// The commit log of the cluster in `root`. No transaction from `next_xid` on has a status: a crash of the machine may
    /// have left that of one which is not in the WAL (`TrimCLOG`).
    ///
    /// # Errors
    /// [`LogWriterError::Resources`], or the page of the next transaction can't be read.
    pub(super) fn open(
        aio: &Aio,
        files: &Arc<dyn WritableFiles>,
        root: &Path,
        next_xid: u32,
    ) -> Result<Self, WritableClusterError> {
        let log = Self {
            files: Arc::clone(files),
            root: root.to_owned(),
            layout: MultixactLayout::of(PgVersion::V18),
            pages: Mutex::default(),
            reader: Mutex::new(PageReader::new(aio, 1)?),
        };
        // Otherwise, the page begins with that transaction.
        if !next_xid.is_multiple_of(XIDS_PER_PAGE) {
            log.with_page(commit_log::place(next_xid).page, |page| {
                let last = next_xid - next_xid % XIDS_PER_PAGE + (XIDS_PER_PAGE - 1);
                for xid in next_xid..=last {
                    page.set(xid, XidStatus::InProgress);
                }
            })?;
        }
        Ok(log)
    }

    /// Begins a page: none of its transactions has ended. It must be logged (`CLOG/ZEROPAGE`).
    pub(super) fn begin_page(&self, page: u64, lsn: Lsn) {
        let bytes = Box::new([0; BLOCK_SIZE]);
        self.pages.lock().insert(page, Page { is_dirty: true, lsn, ..Page::new(bytes) });
    }

    /// Makes sure that the status of a transaction can be set, whatever happens later.
    ///
    /// # Errors
    /// The page could not be read.
    pub(super) fn reserve(&self, xid: u32) -> Result<StatusPlace<'_>, WritableClusterError> {
        self.with_page(commit_log::place(xid).page, |page| page.reserved += 1)?;
        Ok(StatusPlace { log: self, xid })
    }

    /// How a transaction has ended, or that it hasn't.
    ///
    /// # Errors
    /// The page could not be read.
    pub(super) fn status(&self, xid: u32) -> Result<XidStatus, WritableClusterError> {
        let place = commit_log::place(xid);
        let byte = self.with_page(place.page, |page| page.bytes.get(place.byte).copied())?;
        Ok(XidStatus::in_byte(byte.unwrap_or_default(), xid))
    }

    /// Calls `body` for a page, which is read first if it is not in memory.
    fn with_page<R>(
        &self,
        number: u64,
        body: impl FnOnce(&mut Page) -> R,
    ) -> Result<R, WritableClusterError> {
        loop {
            if let Some(page) = self.pages.lock().get_mut(&number) {
                return Ok(body(page));
            }
            self.load(number)?;
        }
    }

    /// Reads a page, unless another session has.
    fn load(&self, number: u64) -> Result<(), WritableClusterError> {
        // The lock is held until the page is in the map. Otherwise, another session could read the page, change it, and a
        // checkpoint could write and drop it before this session adds what it has read.
        let mut reader = self.reader.lock();
        if self.pages.lock().contains_key(&number) {
            return Ok(());
        }
        let (path, offset) = self.place(number);
        let failed = |operation, source| WritableClusterError::file(operation, &path, source);
        let file = self.files.open(&path, false).map_err(|source| failed("open", source))?;
        reader.read(&file, &[offset]).map_err(|source| failed("read", source))?;
        let Some(bytes) = reader.page(0) else {
            let source = std::io::ErrorKind::UnexpectedEof.into();
            return Err(failed("read a page of", source));
        };
        self.pages.lock().entry(number).or_insert_with(|| Page::new(bytes));
        Ok(())
    }

    /// Writes all pages that have changed, durably.
    ///
    /// # Errors
    /// [`WritableClusterError`]; the pages that were not written stay dirty.
    pub(super) fn write_dirty(
        &self,
        session: &mut Session,
        lane: &mut Lane,
        log: &LogWriter,
    ) -> Result<(), WritableClusterError> {
        let dirty: Vec<u64> = {
            let pages = self.pages.lock();
            pages.iter().filter(|(_, page)| page.is_dirty).map(|(number, _)| *number).collect()
        };
        for number in dirty {
            let copy = self.pages.lock().get_mut(&number).map(|page| {
                page.is_dirty = false;
                (page.bytes.clone(), page.lsn)
            });
            let Some((bytes, lsn)) = copy else { continue };
            let flushed = log.flush(session, lsn).map_err(LogWriterError::flush);
            let (path, offset) = self.place(number);
            let written =
                flushed.and_then(|()| write_pages(&*self.files, lane, &path, &[(offset, &bytes)]));
            written.inspect_err(|_| {
                self.pages.lock().entry(number).and_modify(|page| page.is_dirty = true);
            })?;
        }
        self.drop_clean();
        Ok(())
    }

    /// Drops clean pages, but not the newest.
    fn drop_clean(&self) {
        let mut pages = self.pages.lock();
        let excess = pages.len().saturating_sub(CLEAN_PAGES);
        let is_unused = |page: &Page| !page.is_dirty && page.reserved == 0;
        let unused = pages.iter().filter(|(_, page)| is_unused(page));
        let oldest: Vec<u64> = unused.map(|(number, _)| *number).take(excess).collect();
        oldest.iter().for_each(|number| drop(pages.remove(number)));
    }

    /// The file of a page, and the offset in it.
    fn place(&self, page: u64) -> (PathBuf, u64) {
        let place = SlruPosition { page, byte: 0 };
        let path = self.root.join(Slru::CommitLog.path(self.layout, place.segment()));
        (path, place.offset())
    }
}

impl TransactionStatuses for CommitLog {
    fn status(&self, xid: u32) -> Result<XidStatus, StatusError> {
        Ok(Self::status(self, xid)?)
    }
}

impl fmt::Debug for CommitLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitLog({})", self.root.display())
    }
}

impl Page {
    /// Sets the status of a transaction of this page.
    fn set(&mut self, xid: u32, status: XidStatus) {
        if let Some(byte) = self.bytes.get_mut(commit_log::place(xid).byte) {
            let changed = status.set_in_byte(*byte, xid);
            self.is_dirty |= changed != *byte;
            *byte = changed;
        }
    }
}

impl StatusPlace<'_> {
    /// Records how the transaction has ended. `lsn` is the end of its record if that may not be durable yet, else 0.
    pub(super) fn set(self, status: XidStatus, lsn: Lsn) {
        if let Some(page) = self.log.pages.lock().get_mut(&commit_log::place(self.xid).page) {
            page.set(self.xid, status);
            page.lsn = page.lsn.max(lsn);
        }
    }
}

impl Drop for StatusPlace<'_> {
    fn drop(&mut self) {
        if let Some(page) = self.log.pages.lock().get_mut(&commit_log::place(self.xid).page) {
            page.reserved -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::KernelFiles;
    use trunkline_aio::Builder;

    /// Transactions that the page says are committed.
    fn committed(bytes: &[u8], xids: std::ops::Range<u32>) -> Vec<u32> {
        let status = |xid: &u32| XidStatus::in_byte(bytes[(*xid / 4) as usize], *xid);
        xids.filter(|xid| status(xid) == XidStatus::Committed).collect()
    }

    #[test]
    fn statuses_of_transactions_that_the_log_does_not_have_are_removed() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("pg_xact")).expect("made");
        std::fs::write(root.path().join("pg_xact/0000"), [0x55; BLOCK_SIZE]).expect("written");
        let aio = Builder::new().region_bytes(2 << 20).start().expect("starts");
        let files: Arc<dyn WritableFiles> = Arc::new(KernelFiles::new(&aio));
        let log = CommitLog::open(&aio, &files, root.path(), 1001).expect("opened");
        assert_eq!(log.status(1000).expect("read"), XidStatus::Committed);
        assert_eq!(log.status(1001).expect("read"), XidStatus::InProgress);
        let page = &log.pages.lock()[&0];
        assert_eq!(committed(&page.bytes[..], 0..32_768), (0..1001).collect::<Vec<_>>());
        assert!(page.is_dirty);
    }

    #[test]
    fn a_page_stays_in_memory_while_a_transaction_is_about_to_end() {
        let root = tempfile::tempdir().expect("a folder");
        let aio = Builder::new().region_bytes(2 << 20).start().expect("starts");
        let files: Arc<dyn WritableFiles> = Arc::new(KernelFiles::new(&aio));
        let log = CommitLog::open(&aio, &files, root.path(), 0).expect("opened");
        let pages = CLEAN_PAGES as u64 + 3;
        (0..pages).for_each(|page| log.begin_page(page, Lsn(0)));
        let place = log.reserve(5).expect("it is there");
        log.pages.lock().values_mut().for_each(|page| page.is_dirty = false);
        log.drop_clean();
        let kept: Vec<u64> = log.pages.lock().keys().copied().collect();
        assert_eq!(kept, [0].into_iter().chain(4..pages).collect::<Vec<_>>());
        place.set(XidStatus::Committed, Lsn(800));
        assert_eq!(log.status(5).expect("in memory"), XidStatus::Committed);
        let page = &log.pages.lock()[&0];
        assert_eq!((page.is_dirty, page.lsn, page.reserved), (true, Lsn(800), 0));
    }
}
