//! Victims: takes buffers for new pages, after removing the pages that they contain (PostgreSQL's
//! `GetVictimBuffer`).
//!
//! A caller can ask for several buffers, because one read may fill several. It gets as many buffers
//! as we can find without waiting and without writing a page. If we find none, the caller must
//! decide what to do. A session in that situation starts writing dirty pages (`eviction`) and
//! waits.
//!
//! We take a victim in two steps: first we pin the buffer using its state word, and then we remove
//! its tag while holding the partition lock. In between, another session may find and pin the page.
//! In that case the second step fails, and we release our pin and continue the search. PostgreSQL
//! does the same if `InvalidateVictimBuffer` fails.

use super::super::buffers::Buffers;
use super::super::descriptor::{ClockVisit, flag};
use super::super::mapping::BufferMapping;
use super::super::statistics::Tally;
use super::allocations::Allocations;
use super::clock_sweep::ClockSweep;
use super::ring_buffer::RingBuffer;
use std::ops::ControlFlow;

/// The clock sweep, and a counter of the buffers taken by sessions.
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

    /// Whether we could take a buffer right now, without having to write a page. This ignores usage
    /// counts, because the sweep decrements them until the buffer becomes a victim. A session that
    /// is waiting for a victim calls this each time it is woken.
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
    /// Takes up to `want` buffers. If there is a ring, we try to reuse its own buffers first.
    /// Otherwise we take victims from the clock sweep.
    pub(crate) fn take(&mut self, want: u32, ring: Option<&mut RingBuffer>) {
        match ring {
            None => self.sweep(want),
            Some(ring) => self.take_from_ring(want, ring),
        }
    }

    fn take_from_ring(&mut self, want: u32, ring: &mut RingBuffer) {
        // If several consecutive slots have no usable buffer, we fill them all with one sweep, so
        // that they get adjacent buffers.
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

    /// Fills `missing` consecutive slots of the ring with victims. The last of these slots is
    /// `back` positions behind the current one. If there aren't enough victims, the remaining slots
    /// keep their old buffers, and the ring tries to reuse those on its next pass.
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

    /// Removes the page from a buffer that has just been pinned. If that fails, releases the pin.
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
        // If the clock sweep doesn't find a victim soon, it gives up. Only then is it worth
        // searching the bitmap.
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

    /// If nearly all pages are dirty, finds victims that the clock hand hasn't reached, using the
    /// clean-buffer bitmap. We repeat the search as long as it decrements any usage counts, because
    /// those buffers will eventually become victims. The loop always ends, because a usage count
    /// can't be higher than `USAGE_MAX`.
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
