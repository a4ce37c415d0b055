//! Loads a range of blocks of one relation into the kernel's page cache, in the calling thread.
//!
//! This is what the SQL function `pg_prewarm` does in the modes `read` and `prefetch`. Unlike the jobs
//! of this module, it stops at the first error, as that function does. A call can't be interrupted
//! while the kernel reads, so if a mount hangs, the thread hangs too.

use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{Advice, Mode, OFlags};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo, SEGMENT_BLOCKS};

use crate::storage::{Relation, StorageError};

/// The blocks of one call: the kernel's usual read-ahead size, beyond which it ignores advice.
const BLOCKS: u32 = 16;

/// Reads blocks, without verifying them. Returns how many were read before `is_stopped` returned true.
///
/// # Errors
/// A segment can't be opened or read, or ends too early.
pub fn read_blocks(
    relation: &Relation,
    blocks: Range<BlockNo>,
    is_stopped: impl Fn() -> bool,
) -> Result<u32, StorageError> {
    let mut room = vec![0; BLOCKS as usize * BLOCK_SIZE];
    each_part(relation, blocks, is_stopped, |file, first, count| {
        let offset = segment_of(first).1;
        let wanted = count as usize * BLOCK_SIZE;
        let mut done = 0;
        while done < wanted {
            let part = room.get_mut(done..wanted).unwrap_or_default();
            match rustix::io::pread(file, part, offset + done as u64) {
                Ok(0) => return Err(relation.missing(first + (done / BLOCK_SIZE) as u32)),
                Ok(bytes) => done += bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(relation, first, "read", error)),
            }
        }
        Ok(())
    })
}

/// Asks the kernel to read blocks (`posix_fadvise`). Returns the number of blocks that it was asked for
/// before `is_stopped` returned true.
///
/// # Errors
/// A segment can't be opened, or the file system refuses advice.
pub fn advise_blocks(
    relation: &Relation,
    blocks: Range<BlockNo>,
    is_stopped: impl Fn() -> bool,
) -> Result<u32, StorageError> {
    each_part(relation, blocks, is_stopped, |file, first, count| {
        let length = NonZeroU64::new(u64::from(count) * BLOCK_SIZE as u64);
        let advised = rustix::fs::fadvise(file, segment_of(first).1, length, Advice::WillNeed);
        advised.map_err(|error| failed(relation, first, "prefetch", error))
    })
}

/// Calls `work` for parts of the range, none of which crosses the end of a segment.
fn each_part(
    relation: &Relation,
    blocks: Range<BlockNo>,
    is_stopped: impl Fn() -> bool,
    mut work: impl FnMut(&OwnedFd, BlockNo, u32) -> Result<(), StorageError>,
) -> Result<u32, StorageError> {
    let (mut next, mut open) = (blocks.start, None);
    while next < blocks.end && !is_stopped() {
        let segment = segment_of(next).0;
        let file = match open.take() {
            Some((number, file)) if number == segment => file,
            _ => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let file = rustix::fs::open(relation.path(segment), flags, Mode::empty());
                file.map_err(|error| failed(relation, next, "open", error))?
            }
        };
        let in_segment = SEGMENT_BLOCKS - next % SEGMENT_BLOCKS;
        let count = BLOCKS.min(blocks.end - next).min(in_segment);
        work(&file, next, count)?;
        open = Some((segment, file));
        next += count;
    }
    Ok(next - blocks.start)
}

fn failed(
    relation: &Relation,
    block: BlockNo,
    operation: &'static str,
    error: rustix::io::Errno,
) -> StorageError {
    let path = relation.path(segment_of(block).0);
    StorageError::Io { operation, path, source: error.into() }
}
