//! Final checks of a cluster case: it must not leak a pin, content lock, handle, pin permit or
//! file.
//!
//! A leak usually doesn't fail the case that causes it. It shows up later, as a session that never
//! wakes or a page that can't be evicted. These checks find the leak at the end of the responsible
//! case, like a PostgreSQL resource owner's leak checks.

use super::Cluster;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_engine::pool::PINS_GUARANTEED;

/// A relation no case uses, so none of its pages are in the pool.
const SPARE: u32 = 9;

/// The maximum number of sessions that [`Cluster::check_permits`] starts.
const SESSIONS_MAX: u32 = 32;

impl Cluster {
    /// Runs all checks. After a failed fsync no checkpoint succeeds, so dirty pages stay in their
    /// buffers forever. In that case we must skip the checks that need a clean pool.
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

    /// Waits until no I/O is in flight and no page is pinned. The thread that completed the last
    /// I/O may not have released its pin yet.
    fn settle_pool(&self) {
        self.settle();
        self.wait_until("no pins", || self.pool.rows().iter().all(|row| row.pins == 0));
    }

    /// Runs two checkpoints. The first flushes and syncs everything, so the second must find
    /// nothing to do.
    fn check_clean(&self) {
        let mut backend = self.backend();
        self.checkpoint(&mut backend).expect("the last checkpoint");
        let again = self.checkpoint(&mut backend).expect("one more");
        assert_eq!((again.buffers, again.files), (0, 0), "{again}");
    }

    /// Starts as many sessions as the pool guarantees pins for, and pins a page in each session. If
    /// a pin permit was leaked, the last session waits forever.
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

    /// Checks that we can lock every page in the pool exclusively, i.e. that no content lock was
    /// leaked.
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

    /// Drops the cluster and waits until no file is open. If a cancelled session had a write in
    /// flight, the thread that completed this write may still be closing the file.
    fn end(self) {
        let Self { instance, pool, storage, files, .. } = self;
        let open_files = storage.files().clone();
        drop((pool, storage, files));
        instance.wait_until("no files left open", || {
            open_files.open() == 0 && instance.aio.open_files() == 0
        });
    }

    /// Runs the final checks. The case must hold the last reference to its cluster, because a
    /// thread with another reference could still be using pages.
    pub(super) fn finish_last(cluster: Arc<Self>) {
        Arc::into_inner(cluster).expect("a thread still has the cluster").finish();
    }
}
