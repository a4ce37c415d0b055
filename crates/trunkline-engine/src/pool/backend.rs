//! Backend: one session's access to the pool. Like a PostgreSQL backend process, it has its own
//! pins, counters and policy for damaged pages, as well as a session through which it issues I/O.
//!
//! ```text
//!   backend         what a session owns, and its settings
//!   backend/wait    every way to wait: for a pin, a victim, a handle, an I/O
//!   backend/lock    content locks, waiting for them if necessary
//!   backend/read    reading one page
//! ```
//!
//! A backend can only be used by one thread at a time, and its streams use the same I/O session for
//! their look-ahead. Two rules keep sessions from deadlocking. First, a backend must never sleep
//! while it has staged I/O. The session submits the staged I/O before it sleeps, because another
//! session may be waiting for it. Second, a backend must never sleep while it holds a claim on a
//! page, because other sessions may be waiting for that page.

mod lock;
mod read;
mod wait;

use super::error::ReadWarning;
use super::eviction::EvictionWriter;
use super::manager::BufferManager;
use super::pin_limits::{GuaranteeError, PINS_GUARANTEED};
use super::read::PageReads;
use super::read::policy::Policy;
use super::replacement::ring_buffer::Strategy;
use super::statistics::{BackendType, IoCounter, IoKey, Statistics, Tally};
use crate::storage::Relation;
use trunkline_aio::Session;
use trunkline_aio::facade::Arc;

/// Warnings kept until [`Backend::take_warnings`].
const WARNINGS_MAX: usize = 1000;

/// A session of a pool: reads, locks, extends and evicts pages.
#[derive(Debug)]
pub struct Backend {
    manager: Arc<BufferManager>,
    session: Session,
    kind: BackendType,
    policy: Policy,
    reads: PageReads,
    counter: IoCounter,
    warnings: Vec<ReadWarning>,
    /// Number of warnings dropped because the list was full.
    warnings_lost: u64,
    /// Created the first time the session can't find a clean buffer. Most sessions never need it.
    eviction: Option<Box<EvictionWriter>>,
    flush_after: u32,
}

impl Backend {
    /// A backend with a new session.
    pub(crate) fn new(
        manager: &Arc<BufferManager>,
        statistics: &Arc<Statistics>,
        session: Session,
        kind: BackendType,
    ) -> Self {
        Self {
            manager: Arc::clone(manager),
            session,
            kind,
            policy: Policy::default(),
            reads: PageReads::new(manager, 1, 1),
            counter: IoCounter::new(statistics),
            warnings: Vec::new(),
            warnings_lost: 0,
            eviction: None,
            flush_after: 0,
        }
    }

    /// Number of the session (`pg_aios.pid`).
    pub fn session_id(&self) -> u32 {
        self.session.id()
    }

    /// The session that issues the backend's I/O.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Maximum number of iovecs per I/O. This limits how many pages we can combine into one I/O if
    /// their frames aren't adjacent.
    pub(crate) fn iovecs(&self) -> usize {
        self.session.iovecs()
    }

    /// Sets the policy for damaged pages. It applies to all reads issued from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The policy for damaged pages.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Sets `backend_flush_after`. Once this session has written this many blocks, in evictions or
    /// bulk writes, we ask the kernel to start writeback. If it's 0, which is the default, the
    /// kernel decides when to start writeback. A bulk write uses the value that was set when it
    /// started.
    pub fn set_flush_after(&mut self, blocks: u32) {
        self.flush_after = blocks;
        if let Some(eviction) = &mut self.eviction {
            eviction.set_flush_after(blocks);
        }
    }

    /// Pins that the session holds, including its streams' pins.
    pub fn pins(&self) -> u32 {
        self.manager.limits().pins(self.session.id())
    }

    /// Guarantees that the session can hold `pins` pages at the same time once it is admitted, which
    /// happens when it pins its next page. The default, and the minimum, is
    /// [`PINS_GUARANTEED`](super::PINS_GUARANTEED). Call this before an operation that needs more,
    /// such as a plan with several nested index scans, and call it again with the default
    /// afterwards. Pages that streams pin ahead don't count, but their current pages do.
    ///
    /// The session may then have to wait longer for its first page, because more buffers must be
    /// free at once, and sessions that need fewer pins may be admitted before it.
    ///
    /// # Errors
    /// The number is higher than 255 or than the number of buffers, or it is raised while the
    /// session holds pins. Nothing has changed then.
    pub fn guarantee_pins(&mut self, pins: u32) -> Result<(), GuaranteeError> {
        self.manager.limits().guarantee(self.session.id(), pins)
    }

    /// Returns all warnings since the last call, and how many more warnings were dropped.
    pub fn take_warnings(&mut self) -> (Vec<ReadWarning>, u64) {
        (std::mem::take(&mut self.warnings), std::mem::take(&mut self.warnings_lost))
    }

    /// Keeps a warning, unless `WARNINGS_MAX` are kept already.
    pub(crate) fn warn(&mut self, warning: ReadWarning) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        } else {
            self.warnings_lost += 1;
        }
    }

    /// Publishes the counts of this session to the shared statistics.
    pub fn publish_counts(&mut self) {
        self.counter.publish();
    }

    /// Number of buffers of the pool.
    pub(crate) fn pool_buffers(&self) -> u32 {
        self.manager.buffers().count()
    }

    /// The pool's shared part.
    pub(crate) fn manager(&self) -> &Arc<BufferManager> {
        &self.manager
    }

    /// The pool's statistics.
    pub(crate) fn statistics(&self) -> &Arc<Statistics> {
        self.counter.statistics()
    }

    /// Whether the backend belongs to the pool with this shared part.
    pub(crate) fn is_of(&self, manager: &Arc<BufferManager>) -> bool {
        Arc::ptr_eq(&self.manager, manager)
    }

    /// Kind of session.
    pub(crate) fn kind(&self) -> BackendType {
        self.kind
    }

    /// `backend_flush_after`.
    pub(crate) fn flush_after(&self) -> u32 {
        self.flush_after
    }

    /// Attributes all further I/O counts to this relation, and allows its pages to be changed if
    /// its cluster is writable. This is called even for reads that turn out to be hits, so it must
    /// be cheap: if the relation is the same as last time, it does nothing.
    pub(crate) fn count_for(&mut self, relation: &Relation) {
        let key = self.key(relation, Strategy::Normal);
        if self.counter.count_as(key) {
            self.manager.clusters().allow_writes(relation.storage());
        }
    }

    /// The statistics key of this session's work on a relation.
    pub(crate) fn key(&self, relation: &Relation, context: Strategy) -> IoKey {
        self.counter.statistics().key(self.kind, context, relation)
    }

    /// The counts that haven't been published yet.
    pub(crate) fn tally(&mut self) -> &mut Tally {
        self.counter.tally()
    }

    /// Swaps the unpublished counts with `tally`. We use this to make the backend count I/O for a
    /// stream or a bulk write rather than for itself.
    pub(crate) fn swap_tally(&mut self, tally: &mut Tally) {
        std::mem::swap(self.counter.tally(), tally);
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Some(eviction) = &mut self.eviction {
            eviction.take_ended();
        }
        self.counter.publish();
        // Pins may outlive the backend, and the next session with the same number starts with the
        // default. Lowering the number can't fail.
        let _ = self.manager.limits().guarantee(self.session.id(), PINS_GUARANTEED);
        self.manager.limits().return_permits(self.session.id());
    }
}
