//! Buffers: the array of buffer descriptors, and the wake-ups for sessions that wait for a buffer.
//!
//! ```text
//!   unpin, unlock, end of an I/O ──▶ state word changes ──▶ waiters of this buffer are notified
//!                                                       └─▶ last pin gone: the victim wait list too
//! ```
//!
//! The methods of `BufferWord` only report that waiters exist. The methods here are the only code
//! that releases pins, locks and claims, so no release can forget the wake-up
//! (`docs/postgres-lessons.md#lesson-25`). Completion callbacks must use them as well, because an
//! I/O's pin can be the last one.
//!
//! There are two kinds of waiters. A session that waits for a content lock, or for other sessions
//! to release their pins, waits for that one buffer: it's recorded in `waiters`, and the `WAITERS`
//! flag in the state word makes the release look there. A session that needs any victim waits in
//! `victim_waiters`, which every release of a last pin checks with one load.

use super::descriptor::{
    BufferDescriptor, BufferState, BufferWord, LockMode, Unpinned, WriteEnd, flag,
};
use super::replacement::clean_bitmap::CleanBitmap;
use super::tag::BufferTag;
use super::waiters::{BufferWaiters, SessionSet};
use std::ops::ControlFlow;
use trunkline_aio::{Cancelled, Notifier, Session};

/// The descriptors of a pool. Buffers are numbered from 0.
#[derive(Debug)]
pub(crate) struct Buffers {
    descriptors: Box<[BufferDescriptor]>,
    clean: CleanBitmap,
    /// Sessions that wait for the lock or the pins of one buffer.
    waiters: BufferWaiters,
    /// Sessions that wait until any buffer can be a victim.
    victim_waiters: SessionSet,
    notifier: Notifier,
}

impl Buffers {
    /// Empty buffers.
    pub(crate) fn new(count: u32, notifier: Notifier) -> Self {
        Self {
            descriptors: (0..count).map(|_| BufferDescriptor::new()).collect(),
            clean: CleanBitmap::new(count),
            waiters: BufferWaiters::new(),
            victim_waiters: SessionSet::new(),
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

    /// The tag of a buffer. It's stable under a pin, but only a hint otherwise.
    pub(crate) fn tag(&self, buffer: u32) -> BufferTag {
        self.descriptor(buffer).tag()
    }

    /// All buffers with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &BufferDescriptor)> {
        (0..).zip(&self.descriptors)
    }

    /// Releases a pin.
    pub(crate) fn unpin(&self, buffer: u32) {
        let unpinned = self.word(buffer).unpin();
        self.wake_after_unpin(buffer, unpinned);
    }

    /// Wakes this buffer's waiters if the `WAITERS` flag was set. If the last pin is gone, also
    /// wakes the sessions on the victim wait list.
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

    /// Downgrades the lock of a claimed write, so that readers can lock the page.
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
        // Set the bit before the wake-up: a session that wakes up and searches for a victim must
        // find it.
        self.clean.set(buffer);
        self.wake_after_unpin(buffer, unpinned);
    }

    /// Records that a buffer no longer has anything to write. The caller must have it pinned.
    pub(crate) fn note_clean(&self, buffer: u32) {
        self.clean.set(buffer);
    }

    /// Visits the buffers that are not dirty, starting near `first`, until a visit returns `Break`.
    /// Returns true if a visit did.
    pub(crate) fn visit_clean(
        &self,
        first: u32,
        visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> bool {
        self.clean.visit(first, |buffer| self.state(buffer).has(flag::DIRTY), visit)
    }

    /// Whether some unpinned buffer is dirty, so that writing its page would make it a victim.
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

    /// Marks every dirty page as needed by the checkpoint now starting, and lists the pages (the
    /// first loop of PostgreSQL's `BufferSync`). Pages that become dirty during the loop may or may
    /// not be included. With a write-ahead log that's correct either way, because the redo point
    /// must be determined before this loop, and such a page's changes are logged after it.
    pub(crate) fn mark_for_checkpoint(&self) -> Vec<(BufferTag, u32)> {
        let dirty = self.iter().filter(|(_, descriptor)| descriptor.word().mark_for_checkpoint());
        // The tag is read without a pin, so it may be torn. But a torn tag means that the page was
        // evicted after we marked it, so it must already have been written. When the checkpoint
        // comes to this entry, it rechecks the tag and finds nothing to do.
        dirty.map(|(buffer, descriptor)| (descriptor.tag(), buffer)).collect()
    }

    /// Wakes sessions.
    pub(crate) fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// Sessions that wait until any buffer can be a victim.
    pub(crate) fn victim_waiters(&self) -> &SessionSet {
        &self.victim_waiters
    }

    /// Sleeps until `done` holds for the buffer. Whenever the buffer's lock, pins or I/O change,
    /// the session wakes up and tests the condition again.
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
            // Set the flag again before every test, because the thread that woke this session has
            // cleared it.
            descriptor.word().announce_waiter();
            done(descriptor)
        });
        self.waiters.end(id);
        waited
    }
}
