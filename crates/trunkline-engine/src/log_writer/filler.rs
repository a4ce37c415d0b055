//! **Fillers**: no-op records that fill a block to its end, so that no two flushes write the same block.
//!
//! ```text
//!   block        │ record │ record │ filler ░░░░░│ record …
//!                 └─ flush 1, in flight ─────────┘└─ flush 2, beside it
//! ```
//! Small commits always share the last block of the WAL. Two writes of one block can reach the storage in either order, and
//! the older contents could remain. So a flush that expects another one beside it inserts an `XLOG/NOOP` record that
//! reaches to the end of its last block. A record has at least 24 bytes; if the block has fewer left, the filler takes
//! the next one as well. A flush that is alone writes its last block as it is, and the next one writes it again.

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::thread::yield_now;
use trunkline_format::Lsn;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::resource_manager::xlog_operation::NOOP;
use trunkline_format::wal::{
    ImagePolicy, LOG_PAGE_SIZE, NewRecord, RECORD_HEADER_SIZE, RecordBuffer, UsablePositions,
};

use super::reservation::{Reservations, Reserved};

/// What a filler consists of, after its header.
static ZEROS: [u8; 2 * LOG_PAGE_SIZE] = [0; 2 * LOG_PAGE_SIZE];

/// How often a filler is tried while others insert records.
const ATTEMPTS: usize = 16;

/// The largest main data with a header of two bytes.
const SHORT_DATA_MAX: u64 = 255;

/// Upper bound of the WAL bytes that a filler takes, the headers of a page and a file included.
pub(super) fn room_for_filler(block: u64) -> u64 {
    2 * block
}

/// A place for a filler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    /// The length of the record.
    length: u64,
    /// Where it ends.
    end: Lsn,
}

/// The gap between a usable position and the end of a block. `None` if the block ends there.
fn gap(positions: UsablePositions, position: u64, block: u64) -> Option<Gap> {
    let from = positions.end(position);
    let mut end = Lsn(from.0.next_multiple_of(block));
    if end == from {
        return None;
    }
    let mut length = positions.position(end) - position;
    while length < RECORD_HEADER_SIZE as u64 {
        end.0 += block;
        length = positions.position(end) - position;
    }
    Some(Gap { length, end })
}

/// The main data of a record of this length, which is a multiple of 8.
fn data(length: u64) -> &'static [u8] {
    let without = length.saturating_sub(RECORD_HEADER_SIZE as u64);
    // The main data has a header of 2 bytes, or of 5.
    let short = without.saturating_sub(2);
    let bytes = if short <= SHORT_DATA_MAX { short } else { without.saturating_sub(5) };
    ZEROS.get(..bytes as usize).unwrap_or(&ZEROS)
}

/// Inserts fillers. Only the session that is beginning a flush uses it.
#[derive(Debug, Default)]
pub(super) struct Filler {
    buffer: Mutex<RecordBuffer>,
}

impl Filler {
    /// Ends the block that the last record ends in. `copy` puts the record at its reserved place. There must be room for
    /// it. Returns where the block ends. `None` if others insert records so often that no filler got in between.
    pub(super) fn end_block(
        &self,
        reservations: &Reservations,
        slot: usize,
        (positions, block): (UsablePositions, u64),
        copy: impl FnOnce(&Reserved, &mut RecordBuffer),
    ) -> Option<Lsn> {
        let mut buffer = self.buffer.lock();
        for _ in 0..ATTEMPTS {
            let position = reservations.end();
            let Some(gap) = gap(positions, position, block) else {
                return Some(positions.end(position));
            };
            let main_data: &[&[u8]] = &[data(gap.length)];
            let record = NewRecord::plain(number::XLOG, NOOP, 0, main_data);
            buffer.assemble(&record, &ImagePolicy::NONE).ok()?;
            debug_assert_eq!(buffer.length() as u64, gap.length, "a filler of another length");
            // Positions only grow, so if this one is still the end, it is the one that is reserved.
            let is_end = || reservations.end() == position;
            if let Some(reserved) = reservations.reserve(slot, gap.length, is_end) {
                copy(&reserved, &mut buffer);
                reservations.finish(slot);
                return Some(gap.end);
            }
            yield_now();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::wal::SegmentSize;

    #[test]
    fn a_filler_ends_every_block_in_two_segments() {
        let positions = UsablePositions::new(SegmentSize::new(1 << 20).expect("valid"));
        let mut buffer = RecordBuffer::default();
        for block in [512, 4096, 8192] {
            let last = positions.position(Lsn(2 << 20));
            for position in (0..last).step_by(8) {
                let from = positions.end(position);
                let Some(gap) = gap(positions, position, block) else {
                    assert!(from.0.is_multiple_of(block), "{from}");
                    continue;
                };
                assert!(gap.end.0.is_multiple_of(block) && gap.end > from, "{from}: {gap:?}");
                assert_eq!(positions.end(position + gap.length), gap.end);
                assert!(gap.length >= 24 && gap.end.0 - from.0 <= room_for_filler(block));
                // The most are alike, so a few of them suffice.
                if position % 1000 < 300 {
                    let main_data: &[&[u8]] = &[data(gap.length)];
                    let record = NewRecord::plain(number::XLOG, NOOP, 0, main_data);
                    buffer.assemble(&record, &ImagePolicy::NONE).expect("a record");
                    assert_eq!(buffer.length() as u64, gap.length, "at {from}");
                }
            }
        }
    }
}
