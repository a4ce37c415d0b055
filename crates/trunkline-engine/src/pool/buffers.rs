//! Buffers: the array of buffer descriptors, and the code that wakes up sessions that are waiting
//! for a buffer.
//!
//! ```text
//!   unpin, unlock, end of an I/O ──▶ state word changes ──▶ waiters of this buffer are notified
//!                                                       └─▶ last pin gone: the victim wait list too
//! ```
//!
//! The methods of `BufferWord` only report whether there are waiters; the methods in this module
//! actually wake them up. All code that releases pins, locks and claims must therefore go through
//! this module, so that it can't forget the wake-up (`docs/postgres-lessons.md#lesson-25`). That
//! includes completion callbacks, because the pin held by an I/O may be the last one.
//!
//! There are two kinds of waiters. If a session waits for a content lock, or for other sessions to
//! release their pins, it waits for one specific buffer. In that case we record it in `waiters` and
//! set the `WAITERS` flag in the state word, so that a thread that releases the lock or a pin knows
//! that there is a waiter. If a session needs a victim, any buffer will do, so it waits in
//! `victim_waiters` instead. Whenever the last pin on a buffer is released, we check that set,
//! which costs just one load.

use super::descriptor::{
    BufferDescriptor, BufferState, BufferWord, LockMode, Unpinned, WriteEnd, flag,
};
use super::replacement::clean_bitmap::CleanBitmap;
use super::tag::BufferTag;
use super::waiters::{BufferWaiters, SessionSet};
use std::ops::ControlFlow;
use trunkline_aio::facade::ZeroedSlice;
use trunkline_aio::{Cancelled, Notifier, Session};

/// The descriptors of a pool. Buffers are numbered from 0.
#[derive(Debug)]
pub(crate) struct Buffers {
    descriptors: ZeroedSlice<BufferDescriptor>,
    clean: CleanBitmap,
    /// Sessions that are waiting for the lock on one buffer, or for others to release their pins on
    /// it.
    waiters: BufferWaiters,
    /// Sessions that wait until any buffer can be a victim.
    victim_waiters: SessionSet,
    notifier: Notifier,
}

impl Buffers {
    /// Empty buffers.
    pub(crate) fn new(count: u32, notifier: Notifier) -> Self {
        let sessions = notifier.session_numbers();
        Self {
            descriptors: ZeroedSlice::new(count as usize),
            clean: CleanBitmap::new(count),
            waiters: BufferWaiters::new(sessions),
            victim_waiters: SessionSet::new(sessions),
            notifier,
        }
    }

    /// Number of buffers.
    pub(crate) fn count(&self) -> u32 {
        self.descriptors.len() as u32
    }

    /// The descriptor of a buffer.
    pub(crate) fn descriptor(&self, buffer: u32) -> &BufferDescriptor {
        &self.descriptors[buffer as usize]
    }

    /// The state word of a buffer.
    pub(crate) fn word(&self, buffer: u32) -> &BufferWord {
        self.descriptor(buffer).word()
    }

    /// The state of a buffer at this moment.
    pub(crate) fn state(&self, buffer: u32) -> BufferState {
        self.descriptor(buffer).state()
    }

    /// The tag of a buffer. It can't change while the buffer is pinned; without a pin, it's only a
    /// hint.
    pub(crate) fn tag(&self, buffer: u32) -> BufferTag {
        self.descriptor(buffer).tag()
    }

    /// All buffers with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &BufferDescriptor)> {
        (0..).zip(self.descriptors.iter())
    }

    /// Releases a pin.
    pub(crate) fn unpin(&self, buffer: u32) {
        let unpinned = self.word(buffer).unpin();
        self.wake_after_unpin(buffer, unpinned);
    }

    /// If the `WAITERS` flag was set, wakes the sessions that are waiting for this buffer. If that
    /// was the last pin, also wakes the sessions on the victim wait list.
    fn wake_after_unpin(&self, buffer: u32, unpinned: Unpinned) {
        if unpinned.wake {
            self.waiters.notify(buffer, &self.notifier);
        }
        if unpinned.left == 0 && !self.victim_waiters.is_empty() {
            self.victim_waiters.notify(&self.notifier);
        }
    }

    /// Releases a content lock.
    pub(crate) fn unlock(&self, buffer: u32, mode: LockMode) {
        if self.word(buffer).unlock(mode) {
            self.waiters.notify(buffer, &self.notifier);
        }
    }

    /// Downgrades an exclusive lock to the mode it had before an upgrade.
    pub(crate) fn downgrade(&self, buffer: u32, mode: LockMode) {
        if self.word(buffer).downgrade(mode) {
            self.waiters.notify(buffer, &self.notifier);
        }
    }

    /// Ends a read of the page.
    pub(crate) fn finish_read(&self, buffer: u32, valid: bool) {
        let descriptor = self.descriptor(buffer);
        descriptor.clear_io();
        let unpinned = descriptor.word().finish_read(valid);
        self.wake_after_unpin(buffer, unpinned);
    }

    /// Downgrades the lock of a claimed write, so that other sessions can read the page again.
    pub(crate) fn begin_write(&self, buffer: u32) {
        if self.word(buffer).begin_write() {
            self.waiters.notify(buffer, &self.notifier);
        }
    }

    /// Ends a write of the page.
    pub(crate) fn finish_write(&self, buffer: u32, end: WriteEnd) {
        let descriptor = self.descriptor(buffer);
        descriptor.clear_io();
        let unpinned = descriptor.word().finish_write(end);
        // We must set the bit before waking any waiters, because a session that wakes up and looks
        // for a victim should find this buffer.
        self.clean.set(buffer);
        self.wake_after_unpin(buffer, unpinned);
    }

    /// Records that a buffer is now clean. The caller must have it pinned.
    pub(crate) fn note_clean(&self, buffer: u32) {
        self.clean.set(buffer);
    }

    /// Calls `visit` for each buffer that isn't dirty, starting near `first`, until it returns
    /// `Break`. Returns true if it did.
    pub(crate) fn visit_clean(
        &self,
        first: u32,
        visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> bool {
        self.clean.visit(first, |buffer| self.state(buffer).has(flag::DIRTY), visit)
    }

    /// Whether there is an unpinned dirty buffer, which would become a victim if we wrote its page.
    pub(crate) fn has_dirty_victim(&self) -> bool {
        self.descriptors.iter().any(|descriptor| {
            let state = descriptor.state();
            state.pins() == 0 && state.needs_write()
        })
    }

    /// Whether a page of the cluster is dirty, pinned or under I/O.
    pub(crate) fn is_cluster_in_use(&self, cluster: u16) -> bool {
        self.descriptors.iter().any(|descriptor| {
            let state = descriptor.state();
            let used = state.pins() > 0 || !state.is_clean();
            used && descriptor.tag().cluster() == cluster
        })
    }

    /// Marks all dirty pages as needed by the checkpoint that is just starting, and returns a list
    /// of them (the first loop of PostgreSQL's `BufferSync`). If a page becomes dirty while we're
    /// in this loop, we may or may not include it. If there is a write-ahead log, it doesn't
    /// matter, because the redo point must have been determined before this loop, so the changes to
    /// such a page come after it in the log.
    pub(crate) fn mark_for_checkpoint(&self) -> Vec<(BufferTag, u32)> {
        let dirty = self.iter().filter(|(_, descriptor)| descriptor.word().mark_for_checkpoint());
        // We read the tag without pinning the buffer, so it may be torn. That's OK, because it can
        // only happen if the page was evicted after we marked it, in which case it has already been
        // written. The checkpoint rechecks the tag when it gets to this entry, and skips it.
        dirty.map(|(buffer, descriptor)| (descriptor.tag(), buffer)).collect()
    }

    /// Sessions that wait until any buffer can be a victim.
    pub(crate) fn victim_waiters(&self) -> &SessionSet {
        &self.victim_waiters
    }

    /// Sessions with tasks that wait for the lock of some buffer.
    pub(crate) fn polled_waiters(&self) -> &SessionSet {
        self.waiters.polled()
    }

    /// Sleeps until `done` returns true for the buffer. The session wakes up and calls `done` again
    /// whenever the buffer's lock, pins or I/O change.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn wait_for(
        &self,
        session: &mut Session,
        buffer: u32,
        done: impl Fn(&BufferDescriptor) -> bool,
    ) -> Result<(), Cancelled> {
        let (id, descriptor) = (session.id(), self.descriptor(buffer));
        self.waiters.begin(id, buffer);
        let waited = session.wait_for(|| {
            // We must set the flag again before each test, because the thread that woke us up has
            // cleared it.
            descriptor.word().announce_waiter();
            done(descriptor)
        });
        self.waiters.end(id);
        waited
    }
}
