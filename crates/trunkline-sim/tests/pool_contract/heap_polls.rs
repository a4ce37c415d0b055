//! Polled heap scans. A poll blocks neither on the commit log nor on a content lock, and a page of
//! the commit log is never read while a content lock is held.

use std::fs;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use trunkline_aio::facade::Arc;
use trunkline_engine::heap::{HeapScan, RowFilter, ScanOptions};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{BlockRange, StatementStreams, StreamOptions};
use trunkline_engine::transactions::{StatusPages, TransactionError, Transactions};
use trunkline_format::page::{PageHeader, line_pointer};
use trunkline_format::transam::commit_log::XIDS_PER_PAGE;
use trunkline_format::transam::{RowState, XidStatus};
use trunkline_format::{
    BLOCK_SIZE, BlockNo, HeapPageBuilder, PageBytes, TupleBuilder, page_checksum,
};
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, FileCall, Needs};
use trunkline_sim::{CountingWaker, PausedIo};

/// The mount of the commit log on the simulated disk.
const DEVICE: u64 = 2;

/// A transaction whose status is on page 5 of the commit log, and the one after it has aborted.
const XID: u32 = LOG_PAGE * XIDS_PER_PAGE + 100;

/// The page of the commit log. No block of a table has this number in these cases.
const LOG_PAGE: BlockNo = 5;

/// Blocks of the table.
const BLOCKS: BlockNo = 3;

/// A heap page with one row of each transaction, without hint bits.
fn heap_page(block: BlockNo) -> Vec<u8> {
    let (mut builder, mut row) = (HeapPageBuilder::new(block), TupleBuilder::new());
    for value in 0..2 {
        row.clear();
        builder.push(&row.int4(value).tuple()).expect("room");
    }
    undecided(builder.finish(false), block)
}

/// Makes the rows of a page depend on the commit log: row by row, they get the transactions from
/// `XID` on and no hint bits.
pub(crate) fn undecided(mut page: PageBytes, block: BlockNo) -> Vec<u8> {
    for item in 1..=PageHeader::parse(&page).line_pointer_count() {
        let at = usize::from(line_pointer(&page, item).expect("an item").offset);
        let xmin = XID + u32::from(item) - 1;
        page[at..at + 4].copy_from_slice(&xmin.to_le_bytes());
        page[at + 20..at + 22].copy_from_slice(&0x0800_u16.to_le_bytes());
    }
    let checksum = page_checksum(&page, block);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    page.to_vec()
}

/// Creates relation 1, a table, and the commit log.
fn create(cluster: &Cluster) {
    let pages: Vec<u8> = (0..BLOCKS).flat_map(heap_page).collect();
    cluster.write_segment(1, 0, &pages);
    create_log(cluster);
}

/// Creates a commit log. The transaction `XID` has committed.
pub(crate) fn create_log(cluster: &Cluster) {
    let mut log = vec![0; (LOG_PAGE as usize + 1) * BLOCK_SIZE];
    for (xid, status) in [(XID, 1), (XID + 1, 2)] {
        log[xid as usize / 4] |= status << (xid % 4 * 2);
    }
    let path = cluster.root().join("pg_xact/0000");
    if cluster.is_simulated() {
        return cluster.disk.create(path.to_str().expect("a name"), DEVICE, &log);
    }
    fs::create_dir_all(path.parent().expect("a directory")).expect("creates it");
    fs::write(path, log).expect("writes");
}

/// A scan with a task of its own.
struct Task {
    scan: HeapScan<BlockRange>,
    wakes: Arc<CountingWaker>,
    waker: Waker,
    seen: u32,
}

impl Task {
    fn new(cluster: &Cluster, backend: &Backend) -> Self {
        Self::of(scan(cluster, backend))
    }

    fn of(scan: HeapScan<BlockRange>) -> Self {
        let (wakes, waker) = CountingWaker::new();
        Self { scan, wakes, waker, seen: 0 }
    }

    /// Polls once. Returns the block and the number of its live rows, or `None` at the end.
    fn poll(&mut self, backend: &mut Backend) -> Poll<Option<(BlockNo, usize)>> {
        self.seen = self.wakes.count();
        let polled = self.scan.poll_page(&mut Context::from_waker(&self.waker), backend);
        polled.map(|page| {
            page.expect("reads").map(|page| {
                let states = page.rows().map(|row| row.expect("sound").state);
                (page.block(), states.filter(|state| *state == RowState::Live).count())
            })
        })
    }

    /// Polls when woken until `over`. No poll may return a page before that.
    fn poll_until(&mut self, cluster: &Cluster, backend: &mut Backend, over: impl Fn() -> bool) {
        while !over() {
            assert!(self.poll(backend).is_pending());
            cluster.wait_until("a wake-up", || over() || self.wakes.count() > self.seen);
        }
        assert!(self.poll(backend).is_pending());
    }

    /// Polls while another task's read of the commit log is held back. This task opens the file, and
    /// then finds that the page is being read. If the open takes longer, it finds that out later.
    fn poll_while_held(&mut self, cluster: &Cluster, backend: &mut Backend) {
        for _ in 0..3 {
            assert!(self.poll(backend).is_pending());
            cluster.let_others_run();
        }
    }

    /// Polls when woken, until there is a page or the end.
    fn finish(&mut self, cluster: &Cluster, backend: &mut Backend) -> Option<(BlockNo, usize)> {
        loop {
            match self.poll(backend) {
                Poll::Ready(page) => return page,
                Poll::Pending => {
                    cluster.wait_until("a wake-up", || self.wakes.count() > self.seen);
                }
            }
        }
    }

    fn finish_all(&mut self, cluster: &Cluster, backend: &mut Backend) {
        for block in 0..BLOCKS {
            assert_eq!(self.finish(cluster, backend), Some((block, 1)));
        }
        assert_eq!(self.finish(cluster, backend), None);
        assert_eq!(backend.pins(), 0);
    }
}

fn scan(cluster: &Cluster, backend: &Backend) -> HeapScan<BlockRange> {
    scan_with(cluster, backend, &Arc::new(Transactions::all_frozen(&cluster.storage)))
}

fn scan_with(
    cluster: &Cluster,
    backend: &Backend,
    transactions: &Arc<Transactions>,
) -> HeapScan<BlockRange> {
    let options = ScanOptions { rows: RowFilter::All, ..ScanOptions::default() };
    let blocks = BlockRange::new(0..BLOCKS);
    HeapScan::new(backend, &cluster.relation(1), blocks, transactions, options)
}

/// Whether another session could change the first page, so that its content lock is free.
pub(crate) fn is_unlocked(cluster: &Cluster) -> bool {
    let pin = cluster.backend().read(&cluster.relation(1), 0).expect("in the pool");
    pin.page().try_write().is_some()
}

/// Holds back the read of the commit log. A page of a table with this number is not read.
pub(crate) fn hold_log(cluster: &Cluster) -> PausedIo {
    cluster.hold(LOG_PAGE)
}

#[test]
fn a_poll_waits_for_the_commit_log_without_a_lock() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        // The other task's page is in the pool, because some methods can't read while a result is
        // held back.
        cluster.read_ok(&mut cluster.backend(), 7);
        let mut backend = cluster.async_backend();
        let (mut task, mut other) = (
            Task::new(cluster, &backend),
            cluster.stream(&backend, &[7], StreamOptions::default()),
        );
        let held = hold_log(cluster);
        task.poll_until(cluster, &mut backend, || held.has_arrived());
        assert!(is_unlocked(cluster), "the commit log is read under a content lock");
        // The other task of this thread goes on.
        let found = cluster.block_on(poll_fn(|context| {
            other.poll_next(context, &mut backend).map(|found| found.expect("reads").is_some())
        }));
        assert!(found);
        drop(other);
        held.release();
        task.finish_all(cluster, &mut backend);
    });
}

/// Tasks of several sessions need the same page of the commit log. Only one of them reads it.
#[test]
fn tasks_share_the_read_of_a_status_page() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        let mut reader = cluster.backend();
        (0..BLOCKS).for_each(|block| _ = reader.read(&cluster.relation(1), block).expect("reads"));
        let transactions = Arc::new(Transactions::all_frozen(&cluster.storage));
        let mut backends = [(); 4].map(|()| cluster.async_backend());
        let mut tasks =
            backends.each_ref().map(|backend| Task::of(scan_with(cluster, backend, &transactions)));
        cluster.probe.record();
        let held = hold_log(cluster);
        let [first, others @ ..] = &mut tasks;
        first.poll_until(cluster, &mut backends[0], || held.has_arrived());
        for (task, backend) in others.iter_mut().zip(&mut backends[1..]) {
            task.poll_while_held(cluster, backend);
        }
        held.release();
        for (task, backend) in tasks.iter_mut().zip(&mut backends) {
            task.finish_all(cluster, backend);
        }
        assert_eq!(cluster.reads(), [(LOG_PAGE, 1)]);
    });
}

/// The task that reads the page of the commit log isn't polled any more, or it is dropped. Others
/// that wait for its read don't depend on it.
#[test]
fn a_scan_does_not_depend_on_the_task_that_reads_its_status_page() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        let mut reader = cluster.backend();
        (0..BLOCKS).for_each(|block| _ = reader.read(&cluster.relation(1), block).expect("reads"));
        let mut backends = [(); 2].map(|()| cluster.async_backend());
        for drops in [false, true] {
            let transactions = Arc::new(Transactions::all_frozen(&cluster.storage));
            let [first, second] = &mut backends;
            let mut stops = Task::of(scan_with(cluster, first, &transactions));
            let mut waits = Task::of(scan_with(cluster, second, &transactions));
            let held = hold_log(cluster);
            stops.poll_until(cluster, first, || held.has_arrived());
            waits.poll_while_held(cluster, second);
            let stops = (!drops).then_some(stops);
            held.release();
            waits.finish_all(cluster, second);
            drop(stops);
        }
    });
}

/// `inspect clog` looks up one transaction after another with the same pages. A page that can't be
/// read must not be read again for each of them.
#[test]
fn lookups_with_the_same_pages_read_each_page_once() {
    check(Needs::default(), |cluster| {
        create(cluster);
        let transactions = Transactions::all_frozen(&cluster.storage);
        let (mut backend, mut pages) = (cluster.backend(), StatusPages::default());
        cluster.fail(LOG_PAGE, libc::EIO);
        let mut fate = |pages: &mut StatusPages, xid| {
            transactions.fate(backend.session(), pages, xid).map_err(|error| error.to_string())
        };
        fate(&mut pages, XID).expect_err("not read");
        cluster.probe.keep_results();
        let error = fate(&mut pages, XID + 1).expect_err("not read again");
        assert!(error.contains("could not access status"), "{error}");
        assert_eq!(fate(&mut StatusPages::default(), XID), Ok(XidStatus::Committed));
        // Only the last few pages are kept, here some that don't exist.
        for page in 1..=10 {
            fate(&mut pages, XID + page * XIDS_PER_PAGE).expect_err("beyond the end");
        }
        assert_eq!(fate(&mut pages, XID), Ok(XidStatus::Committed));
    });
}

/// The read of a lookup that was cancelled must not answer the next one, which is about another
/// page.
#[test]
fn a_cancelled_lookup_leaves_nothing_to_the_next_one() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        let transactions = Transactions::all_frozen(&cluster.storage);
        let mut backend = cluster.async_backend();
        let canceller = backend.session().canceller();
        let held = hold_log(cluster);
        let looks_up = cluster.spawn("looks up", move |_| {
            let mut pages = StatusPages::default();
            let found = transactions.fate(backend.session(), &mut pages, XID);
            assert!(matches!(found, Err(TransactionError::Cancelled)), "{found:?}");
            (backend, transactions, pages)
        });
        held.wait();
        canceller.cancel();
        let (mut backend, transactions, mut pages) = looks_up.join();
        backend.session().clear_cancel();
        held.release();
        let mut fate = |pages: &mut StatusPages, xid| {
            transactions.fate(backend.session(), pages, xid).map_err(|error| error.to_string())
        };
        // At the same place of the page before. The second lookup finds what is in the cache.
        for pages in [&mut pages, &mut StatusPages::default()] {
            assert_eq!(fate(pages, XID - XIDS_PER_PAGE), Ok(XidStatus::InProgress));
            assert_eq!(fate(pages, XID), Ok(XidStatus::Committed));
        }
    });
}

/// The file of the commit log is being opened, or its length is being determined. A poll does
/// neither itself.
#[test]
fn a_poll_waits_while_the_commit_log_is_opened() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        cluster.relation(1).locate(0).expect("opened");
        let mut backend = cluster.async_backend();
        for call in [FileCall::Open, FileCall::Length] {
            let mut task = Task::new(cluster, &backend);
            let held = cluster.files.hold(call);
            task.poll_until(cluster, &mut backend, || held.arrivals() > 0);
            assert!(is_unlocked(cluster));
            held.release();
            task.finish_all(cluster, &mut backend);
        }
    });
}

/// A thread doesn't hold the content lock either while it reads the commit log.
#[test]
fn a_thread_reads_the_commit_log_without_a_lock() {
    check(Needs::default(), |cluster| {
        create(cluster);
        let held = hold_log(cluster);
        let scans = cluster.spawn("scans", |cluster| {
            let mut backend = cluster.backend();
            let (mut scan, mut pages) = (scan(cluster, &backend), 0);
            while let Some(page) = scan.next_page(&mut backend).expect("reads") {
                assert_eq!(page.rows().count(), 2);
                pages += 1;
            }
            pages
        });
        held.wait();
        assert!(is_unlocked(cluster), "the commit log is read under a content lock");
        held.release();
        assert_eq!(scans.join(), BLOCKS);
    });
}

/// Two tasks of one session wait for the content locks of different pages.
#[test]
fn polls_wait_for_content_locks() {
    check(Needs::default(), |cluster| {
        create(cluster);
        let (mut writer, mut backend) = (cluster.backend(), cluster.async_backend());
        let pins = [0, 1].map(|block| writer.read(&cluster.relation(1), block).expect("reads"));
        let mut tasks = [0, 1].map(|_| Task::new(cluster, &backend));
        // The second task is at the second page.
        let [first, second] = &mut tasks;
        assert_eq!(second.finish(cluster, &mut backend), Some((0, 1)));
        let mut locks = pins.iter().map(|pin| pin.page().try_write().expect("free"));
        let (one, two) = (locks.next(), locks.next());
        for task in [&mut *first, &mut *second] {
            for _ in 0..2 {
                assert!(task.poll(&mut backend).is_pending());
            }
        }
        drop(one);
        assert_eq!(first.finish(cluster, &mut backend), Some((0, 1)));
        assert!(second.poll(&mut backend).is_pending());
        drop(two);
        assert_eq!(second.finish(cluster, &mut backend), Some((1, 1)));
        first.scan.release_ahead();
        second.scan.release_ahead();
    });
}

/// A scan that is suspended while it waits for the commit log or for a lock releases everything,
/// and later returns the page that it was about to return.
#[test]
fn a_scan_that_releases_ahead_skips_no_page() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        let mut backend = cluster.async_backend();
        let mut task = Task::new(cluster, &backend);
        let held = hold_log(cluster);
        task.poll_until(cluster, &mut backend, || held.has_arrived());
        assert!(backend.pins() > 0);
        task.scan.release_ahead();
        assert_eq!(backend.pins(), 0);
        held.release();
        assert_eq!(task.finish(cluster, &mut backend), Some((0, 1)));
        let mut writer = cluster.backend();
        let pin = writer.read(&cluster.relation(1), 1).expect("reads");
        let lock = pin.page().try_write().expect("free");
        assert!(task.poll(&mut backend).is_pending());
        task.scan.release_ahead();
        assert_eq!(backend.pins(), 0);
        drop(lock);
        for page in [Some((1, 1)), Some((2, 1)), None] {
            assert_eq!(task.finish(cluster, &mut backend), page);
        }
    });
}

/// A cancelled poll skips no page either.
#[test]
fn a_cancelled_poll_skips_no_page() {
    check(Needs::default().asynchronous(), |cluster| {
        create(cluster);
        let mut backend = cluster.async_backend();
        let mut task = Task::new(cluster, &backend);
        let held = hold_log(cluster);
        task.poll_until(cluster, &mut backend, || held.has_arrived());
        backend.session().canceller().cancel();
        let context = &mut Context::from_waker(&task.waker);
        match task.scan.poll_page(context, &mut backend) {
            Poll::Ready(Err(error)) => assert!(error.is_cancelled(), "{error}"),
            found => panic!("{found:?}"),
        }
        backend.session().clear_cancel();
        held.release();
        task.finish_all(cluster, &mut backend);
    });
}

/// If the commit log can't be read, each row that needs it has the error, and the scan goes on. The
/// next page that needs it tries again.
#[test]
fn a_lost_commit_log_is_an_error_of_each_row() {
    check(Needs::default(), |cluster| {
        create(cluster);
        cluster.relation(1).locate(0).expect("opened");
        cluster.files.fail(FileCall::Open, libc::EIO);
        let mut backend = cluster.async_backend();
        let mut scan = scan(cluster, &backend);
        for block in 0..BLOCKS {
            if block == 2 {
                cluster.files.clear_fault();
            }
            let states = cluster.block_on(poll_fn(|context| {
                scan.poll_page(context, &mut backend).map(|page| {
                    let page = page.expect("reads").expect("not the end");
                    page.rows().map(|row| row.map(|row| row.state)).collect::<Vec<_>>()
                })
            }));
            assert_eq!(states.len(), 2);
            for state in states {
                if block == 2 {
                    state.expect("the log can be read again");
                    continue;
                }
                let error = state.expect_err("not known").to_string();
                assert!(error.contains("could not access status"), "{error}");
            }
        }
    });
}

/// A task whose scan is suspended while it waits is woken, because the scan has given up its places
/// in queues: nothing else would wake it.
#[test]
fn a_suspended_scan_wakes_its_task() {
    check(Needs::default(), |cluster| {
        create(cluster);
        let statement = StatementStreams::default();
        let mut backend = cluster.async_backend();
        let scan = statement.register(scan(cluster, &backend));
        let (wakes, waker) = CountingWaker::new();
        let mut writer = cluster.backend();
        let pin = writer.read(&cluster.relation(1), 0).expect("reads");
        let lock = pin.page().try_write().expect("free");
        // Suspended between two polls, and during a poll.
        for is_in_use in [false, true] {
            let mut guard = scan.lock();
            let context = &mut Context::from_waker(&waker);
            assert!(guard.poll_page(context, &mut backend).is_pending());
            let before = wakes.count();
            if is_in_use {
                statement.release_ahead();
                drop(guard);
            } else {
                drop(guard);
                statement.release_ahead();
            }
            assert!(wakes.count() > before, "in use: {is_in_use}");
            assert_eq!(backend.pins(), 0);
        }
        drop(lock);
    });
}

/// A statement with two scans, each in a session of its own, is suspended. One of the scans is in
/// use at that moment, so it releases its pins when its consumer is done with the page.
#[test]
fn a_suspended_statement_releases_the_pins_of_all_its_scans() {
    check(Needs::default(), |cluster| {
        create(cluster);
        let statement = StatementStreams::default();
        let mut backends = [(), ()].map(|()| cluster.backend());
        let scans = [0, 1].map(|at| statement.register(scan(cluster, &backends[at])));
        let stream = cluster.stream(&backends[0], &[1, 2, 3], StreamOptions::default());
        let stream = statement.register(stream);
        let pins = |backends: &[Backend; 2]| backends.each_ref().map(Backend::pins);
        stream.lock().next(&mut backends[0]).expect("reads").expect("not the end");
        for (scan, backend) in scans.iter().zip(&mut backends) {
            assert!(scan.lock().next_page(backend).expect("reads").is_some());
        }
        assert!(pins(&backends).iter().all(|pins| *pins > 0));
        let mut in_use = scans[1].lock();
        let page = in_use.next_page(&mut backends[1]).expect("reads").expect("not the end");
        let suspended = statement.clone();
        cluster.spawn("suspends", move |_| suspended.release_ahead()).join();
        assert_eq!(pins(&backends)[0], 0, "the scans that are not in use");
        assert_eq!((page.block(), page.len()), (1, 2), "the page is still locked");
        drop(page);
        assert!(pins(&backends)[1] > 0);
        drop(in_use);
        assert_eq!(pins(&backends), [0, 0]);
        // Every page is returned once.
        for (scan, (backend, next)) in scans.iter().zip(backends.iter_mut().zip([1, 2])) {
            let mut scan = scan.lock();
            for block in next..BLOCKS {
                let page = scan.next_page(backend).expect("reads").expect("not the end");
                assert_eq!(page.block(), block);
            }
            assert!(scan.next_page(backend).expect("reads").is_none());
        }
        let mut stream = stream.lock();
        for block in [2, 3] {
            let found = stream.next(&mut backends[0]).expect("reads").expect("not the end");
            assert_eq!(found.block, block);
        }
    });
}
