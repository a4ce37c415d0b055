//! What a stream knows of the blocks that come next.

use trunkline_format::BlockNo;

/// A block that a source is going to return, see [`BlockSource::upcoming`](super::BlockSource::upcoming).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upcoming {
    /// The block.
    pub block: BlockNo,
    /// The line pointer that the consumer will need first, or 0 if the source doesn't know.
    pub item: u16,
}

/// How many blocks ahead each step of `load_upcoming` is. One step takes as long as a load from memory, about 100 ns, which is
/// less than the work on one page.
pub(super) const HEAD: usize = 16;
pub(super) const DESCRIPTOR: usize = 12;
pub(super) const PAGE: usize = 8;
pub(super) const ROW: usize = 4;

/// The buffers of the blocks between [`PAGE`] and [`ROW`], so that they are looked up only once.
/// They are hints: a buffer may have got another page since.
#[derive(Debug, Default)]
pub(super) struct UpcomingBuffers {
    found: [Option<u32>; PAGE - ROW],
    next: usize,
}

impl UpcomingBuffers {
    /// Adds the buffer of a block, and returns that of the block that has come as near as [`ROW`].
    pub(super) fn exchange(&mut self, buffer: Option<u32>) -> Option<u32> {
        let place = self.next % self.found.len();
        self.next = place + 1;
        self.found.get_mut(place).and_then(|found| std::mem::replace(found, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_block_is_as_near_as_a_row() {
        let mut buffers = UpcomingBuffers::default();
        let given = (0..20_u32).map(|at| buffers.exchange(Some(at)));
        let expected = (0..20_u32).map(|at| at.checked_sub((PAGE - ROW) as u32));
        assert!(given.eq(expected));
    }
}
