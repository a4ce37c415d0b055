//! Victims: takes buffers for new pages, and removes the pages that they held (PostgreSQL's
//! `GetVictimBuffer`).
//!
//! A caller asks for several buffers together, because one read fills several. It gets as many
//! buffers as are available without waiting and without writing a page. If there are none, the
//! caller decides what to do: a session starts to write dirty pages (`eviction`) and waits.
//!
//! Taking a victim has two steps: pin it by its state word, then remove its tag under the partition
//! lock. Another session may find and pin the page between the two. The second step then fails, the
//! pin is released and the search continues. PostgreSQL retries in the same way when
//! `InvalidateVictimBuffer` fails.

use super::super::buffers::Buffers;
use super::super::descriptor::{ClockVisit, flag};
use super::super::mapping::BufferMapping;
use super::super::statistics::Tally;
use super::allocations::Allocations;
use super::clock_sweep::ClockSweep;
use super::ring_buffer::RingBuffer;
use std::ops::ControlFlow;

/// The clock sweep, and the count of the buffers that it has given out.
#[derive(Debug)]
pub(crate) struct Replacement {
    clock: ClockSweep,
    allocations: Allocations,
}

impl Replacement {
    /// For a pool of `buffers`.
    pub(crate) fn new(buffers: u32) -> Self {
        Self { clock: ClockSweep::new(buffers), allocations: Allocations::default() }
    }

    /// The clock's hand.
    pub(crate) fn clock(&self) -> &ClockSweep {
        &self.clock
    }

    /// The count of buffers taken.
    pub(crate) fn allocations(&self) -> &Allocations {
        &self.allocations
    }

    /// Whether a buffer could be taken now, without writing a page. Usage counts do not matter: the
    /// sweep lowers them until the buffer is a victim. Sessions that wait for a victim test this
    /// after every wake-up.
    pub(crate) fn has_victim(&self, buffers: &Buffers) -> bool {
        let (_, hand) = self.clock.position();
        buffers.visit_clean(hand, |buffer| {
            let state = buffers.state(buffer);
            match state.pins() == 0 && !state.is_locked() && state.is_clean() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    }
}

/// One request for buffers.
#[derive(Debug)]
pub(crate) struct Allocation<'a> {
    pub(crate) replacement: &'a Replacement,
    pub(crate) buffers: &'a Buffers,
    pub(crate) mapping: &'a BufferMapping,
    /// Counts evictions and reuses.
    pub(crate) tally: &'a mut Tally,
    /// The buffers taken: empty, each pinned once.
    pub(crate) taken: &'a mut Vec<u32>,
}

impl Allocation<'_> {
    /// Takes up to `want` buffers: the ring's own first if there is a ring, otherwise clock sweep
    /// victims.
    pub(crate) fn take(&mut self, want: u32, ring: Option<&mut RingBuffer>) {
        match ring {
            None => self.sweep(want),
            Some(ring) => self.take_from_ring(want, ring),
        }
    }

    fn take_from_ring(&mut self, want: u32, ring: &mut RingBuffer) {
        // Consecutive slots without a usable buffer are filled by one sweep, so that they get
        // neighbours.
        let mut missing = 0;
        for _ in 0..want.min(ring.size()) {
            match ring.advance().filter(|&buffer| self.reuse(buffer)) {
                Some(buffer) => {
                    if missing > 0 {
                        self.refill(missing, 1, ring);
                        missing = 0;
                    }
                    self.tally.reuses += 1;
                    self.taken.push(buffer);
                }
                None => missing += 1,
            }
        }
        self.refill(missing, 0, ring);
    }

    /// Fills `missing` slots of the ring with victims. The last of the slots was passed `back`
    /// steps ago. Slots for which there is no victim keep their old buffer, and the ring tries it
    /// again on its next round.
    fn refill(&mut self, missing: u32, back: usize, ring: &mut RingBuffer) {
        if missing == 0 {
            return;
        }
        let before = self.taken.len();
        self.sweep(missing);
        for (at, &buffer) in self.taken[before..].iter().enumerate() {
            ring.replace(back + missing as usize - 1 - at, buffer);
        }
    }

    /// Reuses a buffer of the ring, after removing its page.
    fn reuse(&self, buffer: u32) -> bool {
        self.buffers.word(buffer).reuse() && self.evict_or_unpin(buffer)
    }

    /// Removes the page of a buffer that was just pinned, or releases the pin.
    fn evict_or_unpin(&self, buffer: u32) -> bool {
        let evicted = self.mapping.evict(self.buffers, buffer);
        if !evicted {
            self.buffers.unpin(buffer);
        }
        evicted
    }

    fn sweep(&mut self, want: u32) {
        let before = self.taken.len();
        let Replacement { clock, allocations } = self.replacement;
        let buffers = self.buffers;
        // The clock sweep gives up early if it finds no victim. Only then do we pay for a search of
        // the bitmap.
        let left = clock.sweep(want, |buffer| buffers.word(buffer), |buffer| self.evict(buffer));
        self.search_clean(left);
        if self.taken.len() > before {
            allocations.add((self.taken.len() - before) as u64);
        }
    }

    fn evict(&mut self, buffer: u32) -> bool {
        let used = self.buffers.state(buffer).has(flag::VALID);
        if !self.evict_or_unpin(buffer) {
            return false;
        }
        self.tally.evictions += u64::from(used);
        self.taken.push(buffer);
        true
    }

    /// Takes victims that the clock hand hasn't reached, using the clean-buffer bitmap, when nearly
    /// every page is dirty. Repeats the search as long as visits lower usage counts, since those
    /// pages will become victims. The loop must end, because usage counts are at most `USAGE_MAX`,
    /// and a round that lowers none is the last.
    fn search_clean(&mut self, want: u32) {
        let (_, hand) = self.replacement.clock.position();
        let buffers = self.buffers;
        let mut left = want;
        let mut again = true;
        while left > 0 && std::mem::take(&mut again) {
            buffers.visit_clean(hand, |buffer| {
                match buffers.word(buffer).clock_visit() {
                    ClockVisit::Taken => left -= u32::from(self.evict(buffer)),
                    ClockVisit::Decremented => again = true,
                    ClockVisit::Skipped => {}
                }
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
    }
}
