//! Making room: when every buffer that nobody uses has something to write.
//!
//! The clock passes by what must be written first, so a session that needs a buffer finds a clean one
//! as long as there is one. Only if there is none it starts to write: a batch of pages that nobody has
//! pinned, neighbours together, all at once. Then it waits, as for any buffer, until one can be had:
//! the first write that ends makes one, whoever started it.

use super::backend::Backend;
use super::error::ReadError;
use super::shared::Shared;
use super::state::flag;
use super::tag::Tag;
use super::write::{Dirty, StartWrite, WriteError, Writes};
use trunkline_aio::Class;
use trunkline_aio::sync::Arc;
use trunkline_format::BlockNo;

/// Pages that are written at once.
const BATCH: usize = 64;

/// Writes in flight of one session that makes room.
const WRITES: usize = 8;

/// Blocks of one of them at most.
const COMBINE: u32 = 16;

impl Backend {
    /// Starts to write pages that nobody uses, if no buffer could be had without. Never waits for
    /// storage, except for the log. False: it would have, and no handle was free.
    ///
    /// # Errors
    /// A write of this session has failed: there may never be a buffer.
    pub(super) fn start_write_back(&mut self) -> Result<bool, ReadError> {
        let shared = Arc::clone(&self.shared);
        if shared.has_unpinned() {
            return Ok(true);
        }
        let mut writes = match self.write_back.take() {
            Some(writes) => writes,
            None => {
                Box::new(Writes::new(&shared, WRITES, COMBINE.min(self.session.iovecs() as u32)))
            }
        };
        let started = self.write_back_with(&mut writes);
        self.write_back = Some(writes);
        started.map_err(|error| ReadError::WriteBack(Box::new(error)))
    }

    /// Whether a session that sleeps for a buffer should look again: there is one, a write of its own
    /// has ended, or somebody else's has ended in vain.
    pub(super) fn may_have_buffer(shared: &Shared, writes: Option<&Writes>) -> bool {
        shared.has_unpinned()
            || match writes {
                Some(writes) if writes.in_flight() > 0 => writes.operations.first_done().is_some(),
                _ => shared.has_dirty(),
            }
    }

    fn write_back_with(&mut self, writes: &mut Writes) -> Result<bool, WriteError> {
        let mut failed = None;
        while let Some(slot) = writes.operations.first_done() {
            if let Some(outcome) = writes.operations.take(slot)
                && let Err(error) = writes.finish(slot, outcome)
            {
                failed = Some(error);
            }
        }
        let victims = self.dirty_victims(failed.is_some());
        let mut at = 0;
        while at < victims.len() && writes.has_idle() {
            let (tag, first) = (victims[at].0, at);
            at += 1;
            while at < victims.len()
                && victims[at].0.same_fork(tag)
                && victims[at].0.block() == tag.block() + (at - first) as BlockNo
            {
                at += 1;
            }
            let buffers: Vec<u32> = victims[first..at].iter().map(|(_, buffer)| *buffer).collect();
            match self.write_back_run(writes, tag, &buffers) {
                Ok(true) => {}
                Ok(false) => return Ok(writes.in_flight() > 0),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            // Other pages can be written, or have been: one of them makes room.
            Some(error) if writes.in_flight() == 0 && !self.shared.has_unpinned() => Err(error),
            _ => Ok(true),
        }
    }

    /// Pages to be written that nobody has pinned, in the order of the clock, then by name; perhaps not
    /// those whose last write has failed.
    fn dirty_victims(&self, spare_failed: bool) -> Vec<(Tag, u32)> {
        let shared = &self.shared;
        let (_, hand) = shared.clock.position();
        let count = shared.count();
        let mut victims = Vec::new();
        for usage in 0..=super::state::USAGE_MAX {
            for offset in 0..count {
                let buffer = (hand + offset) % count;
                let seen = shared.word(buffer).load();
                let wanted = seen.has(flag::DIRTY) && !seen.any(flag::IO_IN_PROGRESS);
                let wanted = wanted && !(spare_failed && seen.has(flag::IO_ERROR));
                if wanted && seen.pins() == 0 && seen.usage() == usage {
                    victims.push((shared.buffers[buffer as usize].tag(), buffer));
                    if victims.len() == BATCH {
                        break;
                    }
                }
            }
            if !victims.is_empty() {
                break;
            }
        }
        victims.sort_unstable_by_key(|(tag, _)| tag.words());
        victims
    }

    fn write_back_run(
        &mut self,
        writes: &mut Writes,
        tag: Tag,
        mut buffers: &[u32],
    ) -> Result<bool, WriteError> {
        let shared = Arc::clone(&self.shared);
        let Some(storage) = shared.storage(tag.cluster()) else { return Ok(true) };
        let relation = storage.relation(tag.locator(), tag.fork());
        let mut first = tag.block();
        while !buffers.is_empty() && writes.has_idle() {
            let dirty = Dirty {
                relation: &relation,
                tag,
                first,
                buffers,
                class: Class::WriteBack,
                needed: 0,
                now: false,
                durable: shared.log.durable(),
            };
            let count = match writes.start(&mut self.session, &dirty)? {
                StartWrite::Issued { count } => count,
                StartWrite::Clean | StartWrite::Busy => 1,
                StartWrite::LogFirst(lsn) => {
                    self.session.submit();
                    shared.log.flush(lsn).map_err(WriteError::Log)?;
                    0
                }
                // Others have I/O under way; what they write makes room too.
                StartWrite::NoHandle => return Ok(false),
            };
            first += count;
            buffers = &buffers[count as usize..];
        }
        Ok(true)
    }
}
