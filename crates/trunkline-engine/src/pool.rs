//! Shared buffer pool: caches relation pages in memory, and reads and writes them through
//! asynchronous I/O.
//!
//! This is the counterpart of PostgreSQL's `bufmgr.c`. A [`Pool`] is the part that all sessions
//! share, and a [`Backend`] is one session's access to it.
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
//! 1. **Pin reservation.** A session reserves a pin before it looks for a page (`pin_limits`). It
//!    may have to wait, but it never fails with PostgreSQL's "no unpinned buffers available".
//! 2. **Lookup.** The session looks up the tag in the mapping table (`mapping`), and a
//!    compare-exchange on the buffer word pins the buffer. If the page is valid, it's a hit. This
//!    is PostgreSQL's `BufferAlloc`.
//! 3. **Join.** If another session is reading the page, this session waits for that session's I/O,
//!    as `WaitReadBuffers` does.
//! 4. **Read.** Otherwise the session acquires an I/O handle and victim buffers (`replacement`),
//!    claims the page and the blocks that follow it, and issues one read for all of them (`read`).
//!    This is PostgreSQL's `StartReadBuffers`.
//! 5. **Completion.** The thread that completes the read checks every page, under the issuer's
//!    damaged-page policy, and makes it valid. This is PostgreSQL's `buffer_readv_complete`.
//! 6. **Access.** The session locks the page (`Backend::read_lock`, `write_lock`) and uses its
//!    bytes in place. The pin is released when the [`Pin`] is dropped; no `ResourceOwner` is
//!    needed.
//! 7. **Change.** A page becomes dirty under the exclusive content lock. A checkpoint, the
//!    background writer or a session that needs a victim flushes it (`write`): the WAL first, then
//!    the page, under a share-exclusive lock that the I/O owns. This is PostgreSQL's `FlushBuffer`.
//! 8. **Eviction.** The clock sweep picks a clean, unpinned page, and its buffer is given another
//!    page's tag.
//!
//! # Rules
//!
//! - A page is valid or being read, never both. Only `frame` creates references to its bytes.
//! - An I/O holds its own pin on each of its pages, so the issuing session can end at any time.
//! - Every resource that can run out (pins, handles, buffers) is acquired before a page is claimed.
//!   A session never waits while it holds a claim, because the session that could end its wait may
//!   itself be waiting for the claimed page.
//! - Pins, locks and claims are released only by the methods of `buffers`, which wake the waiters.
//! - One session's temporary relations use a second, local pool ([`Pool::local`]).
//!
//! # Files
//!
//! The files, from the bottom up. No file uses a later one.
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
//! | `maintenance`, `residency` | `pg_buffercache`, truncation, blocks in the pool and the page cache |

mod backend;
mod buffers;
mod bulk_write;
mod clusters;
mod descriptor;
mod error;
mod eviction;
mod extension;
mod frame;
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
pub use self::maintenance::{BufferRow, Evicted};
pub use self::pin::{Pin, PinRef};
pub use self::pin_limits::PINS_GUARANTEED;
pub use self::read::policy::Policy;
pub use self::replacement::ring_buffer::Strategy;
pub use self::residency::RelationResidency;
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
use std::sync::Arc;
use trunkline_aio::{Aio, TooManySessions};
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
    /// A pool of `buffers` pages (`shared_buffers`) in the page region of an I/O instance.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(aio: &Aio, buffers: u32) -> Result<Self, PoolError> {
        Self::with_log(aio, buffers, Unlogged)
    }

    /// Like [`Pool::new`], but with a write-ahead log: a page is written only after the log is
    /// durable up to the page's LSN.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn with_log(aio: &Aio, buffers: u32, log: impl Log + 'static) -> Result<Self, PoolError> {
        // One session's look-ahead may use most of an idle pool, since the pin limiter never grants
        // more than half of the free permits at a time.
        Self::make(aio, buffers, buffers / 4 * 3, IoObject::Relation, Box::new(log))
    }

    /// A pool of `buffers` pages (`temp_buffers`) for the temporary relations of one session.
    /// Look-ahead uses at most a quarter of it, as in PostgreSQL.
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

    /// Complete rounds of the clock sweep, and the buffer that it visits next.
    pub fn clock_position(&self) -> (u64, u32) {
        self.manager.replacement().clock().position()
    }

    /// The I/O statistics since the start (`pg_stat_io`). Backends and streams publish their counts
    /// from time to time, and when they end.
    pub fn counts(&self) -> Vec<(IoKey, Tally)> {
        self.statistics.rows()
    }

    /// The sum of all counts.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.counts().iter().for_each(|(_, tally)| total.add(tally));
        total
    }

    /// Permits that sessions hold for pins. There are never fewer permits than pins, because a
    /// session takes its permits before it pins.
    pub fn permits(&self) -> u32 {
        self.manager.limits().taken()
    }

    /// Lists every buffer that holds a page. As in `pg_buffercache`, each row is consistent in
    /// itself, but the rows together are not a snapshot of the pool.
    pub fn rows(&self) -> Vec<BufferRow> {
        self.manager.rows()
    }

    /// Whether a block has a valid page in the pool, at some moment during the call.
    pub fn contains(&self, relation: &Relation, block: BlockNo) -> bool {
        self.manager.peek_block(relation, block).is_some_and(|state| state.has(flag::VALID))
    }

    /// Number of pins on a block's buffer, including those held by I/O, or `None` if the block has
    /// no buffer. The count was correct at some point during the call. The function is cheap enough
    /// to call from a completion callback.
    pub fn pins_on(&self, relation: &Relation, block: BlockNo) -> Option<u32> {
        self.manager.peek_block(relation, block).map(|state| state.pins())
    }

    /// Evicts one buffer, numbered from 1 (`pg_buffercache_evict`). Returns false if the buffer is
    /// empty, pinned, dirty or under I/O, or does not exist.
    pub fn evict(&self, bufferid: u32) -> bool {
        self.manager.evict_buffer(bufferid)
    }

    /// Evicts every buffer of a relation's fork from block `first` on that can be evicted now.
    pub fn evict_relation(&self, relation: &Relation, first: BlockNo) -> Evicted {
        let tag = BufferTag::of(relation, first);
        self.manager.evict_where(|other| other.same_fork(tag) && other.block() >= first)
    }

    /// Evicts every buffer that can be evicted now, and releases closed clusters.
    pub fn evict_all(&self) -> Evicted {
        drop(self.manager.open_storages());
        self.manager.evict_where(|_| true)
    }

    /// Counts which of a fork's blocks are in the pool and in the page cache, without reading any.
    /// The counts for the page cache are reliable only for files that the caller owns or may write
    /// (see [`trunkline_aio::residency`]), and may already be out of date when this returns.
    ///
    /// # Errors
    /// A file of the fork cannot be used or mapped.
    pub fn residency(&self, relation: &Relation) -> Result<RelationResidency, StorageError> {
        self.manager.residency(relation)
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
