//! Sessions: who issues I/O, and how it waits.
//!
//! A session belongs to one thread at a time (it may move between threads). It acquires a handle,
//! defines one I/O on it, and stages it; a [`Batch`](IoBatch) collects staged I/Os and submits them
//! together. The borrow checker enforces that at most one handle is handed out and undefined: an
//! [`Io`] borrows its session. Nothing here blocks while holding staged I/O: every wait submits
//! first.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trunkline_aio::{Builder, Class, OpenOptions, Slots};
//!
//! let aio = Builder::new().start()?;
//! let file = aio.open("data".as_ref(), OpenOptions::default())?;
//! let mut session = aio.session()?;
//! let mut slots = Slots::new(1);
//! slots.memory(0).ok_or("busy")?.push(aio.region().lease(16).ok_or("full")?);
//! session.acquire(Class::Foreground)?.read(&file, 0, 16 * 8192, &mut slots, 0)?;
//! let outcome = session.wait(&mut slots, 0)?;
//! println!("{} bytes", outcome.count);
//! # Ok(()) }
//! ```

mod define;
mod io;
mod polling;
mod waiting;
mod waking;

pub use define::DefineError;
pub use io::{Io, IoBatch};
pub use waking::{Cancelled, Canceller, Notifier};

use crate::clock::{self, Time};
use crate::core::Core;
use crate::event::Event;
use crate::handle::flag;
use crate::instance::Instance;
use crate::limits::{STAGED_AGE_MAX_US, STAGED_MAX, TRY_CACHED_MISSES, TRY_CACHED_ONE_IN};
use crate::mailbox::Mailbox;
use crate::method::MethodKind;
use crate::request::Operation;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::wait::WaitRef;
use std::time::Duration;

/// What an I/O is for. Decides how much of the handle table it may use, and how it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// The write-ahead log: may use every handle.
    Log = 0,
    /// A read that somebody waits for: all but the log's reserve.
    Foreground = 1,
    /// Reads ahead of need: like the classes below, all but both reserves.
    LookAhead = 2,
    /// Writes of dirty pages to make room.
    Eviction = 3,
    /// Writes of a checkpoint.
    Checkpoint = 4,
    /// Verification, prewarming and other bulk work.
    Maintenance = 5,
}

/// All classes, the most important first.
pub const CLASSES: [Class; 6] = [
    Class::Log,
    Class::Foreground,
    Class::LookAhead,
    Class::Eviction,
    Class::Checkpoint,
    Class::Maintenance,
];

impl Class {
    /// A word for views.
    pub fn name(self) -> &'static str {
        match self {
            Class::Log => "log",
            Class::Foreground => "foreground",
            Class::LookAhead => "look-ahead",
            Class::Eviction => "eviction",
            Class::Checkpoint => "checkpoint",
            Class::Maintenance => "maintenance",
        }
    }

    pub(crate) fn from_number(number: u8) -> Self {
        CLASSES.get(usize::from(number)).copied().unwrap_or(Class::Maintenance)
    }
}

/// The shared part of a session: what other threads touch.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    pub(crate) event: Event,
    pub(crate) mailbox: Mailbox,
    /// Sessions that have had this slot; names the present one.
    pub(crate) incarnation: AtomicU64,
    /// The incarnation that was cancelled last.
    pub(crate) cancelled: AtomicU64,
    /// Handles the session holds, handed out or under way.
    pub(crate) in_use: AtomicU32,
}

impl SessionSlot {
    pub(crate) fn new() -> Self {
        Self {
            event: Event::new(),
            mailbox: Mailbox::new(),
            incarnation: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            in_use: AtomicU32::new(0),
        }
    }
}

impl SessionSlot {
    /// Whether the session that has the slot now was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst) == self.incarnation.load(Ordering::SeqCst)
    }
}

/// What a scope left behind (see [`Session::end_scope`]). All zero is a clean end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaks {
    /// A handle was acquired and neither used nor released; it has been given back.
    pub handed_out: bool,
    /// I/Os were staged and not submitted; they have been submitted.
    pub staged: usize,
    /// A batch was still open; it has been closed.
    pub batch: bool,
}

impl Leaks {
    /// Whether anything was left behind.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// Issues I/O, and waits for it. It belongs to one thread at a time, and may move between threads.
///
/// A handle is acquired, one I/O is defined on it, and that is submitted at once, or with others at
/// the end of a batch. Whoever waits submits first, so nothing that others may wait for lies staged
/// here meanwhile. Dropping a session submits what it staged and cancels nothing: its I/O is completed
/// by others.
#[derive(Debug)]
pub struct Session {
    instance: Arc<Instance>,
    core: Arc<Core>,
    id: u32,
    handed_out: Option<WaitRef>,
    /// The queue for a free handle that the session stands in.
    queued: Option<Class>,
    staged: Vec<u32>,
    staged_since: Time,
    batch: bool,
    may_block: bool,
    /// Reads in a row that were not found in the page cache.
    cache_misses: u32,
    waits: u64,
    wait_time: Duration,
    /// Joins that were polled may have left bits behind.
    joined: bool,
}

impl Session {
    pub(crate) fn new(instance: Arc<Instance>, core: Arc<Core>, id: u32) -> Self {
        let slot = &core.sessions[id as usize];
        slot.incarnation.fetch_add(1, Ordering::SeqCst);
        let _ = slot.mailbox.take();
        Self {
            instance,
            core,
            id,
            handed_out: None,
            queued: None,
            staged: Vec::with_capacity(STAGED_MAX),
            staged_since: Time::default(),
            batch: false,
            may_block: true,
            cache_misses: 0,
            waits: 0,
            wait_time: Duration::ZERO,
            joined: false,
        }
    }

    /// Number of the session (`pg_aios.pid`).
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether the session's thread may execute I/O itself where that is the cheaper way (the
    /// default). A session that is polled by an async runtime says no: then a needed read goes to
    /// the method like any other. Under `sync`, and where a method has no room, it executes all the
    /// same.
    pub fn set_may_block(&mut self, may_block: bool) {
        self.may_block = may_block;
    }

    /// The method in force, at the cost of one atomic load: whether reading ahead is advice
    /// ([`MethodKind::Sync`]) or I/O.
    pub fn method(&self) -> MethodKind {
        self.core.methods.current()
    }

    /// Leases neighbouring frames of the instance's region; see [`crate::Region::lease`].
    pub fn lease(&self, frames: u32) -> Option<crate::Lease> {
        self.core.region.lease(frames)
    }

    /// Pieces of memory that one I/O may have (`io_max_combine_limit`).
    pub fn iovecs(&self) -> usize {
        self.core.iovecs
    }

    /// How often and how long the session slept for I/O.
    pub fn waits(&self) -> (u64, Duration) {
        (self.waits, self.wait_time)
    }

    /// Handles the session holds now.
    pub fn in_flight(&self) -> u32 {
        self.slot().in_use.load(Ordering::SeqCst)
    }

    /// Handles that other sessions of the instance hold now: whether anybody else has I/O under way.
    pub fn others_in_flight(&self) -> u32 {
        self.core.free.in_use().saturating_sub(self.in_flight())
    }

    /// Starts a batch: I/Os are collected, up to 32, until it is dropped.
    /// Within a batch it is part of the outer one.
    pub fn batch(&mut self) -> IoBatch<'_> {
        let outer = std::mem::replace(&mut self.batch, true);
        IoBatch::new(self, outer)
    }

    /// Submits everything staged.
    pub fn submit(&mut self) {
        if !self.staged.is_empty() {
            self.core.submit(&self.staged);
            self.staged.clear();
        }
    }

    /// Under `sync`, tells the kernel that the range will be read soon; other methods read ahead
    /// themselves. Whether advice was given.
    pub fn advise(&self, file: &crate::File, offset: u64, length: u64) -> bool {
        let sync = self.core.methods.current() == MethodKind::Sync;
        let advised = sync && !file.is_direct() && self.core.executor.advise(file, offset, length);
        if advised {
            self.core.stats.advised();
        }
        advised
    }

    /// Ends a scope (a statement, a transaction, an error path): gives back a handle that was
    /// forgotten, closes a forgotten batch, submits what is staged. I/O under way goes on.
    pub fn end_scope(&mut self) -> Leaks {
        let handed_out = self.reclaim_forgotten();
        if handed_out {
            self.core.stats.leaked();
        }
        let leaks =
            Leaks { handed_out, staged: self.staged.len(), batch: std::mem::take(&mut self.batch) };
        self.submit();
        leaks
    }

    fn slot(&self) -> &SessionSlot {
        &self.core.sessions[self.id as usize]
    }

    fn reclaim_forgotten(&mut self) -> bool {
        let Some(io) = self.handed_out.take() else { return false };
        self.core.release(io, self.id);
        true
    }

    fn stage(&mut self, index: u32) {
        if self.staged.is_empty() {
            self.staged_since = clock::now();
        }
        self.staged.push(index);
        if !self.batch || self.staged.len() == STAGED_MAX {
            self.submit();
        }
    }

    /// Whether a read is worth a look into the page cache by this thread. Counts a miss; a hit
    /// clears the count.
    fn looks_cached(&mut self, index: u32) -> bool {
        let view = &self.core.handles[index as usize].view;
        let buffered = view.flags.load(Ordering::Relaxed) & flag::BUFFERED != 0;
        if !buffered
            || view.operation() != Operation::Readv
            || view.length.load(Ordering::Relaxed) >= self.core.try_cached_below
            || self.core.methods.current() == MethodKind::Sync
        {
            return false;
        }
        self.cache_misses = self.cache_misses.saturating_add(1);
        self.cache_misses <= TRY_CACHED_MISSES
            || self.cache_misses.is_multiple_of(TRY_CACHED_ONE_IN)
    }

    /// Whether a write is to be made by this thread, since its mount takes it as quickly as a copy; and
    /// the call to write back what was written so.
    fn writes_at_once(&self, index: u32, file: &crate::File) -> bool {
        let view = &self.core.handles[index as usize].view;
        let most = match view.operation() {
            Operation::Writev => self.core.inline_write_max,
            Operation::BeginWriteback if self.core.inline_write_max > 0 => u32::MAX,
            _ => return false,
        };
        self.may_block
            && !file.is_direct()
            && (1..=most).contains(&view.length.load(Ordering::Relaxed))
            && self.core.methods.current() != MethodKind::Sync
            && match view.operation() {
                Operation::Writev => file.pace().is_quick(clock::now),
                _ => file.pace().is_known_quick(clock::now),
            }
    }

    /// Submits what has been staged for long. Acquiring does so too; a session that computes inside
    /// a batch calls this now and then, so that its I/O does not wait for it.
    pub fn submit_if_old(&mut self) {
        if !self.staged.is_empty()
            && clock::now().since(self.staged_since) > Duration::from_micros(STAGED_AGE_MAX_US)
        {
            self.submit();
        }
    }

    fn end_batch(&mut self, outer: bool) {
        self.batch = outer;
        if !outer {
            self.submit();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave_queue();
        self.end_scope();
        self.leave_joined();
        // A waker may own the task that owns an instance.
        self.slot().event.clear_waker();
        self.instance.session_ended(self.id);
    }
}
