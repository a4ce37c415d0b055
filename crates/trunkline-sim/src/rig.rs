//! What the contract suites stand on: an instance, a cluster with a pool, threads, and what must be
//! true in the end.
//!
//! ```text
//!   Bench      which method, under which seed or on real files, in which kind of pool
//!     ▼
//!   Instance   an engine of I/O over a simulated disk, or over a folder that goes with it
//!     ▼
//!   Cluster    relations whose pages know their names, a pool over them; leaves nothing behind
//!     ▼
//!   a suite's own rig: what only its cases need
//! ```
//! Each layer derefs to the one above it, so a case says `rig.pool` and `rig.aio`, whatever its suite
//! has put around them. All of it is for tests: what goes wrong here panics, and a panic under the
//! scheduler names its seed.
//! ```
//! use trunkline_engine::pool::Pool;
//! use trunkline_sim::rig::{self, Bench, Cluster, Instance, Sizes};
//! # let folder = String::new();
//! Bench::simulated(trunkline_aio::MethodKind::Sync, 7, false).run(move |bench| {
//!     let sizes = Sizes { buffers: 16, handles: 64 };
//!     let instance = Instance::start_for_pool(bench, sizes, &folder, |builder, _| builder);
//!     let storage = rig::storage(instance.root(), instance.files().into(), false);
//!     let pool = Pool::new(&instance.aio, sizes.buffers).unwrap();
//!     let cluster = Cluster::new(bench, instance, storage, pool);
//!     cluster.create(0, 8);
//!     let mut backend = cluster.backend();
//!     let pin = backend.read(&cluster.relation(0), 3).unwrap();
//!     assert!(rig::is_version(&*backend.read_lock(pin.page()).unwrap(), 0, 3, 0));
//!     drop((pin, backend));
//!     cluster.settle_pool();
//!     cluster.check_locks();
//!     cluster.check_permits();
//!     cluster.end();
//! });
//! ```

#![expect(clippy::expect_used, clippy::panic, reason = "rigs of tests: what fails fails the case")]

mod bench;
mod cluster;
mod instance;
mod leftovers;
mod pages;
mod tasks;

pub use bench::{Bench, REAL, SIMULATED};
pub use cluster::{Cluster, extent, includes, layout, locator, relation, storage};
pub use instance::Instance;
pub use pages::{is_sound, is_version, page, pages};
pub use tasks::{Task, spawn};

/// How large an instance for a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Buffers of the pool.
    pub buffers: u32,
    /// Handles of the instance; a few of them are reserved.
    pub handles: u32,
}
