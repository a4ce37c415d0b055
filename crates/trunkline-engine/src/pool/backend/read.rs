//! Reading one page (PostgreSQL's `ReadBuffer`). We either find the page in the pool, join a read
//! by another session, or issue a read ourselves.

use super::super::descriptor::{USAGE_MAX, flag};
use super::super::error::{ReadError, ReadWarning};
use super::super::pin::Pin;
use super::super::read::{BlockResult, PageReads, ReadRequest, ReadStart};
use super::super::tag::BufferTag;
use super::Backend;
use crate::storage::Relation;
use crate::waiting::{Waiting, slept};
use trunkline_aio::facade::Arc;
use trunkline_aio::{Cancelled, Class, Outcome};
use trunkline_format::BlockNo;

impl Backend {
    /// Reads one page, or finds it in the pool.
    ///
    /// # Errors
    /// See [`ReadError`]; nothing stays pinned.
    pub fn read(&mut self, relation: &Relation, block: BlockNo) -> Result<Pin, ReadError> {
        self.count_for(relation);
        self.sleep_for_pin()?;
        let read = self.read_reserved(relation, block);
        self.counter.publish_if_due();
        let session = self.session.id();
        match read {
            Ok(buffer) => Ok(Pin::new(&self.manager, session, buffer)),
            Err(error) => {
                // A session that was cancelled while it waited won't need the opened file.
                self.reads.forget_opened();
                self.manager.limits().give_back(session, 1);
                Err(error)
            }
        }
    }

    /// Finds a page that is in the pool. This never waits: the result is `None` if the page would have
    /// to be read, or if no pin is free.
    pub(crate) fn find(&mut self, relation: &Relation, block: BlockNo) -> Option<Pin> {
        let (manager, session) = (Arc::clone(&self.manager), self.session.id());
        let limits = manager.limits();
        let mut reserved = limits.reserve_or_grant(session);
        if let Ok(false) = reserved
            && limits.admit(session)
        {
            reserved = limits.reserve_or_grant(session);
        }
        let Ok(true) = reserved else { return None };
        self.count_for(relation);
        let found = manager.pin(BufferTag::of(relation, block), USAGE_MAX);
        let Some(found) = found else {
            limits.give_back(session, 1);
            return None;
        };
        if !found.state.has(flag::VALID) {
            manager.unpin(found.buffer);
            limits.give_back(session, 1);
            return None;
        }
        self.tally().hits += 1;
        self.counter.publish_if_due();
        Some(Pin::new(&manager, session, found.buffer))
    }

    /// Returns the buffer that contains the page, pinned. The caller must already have reserved
    /// that pin.
    fn read_reserved(&mut self, relation: &Relation, block: BlockNo) -> Result<u32, ReadError> {
        let request = ReadRequest {
            relation,
            tag: BufferTag::of(relation, block),
            first: block,
            count: 1,
            class: Class::Foreground,
            needed_now: true,
            policy: self.policy,
            usage_max: USAGE_MAX,
        };
        loop {
            let tally = self.counter.tally();
            match self.reads.start(&mut self.session, &request, None, tally)? {
                ReadStart::Hit(buffer) => return Ok(buffer),
                ReadStart::Joined(buffer, io) => {
                    let joined = self.sleep_for_io(io);
                    let valid = self.manager.buffers().state(buffer).has(flag::VALID);
                    if joined.is_ok() && valid {
                        self.tally().hits += 1;
                        self.tally().joins += 1;
                        return Ok(buffer);
                    }
                    // The other session's read failed. That doesn't mean that ours will fail too
                    // (for example, we may have a different policy), so try to read the page
                    // ourselves.
                    self.manager.unpin(buffer);
                    joined?;
                }
                ReadStart::Issued { slot, .. } => {
                    if let Some(buffer) = self.finish_read(relation, slot)? {
                        return Ok(buffer);
                    }
                }
                // In all of these cases, we hold nothing except the pin reservation, so it's safe
                // to wait.
                ReadStart::NotOpen => self.sleep_for_open()?,
                ReadStart::NoBuffer => self.sleep_for_victim()?,
                ReadStart::NoHandle => self.sleep_for_handle(Class::Foreground)?,
            }
        }
    }

    /// Waits for a read of one block. Returns `None` if the caller must read the block again.
    fn finish_read(&mut self, relation: &Relation, slot: usize) -> Result<Option<u32>, ReadError> {
        let Ok(outcome) = self.sleep_for_read(slot) else {
            // We've been cancelled, but we can't stop the read, and other sessions may be waiting
            // for its page. Since the read holds its own pin, it's OK to release our pin and
            // abandon the slot.
            self.reads.buffers(slot).iter().for_each(|&buffer| self.manager.unpin(buffer));
            self.reads = PageReads::new(&self.manager, 1, 1);
            return Err(ReadError::Cancelled);
        };
        let mut ended = None;
        let each = |block, buffer, result| ended = Some((block, buffer, result));
        self.reads.finish(slot, outcome, self.counter.tally(), each);
        let Some((block, buffer, result)) = ended else { return Ok(None) };
        match result {
            BlockResult::Valid => return Ok(Some(buffer)),
            BlockResult::Damaged { zeroed, verdict } => {
                let location = relation.location(block);
                self.warn(ReadWarning { location, zeroed, verdict });
                return Ok(Some(buffer));
            }
            _ => self.manager.unpin(buffer),
        }
        result.error(relation, block).map_or(Ok(None), Err)
    }

    /// Sleeps until the segment is open that the read needs.
    fn sleep_for_open(&mut self) -> Result<(), Cancelled> {
        let (session, opener) = (&mut self.session, self.reads.opener());
        session.wait_for(|| opener.is_done())
    }

    fn sleep_for_read(&mut self, slot: usize) -> Result<Outcome, Cancelled> {
        let waiting = &mut Waiting::Sleep;
        if self.reads.window().results().is_done(slot) {
            return slept(self.reads.window_mut().wait(&mut self.session, waiting, slot));
        }
        slept(self.timed(waiting, |backend, waiting| {
            backend.reads.window_mut().wait(&mut backend.session, waiting, slot)
        }))
    }
}
