//! A session's side of the pool: its I/O session, its bookings, its counts, and every way to sleep
//! for something of the pool's.
//!
//! A backend belongs to one thread at a time. It reads single pages by itself; streams look ahead
//! with it. It never sleeps while holding staged I/O (its session submits first), nor while holding
//! the claim to a page.

use super::complete::Policy;
use super::content_lock::LockMode;
use super::error::{ReadError, ReadWarning};
use super::frame::{Page, PageMut};
use super::pin::{Pin, PinRef};
use super::pins::PINS_GUARANTEED;
use super::read::{BlockEnd, Reads, Start, Want, error_of};
use super::ring::Strategy;
use super::shared::Shared;
use super::state::{USAGE_MAX, flag};
use super::stats::{BackendType, Cell, IoKey, IoObject, Tally};
use super::tag::Tag;
use super::write_back::WriteBack;
use crate::storage::Relation;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_aio::{Cancelled, Class, Notifier, Session, WaitRef};
use trunkline_format::BlockNo;

/// Pages found between two times that the counts become visible to others.
const HITS_UNSEEN_MAX: u64 = 256;

/// Warnings kept until somebody takes them.
const WARNINGS_MAX: usize = 1000;

/// See the module.
#[derive(Debug)]
pub struct Backend {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Session,
    kind: BackendType,
    policy: Policy,
    reads: Reads,
    pub(super) tally: Tally,
    /// Where the tally belongs.
    cell: Option<(IoKey, Arc<Cell>)>,
    warnings: Vec<ReadWarning>,
    /// Warnings that were too many to keep.
    warnings_lost: u64,
    /// The writes that it started to make room.
    pub(super) write_back: Option<Box<WriteBack>>,
    /// See [`Backend::set_flush_after`].
    flush_after: u32,
}

impl Backend {
    pub(super) fn new(shared: &Arc<Shared>, session: Session, kind: BackendType) -> Self {
        Self {
            shared: Arc::clone(shared),
            session,
            kind,
            policy: Policy::default(),
            reads: Reads::new(shared, 1, 1),
            tally: Tally::default(),
            cell: None,
            warnings: Vec::new(),
            warnings_lost: 0,
            write_back: None,
            flush_after: 0,
        }
    }

    /// Number of its session (`pg_aios.pid`).
    pub fn session_id(&self) -> u32 {
        self.session.id()
    }

    /// Whether it is a backend of this pool.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// The session that issues its I/O.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// What to do with pages that are not sound, for reads issued from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// What reads that are issued now do with pages that are not sound.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Has the system begin to write back what this session has written whenever it is so many blocks
    /// (`backend_flush_after`), to make room or as a bulk write; 0, as at first, leaves that to the
    /// system. For bulk writes that are begun from now on.
    pub fn set_flush_after(&mut self, blocks: u32) {
        self.flush_after = blocks;
        if let Some(write_back) = &mut self.write_back {
            write_back.set_flush_after(blocks);
        }
    }

    pub(super) fn kind(&self) -> BackendType {
        self.kind
    }

    pub(super) fn flush_after(&self) -> u32 {
        self.flush_after
    }

    /// Pins that it holds, its streams' included.
    pub fn pins(&self) -> u32 {
        self.shared.limiter.pins(self.session.id())
    }

    /// What policies let pass since the last call, and how many more there were than were kept.
    pub fn take_warnings(&mut self) -> (Vec<ReadWarning>, u64) {
        (std::mem::take(&mut self.warnings), std::mem::take(&mut self.warnings_lost))
    }

    pub(crate) fn warn(&mut self, warning: ReadWarning) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        } else {
            self.warnings_lost += 1;
        }
    }

    /// Reads one page, or finds it in the pool.
    ///
    /// # Errors
    /// See [`ReadError`]; nothing stays pinned.
    pub fn read(&mut self, relation: &Relation, block: BlockNo) -> Result<Pin, ReadError> {
        self.count_for(relation);
        self.book()?;
        let read = self.read_booked(relation, block);
        if self.tally.reads > 0 || self.tally.hits >= HITS_UNSEEN_MAX {
            self.show_counts();
        }
        match read {
            Ok(buffer) => Ok(Pin::new(Arc::clone(&self.shared), self.session.id(), buffer)),
            Err(error) => {
                let session = self.session.id();
                self.shared.limiter.unpin(session, 1, &self.shared.notifiers);
                Err(error)
            }
        }
    }

    /// The buffer of the page, pinned, for a pin that is booked.
    fn read_booked(&mut self, relation: &Relation, block: BlockNo) -> Result<u32, ReadError> {
        let want = Want {
            relation,
            tag: Tag::of(relation, block),
            first: block,
            count: 1,
            class: Class::Foreground,
            needed_now: true,
            policy: self.policy,
            usage_max: USAGE_MAX,
        };
        loop {
            match self.reads.start(&mut self.session, &want, None, &mut self.tally)? {
                Start::Hit(buffer) => return Ok(buffer),
                Start::Joined(buffer, io) => {
                    let joined = self.join(io);
                    if joined.is_ok() && self.shared.word(buffer).load().has(flag::VALID) {
                        self.tally.hits += 1;
                        self.tally.joins += 1;
                        return Ok(buffer);
                    }
                    self.shared.unpin(buffer);
                    joined?;
                }
                Start::Issued { slot, .. } => {
                    if let Some(buffer) = self.finish_read(relation, slot)? {
                        return Ok(buffer);
                    }
                }
                Start::NoBuffer => self.wait_for_buffer()?,
                Start::NoHandle => self.wait_for_handle(Class::Foreground)?,
            }
        }
    }

    /// Waits for the one block of a read of its own; `None`: read it again.
    fn finish_read(&mut self, relation: &Relation, slot: usize) -> Result<Option<u32>, ReadError> {
        let waited = self.timed(|backend| {
            let operations = &mut backend.reads.operations;
            let slept = !operations.is_done(slot);
            (slept, backend.session.wait(operations, slot))
        });
        let outcome = match waited {
            Ok(outcome) => outcome,
            Err(cancelled) => {
                // The read goes on, and others may find its page; we do not look any more.
                self.reads.buffers(slot).iter().for_each(|&buffer| self.shared.unpin(buffer));
                self.reads = Reads::new(&self.shared, 1, 1);
                return Err(cancelled.into());
            }
        };
        let mut ended = None;
        let each = |block, buffer, end| ended = Some((block, buffer, end));
        self.reads.finish(slot, outcome, &mut self.tally, each);
        let Some((block, buffer, end)) = ended else { return Ok(None) };
        match end {
            BlockEnd::Valid => return Ok(Some(buffer)),
            BlockEnd::Warning { zeroed, verdict } => {
                let path = relation.path(trunkline_format::segment::segment_of(block).0);
                self.warn(ReadWarning { path, block, zeroed, verdict });
                return Ok(Some(buffer));
            }
            _ => self.shared.unpin(buffer),
        }
        error_of(relation, block, &end).map_or(Ok(None), Err)
    }

    /// Books one pin, waiting for admission if need be.
    pub(crate) fn book(&mut self) -> Result<(), ReadError> {
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        let limiter = &shared.limiter;
        while !limiter.pin(id) {
            if limiter.is_admitted(id) {
                limiter.extend_by_one(id, &shared.notifiers);
                if limiter.pin(id) {
                    return Ok(());
                }
                let held = limiter.pins(id);
                if held >= PINS_GUARANTEED {
                    return Err(ReadError::TooManyPins { held });
                }
            }
            self.wait_for_admission()?;
        }
        Ok(())
    }

    /// Books one pin if it is granted now; otherwise the task is woken when it may be, and has a place
    /// in `waiting` until the caller takes it out.
    pub(crate) fn poll_book(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReadError>> {
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        let limiter = &shared.limiter;
        while !limiter.pin(id) {
            if limiter.is_admitted(id) {
                limiter.extend_by_one(id, &shared.notifiers);
                if limiter.pin(id) {
                    break;
                }
                let held = limiter.pins(id);
                if held >= PINS_GUARANTEED {
                    return Poll::Ready(Err(ReadError::TooManyPins { held }));
                }
            }
            limiter.waiting.insert(id);
            let admitted = || limiter.admit(id, &shared.notifiers);
            let polled = ready!(self.session.poll_for(context, admitted));
            limiter.waiting.remove(id);
            polled?;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether some buffer may be had; otherwise the task is woken when it may be, and has a place in
    /// `hungry` until the caller takes it out.
    pub(crate) fn poll_for_buffer(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ReadError>> {
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        shared.hungry.insert(id);
        let polled = match self.start_write_back() {
            Ok(true) => {
                let writes = self.write_back.as_ref().map(|ours| ours.writes());
                let may = || Backend::may_have_buffer(&shared, writes);
                ready!(self.session.poll_for(context, may)).map_err(ReadError::from)
            }
            Ok(false) => {
                let acquired = ready!(self.session.poll_acquire(context, Class::Eviction));
                acquired.map(drop).map_err(ReadError::from)
            }
            Err(error) => Err(error),
        };
        shared.hungry.remove(id);
        Poll::Ready(polled)
    }

    fn wait_for_admission(&mut self) -> Result<(), Cancelled> {
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        if shared.limiter.admit(id, &shared.notifiers) {
            return Ok(());
        }
        shared.limiter.waiting.insert(id);
        let waited = self.timed(|backend| {
            let admitted = || shared.limiter.admit(id, &shared.notifiers);
            (true, backend.session.wait_for(admitted))
        });
        shared.limiter.waiting.remove(id);
        waited
    }

    /// Sleeps until some buffer may be had, after starting to write some if none could be.
    pub(crate) fn wait_for_buffer(&mut self) -> Result<(), ReadError> {
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        // Before the look: a write that ends at once is then seen, or told.
        shared.hungry.insert(id);
        let waited = match self.start_write_back() {
            Ok(true) => self.timed(|backend| {
                let writes = backend.write_back.as_ref().map(|ours| ours.writes());
                let may = || Backend::may_have_buffer(&shared, writes);
                (true, backend.session.wait_for(may).map_err(ReadError::from))
            }),
            Ok(false) => self.timed(|backend| {
                (true, backend.wait_for_handle_or_buffer().map_err(ReadError::from))
            }),
            Err(error) => Err(error),
        };
        shared.hungry.remove(id);
        self.collect_write_back();
        if let Some(write_back) = &mut self.write_back {
            write_back.tell_system(&mut self.session);
        }
        waited
    }

    /// Takes note of its own writes that have ended, so that they are counted.
    fn collect_write_back(&mut self) {
        if let Some(write_back) = &mut self.write_back {
            write_back.collect();
        }
    }

    /// Sleeps until a handle for a write could be had, or a buffer without one: with all handles at a
    /// mount that hangs, somebody else's pin may still come free. The session is among the hungry.
    fn wait_for_handle_or_buffer(&mut self) -> Result<(), Cancelled> {
        let (shared, id) = (Arc::clone(&self.shared), self.session.id());
        loop {
            let told = Arc::new(Told {
                told: AtomicBool::new(false),
                session: id,
                notifiers: shared.notifiers.clone(),
            });
            let waker = Waker::from(Arc::clone(&told));
            match self.session.poll_acquire(&mut Context::from_waker(&waker), Class::Eviction) {
                Poll::Ready(acquired) => return acquired.map(drop),
                Poll::Pending => {}
            }
            let may = || told.told.load(Ordering::SeqCst) || shared.has_unpinned();
            let waited = self.session.wait_for(may);
            if waited.is_err() || shared.has_unpinned() {
                // Somebody else's turn, if there is a handle now: trying gives up the place in line.
                drop(self.session.try_acquire(Class::Eviction));
                return waited;
            }
        }
    }

    /// Sleeps until a handle could be had.
    pub(crate) fn wait_for_handle(&mut self, class: Class) -> Result<(), Cancelled> {
        self.timed(|backend| (true, backend.session.acquire(class).map(drop)))
    }

    /// Sleeps until an I/O has ended, whoever issued it.
    pub(crate) fn join(&mut self, io: WaitRef) -> Result<(), Cancelled> {
        self.timed(|backend| (!backend.session.is_complete(io), backend.session.join(io)))
    }

    /// Does something that may sleep, and counts the time if it says that it did.
    pub(crate) fn timed<T>(&mut self, body: impl FnOnce(&mut Self) -> (bool, T)) -> T {
        let started = clock::now();
        let (slept, value) = body(self);
        if slept {
            self.count_wait(clock::now().since(started));
        }
        value
    }

    fn count_wait(&mut self, time: Duration) {
        self.tally.waits += 1;
        self.tally.wait_nanos += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Locks a page for reading.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn read_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<Page<'p>, Cancelled> {
        self.lock_page(pin, LockMode::Shared)
    }

    /// Locks a page for reading, and keeps changes out while others read too.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn stable_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<Page<'p>, Cancelled> {
        self.lock_page(pin, LockMode::ShareExclusive)
    }

    fn lock_page<'p>(&mut self, pin: PinRef<'p>, mode: LockMode) -> Result<Page<'p>, Cancelled> {
        loop {
            if let Ok(page) = Page::try_lock(pin.shared, pin.buffer, mode) {
                return Ok(page);
            }
            self.wait_for_lock(pin, mode, false)?;
        }
    }

    /// Locks a page for oneself.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn write_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<PageMut<'p>, Cancelled> {
        self.lock_page_mut(pin, false)
    }

    /// Locks a page for oneself once nobody else has it pinned, I/O included: only then may items
    /// move within it (a cleanup lock). The caller has one pin on it.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn cleanup_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<PageMut<'p>, Cancelled> {
        self.lock_page_mut(pin, true)
    }

    fn lock_page_mut<'p>(
        &mut self,
        pin: PinRef<'p>,
        cleanup: bool,
    ) -> Result<PageMut<'p>, Cancelled> {
        loop {
            if let Ok(page) = PageMut::try_lock(pin.shared, pin.buffer, cleanup) {
                return Ok(page);
            }
            self.wait_for_lock(pin, LockMode::Exclusive, cleanup)?;
        }
    }

    fn wait_for_lock(
        &mut self,
        pin: PinRef<'_>,
        mode: LockMode,
        cleanup: bool,
    ) -> Result<(), Cancelled> {
        let (shared, buffer, id) = (pin.shared, pin.buffer, self.session.id());
        shared.waiting.begin(id, buffer);
        // Not counted with the waits for pages: nothing is read meanwhile.
        let waited = self.session.wait_for(|| {
            // Anew each time: whoever woke us took the note away.
            shared.word(buffer).announce_waiter();
            shared.word(buffer).could_lock(mode, cleanup)
        });
        shared.waiting.end(id);
        waited
    }

    /// Sleeps until a page that is in use may be written: its I/O has ended, or its lock is free.
    pub(crate) fn wait_for_page(&mut self, buffer: u32) -> Result<(), Cancelled> {
        let shared = Arc::clone(&self.shared);
        if let Some(io) = shared.buffers[buffer as usize].io_in_progress() {
            return self.join(io);
        }
        // A pin for the moment: nobody sleeps for the word of a page that may go.
        if shared.word(buffer).pin(0).is_none() {
            return Ok(());
        }
        let pin = PinRef::new(&shared, buffer);
        let waited = self.wait_for_lock(pin, LockMode::Exclusive, false);
        shared.unpin(buffer);
        waited
    }

    /// Counts from now on for this relation.
    pub(crate) fn count_for(&mut self, relation: &Relation) {
        let key = self.key(relation, Strategy::Normal);
        if self.cell.as_ref().is_none_or(|(present, _)| *present != key) {
            self.show_counts();
            self.shared.allow_writes(relation.storage());
            self.cell = Some((key, self.shared.stats.cell(key)));
        }
    }

    pub(crate) fn key(&self, relation: &Relation, context: Strategy) -> IoKey {
        let object = if self.shared.local { IoObject::TempRelation } else { IoObject::Relation };
        IoKey {
            backend: self.kind,
            object,
            context,
            cluster: relation.storage().number(),
            relation: relation.locator(),
        }
    }

    /// Lets a stream count what happens while it sleeps by the means of this backend.
    pub(crate) fn swap_tally(&mut self, tally: &mut Tally) {
        std::mem::swap(&mut self.tally, tally);
    }

    /// Makes what was counted visible to others.
    pub fn show_counts(&mut self) {
        if let Some((_, cell)) = &self.cell {
            cell.absorb(&mut self.tally);
        }
    }
}

/// A waker for a session that sleeps: it was told of something, and is told again so that it sees that.
struct Told {
    told: AtomicBool,
    session: u32,
    notifiers: Notifier,
}

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.told.store(true, Ordering::SeqCst);
        self.notifiers.notify(self.session);
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.collect_write_back();
        self.show_counts();
        let id = self.session.id();
        self.shared.limiter.give_up(id, &self.shared.notifiers);
    }
}
