//! A pool in which every unpinned page is dirty, while a mount hangs with all handles that writes
//! may use. A session that needs a buffer can't evict a page, but another session may unpin a clean
//! page, and the waiting session must notice that.

use trunkline_aio::facade::Arc;
use trunkline_engine::checkpoint::CheckpointOptions;
use trunkline_engine::pool::Pin;
use trunkline_sim::PausedIo;
use trunkline_sim::matrix::{Cluster, Needs, TestThread};

/// The cluster of such a case.
pub(crate) fn needs(seeds: u64) -> Needs {
    Needs { buffers: 16, blocks: 64, handles: 8, seeds, ..Needs::writable() }
}

/// A pool in that state.
pub(crate) struct Starved {
    /// The only clean page, which is pinned.
    pub(crate) clean: Pin,
    /// The writes that use up the handles.
    pub(crate) held: Vec<PausedIo>,
    /// Issues these writes, and ends once they are complete.
    pub(crate) checkpoint: TestThread<()>,
}

impl Starved {
    /// Returns `None` in an environment that has no such state. With inline writes, the session
    /// itself would hang with its mount.
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Option<Self> {
        if !cluster.is_asynchronous() || cluster.environment.writes_inline() {
            return None;
        }
        let mut backend = cluster.backend();
        let clean = backend.read(&cluster.relation(0), 0).expect("reads");
        (1..16).for_each(|block| cluster.change(&mut backend, block, 1));
        let held: Vec<_> = (1..16).map(|block| cluster.hold_write(block)).collect();
        let checkpoint = cluster.spawn("checkpoint", |cluster| {
            let options = CheckpointOptions { combine: 1, ..CheckpointOptions::default() };
            cluster.checkpoint_with(&mut cluster.backend(), options).expect("a checkpoint");
        });
        // Of eight handles, six are reserved.
        cluster.wait_until("two writes in flight", || cluster.aio.handles_in_use() == 2);
        cluster.let_others_run();
        Some(Self { clean, held, checkpoint })
    }
}
