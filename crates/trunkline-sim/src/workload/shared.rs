//! Parameters of a random I/O workload, and the state its clients share.

use crate::block_model::BlockModel;
use crate::clients::FirstFailure;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{File, MethodKind, WaitRef};

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Determines the clients' steps. Under the scheduler, the interleaving of their threads has a
    /// separate seed.
    pub seed: u64,
    /// Number of concurrent clients.
    pub clients: u32,
    /// Steps of each client.
    pub steps: u32,
    /// Blocks of each file; all have version 0 at the start.
    pub blocks: u32,
    /// Allows clients to read blocks that belong to other clients. Set this only if the storage
    /// guarantees that a read never sees only part of a concurrent write.
    pub share: bool,
    /// Clients switch between these I/O methods during the run. Empty if they don't switch.
    pub methods: &'static [MethodKind],
}

impl Default for Workload {
    fn default() -> Self {
        Self { seed: 0, clients: 3, steps: 12, blocks: 24, share: true, methods: &[] }
    }
}

/// I/O counts. At the end of a run, `issued` must equal `taken + abandoned`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// I/Os defined.
    pub(super) issued: u64,
    /// Outcomes received by clients.
    pub(super) taken: u64,
    /// I/Os in flight when their slots were dropped.
    pub(super) abandoned: u64,
}

/// Wait references that clients publish so that other clients can join their I/Os. By the time
/// another client uses a reference, the handle may already have been reused. In that case, the wait
/// must return immediately.
#[derive(Debug, Default)]
pub(super) struct Published(Mutex<Vec<WaitRef>>);

impl Published {
    /// Adds a wait reference and keeps only the last eight.
    pub(super) fn publish(&self, io: WaitRef) {
        let mut published = self.0.lock();
        published.push(io);
        let excess = published.len().saturating_sub(8);
        published.drain(..excess);
    }

    /// Returns a random published reference.
    pub(super) fn some(&self, rng: &mut Rng) -> Option<WaitRef> {
        let published = self.0.lock();
        published.get(rng.below(published.len() as u64) as usize).copied()
    }
}

/// State shared by all clients of a run.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) workload: Workload,
    pub(super) model: Arc<BlockModel>,
    pub(super) files: Vec<File>,
    /// Wait references of recent I/Os, so that clients can join another client's I/O.
    pub(super) published: Published,
    pub(super) counts: Mutex<Counts>,
    pub(super) failure: FirstFailure,
}

impl Shared {
    pub(super) fn new(workload: Workload, model: &Arc<BlockModel>, files: Vec<File>) -> Self {
        Self {
            workload,
            model: Arc::clone(model),
            files,
            published: Published::default(),
            counts: Mutex::default(),
            failure: FirstFailure::default(),
        }
    }
}
