//! What must be true when a case is over: no pin, no lock, no handle, no permit and no file is left.

use crate::rig::Rig;
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::{Arc, thread};
use trunkline_sim::pause;

impl Rig {
    /// What must be true when a case is over.
    pub(crate) fn finish(self) {
        self.settle();
        self.wait_until("no pins", || self.pool.rows().iter().all(|row| row.pins == 0));
        let rows = self.pool.rows();
        assert!(rows.iter().all(|row| row.io.is_none() && !row.dirty), "{rows:?}");
        self.check_permits();
        self.check_locks();
        let Self { aio, pool, storage, system, .. } = self;
        let files = Arc::clone(storage.files());
        drop((pool, storage));
        assert_eq!(files.open(), 0, "files left in the table");
        let begin = clock::now();
        while aio.open_files() > 0 {
            assert!(clock::now().since(begin) < Duration::from_secs(30), "files left open");
            match self.bench.seed {
                Some(_) => pause(Duration::from_micros(500)),
                None => thread::yield_now(),
            }
        }
        drop(system);
    }

    /// As many sessions as there is room for are admitted at once: no permit is lost.
    fn check_permits(&self) {
        self.create(9, 64);
        let relation = self.relation(9);
        let sessions = (self.pool.buffers() / 4).min(32);
        let mut backends: Vec<_> = (0..sessions).map(|_| self.backend()).collect();
        let mut pins = Vec::new();
        for (at, backend) in backends.iter_mut().enumerate() {
            pins.push(backend.read(&relation, at as u32).expect("reads"));
            assert_eq!(backend.pins(), 1);
        }
        assert!(self.pool.permits() <= self.pool.buffers());
        drop(pins);
        assert!(backends.iter().all(|backend| backend.pins() == 0));
    }

    /// Every page can be locked for oneself.
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
}
