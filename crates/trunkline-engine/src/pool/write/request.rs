//! Write requests: which pages to write, which of them a write was started for, and how the write
//! ended.

use super::super::descriptor::WriteClaim;
use super::super::manager::BufferManager;
use super::super::tag::BufferTag;
use crate::storage::{Located, Relation};
use trunkline_aio::Class;
use trunkline_format::{BlockNo, Lsn};

/// A request to write consecutive blocks.
#[derive(Debug)]
pub(crate) struct WriteRequest<'a> {
    pub(crate) relation: &'a Relation,
    /// The tag of the first block.
    pub(crate) first: BufferTag,
    /// The buffers that probably contain the first block and the blocks after it. They aren't
    /// pinned, so we must recheck each buffer's tag when we claim it.
    pub(crate) buffers: &'a [u32],
    pub(crate) class: Class,
    /// Flags that a page must have besides `DIRTY`.
    pub(crate) needed: u64,
    /// The caller is going to wait for the write immediately, so executing it in this thread saves
    /// handing it to another one.
    pub(crate) needed_now: bool,
    /// The LSN up to which the WAL is known to be flushed. This value may be out of date, in which
    /// case we may refuse to write a page that we could have written, but it is never too high.
    pub(crate) durable: Lsn,
    /// The location of the first block, if the caller has opened its segment. Otherwise the segment
    /// is opened if necessary, which may block.
    pub(crate) located: Option<Located>,
}

impl<'a> WriteRequest<'a> {
    /// Creates a request to write the dirty pages among those in `buffers`, for a caller that isn't
    /// going to wait for the write immediately.
    pub(crate) fn new(
        manager: &BufferManager,
        relation: &'a Relation,
        first: BufferTag,
        buffers: &'a [u32],
        class: Class,
    ) -> Self {
        let durable = manager.clusters().durable();
        let located = None;
        Self { relation, first, buffers, class, needed: 0, needed_now: false, durable, located }
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
    /// The first page is locked, or I/O on it is in progress.
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
    /// The buffers of the remaining blocks if the write was short. These are still dirty. Writing
    /// them again will either succeed or report the reason.
    pub(crate) rest: Vec<u32>,
}
