//! The mapping table: from a page's name to the buffer that holds it.
//!
//! Chains of buffers under a fixed array of heads, linked through the descriptors, so that nothing
//! is ever allocated. Changing a chain takes the lock of its part of the table, for a few
//! instructions and never during I/O. Looking up takes none:
//!
//! ```text
//!   look up:  walk the chain ──▶ tag looks right? ──▶ pin (compare-exchange) ──▶ tag still right?
//!                                                                                yes: it is yours
//! ```
//! A walker may be led astray by a change and miss a page that is there; so a miss is only a hint,
//! and whoever then wants to insert the page looks again under the lock. It can never be given a
//! wrong page: a tag cannot change under a pin.

use super::descriptor::Descriptor;
use super::state::{BufferWord, Seen, flag};
use super::tag::Tag;
use trunkline_aio::sync::atomic::{AtomicU32, Ordering};
use trunkline_aio::sync::{Mutex, MutexGuard};

/// Parts with a lock each (PostgreSQL's number of partitions).
const PARTS: usize = 128;

/// The longest walk without the lock: a chain is a few buffers long, a longer walk has gone astray.
const STEPS_MAX: u32 = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Box<[AtomicU32]>,
    parts: Box<[Mutex<()>]>,
}

/// A page that was looked up and pinned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) buffer: u32,
    /// The word right after the pin.
    pub(crate) seen: Seen,
}

/// What an insertion came to.
#[derive(Debug)]
pub(crate) enum Insert {
    /// The page is ours to fill.
    Inserted,
    /// Somebody else has inserted it; it is pinned.
    Present(Found),
}

impl Table {
    /// For so many buffers.
    pub(crate) fn new(buffers: u32) -> Self {
        let heads = (buffers as usize * 2).next_power_of_two().max(PARTS);
        Self {
            heads: (0..heads).map(|_| AtomicU32::new(0)).collect(),
            parts: (0..PARTS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// The buffer that seems to hold the page. Both answers may be wrong while chains change: pin
    /// it and look at its tag again; see the module.
    pub(crate) fn find(&self, buffers: &[Descriptor], tag: Tag) -> Option<u32> {
        let mut at = self.head(tag).load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let buffer = at.checked_sub(1)?;
            let descriptor = &buffers[buffer as usize];
            if descriptor.tag() == tag {
                return Some(buffer);
            }
            at = descriptor.next.load(Ordering::Acquire);
        }
        None
    }

    /// The word of the page's buffer without a pin: a hint, like a miss.
    pub(crate) fn peek(&self, buffers: &[Descriptor], tag: Tag) -> Option<Seen> {
        let buffer = self.find(buffers, tag)?;
        let seen = buffers[buffer as usize].word.load();
        seen.has(flag::TAG_VALID).then_some(seen)
    }

    /// Gives an empty buffer that the caller has pinned to the page, with the right to fill it,
    /// unless the page has a buffer already. `before` runs when it is certain that it gets it.
    pub(crate) fn insert(
        &self,
        buffers: &[Descriptor],
        tag: Tag,
        buffer: u32,
        usage_max: u32,
        before: impl FnOnce(&Descriptor),
    ) -> Insert {
        let head = self.head(tag);
        let _part = self.part(tag);
        let mut at = head.load(Ordering::Acquire);
        while let Some(other) = at.checked_sub(1) {
            let descriptor = &buffers[other as usize];
            if descriptor.tag() == tag
                && let Some(seen) = descriptor.word.pin(usage_max)
            {
                return Insert::Present(Found { buffer: other, seen });
            }
            at = descriptor.next.load(Ordering::Acquire);
        }
        let descriptor = &buffers[buffer as usize];
        before(descriptor);
        descriptor.set_tag(tag);
        descriptor.next.store(head.load(Ordering::Acquire), Ordering::Release);
        descriptor.word.publish();
        head.store(buffer + 1, Ordering::Release);
        Insert::Inserted
    }

    /// Gives an empty buffer that the caller has taken, and whose frame it has filled, to a new page,
    /// unless the page has a buffer already: one of a read that failed, or that came too early.
    pub(crate) fn insert_new(
        &self,
        buffers: &[Descriptor],
        tag: Tag,
        buffer: u32,
        dirty: bool,
    ) -> Insert {
        let head = self.head(tag);
        let _part = self.part(tag);
        let mut at = head.load(Ordering::Acquire);
        while let Some(other) = at.checked_sub(1) {
            let descriptor = &buffers[other as usize];
            if descriptor.tag() == tag
                && let Some(seen) = descriptor.word.pin(0)
            {
                return Insert::Present(Found { buffer: other, seen });
            }
            at = descriptor.next.load(Ordering::Acquire);
        }
        let descriptor = &buffers[buffer as usize];
        descriptor.set_tag(tag);
        descriptor.next.store(head.load(Ordering::Acquire), Ordering::Release);
        descriptor.word.publish_valid(dirty);
        head.store(buffer + 1, Ordering::Release);
        Insert::Inserted
    }

    /// Takes the identity of a buffer away and unlinks it; the caller has pinned it. False: somebody
    /// else has pinned it too, it has something to write, or it has no identity.
    pub(crate) fn evict(&self, buffers: &[Descriptor], buffer: u32) -> bool {
        self.unlink(buffers, buffer, BufferWord::evict)
    }

    /// The same for a page whose relation is gone, though it may have something to write.
    pub(crate) fn discard(&self, buffers: &[Descriptor], buffer: u32) -> bool {
        self.unlink(buffers, buffer, BufferWord::discard)
    }

    /// The same for who holds the page's exclusive lock, which goes with the identity.
    pub(crate) fn discard_locked(&self, buffers: &[Descriptor], buffer: u32) -> bool {
        self.unlink(buffers, buffer, BufferWord::discard_locked)
    }

    fn unlink(
        &self,
        buffers: &[Descriptor],
        buffer: u32,
        release: impl FnOnce(&BufferWord) -> bool,
    ) -> bool {
        let descriptor = &buffers[buffer as usize];
        let tag = descriptor.tag();
        let _part = self.part(tag);
        // Under a pin the tag is stable if there is one, and the word says whether there is.
        if !release(&descriptor.word) {
            return false;
        }
        let mut link = self.head(tag);
        while let Some(other) = link.load(Ordering::Acquire).checked_sub(1) {
            if other == buffer {
                link.store(descriptor.next.load(Ordering::Acquire), Ordering::Release);
                return true;
            }
            link = &buffers[other as usize].next;
        }
        unreachable!("buffer {buffer} has an identity and is in no chain");
    }

    fn head(&self, tag: Tag) -> &AtomicU32 {
        &self.heads[tag.hash() as usize & (self.heads.len() - 1)]
    }

    fn part(&self, tag: Tag) -> MutexGuard<'_, ()> {
        // Heads are a multiple of the parts, so a chain lies within one part.
        self.parts[tag.hash() as usize & (PARTS - 1)].lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(count: u32) -> Vec<Descriptor> {
        (0..count).map(|_| Descriptor::new()).collect()
    }

    fn tag(block: u32) -> Tag {
        Tag::from_words([1 << 56, 9, 0]).at(block)
    }

    fn fill(table: &Table, buffers: &[Descriptor], buffer: u32, block: u32) {
        buffers[buffer as usize].word.tick();
        let inserted = table.insert(buffers, tag(block), buffer, 1, |_| {});
        assert!(matches!(inserted, Insert::Inserted));
        buffers[buffer as usize].word.finish_read(true);
    }

    #[test]
    fn pages_are_found_until_they_are_evicted() {
        let (table, buffers) = (Table::new(256), buffers(256));
        (0..256).for_each(|at| fill(&table, &buffers, at, at * 3));
        for at in 0..256 {
            assert_eq!(table.find(&buffers, tag(at * 3)), Some(at));
            assert!(table.find(&buffers, tag(at * 3 + 1)).is_none());
            buffers[at as usize].word.pin(5).expect("there");
            assert!(!table.evict(&buffers, at), "pinned twice");
            buffers[at as usize].word.unpin();
        }
        for at in (0..256).rev() {
            assert!(table.evict(&buffers, at));
            assert!(table.peek(&buffers, tag(at * 3)).is_none());
            let left = (0..at).all(|other| table.peek(&buffers, tag(other * 3)).is_some());
            assert!(left, "{at} took others along");
        }
    }

    #[test]
    fn a_second_insertion_finds_the_first() {
        let (table, buffers) = (Table::new(16), buffers(16));
        fill(&table, &buffers, 3, 7);
        buffers[4].word.tick();
        let second = table.insert(&buffers, tag(7), 4, 5, |_| {});
        assert!(matches!(second, Insert::Present(Found { buffer: 3, .. })), "{second:?}");
    }
}
