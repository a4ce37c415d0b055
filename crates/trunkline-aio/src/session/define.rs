//! Defining an I/O: checks of its range, and the iovecs of its memory.
//!
//! The memory for an I/O can be specified in two ways: as leases in the issuer's slot, which only
//! this I/O uses, or as frame numbers, for frames that a buffer pool has leased and shares. In both
//! cases we fill in the handle's iovecs, which were allocated at start. We also check the caller's
//! arguments here. If there is a mistake, we release the handle and return an error before the
//! kernel ever sees the I/O.

use crate::limits::{FRAME_SIZE, TRANSFER_MAX};
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::region::Region;
use crate::storage::request::IoVecs;
use crate::tables::slots::SlotSet;

/// Why an I/O could not be defined. Its handle has been released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefineError {
    /// Direct I/O needs an offset and length that are multiples of `alignment` bytes.
    #[error(
        "direct I/O of {length} bytes at offset {offset}: both must be multiples of {alignment}"
    )]
    Misaligned {
        /// The requested offset.
        offset: u64,
        /// The requested length.
        length: u32,
        /// The alignment the file's device requires.
        alignment: u32,
    },
    /// The slot's memory is shorter than the I/O, in bytes.
    #[error("{memory} bytes of memory for an I/O of {length} bytes")]
    MemoryTooShort {
        /// Bytes of memory in the slot.
        memory: usize,
        /// The requested length.
        length: u32,
    },
    /// The memory has more pieces than a handle has iovecs.
    #[error("memory in more than {limit} pieces")]
    TooManyPieces {
        /// Number of iovecs per handle (`io_max_combine_limit`).
        limit: usize,
    },
    /// The range ends beyond the largest file offset (2^63 - 1).
    #[error("offset {offset} is beyond the largest file offset")]
    BeyondOffsets {
        /// The requested offset.
        offset: u64,
    },
    /// The memory was leased from the region of another instance.
    #[error("memory of another instance's region")]
    ForeignMemory,
    /// The region has no frame with this number.
    #[error("frame {frame} of a region of {frames} frames")]
    NoSuchFrame {
        /// The requested number.
        frame: u32,
        /// Number of frames in the region, numbered from 0.
        frames: u32,
    },
    /// More frames than one I/O can transfer.
    #[error("an I/O of more than {limit} bytes")]
    TooLong {
        /// Maximum bytes in one I/O.
        limit: u32,
    },
}

/// The parameters of an I/O, except for its memory.
pub(crate) struct Transfer<'f> {
    pub(crate) operation: Operation,
    pub(crate) file: &'f File,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// The memory was specified by frame number, and the handle's iovecs already point to it.
    pub(crate) by_frames: bool,
    /// For a writeback: also wait until the storage has the pages.
    pub(crate) awaits: bool,
    /// For a write: make the data durable.
    pub(crate) durable: bool,
}

impl<'f> Transfer<'f> {
    /// An operation on the whole file.
    pub(crate) fn of_file(operation: Operation, file: &'f File) -> Self {
        Self::of_range(operation, file, 0, 0)
    }

    /// An operation on `length` bytes at `offset`, with the slot's memory if it needs any.
    pub(crate) fn of_range(operation: Operation, file: &'f File, offset: u64, length: u32) -> Self {
        Self { operation, file, offset, length, by_frames: false, awaits: false, durable: false }
    }

    /// Whether the I/O waits for the storage by its definition, so that no session executes it
    /// itself because its mount is fast.
    pub(crate) fn waits_for_storage(&self) -> bool {
        self.awaits || self.durable
    }

    /// Checks that the range satisfies the file's alignment requirement and doesn't extend beyond
    /// the largest file offset.
    pub(crate) fn check(&self) -> Result<(), DefineError> {
        let Self { offset, length, .. } = *self;
        let alignment = self.file.alignment();
        if !offset.is_multiple_of(u64::from(alignment)) || !length.is_multiple_of(alignment) {
            return Err(DefineError::Misaligned { offset, length, alignment });
        }
        // Some system calls interpret a negative offset as the current position; others reject it.
        if !self.ends_within_offsets() {
            return Err(DefineError::BeyondOffsets { offset });
        }
        Ok(())
    }

    pub(crate) fn ends_within_offsets(&self) -> bool {
        let end = self.offset.checked_add(u64::from(self.length));
        end.is_some_and(|end| i64::try_from(end).is_ok())
    }
}

/// Makes the iovecs point to the given frames, and returns their total length in bytes. If frames
/// are next to each other in memory, we merge them into one piece. This saves iovecs, and allows
/// the storage to transfer them together.
pub(crate) fn point_at_frames(
    iovecs: &mut IoVecs,
    region: &Region,
    frames: impl Iterator<Item = u32>,
) -> Result<u32, DefineError> {
    let (mut length, mut next) = (0, None);
    iovecs.clear();
    for frame in frames {
        let Some(start) = region.frame_start(frame) else {
            return Err(DefineError::NoSuchFrame { frame, frames: region.frames() });
        };
        if length + FRAME_SIZE > TRANSFER_MAX as usize {
            return Err(DefineError::TooLong { limit: TRANSFER_MAX });
        }
        length += FRAME_SIZE;
        if next == Some(frame) {
            iovecs.extend_last(FRAME_SIZE);
        } else if !iovecs.push(start, FRAME_SIZE) {
            return Err(DefineError::TooManyPieces { limit: iovecs.capacity() });
        }
        next = frame.checked_add(1);
    }
    Ok(length as u32)
}

/// Makes the iovecs point to the slot's leases, up to `length` bytes in total. All leases must be
/// from this instance's region. Any other region could be unmapped during the I/O, and it isn't
/// registered with our rings.
pub(crate) fn point_at_slot(
    iovecs: &mut IoVecs,
    region: &Region,
    length: u32,
    slots: &mut SlotSet,
    slot: usize,
) -> Result<(), DefineError> {
    iovecs.clear();
    let Some(memory) = slots.memory(slot) else {
        return Err(DefineError::MemoryTooShort { memory: 0, length });
    };
    let mut left = length as usize;
    for lease in memory.iter_mut() {
        if left == 0 {
            break;
        }
        if !region.owns(lease) {
            return Err(DefineError::ForeignMemory);
        }
        // The last lease may be longer than what is left of the I/O.
        let (start, bytes) = lease.raw();
        let used = bytes.min(left);
        if !iovecs.push(start, used) {
            return Err(DefineError::TooManyPieces { limit: iovecs.capacity() });
        }
        left -= used;
    }
    if left > 0 {
        let memory = length as usize - left;
        return Err(DefineError::MemoryTooShort { memory, length });
    }
    Ok(())
}
