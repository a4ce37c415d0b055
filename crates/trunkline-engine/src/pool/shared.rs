//! The pool's common part: what sessions, streams and completions share.
//!
//! ```text
//!   table: name ──▶ buffer      buffers: word, tag, I/O      frames: bytes
//!   clock: which goes next      limiter: who may pin how much
//!   waiting, hungry: who sleeps for a page, for any buffer at all
//! ```
//! Nothing here knows files. Completions hold it by an `Arc`, so the frames outlive every I/O.

use super::clean_map::CleanMap;
use super::clock::Clock;
use super::content_lock::LockMode;
use super::descriptor::Descriptor;
use super::frame::Frames;
use super::io_claim::WriteEnd;
use super::pins::Limiter;
use super::ring::Ring;
use super::sessions::{Alarm, SessionSet, Waiting};
use super::state::{BufferWord, Tick, Unpinned, flag};
use super::stats::{PoolStats, Tally};
use super::table::{Found, Table};
use super::tag::Tag;
use super::write::WriteError;
use crate::log::{Log, LogError};
use crate::storage::{Relation, Storage};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Lease, Notifier};
use trunkline_format::Lsn;

/// See the module.
pub(crate) struct Shared {
    pub(crate) buffers: Box<[Descriptor]>,
    pub(crate) table: Table,
    pub(crate) frames: Frames,
    pub(crate) clock: Clock,
    /// Where to look for clean pages when nearly all are to be written.
    pub(crate) clean: CleanMap,
    pub(crate) limiter: Limiter,
    /// Sessions that sleep for a page's lock, or to be the only one with a pin.
    pub(crate) waiting: Waiting,
    /// Sessions that sleep until some buffer has no pin.
    pub(crate) hungry: SessionSet,
    pub(crate) notifiers: Notifier,
    pub(crate) stats: PoolStats,
    /// Session-local: its pages are one session's temporary relations.
    pub(crate) local: bool,
    /// What must be durable before a page is written.
    pub(crate) log: Arc<dyn Log>,
    /// Buffers taken since the start, not counting those that rings took again: what the background
    /// writer goes by.
    pub(crate) taken: AtomicU64,
    /// Rung when buffers are taken while the background writer sleeps long.
    pub(crate) alarm: Alarm,
    /// The clusters whose pages may be changed, by number.
    writable: Mutex<BTreeMap<u16, Storage>>,
    /// The same, for who only asks whether.
    writable_bits: Box<[AtomicU64]>,
    /// A checkpoint runs; the others wait.
    pub(crate) checkpointing: AtomicBool,
    /// Sessions that wait for a checkpoint to end.
    pub(crate) checkpoint_waiters: SessionSet,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} buffers)", self.count())
    }
}

impl Shared {
    pub(crate) fn new(
        lease: Lease,
        ahead_max: u32,
        local: bool,
        notifiers: Notifier,
        log: Arc<dyn Log>,
    ) -> Self {
        let count = lease.frames();
        Self {
            buffers: (0..count).map(|_| Descriptor::new()).collect(),
            table: Table::new(count),
            frames: Frames::new(lease),
            clock: Clock::new(count),
            clean: CleanMap::new(count),
            limiter: Limiter::new(count, ahead_max),
            waiting: Waiting::new(),
            hungry: SessionSet::new(),
            notifiers,
            stats: PoolStats::default(),
            local,
            log,
            taken: AtomicU64::new(0),
            alarm: Alarm::default(),
            writable: Mutex::default(),
            writable_bits: (0..1024).map(|_| AtomicU64::new(0)).collect(),
            checkpointing: AtomicBool::new(false),
            checkpoint_waiters: SessionSet::new(),
        }
    }

    /// Buffers of the pool.
    pub(crate) fn count(&self) -> u32 {
        self.buffers.len() as u32
    }

    pub(crate) fn word(&self, buffer: u32) -> &BufferWord {
        &self.buffers[buffer as usize].word
    }

    /// Pins the page if it has a buffer. `None` may be wrong while the table changes: whoever then
    /// inserts the page is told.
    pub(crate) fn pin(&self, tag: Tag, usage_max: u32) -> Option<Found> {
        let buffer = self.table.find(&self.buffers, tag)?;
        let descriptor = &self.buffers[buffer as usize];
        let seen = descriptor.word.pin(usage_max)?;
        if descriptor.tag() == tag {
            return Some(Found { buffer, seen });
        }
        // Another page's by now; somebody may wait to be the only one with a pin on that.
        self.unpin(buffer);
        None
    }

    /// Gives a pin back, and tells whoever waits for that. Not the session's booking of it.
    pub(crate) fn unpin(&self, buffer: u32) {
        let unpinned = self.word(buffer).unpin();
        self.after_unpin(buffer, unpinned);
    }

    /// Gives a pin back together with the session's booking.
    pub(crate) fn release(&self, buffer: u32, session: u32) {
        self.unpin(buffer);
        self.limiter.unpin(session, 1, &self.notifiers);
    }

    /// The one place where the ends of pins are made known: a session's, or an I/O's, whichever
    /// thread ends it.
    fn after_unpin(&self, buffer: u32, unpinned: Unpinned) {
        if unpinned.wake {
            self.waiting.notify(buffer, &self.notifiers);
        }
        if unpinned.left == 0 && !self.hungry.is_empty() {
            self.hungry.notify(&self.notifiers);
        }
    }

    /// Pages of this cluster may be changed from now on, if it is one for writing.
    pub(crate) fn allow_writes(&self, storage: &Storage) {
        let number = storage.number();
        if storage.is_writable() && !self.is_writable(number) {
            self.writable.lock().entry(number).or_insert_with(|| storage.clone());
            let (word, bit) = (usize::from(number / 64), 1 << (number % 64));
            self.writable_bits[word].fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether pages of the cluster may be changed.
    pub(crate) fn is_writable(&self, cluster: u16) -> bool {
        let word = self.writable_bits[usize::from(cluster / 64)].load(Ordering::SeqCst);
        word & (1 << (cluster % 64)) != 0
    }

    /// The cluster whose pages may be changed.
    pub(crate) fn storage(&self, cluster: u16) -> Option<Storage> {
        self.writable.lock().get(&cluster).cloned()
    }

    /// The relation of a page that may be changed, as long as somebody has its cluster.
    pub(crate) fn relation(&self, tag: Tag) -> Option<Relation> {
        Some(self.storage(tag.cluster())?.relation(tag.locator(), tag.fork()))
    }

    /// The clusters whose pages may be changed. Those that are closed, and have nothing left to write
    /// or to sync, are let go of: the pool would keep their files open for ever. One of which something
    /// was lost stays, since no checkpoint may go well any more.
    pub(crate) fn storages(&self) -> Vec<Storage> {
        let (mut kept, mut closed) = (Vec::new(), Vec::new());
        let mut writable = self.writable.lock();
        writable.retain(|&number, storage| {
            // Nobody gets at a page of a cluster without having the cluster, or a pin from before.
            let over = storage.is_last()
                && storage.pending_fsyncs().is_durable()
                && !self.is_in_use(number);
            if over {
                let (word, bit) = (usize::from(number / 64), 1 << (number % 64));
                self.writable_bits[word].fetch_and(!bit, Ordering::SeqCst);
            }
            if over { &mut closed } else { &mut kept }.push(storage.clone());
            !over
        });
        drop(writable);
        // Its files are closed with the last clone, not under the lock.
        drop(closed);
        kept
    }

    /// Whether a page of the cluster is to be written, or somebody has one pinned.
    fn is_in_use(&self, cluster: u16) -> bool {
        self.buffers.iter().any(|descriptor| {
            let seen = descriptor.word.load();
            let used = seen.pins() > 0 || seen.any(flag::DIRTY | flag::IO_IN_PROGRESS);
            used && descriptor.tag().cluster() == cluster
        })
    }

    /// Makes the log durable up to a position. Nothing may be staged, and no page claimed.
    ///
    /// # Errors
    /// It could not, or it does not reach there: a page with such a position is damaged.
    pub(crate) fn flush_log(&self, lsn: Lsn) -> Result<(), WriteError> {
        self.log.flush(lsn).map_err(WriteError::Log)?;
        match self.log.durable() < lsn {
            true => Err(WriteError::Log(LogError::beyond_end(lsn))),
            false => Ok(()),
        }
    }

    /// Lets readers in to a page that is claimed for a write.
    pub(crate) fn begin_write(&self, buffer: u32) {
        if self.word(buffer).begin_write() {
            self.waiting.notify(buffer, &self.notifiers);
        }
    }

    /// Ends a write, and tells whoever waits for that.
    pub(crate) fn finish_write(&self, buffer: u32, end: WriteEnd) {
        let descriptor = &self.buffers[buffer as usize];
        descriptor.clear_io();
        let unpinned = descriptor.word.finish_write(end);
        // Before anybody is told.
        self.clean.set(buffer);
        self.after_unpin(buffer, unpinned);
    }

    /// Ends a read, and tells whoever waits for that.
    pub(crate) fn finish_read(&self, buffer: u32, valid: bool) {
        let descriptor = &self.buffers[buffer as usize];
        descriptor.clear_io();
        let unpinned = descriptor.word.finish_read(valid);
        self.after_unpin(buffer, unpinned);
    }

    pub(crate) fn unlock(&self, buffer: u32, mode: LockMode) {
        if self.word(buffer).unlock(mode) {
            self.waiting.notify(buffer, &self.notifiers);
        }
    }

    pub(crate) fn downgrade(&self, buffer: u32, mode: LockMode) {
        if self.word(buffer).downgrade(mode) {
            self.waiting.notify(buffer, &self.notifiers);
        }
    }

    /// Whether a buffer could be had by trying again.
    pub(crate) fn has_unpinned(&self) -> bool {
        self.visit_clean(|buffer| {
            let seen = self.word(buffer).load();
            let free = seen.pins() == 0 && !seen.is_locked();
            match free && !seen.any(flag::DIRTY | flag::IO_IN_PROGRESS) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    }

    /// Whether a buffer could be had by writing its page first.
    pub(crate) fn has_dirty(&self) -> bool {
        self.buffers.iter().any(|descriptor| {
            let seen = descriptor.word.load();
            seen.pins() == 0 && seen.has(flag::DIRTY) && !seen.any(flag::IO_IN_PROGRESS)
        })
    }

    /// Takes up to `want` buffers without a page, each pinned once, for pins that the session has
    /// booked: from the ring first, else from the pool. Fewer if there are no more to be had now.
    pub(crate) fn take_empty(
        &self,
        want: u32,
        ring: Option<&mut Ring>,
        tally: &mut Tally,
        taken: &mut Vec<u32>,
    ) {
        match ring {
            None => self.sweep(want, tally, taken),
            Some(ring) => self.take_through_ring(want, ring, tally, taken),
        }
    }

    fn take_through_ring(
        &self,
        want: u32,
        ring: &mut Ring,
        tally: &mut Tally,
        taken: &mut Vec<u32>,
    ) {
        // Places of the ring that need another buffer are filled in one go, with neighbours.
        let mut missing = 0;
        for _ in 0..want.min(ring.size()) {
            let reused = ring.advance().filter(|&buffer| self.take_again(buffer));
            match reused {
                Some(buffer) if missing == 0 => {
                    tally.reuses += 1;
                    taken.push(buffer);
                }
                Some(buffer) => {
                    self.refill(missing, 1, ring, tally, taken);
                    missing = 0;
                    tally.reuses += 1;
                    taken.push(buffer);
                }
                None => missing += 1,
            }
        }
        self.refill(missing, 0, ring, tally, taken);
    }

    /// Fills `missing` places of the ring, the last of them `back` places ago.
    fn refill(
        &self,
        missing: u32,
        back: usize,
        ring: &mut Ring,
        tally: &mut Tally,
        taken: &mut Vec<u32>,
    ) {
        let before = taken.len();
        if missing > 0 {
            self.sweep(missing, tally, taken);
        }
        for (at, &buffer) in taken[before..].iter().enumerate() {
            ring.replace(back + missing as usize - 1 - at, buffer);
        }
    }

    /// Takes a ring's buffer again, without its page.
    fn take_again(&self, buffer: u32) -> bool {
        self.word(buffer).take_from_ring() && {
            let empty = self.empty(buffer);
            if !empty {
                self.unpin(buffer);
            }
            empty
        }
    }

    fn sweep(&self, want: u32, tally: &mut Tally, taken: &mut Vec<u32>) {
        let before = taken.len();
        let mut take = |buffer| {
            let used = self.word(buffer).load().has(flag::VALID);
            if !self.empty(buffer) {
                self.unpin(buffer);
                return false;
            }
            tally.evictions += u64::from(used);
            taken.push(buffer);
            true
        };
        let left = self.clock.sweep(want, |buffer| self.word(buffer), &mut take);
        if left > 0 {
            self.sweep_clean(left, take);
        }
        if taken.len() > before {
            self.taken.fetch_add((taken.len() - before) as u64, Ordering::SeqCst);
            self.alarm.ring_if_wanted();
        }
    }

    /// Takes what the clock's hand has not come to: nearly every page has something to write.
    fn sweep_clean(&self, want: u32, mut take: impl FnMut(u32) -> bool) {
        let mut left = want;
        let mut again = true;
        while left > 0 && std::mem::take(&mut again) {
            self.visit_clean(|buffer| {
                match self.word(buffer).tick() {
                    Tick::Taken => left -= u32::from(take(buffer)),
                    Tick::Decremented => again = true,
                    Tick::Unusable => {}
                }
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
    }

    /// Visits the pages without anything to write, from the clock's hand on, until a visit ends it.
    fn visit_clean(&self, visit: impl FnMut(u32) -> ControlFlow<()>) -> bool {
        let (_, hand) = self.clock.position();
        self.clean.visit(hand, |buffer| self.word(buffer).load().has(flag::DIRTY), visit)
    }

    /// The same though the page may have something to write: its relation is gone, or this part of it.
    pub(crate) fn discard(&self, buffer: u32) -> bool {
        let gone = !self.word(buffer).load().has(flag::TAG_VALID)
            || self.table.discard(&self.buffers, buffer);
        if gone {
            self.clean.set(buffer);
        }
        gone
    }

    /// Makes sure that a buffer that the caller has pinned has no page any more.
    pub(crate) fn empty(&self, buffer: u32) -> bool {
        !self.word(buffer).load().has(flag::TAG_VALID) || self.table.evict(&self.buffers, buffer)
    }
}
