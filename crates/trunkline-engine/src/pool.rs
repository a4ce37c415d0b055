//! Shared buffer pool: caches relation pages in memory, and reads and writes them through
//! asynchronous I/O.
//!
//! This is the counterpart of PostgreSQL's `bufmgr.c`. All sessions share a [`Pool`], and each
//! session accesses it through its own [`Backend`].
//!
//! ```text
//!   Backend: one page at a time     ReadStream: look-ahead          WriteStream, checkpoint, eviction
//!        └──────────────┬───────────────┘                                │
//!                page reads: start ─▶ frames ─▶ I/O handle        page writes: claim ─▶ I/O handle
//!                completion: check pages, VALID or IO_ERROR       completion: clean, or still dirty
//!                       └───────────────┬────────────────────────────────┘
//!                buffer manager: mapping, replacement, pin limits, descriptors
//! ```
//!
//! # Life of a page
//!
//! 1. **Pin reservation.** Before a session looks for a page, it must reserve a pin (`pin_limits`).
//!    It may have to wait for that, but it never fails with PostgreSQL's "no unpinned buffers
//!    available".
//! 2. **Lookup.** The session looks up the tag in the mapping table (`mapping`), and pins the
//!    buffer it finds by a compare-exchange on the buffer word. If the page is valid, this is a
//!    hit. In PostgreSQL, `BufferAlloc` does this.
//! 3. **Join.** If another session is already reading the page, we wait for that session's I/O,
//!    like `WaitReadBuffers` does in PostgreSQL.
//! 4. **Read.** Otherwise, the session acquires an I/O handle and victim buffers (`replacement`),
//!    claims the page and some of the blocks that follow it, and issues a single read for all of
//!    them (`read`). In PostgreSQL, `StartReadBuffers` does this.
//! 5. **Completion.** The thread that completes the read checks every page and makes it valid.
//!    Damaged pages are handled according to the policy of the session that issued the read. In
//!    PostgreSQL, `buffer_readv_complete` does this.
//! 6. **Access.** The session locks the page (`Backend::read_lock`, `write_lock`) and then accesses
//!    its bytes in place. Dropping the [`Pin`] releases the pin, so we don't need a
//!    `ResourceOwner`.
//! 7. **Change.** A page can be made dirty only while holding the exclusive content lock. Later,
//!    the page is flushed by a checkpoint, by the background writer, or by a session that needs a
//!    victim (`write`). We first flush the WAL, and then write the page under a share-exclusive
//!    lock that belongs to the I/O. In PostgreSQL, `FlushBuffer` does this.
//! 8. **Eviction.** The clock sweep picks a page that is clean and unpinned, and its buffer is then
//!    reused for another page.
//!
//! # Rules
//!
//! - A page is either valid or being read, never both. References to the bytes of a page are
//!   created only in `frame`.
//! - Each I/O holds a pin of its own on each of its pages, so it's OK if the session that issued it
//!   ends first.
//! - Every resource that can run out (pins, handles, buffers) must be acquired before a page is
//!   claimed. A session must never wait while it holds a claim: the session it is waiting for may
//!   itself be waiting for the claimed page, and then both would wait forever.
//! - Pins, locks and claims must only be released through the methods of `buffers`, because these
//!   wake the waiters.
//! - One session's temporary relations use a second, local pool ([`Pool::local`]).
//!
//! # Files
//!
//! The files are listed from the bottom up. A file never uses one that is listed below it.
//!
//! | File | Content |
//! |---|---|
//! | `tag`, `error` | buffer tag; errors |
//! | `descriptor` | buffer word, content lock, I/O claims |
//! | `waiters` | sessions that sleep until something in the pool changes |
//! | `clusters` | writable clusters, and the log |
//! | `buffers`, `frame` | descriptor array with wake-ups; the pages' memory |
//! | `mapping`, `replacement` | tag to buffer; clock sweep, rings, victims |
//! | `statistics`, `pin_limits` | `pg_stat_io`; how many pins a session may hold |
//! | `manager`, `pin` | the parts combined; a pinned page |
//! | `read`, `write`, `writeback` | page reads, page writes, `sync_file_range` |
//! | `eviction`, `backend` | flushing victims; one session |
//! | `bulk_write`, `extension` | loads, extending relations |
//! | `maintenance`, `residency` | `pg_buffercache`, truncation, blocks in the pool and the page
//! cache |

mod backend;
mod buffers;
mod bulk_write;
mod clusters;
mod descriptor;
mod error;
mod eviction;
mod extension;
mod frame;
mod lock_wait;
mod maintenance;
mod manager;
mod mapping;
mod pin;
mod pin_limits;
mod read;
mod replacement;
mod residency;
mod statistics;
mod tag;
mod waiters;
mod write;
mod writeback;

pub use self::backend::Backend;
pub use self::bulk_write::BulkWrite;
pub use self::error::{BUFFERS_MIN, PoolError, ReadError, ReadWarning, WriteError};
pub use self::frame::{Page, PageMut};
pub(crate) use self::lock_wait::LockWait;
pub use self::maintenance::{BufferRow, Evicted};
pub use self::pin::{Pin, PinRef};
pub use self::pin_limits::{GuaranteeError, PINS_GUARANTEED};
pub use self::read::policy::Policy;
pub use self::replacement::ring_buffer::Strategy;
pub use self::residency::{RelationResidency, ResidencyEstimate};
pub use self::statistics::{BackendType, IoKey, IoObject, Tally};
pub use crate::settings::ExtendMethod;

pub(crate) use self::descriptor::{USAGE_MAX, flag};
pub(crate) use self::error::Findings;
pub(crate) use self::eviction::WriteCounter;
pub(crate) use self::manager::BufferManager;
pub(crate) use self::read::{BlockResult, PageReads, ReadRequest, ReadStart};
pub(crate) use self::replacement::ring_buffer::RingBuffer;
pub(crate) use self::statistics::IoCounter;
pub(crate) use self::tag::BufferTag;
pub(crate) use self::write::{PageWrites, WriteRequest, WriteResult, WriteStart};
pub(crate) use self::writeback::WritebackQueue;

use self::clusters::WritableClusters;
use self::statistics::Statistics;
use self::waiters::SessionLock;
use crate::log::{Log, Unlogged};
use crate::storage::{Relation, StorageError};
use std::ops::Range;
use std::sync::Arc;
use trunkline_aio::{Aio, Call, Session, TooManySessions};
use trunkline_format::BlockNo;

/// A buffer pool. Clones share the same pool.
#[derive(Debug, Clone)]
pub struct Pool {
    manager: Arc<BufferManager>,
    statistics: Arc<Statistics>,
    /// Held by the checkpoint in progress (PostgreSQL's `CheckpointLock`).
    checkpoint_lock: Arc<SessionLock>,
    aio: Aio,
}

impl Pool {
    /// Creates a pool of `buffers` pages (`shared_buffers`) in the page region of an I/O instance.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(aio: &Aio, buffers: u32) -> Result<Self, PoolError> {
        Self::with_log(aio, buffers, Unlogged)
    }

    /// Like [`Pool::new`], but with a write-ahead log: we never write a page until the log is
    /// durable up to that page's LSN.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn with_log(aio: &Aio, buffers: u32, log: impl Log + 'static) -> Result<Self, PoolError> {
        // We let a single session's look-ahead use most of the pool if the pool is otherwise idle.
        // That's safe, because the pin limiter never grants more than half of the free permits at a
        // time.
        Self::make(aio, buffers, buffers / 4 * 3, IoObject::Relation, Box::new(log))
    }

    /// Creates a pool of `buffers` pages (`temp_buffers`) for the temporary relations of one
    /// session. As in PostgreSQL, look-ahead may use at most a quarter of it.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn local(aio: &Aio, buffers: u32) -> Result<Self, PoolError> {
        Self::make(aio, buffers, buffers / 4, IoObject::TempRelation, Box::new(Unlogged))
    }

    fn make(
        aio: &Aio,
        buffers: u32,
        ahead_max: u32,
        object: IoObject,
        log: Box<dyn Log>,
    ) -> Result<Self, PoolError> {
        if buffers < BUFFERS_MIN {
            return Err(PoolError::TooSmall { buffers });
        }
        let lease = aio.region().lease(buffers).ok_or(PoolError::NoMemory { buffers })?;
        let clusters = WritableClusters::new(log);
        let manager = BufferManager::new(lease, ahead_max, aio.notifier(), clusters);
        Ok(Self {
            manager: Arc::new(manager),
            statistics: Arc::new(Statistics::new(object)),
            checkpoint_lock: Arc::new(SessionLock::new(aio.notifier())),
            aio: aio.clone(),
        })
    }

    /// A backend with a new session.
    ///
    /// # Errors
    /// All of the instance's sessions are in use.
    pub fn backend(&self, kind: BackendType) -> Result<Backend, TooManySessions> {
        Ok(Backend::new(&self.manager, &self.statistics, self.aio.session()?, kind))
    }

    /// The I/O instance.
    pub fn aio(&self) -> &Aio {
        &self.aio
    }

    /// Number of buffers.
    pub fn buffers(&self) -> u32 {
        self.manager.buffers().count()
    }

    /// The number of complete passes of the clock sweep, and the buffer it will visit next.
    pub fn clock_position(&self) -> (u64, u32) {
        self.manager.replacement().clock().position()
    }

    /// The I/O statistics since the pool was created (`pg_stat_io`). Backends and streams publish
    /// their counts from time to time and when they end, so the most recent counts may be missing.
    pub fn counts(&self) -> Vec<(IoKey, Tally)> {
        self.statistics.rows()
    }

    /// Sets all counts to zero (`pg_stat_reset_shared('io')`). Counts that sessions haven't published
    /// yet are added later. `time` is what [`Pool::counts_reset`] returns from then on.
    pub fn reset_counts(&self, time: i64) {
        self.statistics.reset(time);
    }

    /// When the counts were last set to zero, in microseconds since 2000; `None` if never.
    pub fn counts_reset(&self) -> Option<i64> {
        self.statistics.reset_at()
    }

    /// The sum of all counts.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.counts().iter().for_each(|(_, tally)| total.add(tally));
        total
    }

    /// Number of permits that sessions currently hold for pins. This can't be less than the number
    /// of pins, because a session must get its permits before it pins anything.
    pub fn permits(&self) -> u32 {
        self.manager.limits().taken()
    }

    /// Lists all buffers that contain a page. As in `pg_buffercache`, every row is consistent, but
    /// the rows taken together are not a snapshot of the pool.
    pub fn rows(&self) -> Vec<BufferRow> {
        self.manager.rows()
    }

    /// Whether the pool had a valid page for this block at some point during the call.
    pub fn contains(&self, relation: &Relation, block: BlockNo) -> bool {
        self.manager.peek_block(relation, block).is_some_and(|state| state.has(flag::VALID))
    }

    /// Returns the number of pins on a block's buffer, including those held by I/O, or `None` if
    /// the block isn't in the pool. The result may be out of date when this returns, but it was
    /// correct at some point during the call. This is cheap enough for completion callbacks.
    pub fn pins_on(&self, relation: &Relation, block: BlockNo) -> Option<u32> {
        self.manager.peek_block(relation, block).map(|state| state.pins())
    }

    /// Evicts one buffer, like `pg_buffercache_evict`. Buffers are numbered from 1. Returns false
    /// if there is no such buffer, or if it is empty, pinned, dirty or under I/O.
    pub fn evict(&self, bufferid: u32) -> bool {
        self.manager.evict_buffer(bufferid)
    }

    /// Evicts all pages of a relation fork from block `first` onwards, except those that can't be
    /// evicted right now.
    pub fn evict_relation(&self, relation: &Relation, first: BlockNo) -> Evicted {
        let tag = BufferTag::of(relation, first);
        self.manager.evict_where(|other| other.same_fork(tag) && other.block() >= first)
    }

    /// Evicts every buffer that can be evicted now, and releases closed clusters.
    pub fn evict_all(&self) -> Evicted {
        drop(self.manager.open_storages());
        self.manager.evict_where(|_| true)
    }

    /// Counts how many of the given blocks of a fork are in the pool and how many are in the page
    /// cache, without reading them. The range may extend beyond the end of the fork. It takes about
    /// 20 ms per GB. The page cache counts are only reliable for files that the caller owns
    /// or may write to (see [`trunkline_aio::residency`]). All counts may already be out of date
    /// when this returns.
    ///
    /// # Errors
    /// A file of the fork cannot be used or mapped.
    pub fn residency(
        &self,
        relation: &Relation,
        blocks: Range<BlockNo>,
    ) -> Result<RelationResidency, StorageError> {
        self.manager.residency(relation, blocks)
    }

    /// Starts to estimate which part of a fork's first `blocks` blocks is in the pool, and which in
    /// the page cache, from 64 of them, without reading them. A session that must not block polls as
    /// for [`Relation::count_blocks`].
    pub fn estimate_residency(
        &self,
        session: &mut Session,
        relation: &Relation,
        blocks: BlockNo,
    ) -> Call<Result<ResidencyEstimate, StorageError>> {
        let (manager, theirs) = (Arc::clone(&self.manager), relation.clone());
        let number = relation.storage().call_number(relation.locator().tablespace);
        session.call(number, move || manager.estimate_residency(&theirs, blocks))
    }

    /// The shared part.
    pub(crate) fn manager(&self) -> &Arc<BufferManager> {
        &self.manager
    }

    /// Held by the checkpoint in progress.
    pub(crate) fn checkpoint_lock(&self) -> &SessionLock {
        &self.checkpoint_lock
    }
}
