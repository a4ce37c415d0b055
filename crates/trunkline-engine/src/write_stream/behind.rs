//! Write-behind: having the system write back what a stream has put into its cache.
//!
//! Left alone, the system writes back late and everything at once, and the sync at the end waits for
//! it. So after every so many blocks (`checkpoint_flush_after`, `bgwriter_flush_after`) it is told to
//! begin.
//!
//! ```text
//!   note: a write has ended ──▶ ranges ── enough ──▶ sorted, what is near together ──▶ I/O of their own
//! ```
//! Telling it is an I/O of its own, made by the session where its mount takes writes at once, and else
//! handed over, a few ranges at a time. Either way the stream waits where the device has no room, so
//! what is in the cache and not on its way is bounded. An error is none here: the sync tells what could
//! not be written.

use trunkline_aio::{Cancelled, Class, File, Operations, Session, Status};
use trunkline_format::BLOCK_SIZE;

/// Ranges under way at most, where they are handed over.
const RANGES: usize = 4;

/// And beside others, who would wait behind them; each until it has been written back.
const RANGES_BESIDE_OTHERS: usize = 2;

/// Two ranges are told as one if no more than so many bytes lie between them: the system looks for
/// what is changed, and a call costs more than the look.
const GAP_MAX: u64 = 1 << 20;

/// The longest range.
const LENGTH_MAX: u64 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub(super) struct Behind {
    /// Blocks until the system is told; 0 leaves it to itself.
    after: u32,
    class: Class,
    operations: Operations,
    ranges: Vec<Range>,
    blocks: u32,
    begun: u64,
}

#[derive(Debug)]
struct Range {
    file: File,
    offset: u64,
    end: u64,
}

impl Range {
    /// Whether a range that begins no earlier is to be told together with this one.
    fn takes(&self, next: &Range) -> bool {
        self.file.id() == next.file.id()
            && next.offset.saturating_sub(self.end) <= GAP_MAX
            && next.end - self.offset <= LENGTH_MAX
    }
}

impl Behind {
    /// For telling the system every so many blocks; 0 is never.
    pub(super) fn new(after: u32, class: Class) -> Self {
        let slots = if after == 0 { 0 } else { RANGES };
        Self {
            after,
            class,
            operations: Operations::new(slots, Vec::new()),
            ranges: Vec::with_capacity(after.min(1024) as usize),
            blocks: 0,
            begun: 0,
        }
    }

    /// Ranges that the system was told of.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// So many blocks of a file were written, from an offset on.
    pub(super) fn note(&mut self, file: &File, offset: u64, blocks: u32) {
        if self.after == 0 || file.is_direct() || blocks == 0 {
            return;
        }
        self.blocks += blocks;
        let end = offset + u64::from(blocks) * BLOCK_SIZE as u64;
        self.ranges.push(Range { file: file.clone(), offset, end });
    }

    /// Whether it is to be told of what is written.
    pub(super) fn is_on(&self) -> bool {
        self.after > 0
    }

    /// Whether it is time to tell the system.
    pub(super) fn is_due(&self) -> bool {
        self.blocks > 0 && self.blocks >= self.after
    }

    /// Tells the system of what was noted. `beside_others`: so that little of it is under way at any
    /// time.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn flush(
        &mut self,
        session: &mut Session,
        beside_others: bool,
    ) -> Result<(), Cancelled> {
        self.blocks = 0;
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.sort_unstable_by_key(|range| (range.file.id(), range.offset));
        let mut told = Ok(());
        let mut at = 0;
        while told.is_ok() && at < ranges.len() {
            let (before, after) = ranges.split_at_mut(at + 1);
            let range = &mut before[at];
            at += 1;
            for next in after {
                if !range.takes(next) {
                    break;
                }
                range.end = range.end.max(next.end);
                at += 1;
            }
            told = self.begin(session, range, beside_others);
        }
        ranges.clear();
        self.ranges = ranges;
        told
    }

    /// Tells the system of the rest, and waits until it has been told of everything.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn finish(&mut self, session: &mut Session) -> Result<(), Cancelled> {
        self.flush(session, false)?;
        session.wait_some(&self.operations, RANGES)?;
        self.collect();
        Ok(())
    }

    fn begin(
        &mut self,
        session: &mut Session,
        range: &Range,
        beside_others: bool,
    ) -> Result<(), Cancelled> {
        let most = if beside_others { RANGES_BESIDE_OTHERS } else { RANGES };
        self.collect();
        while self.operations.pending() >= most {
            session.wait_some(&self.operations, 1)?;
            self.collect();
        }
        // Without a handle it is not told: it begins by itself some time.
        if let Some(slot) = self.operations.free_slot()
            && let Some(io) = session.try_acquire(self.class)
        {
            let length = (range.end - range.offset) as u32;
            let (file, slots) = (&range.file, &mut self.operations);
            match beside_others {
                true => io.await_writeback(file, range.offset, length, slots, slot),
                false => io.begin_writeback(file, range.offset, length, slots, slot),
            };
        }
        Ok(())
    }

    fn collect(&mut self) {
        while let Some(slot) = self.operations.first_done()
            && let Some(outcome) = self.operations.take(slot)
        {
            self.begun += u64::from(outcome.status == Status::Ok);
        }
    }
}
