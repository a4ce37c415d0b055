//! What an I/O is to do, checked before the handle takes it on.
//!
//! Memory comes in two kinds: leases in the issuer's slot, which the I/O has to itself, and frames
//! that somebody else leases and shares out, given by number. Both end as the handle's iovecs, which
//! are there from the start: nothing here allocates. What is wrong is an error, and the handle is
//! given back.

use super::Io;
use crate::file::File;
use crate::limits::{FRAME_SIZE, TRANSFER_MAX};
use crate::request::{IoVec, Operation};
use crate::slots::SlotSet;
use std::fmt;

/// Why an I/O could not be defined. The handle has been given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefineError {
    /// Direct I/O needs offset and length in multiples of `alignment` bytes.
    Misaligned {
        /// The offset asked for.
        offset: u64,
        /// The length asked for.
        length: u32,
        /// What the file's device needs.
        alignment: u32,
    },
    /// The slot's memory is shorter than the length, in bytes.
    MemoryTooShort {
        /// Bytes of memory in the slot.
        memory: usize,
        /// The length asked for.
        length: u32,
    },
    /// The memory has more pieces than a handle has iovecs.
    TooManyPieces {
        /// Iovecs of a handle (`io_max_combine_limit`).
        limit: usize,
    },
    /// Offset and length together pass the largest file offset (2^63 - 1).
    BeyondOffsets {
        /// The offset asked for.
        offset: u64,
    },
    /// The memory was leased from another instance's region.
    ForeignMemory,
    /// The region has no frame of this number.
    NoSuchFrame {
        /// The number asked for.
        frame: u32,
        /// Frames of the region; their numbers start at 0.
        frames: u32,
    },
    /// More frames than one I/O can transfer.
    TooLong {
        /// Bytes of the longest I/O.
        limit: u32,
    },
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefineError::Misaligned { offset, length, alignment } => write!(
                f,
                "direct I/O of {length} bytes at offset {offset}: both must be multiples of {alignment}"
            ),
            DefineError::MemoryTooShort { memory, length } => {
                write!(f, "{memory} bytes of memory for an I/O of {length} bytes")
            }
            DefineError::TooManyPieces { limit } => {
                write!(f, "memory in more than {limit} pieces")
            }
            DefineError::BeyondOffsets { offset } => {
                write!(f, "offset {offset} lies beyond any file")
            }
            DefineError::ForeignMemory => f.write_str("memory of another instance's region"),
            DefineError::NoSuchFrame { frame, frames } => {
                write!(f, "frame {frame} of a region of {frames} frames")
            }
            DefineError::TooLong { limit } => write!(f, "an I/O of more than {limit} bytes"),
        }
    }
}

impl std::error::Error for DefineError {}

/// What an I/O is to do.
pub(super) struct Transfer<'f> {
    pub(super) operation: Operation,
    pub(super) file: &'f File,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Its memory is frames, and the handle's iovecs point at them already.
    pub(super) by_frames: bool,
    /// Write-back is to be waited for.
    pub(super) awaits: bool,
}

impl<'f> Transfer<'f> {
    pub(super) fn nothing(operation: Operation, file: &'f File) -> Self {
        Self::of_range(operation, file, 0, 0)
    }

    /// Something about `length` bytes at `offset`, with the slot's memory if it needs any.
    pub(super) fn of_range(operation: Operation, file: &'f File, offset: u64, length: u32) -> Self {
        Self { operation, file, offset, length, by_frames: false, awaits: false }
    }
}

pub(super) fn check_range(file: &File, offset: u64, length: u32) -> Result<(), DefineError> {
    let alignment = file.alignment();
    if !offset.is_multiple_of(u64::from(alignment)) || !length.is_multiple_of(alignment) {
        return Err(DefineError::Misaligned { offset, length, alignment });
    }
    // Some calls take such numbers for "the current position", others refuse them.
    if offset.checked_add(u64::from(length)).is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(DefineError::BeyondOffsets { offset });
    }
    Ok(())
}

impl Io<'_> {
    /// Points the handle's iovecs at frames, neighbours in one piece; their length in bytes.
    pub(super) fn define_frames(
        &self,
        frames: impl Iterator<Item = u32>,
    ) -> Result<u32, DefineError> {
        let core = &self.session.core;
        // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
        let body = unsafe { core.handles[self.io.index as usize].body() };
        let (mut length, mut next) = (0, None);
        body.iovec_count = 0;
        for frame in frames {
            let Some(start) = core.region.frame_start(frame) else {
                return Err(DefineError::NoSuchFrame { frame, frames: core.region.frames() });
            };
            if length + FRAME_SIZE > TRANSFER_MAX as usize {
                return Err(DefineError::TooLong { limit: TRANSFER_MAX });
            }
            length += FRAME_SIZE;
            let neighbour = next == Some(frame);
            next = frame.checked_add(1);
            if neighbour {
                body.iovecs[body.iovec_count - 1].length += FRAME_SIZE;
                continue;
            }
            if body.iovec_count == core.iovecs {
                return Err(DefineError::TooManyPieces { limit: core.iovecs });
            }
            body.iovecs[body.iovec_count] = IoVec { start, length: FRAME_SIZE };
            body.iovec_count += 1;
        }
        Ok(length as u32)
    }

    /// Points the handle's iovecs at the slot's memory.
    pub(super) fn define_memory(
        &self,
        length: u32,
        slots: &mut SlotSet,
        slot: usize,
    ) -> Result<(), DefineError> {
        let core = &self.session.core;
        // SAFETY: a handle in HANDED_OUT belongs to this session's thread.
        let body = unsafe { core.handles[self.io.index as usize].body() };
        body.iovec_count = 0;
        let Some(memory) = slots.memory(slot) else {
            return Err(DefineError::MemoryTooShort { memory: 0, length });
        };
        let mut left = length as usize;
        for lease in memory.iter_mut() {
            if left == 0 {
                break;
            }
            if !core.region.owns(lease) {
                return Err(DefineError::ForeignMemory);
            }
            if body.iovec_count == core.iovecs {
                return Err(DefineError::TooManyPieces { limit: core.iovecs });
            }
            let (start, bytes) = lease.raw();
            let used = bytes.min(left);
            body.iovecs[body.iovec_count] = IoVec { start, length: used };
            body.iovec_count += 1;
            left -= used;
        }
        if left > 0 {
            let memory = length as usize - left;
            return Err(DefineError::MemoryTooShort { memory, length });
        }
        Ok(())
    }
}
