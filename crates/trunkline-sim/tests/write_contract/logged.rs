//! Tests the WAL-before-data rule. Many pages must share a single log flush, and if the log fails,
//! no page may be written.
//!
//! In addition, the cluster's write checker verifies the rule for every write of every case.

use std::io;
use std::task::{Context, Poll};
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Operation, PolledWait, Session};
use trunkline_engine::checkpoint::{CheckpointError, CheckpointOptions, checkpoint};
use trunkline_engine::log::{Log, LogError, PositionLog};
use trunkline_engine::pool::{Backend, BackendType, Pin, Pool, ReadError, WriteError};
use trunkline_format::Lsn;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs, page};

/// A log that is flushed as a test says.
struct ScriptedLog<F> {
    log: PositionLog,
    flush: F,
}

impl<F> ScriptedLog<F>
where
    F: Fn(&PositionLog, &mut Session, Lsn) -> Result<(), LogError>,
{
    fn new(flush: F) -> Arc<Self> {
        Arc::new(Self { log: PositionLog::default(), flush })
    }
}

impl<F> Log for ScriptedLog<F>
where
    F: Fn(&PositionLog, &mut Session, Lsn) -> Result<(), LogError> + Send + Sync,
{
    fn durable(&self) -> Lsn {
        self.log.durable()
    }

    fn flush(&self, session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
        (self.flush)(&self.log, session, lsn)
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

/// A checkpoint flushes the log once for many pages, not once per page.
#[test]
fn pages_of_a_checkpoint_share_a_flush() {
    check(Needs { blocks: 48, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        for version in 1..4 {
            (0..48).for_each(|block| cluster.change(&mut backend, block, version));
            let before = cluster.log.flushes();
            let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
            assert_eq!(cluster.log.flushes() - before, 1, "{report}");
            assert_eq!(report.buffers, 48);
        }
        assert!(cluster.writes.pages_checked() >= 3 * 48);
    });
}

/// An eviction writes several victims with a single log flush.
#[test]
fn pages_of_an_eviction_share_a_flush() {
    check(Needs { buffers: 16, blocks: 48, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        (0..16).for_each(|block| cluster.change(&mut backend, block, 1));
        (16..48).for_each(|block| cluster.assert_reads(&mut backend, block, 0));
        assert!((1..=2).contains(&cluster.log.flushes()), "{}", cluster.log.flushes());
    });
}

/// Creates a pool of 16 buffers that uses the given log, and makes all of its pages dirty. `lsn` is
/// called once per page, and returns the LSN for that page.
pub(crate) fn dirty_pool(
    cluster: &Cluster,
    log: Arc<dyn Log>,
    lsn: impl Fn() -> u64,
) -> (Pool, Backend) {
    let pool = Pool::with_log(&cluster.aio, 16, log).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    let relation = cluster.relation(0);
    for block in 0..16 {
        let pin = backend.read(&relation, block).expect("reads");
        let mut bytes = backend.write_lock(pin.page()).expect("locks");
        bytes.mark_dirty();
        bytes.copy_from_slice(&page(0, block, 1, lsn()));
    }
    (pool, backend)
}

/// If the log can't be flushed, no page may be written. Checkpoints and evictions must fail with
/// the error that the log returned, and all pages must stay dirty.
#[test]
fn a_failed_log_flush_prevents_page_writes() {
    check(Needs { handles: 64, ..Needs::writable() }, |cluster| {
        let is_broken = Arc::new(AtomicBool::new(false));
        let broken = Arc::clone(&is_broken);
        let log = ScriptedLog::new(move |log, session, lsn| {
            let source = io::Error::from_raw_os_error(libc::EIO);
            match broken.load(Ordering::SeqCst) {
                true => Err(LogError::Flush { wanted: lsn, source }),
                false => log.flush(session, lsn),
            }
        });
        let relation = cluster.relation(0);
        let (pool, mut backend) =
            dirty_pool(cluster, Arc::clone(&log) as _, || log.log.append(10).0);
        is_broken.store(true, Ordering::SeqCst);
        cluster.probe.record();
        let options = CheckpointOptions::default();
        let error = checkpoint(&pool, &mut backend, options, |_| {}).expect_err("no log");
        assert!(matches!(error, CheckpointError::Write(WriteError::Log(_))), "{error}");
        let error = backend.read(&relation, 20).map(drop).expect_err("no buffer");
        assert!(
            matches!(&error, ReadError::Eviction(error)
            if matches!(**error, WriteError::Log(_))),
            "{error}"
        );
        let written = cluster.probe.recorded();
        assert!(written.iter().all(|io| io.operation != Operation::Writev), "nothing was written");
        assert!(pool.rows().iter().all(|row| row.dirty && row.pins == 0));
        is_broken.store(false, Ordering::SeqCst);
        // This pool has its own log, but the write checker only knows the cluster's.
        cluster.writes.detach();
        drop(backend.read(&relation, 20).expect("a buffer"));
        checkpoint(&pool, &mut backend, options, |_| {}).expect("a checkpoint");
        cluster.writes.attach(&cluster.files);
        assert!((0..16).all(|block| cluster.is_on_disk(block, 1)));
        assert!(pool.rows().iter().all(|row| !row.dirty && row.pins == 0));
    });
}

/// A page that changes during every flush of the log doesn't hold up a checkpoint.
#[test]
fn a_page_that_changes_during_every_flush_is_written() {
    check(Needs { handles: 64, ..Needs::writable() }, |cluster| {
        let changed: Arc<Mutex<Option<Pin>>> = Arc::default();
        let changes = Arc::new(AtomicU64::new(0));
        let (theirs, counted) = (Arc::clone(&changed), Arc::clone(&changes));
        // During each flush, another session changes the page, if the one that flushes doesn't prevent it.
        let log = ScriptedLog::new(move |log, session, lsn| {
            log.flush(session, lsn)?;
            let held = theirs.lock();
            if let Some(mut bytes) = held.as_ref().and_then(|pin| pin.page().try_write()) {
                let changes = counted.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(changes < 100, "a checkpoint waits for ever");
                bytes.mark_dirty();
                bytes.copy_from_slice(&page(0, 5, 1, log.append(10).0));
            }
            Ok(())
        });
        let (pool, mut backend) =
            dirty_pool(cluster, Arc::clone(&log) as _, || log.log.append(10).0);
        *changed.lock() = Some(backend.read(&cluster.relation(0), 5).expect("reads"));
        // This pool has its own log, but the write checker only knows the cluster's.
        cluster.writes.detach();
        let options = CheckpointOptions::default();
        checkpoint(&pool, &mut backend, options, |_| {}).expect("a checkpoint");
        assert!(changes.load(Ordering::SeqCst) >= 2, "the page was refused twice");
        assert!(pool.rows().iter().all(|row| !row.dirty));
        *changed.lock() = None;
        cluster.writes.attach(&cluster.files);
        assert!((0..16).all(|block| cluster.is_on_disk(block, 1)));
        assert!(pool.rows().iter().all(|row| row.pins == 0));
    });
}

/// If a page has an LSN past the end of the log, the page is damaged. Flushing the log again
/// wouldn't help, so checkpoints and evictions must return an error rather than retry forever.
#[test]
fn a_page_beyond_the_end_of_the_log_is_an_error() {
    check(Needs { handles: 64, seeds: 2, ..Needs::writable() }, |cluster| {
        // It reports success without flushing.
        let log = ScriptedLog::new(|_, _, _| Ok(()));
        let relation = cluster.relation(0);
        let (pool, mut backend) = dirty_pool(cluster, Arc::clone(&log) as _, || 10);
        let options = CheckpointOptions::default();
        let error = checkpoint(&pool, &mut backend, options, |_| {}).expect_err("no log");
        assert!(error.to_string().contains("the log ends before that"), "{error}");
        let error = backend.read(&relation, 20).map(drop).expect_err("no buffer");
        assert!(error.to_string().contains("the log ends before that"), "{error}");
        assert!(pool.rows().iter().all(|row| row.dirty && row.pins == 0));
        cluster.writes.detach();
        log.log.append(10);
        log.log.flush(backend.session(), Lsn(10)).expect("durable now");
        checkpoint(&pool, &mut backend, options, |_| {}).expect("a checkpoint");
        cluster.writes.attach(&cluster.files);
        assert!((0..16).all(|block| cluster.is_on_disk(block, 1)));
    });
}
