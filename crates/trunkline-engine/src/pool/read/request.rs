//! Read requests: what a session or stream asks for, what was started, and what became of each
//! block.

use super::super::error::ReadError;
use super::super::tag::BufferTag;
use super::policy::Policy;
use crate::storage::Relation;
use std::io;
use trunkline_aio::{Class, WaitRef};
use trunkline_format::{BlockNo, Lsn, PageVerdict};

/// A request to read consecutive blocks.
#[derive(Debug)]
pub(crate) struct ReadRequest<'a> {
    pub(crate) relation: &'a Relation,
    /// The tag of any block of the relation.
    pub(crate) tag: BufferTag,
    pub(crate) first: BlockNo,
    /// Maximum number of blocks from `first` on. The caller must have reserved this many pins.
    pub(crate) count: u32,
    pub(crate) class: Class,
    /// The caller waits for the read immediately, so the method may execute it in this thread.
    pub(crate) needed_now: bool,
    pub(crate) policy: Policy,
    /// The highest usage count to which a hit raises the page's count.
    pub(crate) usage_max: u32,
}

/// What was started. All of these buffers are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadStart {
    /// The first block is valid, in this buffer.
    Hit(u32),
    /// The first block is being read into this buffer, by another session or by the same stream.
    Joined(u32, WaitRef),
    /// A read of `count` blocks was issued.
    Issued { slot: usize, count: u32 },
    /// A worker is opening the segment ([`PageReads::opener`](super::PageReads::opener)).
    NotOpen,
    /// Every buffer is pinned or dirty.
    NoBuffer,
    /// Every I/O handle is in use.
    NoHandle,
}

/// What became of one block of a read.
#[derive(Debug)]
pub(crate) enum BlockResult {
    /// The page is valid.
    Valid,
    /// The page was damaged, but the policy made it valid.
    Damaged { zeroed: bool, verdict: PageVerdict },
    /// The page is damaged, and not valid.
    Bad(PageVerdict),
    /// The page is newer than the end of the log, and not valid.
    Newer(Lsn),
    /// A short read ended before the block: read it again.
    Unread,
    /// The read failed. If it was for several blocks, some of them may be readable.
    Failed { errno: i32, alone: bool },
    /// The file ends mid-block, or before the block.
    Short { bytes: u32 },
}

impl BlockResult {
    /// The error for a block that could not be read.
    pub(crate) fn error(&self, relation: &Relation, block: BlockNo) -> Option<ReadError> {
        let location = || relation.location(block);
        match *self {
            Self::Valid | Self::Damaged { .. } | Self::Unread => None,
            Self::Bad(verdict) => Some(ReadError::Corrupt { location: location(), verdict }),
            Self::Newer(found) => Some(relation.newer(block, found).into()),
            Self::Failed { errno, .. } => {
                let source = io::Error::from_raw_os_error(errno);
                Some(ReadError::Io { location: location(), source })
            }
            Self::Short { bytes } => Some(ReadError::Short { location: location(), bytes }),
        }
    }
}
