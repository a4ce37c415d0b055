//! Write requests: which pages to write, what was started, and how it ended.

use super::super::descriptor::WriteClaim;
use super::super::manager::BufferManager;
use super::super::tag::BufferTag;
use crate::storage::Relation;
use trunkline_aio::Class;
use trunkline_format::{BlockNo, Lsn};

/// A request to write consecutive blocks.
#[derive(Debug)]
pub(crate) struct WriteRequest<'a> {
    pub(crate) relation: &'a Relation,
    /// The tag of the first block.
    pub(crate) first: BufferTag,
    /// The buffers that probably hold the first block and those that follow it. They aren't pinned,
    /// so each buffer's tag is rechecked by its claim.
    pub(crate) buffers: &'a [u32],
    pub(crate) class: Class,
    /// Flags that a page must have besides `DIRTY`.
    pub(crate) needed: u64,
    /// The caller waits for the write immediately, so executing it in this thread saves a hop to
    /// another thread.
    pub(crate) needed_now: bool,
    /// The position up to which the log is durable. This value may lag behind the log, in which
    /// case a page is refused needlessly, but it's never ahead of the log.
    pub(crate) durable: Lsn,
}

impl<'a> WriteRequest<'a> {
    /// A request to write the dirty pages among `buffers`, from a caller that doesn't wait for the
    /// write immediately.
    pub(crate) fn new(
        manager: &BufferManager,
        relation: &'a Relation,
        first: BufferTag,
        buffers: &'a [u32],
        class: Class,
    ) -> Self {
        let durable = manager.clusters().durable();
        Self { relation, first, buffers, class, needed: 0, needed_now: false, durable }
    }

    /// The first block.
    pub(crate) fn block(&self) -> BlockNo {
        self.first.block()
    }
}

/// What was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteStart {
    /// A write of `count` blocks was issued.
    Issued { count: u32 },
    /// The first page is clean, or no longer in its buffer.
    Clean,
    /// The first page is locked, or under I/O.
    Busy,
    /// The log must become durable up to this position first.
    LogFirst(Lsn),
    /// Every I/O handle is in use.
    NoHandle,
}

impl From<WriteClaim> for WriteStart {
    fn from(claim: WriteClaim) -> Self {
        match claim {
            WriteClaim::Claimed => Self::Issued { count: 1 },
            WriteClaim::Clean => Self::Clean,
            WriteClaim::Busy => Self::Busy,
        }
    }
}

/// A write that has ended.
#[derive(Debug)]
pub(crate) struct WriteResult {
    /// The first block.
    pub(crate) first: BufferTag,
    /// Number of blocks that the kernel has accepted.
    pub(crate) blocks: u32,
    /// The buffers of the remaining blocks, which a short write has left dirty. Writing them again
    /// reports the reason.
    pub(crate) rest: Vec<u32>,
}
