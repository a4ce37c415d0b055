//! The commit log of a cluster that is open for writing: two bits for each transaction (`pg_xact`).
//!
//! Its pages are pages of the buffer pool: they are read on demand, evicted, and written by checkpoints like those of
//! relations. They have no header. So a page's LSN is in the descriptor of its buffer: after an asynchronous commit, the
//! page is not written before the commit's record is durable.
//!
//! ```text
//!   begin:   pin the next page, if the XID is its first ─▶ room ─▶ lock it ─▶ ZEROPAGE record ─▶ XID
//!   commit:  pin the page ─▶ room ─▶ COMMIT record ─▶ flush ─▶ lock the page, set the status, raise the LSN
//! ```
//! Whatever can fail comes before the record. A commit keeps its page pinned until the status is set. That takes one of the
//! pins that the session is guaranteed anyway, so in a small pool, fewer sessions can commit at once, but none fails.
//!
//! A page that is missing in its file, or whose file is missing, is an error. Only redo may read it as zeros: its records may
//! be older than the removal of a file. A new page is not read at all.

use trunkline_aio::facade::{Mutex, MutexGuard};
use trunkline_format::transam::commit_log::{self, XIDS_PER_PAGE};
use trunkline_format::transam::{Slru, XidStatus, precedes};
use trunkline_format::{BlockNo, Lsn};

use super::error::WritableClusterError;
use crate::heap_writer::{StatusError, TransactionStatuses};
use crate::log_writer::LogWriterError;
use crate::pool::{Backend, PageMut, Pin};
use crate::storage::{Relation, Storage};

/// The commit log.
#[derive(Debug)]
pub(super) struct CommitLog {
    pages: Relation,
    /// The first transaction that has begun since the cluster was opened.
    first_xid: u32,
    /// Held by the session that begins a page.
    beginning: Mutex<()>,
}

/// A transaction's place in the commit log. Its page is pinned.
pub(super) struct StatusPlace {
    pin: Pin,
    xid: u32,
}

/// The right to begin a page, which is pinned.
pub(super) struct NextPage<'l> {
    number: u32,
    pin: Pin,
    _beginning: MutexGuard<'l, ()>,
}

impl CommitLog {
    /// The commit log of a cluster. No transaction from `next_xid` on has a status: a crash of the machine may have left
    /// that of one which is not in the WAL (`TrimCLOG`). A checkpoint must make this durable before XIDs are assigned,
    /// since redo after a crash would not know that the bits were cleared.
    ///
    /// # Errors
    /// The page of the next transaction can't be read.
    pub(super) fn open(
        storage: &Storage,
        backend: &mut Backend,
        next_xid: u32,
    ) -> Result<Self, WritableClusterError> {
        let pages = storage.slru(Slru::CommitLog);
        let log = Self { pages, first_xid: next_xid, beginning: Mutex::default() };
        // Otherwise, the page begins with that transaction.
        if !next_xid.is_multiple_of(XIDS_PER_PAGE) {
            let pin = backend.read(&log.pages, block_of(next_xid))?;
            let mut page = backend.write_lock(pin.page()).map_err(LogWriterError::from)?;
            let last = next_xid - next_xid % XIDS_PER_PAGE + (XIDS_PER_PAGE - 1);
            for xid in next_xid..=last {
                set(&mut page, xid, XidStatus::InProgress);
            }
        }
        Ok(log)
    }

    /// Pins the page whose first transaction comes next. `next` must return its number, or `None` if there is none. It is called
    /// again when this session has the right to begin a page, since another one may have begun it. The session must have no
    /// room in the WAL.
    ///
    /// # Errors
    /// The page's file could not be created, or the page found no buffer.
    pub(super) fn next_page(
        &self,
        backend: &mut Backend,
        next: impl Fn() -> Option<u32>,
    ) -> Result<Option<NextPage<'_>>, WritableClusterError> {
        if next().is_none() {
            return Ok(None);
        }
        let pinned = backend.pin_to_overwrite(&self.pages, || {
            let beginning = self.beginning.lock();
            next().map(|number| (number, beginning))
        })?;
        Ok(pinned.map(|(number, pin, _beginning)| NextPage { number, pin, _beginning }))
    }

    /// Makes sure that the status of a transaction can be set, whatever happens later. The session must have no room in the
    /// WAL.
    ///
    /// # Errors
    /// The page could not be read, or the session holds too many pins.
    pub(super) fn reserve(
        &self,
        backend: &mut Backend,
        xid: u32,
    ) -> Result<StatusPlace, WritableClusterError> {
        Ok(StatusPlace { pin: backend.read(&self.pages, block_of(xid))?, xid })
    }

    /// How a transaction has ended, or that it hasn't.
    ///
    /// # Errors
    /// The page could not be read.
    pub(super) fn status(
        &self,
        backend: &mut Backend,
        xid: u32,
    ) -> Result<XidStatus, WritableClusterError> {
        let pin = backend.read(&self.pages, block_of(xid))?;
        let page = backend.read_lock(pin.page()).map_err(LogWriterError::from)?;
        Ok(XidStatus::in_byte(page[commit_log::place(xid).byte], xid))
    }
}

impl TransactionStatuses for CommitLog {
    fn status(&self, backend: &mut Backend, xid: u32) -> Result<XidStatus, StatusError> {
        Ok(Self::status(self, backend, xid)?)
    }

    fn is_running(&self, backend: &mut Backend, xid: u32) -> Result<bool, StatusError> {
        let is_of_this_process = !precedes(xid, self.first_xid);
        Ok(is_of_this_process && Self::status(self, backend, xid)? == XidStatus::InProgress)
    }
}

impl NextPage<'_> {
    /// Locks the page, and fills it with zeros: none of its transactions has ended. It must be logged (`CLOG/ZEROPAGE`), and
    /// then [`PageMut::raise_lsn`] called with the end of the record.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn lock(
        &self,
        backend: &mut Backend,
    ) -> Result<(u32, PageMut<'_>), WritableClusterError> {
        let mut page = backend.write_lock(self.pin.page()).map_err(LogWriterError::from)?;
        page.fill(0);
        page.mark_dirty();
        Ok((self.number, page))
    }
}

impl StatusPlace {
    /// Records how the transaction has ended. `lsn` is the end of its record if that may not be durable yet, else 0.
    pub(super) fn set(&self, backend: &mut Backend, status: XidStatus, lsn: Lsn) {
        let mut page = backend.write_lock_despite_cancel(self.pin.page());
        set(&mut page, self.xid, status);
        page.raise_lsn(lsn);
    }
}

/// The page of a transaction.
fn block_of(xid: u32) -> BlockNo {
    xid / XIDS_PER_PAGE
}

/// Sets the status of a transaction of this page.
fn set(page: &mut PageMut<'_>, xid: u32, status: XidStatus) {
    let at = commit_log::place(xid).byte;
    let changed = status.set_in_byte(page[at], xid);
    if changed != page[at] {
        page.mark_dirty();
        page[at] = changed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{CheckpointOptions, checkpoint};
    use crate::log::{Log, LogError};
    use crate::pool::{BackendType, Pool, ReadError, flag};
    use crate::storage::{
        DEFAULT_TABLESPACE, Layout, OpenFiles, RelationLocator, Storage, StorageError,
    };
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::task::{Context, Poll};
    use tempfile::TempDir;
    use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
    use trunkline_aio::facade::{Arc, thread};
    use trunkline_aio::{Builder, MethodKind, PolledWait, Session};
    use trunkline_format::{BLOCK_SIZE, Fork, Oid};

    /// Notes for each flush what the first file of the commit log contained.
    struct NotingLog {
        file: PathBuf,
        durable: AtomicU64,
        flushes: Mutex<Vec<(Lsn, Vec<u8>)>>,
    }

    impl Log for NotingLog {
        fn durable(&self) -> Lsn {
            Lsn(self.durable.load(Ordering::SeqCst))
        }

        fn flush(&self, _session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
            self.flushes.lock().push((lsn, fs::read(&self.file).expect("read")));
            self.durable.fetch_max(lsn.0, Ordering::SeqCst);
            Ok(())
        }

        fn poll_flush(
            &self,
            _context: &mut Context<'_>,
            session: &mut Session,
            _wait: &mut PolledWait,
            lsn: Lsn,
        ) -> Poll<Result<(), LogError>> {
            Poll::Ready(self.flush(session, lsn))
        }
    }

    struct Cluster {
        log: Arc<NotingLog>,
        backend: Backend,
        pool: Pool,
        storage: Storage,
        root: TempDir,
    }

    impl Cluster {
        /// A pool of 16 buffers, and a folder in which `pg_xact/0000` has this content.
        fn new(content: Option<&[u8]>) -> Self {
            let root = tempfile::tempdir().expect("a folder");
            let file = root.path().join("pg_xact/0000");
            fs::create_dir(root.path().join("pg_xact")).expect("made");
            if let Some(content) = content {
                fs::write(&file, content).expect("written");
            }
            let aio = Builder::new().method(MethodKind::Sync).region_bytes(1 << 20).start();
            let aio = aio.expect("starts");
            let (durable, flushes) = (AtomicU64::new(0), Mutex::default());
            let log = Arc::new(NotingLog { file, durable, flushes });
            let layout = Layout { checksums: true, tablespace_directory: "PG_18".into() };
            let files = OpenFiles::kernel(&aio, 8);
            let storage = Storage::for_writing(root.path(), layout, &files, false);
            let pool = Pool::with_log(&aio, 16, Arc::clone(&log)).expect("a pool");
            let backend = pool.backend(BackendType::Client).expect("a session");
            Self { log, backend, pool, storage, root }
        }

        fn open(&mut self, next_xid: u32) -> CommitLog {
            CommitLog::open(&self.storage, &mut self.backend, next_xid).expect("opened")
        }

        fn set(&mut self, log: &CommitLog, xid: u32, status: XidStatus, lsn: Lsn) {
            let place = log.reserve(&mut self.backend, xid).expect("pinned");
            place.set(&mut self.backend, status, lsn);
        }

        fn checkpoint(&mut self) {
            let options = CheckpointOptions::default();
            checkpoint(&self.pool, &mut self.backend, options, |_| {}).expect("written");
        }

        fn file(&self, name: &str) -> Vec<u8> {
            fs::read(self.root.path().join("pg_xact").join(name)).expect("read")
        }

        fn is_in_pool(&self) -> bool {
            self.pool.rows().iter().any(|row| row.relation.slru() == Some(Slru::CommitLog))
        }

        /// Reads more pages than the pool has buffers.
        fn read_others(&mut self) {
            fs::create_dir_all(self.root.path().join("base/5")).expect("made");
            let zeros = vec![0; 100 * BLOCK_SIZE];
            fs::write(self.root.path().join("base/5/16384"), zeros).expect("written");
            let (tablespace, database) = (DEFAULT_TABLESPACE, Oid(5));
            let locator = RelationLocator { tablespace, database, relfilenode: 16_384 };
            let table = self.storage.relation(locator, Fork::Main);
            for block in 0..100 {
                drop(self.backend.read(&table, block).expect("read"));
            }
        }
    }

    fn committed(bytes: &[u8]) -> Vec<u32> {
        let status = |xid: &u32| XidStatus::in_byte(bytes[(*xid / 4) as usize], *xid);
        let xids = 0..bytes.len() as u32 * 4;
        xids.filter(|xid| status(xid) == XidStatus::Committed).collect()
    }

    /// Also, neither an LSN nor a checksum is put into the page.
    #[test]
    fn statuses_of_transactions_that_the_log_does_not_have_are_removed() {
        let mut cluster = Cluster::new(Some(&[0x55; BLOCK_SIZE]));
        let log = cluster.open(1001);
        let statuses = [1000, 1001].map(|xid| log.status(&mut cluster.backend, xid).expect("read"));
        assert_eq!(statuses, [XidStatus::Committed, XidStatus::InProgress]);
        cluster.checkpoint();
        let mut expected = vec![0x55; 250];
        expected.push(0x01);
        expected.resize(BLOCK_SIZE, 0);
        assert_eq!(cluster.file("0000"), expected);
        assert!(cluster.log.flushes.lock().is_empty());
    }

    #[test]
    fn a_page_is_evicted_and_read_again_but_not_while_a_transaction_ends() {
        let mut cluster = Cluster::new(Some(&[0; BLOCK_SIZE]));
        let log = cluster.open(3);
        cluster.set(&log, 3, XidStatus::Committed, Lsn(0));
        cluster.set(&log, 5, XidStatus::Aborted, Lsn(0));
        cluster.checkpoint();
        let place = log.reserve(&mut cluster.backend, 4).expect("pinned");
        cluster.read_others();
        assert!(cluster.is_in_pool());
        place.set(&mut cluster.backend, XidStatus::Committed, Lsn(0));
        drop(place);
        cluster.checkpoint();
        cluster.read_others();
        assert!(!cluster.is_in_pool());
        let statuses = [3, 4, 5, 6].map(|xid| log.status(&mut cluster.backend, xid).expect("read"));
        use XidStatus::*;
        assert_eq!(statuses, [Committed, Committed, Aborted, InProgress]);
        assert_eq!(cluster.backend.pins(), 0);
    }

    #[test]
    fn a_page_is_written_when_the_wal_of_its_commits_is_durable() {
        let mut cluster = Cluster::new(Some(&[0; BLOCK_SIZE]));
        let log = cluster.open(3);
        cluster.set(&log, 3, XidStatus::Committed, Lsn(800));
        // This one waited for its record.
        cluster.set(&log, 4, XidStatus::Committed, Lsn(0));
        cluster.checkpoint();
        let (lsn, before) = cluster.log.flushes.lock().pop().expect("a flush");
        assert_eq!((lsn, committed(&before)), (Lsn(800), vec![]));
        assert_eq!(committed(&cluster.file("0000")), [3, 4]);
        cluster.set(&log, 5, XidStatus::Committed, Lsn(800));
        cluster.checkpoint();
        assert_eq!(committed(&cluster.file("0000")), [3, 4, 5]);
        assert!(cluster.log.flushes.lock().is_empty(), "it was durable");
        // The next pages of the buffers have no LSN yet.
        cluster.read_others();
        let lsns = cluster.pool.manager().buffers().iter().map(|(_, descriptor)| descriptor.lsn());
        assert_eq!(lsns.max(), Some(Lsn(0)));
    }

    #[test]
    fn a_page_that_is_missing_is_an_error_unless_it_begins() {
        let mut cluster = Cluster::new(None);
        let log = cluster.open(XIDS_PER_PAGE);
        let missing = log.status(&mut cluster.backend, 7);
        let Err(WritableClusterError::CommitLog(ReadError::Storage(missing))) = missing else {
            panic!("{missing:?}");
        };
        assert!(matches!(missing, StorageError::SegmentMissing { .. }), "{missing:?}");
        assert!(missing.path().ends_with("pg_xact/0000"), "{missing}");
        let half: &Path = &cluster.root.path().join("pg_xact/0000");
        fs::write(half, vec![0x55; 3 * BLOCK_SIZE / 2]).expect("written");
        let short = log.status(&mut cluster.backend, XIDS_PER_PAGE).expect_err("half a page");
        assert!(
            matches!(short, WritableClusterError::CommitLog(ReadError::Short { .. })),
            "{short:?}"
        );
        // What is left of a file that this process has not written does not matter to a page that begins.
        begin(&mut cluster, &log, 1);
        let xid = XIDS_PER_PAGE + 8;
        cluster.set(&log, xid, XidStatus::Committed, Lsn(0));
        cluster.checkpoint();
        assert_eq!(committed(&cluster.file("0000")[BLOCK_SIZE..]), [8]);
        // The first page of the next file.
        begin(&mut cluster, &log, 32);
        cluster.checkpoint();
        assert_eq!(cluster.file("0000").len(), 32 * BLOCK_SIZE);
        assert_eq!(cluster.file("0001"), [0; BLOCK_SIZE]);
        let none = log.next_page(&mut cluster.backend, || None).expect("no error");
        assert!(none.is_none() && cluster.backend.pins() == 0);
    }

    fn begin(cluster: &mut Cluster, log: &CommitLog, page: u32) {
        let next = log.next_page(&mut cluster.backend, || Some(page)).expect("pinned");
        let next = next.expect("it is the next one");
        let (number, mut locked) = next.lock(&mut cluster.backend).expect("locked");
        locked.raise_lsn(Lsn(700));
        assert_eq!((number, &locked[..]), (page, &[0; BLOCK_SIZE][..]));
    }

    #[test]
    fn a_cancelled_session_waits_for_the_page_and_sets_the_status() {
        let mut cluster = Cluster::new(Some(&[0; BLOCK_SIZE]));
        let log = cluster.open(3);
        let pin = cluster.backend.read(&log.pages, 0).expect("read");
        let locked = cluster.backend.read_lock(pin.page()).expect("locked");
        let mut theirs = cluster.pool.backend(BackendType::Client).expect("a session");
        let place = log.reserve(&mut theirs, 3).expect("pinned");
        let committer = thread::spawn("commit", move || {
            theirs.session().canceller().cancel();
            place.set(&mut theirs, XidStatus::Committed, Lsn(0));
            assert!(theirs.session().is_cancelled(), "the cancel was lost");
        });
        let buffers = cluster.pool.manager().buffers();
        while !buffers.state(pin.page().buffer()).has(flag::WAITERS) {
            thread::yield_now();
        }
        drop(locked);
        committer.expect("started").join().expect("no panic");
        let status = log.status(&mut cluster.backend, 3).expect("read");
        assert_eq!(status, XidStatus::Committed);
    }
}
