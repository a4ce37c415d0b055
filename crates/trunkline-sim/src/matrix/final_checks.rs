//! Checks that are made at the end of each cluster case, to make sure that it has not leaked any
//! pins, content locks, I/O handles, pin permits or open files.
//!
//! A test case that leaks something usually doesn't fail itself. We would only notice the leak much
//! later, when some session waits forever or a page can't be evicted. With these checks, we detect
//! the leak at the end of the case that caused it, in the same way that a PostgreSQL resource owner
//! checks for leaks.

use super::Cluster;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_engine::pool::PINS_GUARANTEED;

/// A relation no case uses, so none of its pages are in the pool.
const SPARE: u32 = 9;

/// The maximum number of sessions that [`Cluster::check_permits`] starts.
const SESSIONS_MAX: u32 = 32;

impl Cluster {
    /// Runs all checks. If an fsync has failed, all later checkpoints fail as well, so dirty pages
    /// can never be cleaned. In that case we must skip the checks that require a clean pool.
    pub(super) fn finish(self) {
        self.clear_faults();
        self.settle_pool();
        let broken = self.sync_failed.load(Ordering::SeqCst);
        if self.writable && !broken {
            self.check_clean();
        }
        assert_eq!(self.writes.violations(), Vec::<String>::new());
        if !broken {
            let rows = self.pool.rows();
            assert!(rows.iter().all(|row| row.io.is_none() && !row.dirty), "{rows:?}");
        }
        self.check_locks();
        if !broken {
            self.check_permits();
        }
        self.writes.detach();
        self.end();
    }

    /// Waits until no I/O is in flight and no page is pinned. We have to wait for the pins too,
    /// because the thread that completed the last I/O may not have released its pin yet.
    fn settle_pool(&self) {
        self.settle();
        self.wait_until("no pins", || self.pool.rows().iter().all(|row| row.pins == 0));
    }

    /// Runs two checkpoints. The first one flushes and syncs everything, so the second one must
    /// have nothing left to do.
    fn check_clean(&self) {
        let mut backend = self.backend();
        self.checkpoint(&mut backend).expect("the last checkpoint");
        let again = self.checkpoint(&mut backend).expect("one more");
        assert_eq!((again.buffers, again.files), (0, 0), "{again}");
    }

    /// Starts as many sessions as the pool can guarantee pins to, and pins a page in each of them.
    /// If a pin permit has been leaked, the last session will wait forever.
    fn check_permits(&self) {
        self.create(SPARE, 2 * SESSIONS_MAX);
        let relation = self.relation(SPARE);
        let sessions = (self.pool.buffers() / PINS_GUARANTEED).min(SESSIONS_MAX);
        let mut backends: Vec<_> = (0..sessions).map(|_| self.backend()).collect();
        let mut pins = Vec::new();
        for (backend, block) in backends.iter_mut().zip(0..) {
            pins.push(backend.read(&relation, block).expect("reads"));
            assert_eq!(backend.pins(), 1);
        }
        assert!(self.pool.permits() <= self.pool.buffers());
        drop(pins);
        assert!(backends.iter().all(|backend| backend.pins() == 0));
    }

    /// Checks that we can acquire an exclusive lock on every page in the pool, which means that no
    /// content lock has been leaked.
    fn check_locks(&self) {
        let mut backend = self.backend();
        for row in self.pool.rows() {
            let relation = self.storage.relation(row.relation, row.fork);
            if !self.pool.contains(&relation, row.block) {
                continue;
            }
            let pin = backend.read(&relation, row.block).expect("a hit");
            assert!(pin.page().try_write().is_some(), "block {} is locked", row.block);
        }
    }

    /// Drops the cluster and waits until all files have been closed. We need to wait, because if a
    /// session was cancelled while it had a write in flight, the thread that completed the write
    /// may still be about to close the file.
    fn end(self) {
        let Self { instance, pool, storage, files, .. } = self;
        let open_files = storage.files().clone();
        drop((pool, storage, files));
        instance.wait_until("no files left open", || {
            open_files.open() == 0 && instance.aio.open_files() == 0
        });
    }

    /// Runs the final checks. The case must hold the only remaining reference to its cluster,
    /// because otherwise some other thread could still be using pages.
    pub(super) fn finish_last(cluster: Arc<Self>) {
        Arc::into_inner(cluster).expect("a thread still has the cluster").finish();
    }
}
