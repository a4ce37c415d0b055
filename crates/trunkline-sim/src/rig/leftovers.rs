//! What must be true when a case is over: no pin, no lock, no handle, no permit and no file is left.
//!
//! A suite asks in this order, with what it knows itself in between: [`Cluster::settle_pool`], then
//! [`Cluster::check_locks`] and [`Cluster::check_permits`], at last [`Cluster::end`].

use super::Cluster;
use trunkline_engine::pool::PINS_GUARANTEED;

/// Relation that nobody else has.
const SPARE: u32 = 9;

/// Sessions that are admitted together, at most.
const HOUSE_MAX: u32 = 32;

impl Cluster {
    /// Waits until nothing is in flight and no page is pinned.
    ///
    /// # Panics
    /// If that does not come.
    pub fn settle_pool(&self) {
        self.settle();
        self.wait_until("no pins", || self.pool.rows().iter().all(|row| row.pins == 0));
    }

    /// As many sessions as there is room for are admitted at once: no permit is lost.
    ///
    /// # Panics
    /// If one is.
    pub fn check_permits(&self) {
        self.create(SPARE, 2 * HOUSE_MAX);
        let relation = self.relation(SPARE);
        let sessions = (self.pool.buffers() / PINS_GUARANTEED).min(HOUSE_MAX);
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

    /// Every page can be locked for oneself.
    ///
    /// # Panics
    /// If one cannot.
    pub fn check_locks(&self) {
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

    /// Lets go of everything. No file stays open: who completed the last write of a session that was
    /// cancelled may just be letting go of it, so that is waited for.
    ///
    /// # Panics
    /// If one does.
    pub fn end(self) {
        let Self { instance, pool, storage, .. } = self;
        let table = storage.files().clone();
        drop((pool, storage));
        instance.wait_until("no files left open", || {
            table.open() == 0 && instance.aio.open_files() == 0
        });
    }
}
