//! Sessions: the objects that issue I/O and wait for it. A session corresponds to a backend in
//! PostgreSQL.
//!
//! A session is used by one thread at a time, but can be moved to another thread. It acquires a
//! handle, defines one I/O on it, and stages it. A batch ([`crate::IoBatch`]) collects staged I/O
//! and submits it all together. As in PostgreSQL, a session must not have more than one handle that
//! is acquired but not yet used. PostgreSQL checks this at run time. Here the borrow checker does,
//! because an [`crate::Io`] borrows its session.
//!
//! **Deadlock.** A session must never block while it has staged I/O. Another session may be waiting
//! for that I/O while it holds something that the first session needs, so both of them would wait
//! forever. To prevent this, every wait begins by submitting the staged I/O.
//!
//! The submodules are `acquire` (acquiring handles), `io` (from the handle to submitting the I/O),
//! `define` (checks and iovecs), `wait` (waiting), `polled_wait` (what a waiting task owns),
//! `call` (system calls that a worker makes for the session), and `cancel` (wake-ups from other
//! threads).

pub(crate) mod acquire;
pub(crate) mod call;
pub(crate) mod cancel;
pub(crate) mod define;
pub(crate) mod io;
pub(crate) mod polled_wait;
pub(crate) mod wait;

use crate::clock::{self, Time};
use crate::completion::completions::Completions;
use crate::completion::in_flight::InFlight;
use crate::instance::Instance;
use crate::limits::{STAGED_AGE_MAX_US, STAGED_MAX, TRY_CACHED_MISSES, TRY_CACHED_ONE_IN};
use crate::lock_free::wait_ref::WaitRef;
use crate::method::dispatcher::Dispatcher;
use crate::storage::file::File;
use crate::storage::region::Lease;
use crate::tables::admission::HandleWait;
use crate::tables::handle_table::HandleTable;
use crate::tables::method_kind::MethodKind;
use crate::tables::session_table::SessionSlot;
use std::sync::Arc;
use std::time::Duration;

/// Resources a scope has leaked (see [`Session::end_scope`]). By default, none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaks {
    /// A handle was acquired but neither used nor released. It has now been released.
    pub handed_out: bool,
    /// Number of I/Os that were staged but not submitted. They have now been submitted.
    pub staged: usize,
    /// A batch was still open. It has now been closed.
    pub batch: bool,
}

impl Leaks {
    /// Whether anything was leaked.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// Issues I/O and waits for it. A session is used by one thread at a time, but can be moved to
/// another thread.
///
/// To issue an I/O, a session acquires a handle, defines the I/O on it, and submits it, either
/// immediately or together with others at the end of a batch. Other sessions may be waiting for
/// staged I/O, so before this session sleeps, it always submits its own. Dropping a session also
/// submits its staged I/O. It doesn't cancel any I/O; other threads will complete it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use trunkline_aio::{Builder, Class, OpenOptions, Slots};
///
/// let aio = Builder::new().start()?;
/// let file = aio.open("data".as_ref(), OpenOptions::default())?;
/// let mut session = aio.session()?;
/// let mut slots = Slots::new(1);
/// slots.memory(0).ok_or("busy")?.push(aio.region().lease(16).ok_or("full")?);
/// session.acquire(Class::Foreground)?.read(&file, 0, 16 * 8192, &mut slots, 0)?;
/// let outcome = session.wait(&mut slots, 0)?;
/// println!("{} bytes", outcome.count);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Session {
    instance: Arc<Instance>,
    // This can also be reached through the instance, but having a copy here saves two pointer
    // dereferences per I/O.
    dispatcher: Arc<Dispatcher>,
    in_flight: Arc<InFlight>,
    id: u32,
    /// The handle of the current [`crate::Io`]. We store it here as well, so that we can reclaim it
    /// if the `Io` is leaked.
    handed_out: Option<WaitRef>,
    /// The wait of the session's thread for a free handle. Each task has its own wait.
    handle_wait: HandleWait,
    /// Handles in STAGED, in the order they were defined.
    staged: Vec<u32>,
    /// When the oldest staged I/O was staged.
    staged_since: Time,
    /// A batch is open: staged I/O is submitted when the batch ends or contains 32 I/Os.
    batch: bool,
    /// Whether the session's thread may execute I/O itself where that's cheaper; see
    /// [`Session::set_may_block`].
    may_block: bool,
    /// Number of consecutive attempts to read from the page cache that missed.
    cache_misses: u32,
    waits: u64,
    wait_time: Duration,
    /// The session may still be registered as a joiner of some handles, because it polled a join
    /// and then abandoned it.
    joined: bool,
}

impl Session {
    pub(crate) fn new(instance: Arc<Instance>, id: u32) -> Self {
        let dispatcher = Arc::clone(instance.dispatcher());
        let in_flight = Arc::clone(dispatcher.in_flight());
        let completions = in_flight.completions();
        completions.sessions().slot(id).begin_session();
        let handle_wait = HandleWait::new(completions.admission(), completions.sessions(), id);
        Self {
            instance,
            dispatcher,
            in_flight,
            id,
            handed_out: None,
            handle_wait,
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

    /// Sets whether the session's thread may execute I/O itself when that is cheaper. The default
    /// is true. You should set this to false if the session is polled by an async runtime, because
    /// blocking the thread would delay all other tasks. Even I/O that is needed immediately then
    /// goes to the I/O method, and workers make the session's blocking calls ([`Session::call`]).
    /// If the method has no room for an I/O, it goes to the workers, however long their queue is.
    /// Note that regardless of this setting, the thread executes its own I/O under `sync`.
    pub fn set_may_block(&mut self, may_block: bool) {
        self.may_block = may_block;
    }

    /// Returns the current method, at the cost of a single atomic load. Under [`MethodKind::Sync`],
    /// callers should use advice ([`Session::advise`]) for read-ahead instead of issuing I/O.
    pub fn method(&self) -> MethodKind {
        self.dispatcher.current()
    }

    /// Leases adjacent frames of the instance's region; see [`crate::Region::lease`].
    pub fn lease(&self, frames: u32) -> Option<Lease> {
        self.in_flight.region().lease(frames)
    }

    /// The maximum number of memory pieces in one I/O (`io_max_combine_limit`).
    pub fn iovecs(&self) -> usize {
        self.handles().iovecs()
    }

    /// How often the session has slept, and the total time it has slept.
    pub fn waits(&self) -> (u64, Duration) {
        (self.waits, self.wait_time)
    }

    /// Number of handles the session holds.
    pub fn in_flight(&self) -> u32 {
        self.slot().in_use()
    }

    /// Returns the number of handles held by all other sessions of the instance.
    pub fn others_in_flight(&self) -> u32 {
        self.handles().in_use().saturating_sub(self.in_flight())
    }

    /// Submits everything that is staged.
    pub fn submit(&mut self) {
        if !self.staged.is_empty() {
            self.dispatcher.submit(&self.staged, self.may_block);
            self.staged.clear();
        }
    }

    /// Submits the staged I/Os if the oldest one has been staged for too long. This also happens
    /// whenever a handle is acquired. A session that does a lot of computation inside a batch
    /// should call this function from time to time, to avoid delaying its I/O.
    pub fn submit_if_old(&mut self) {
        if !self.staged.is_empty()
            && clock::now().since(self.staged_since) > Duration::from_micros(STAGED_AGE_MAX_US)
        {
            self.submit();
        }
    }

    /// If the current method is `sync`, calls `posix_fadvise` for a range that will be read soon.
    /// The other methods don't need advice, because they read ahead with real I/O. Returns whether
    /// advice was issued.
    pub fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        let sync = self.method() == MethodKind::Sync;
        let advised = sync && !file.is_direct() && self.in_flight.advise(file, offset, length);
        if advised {
            self.completions().statistics().general().advised.add(1);
        }
        advised
    }

    /// Cleans up at the end of a scope, such as a statement or a transaction, even after an error.
    /// If a handle was leaked, it is released. If a batch was left open, it is closed, and any
    /// staged I/O is submitted. I/O that is already in flight continues. This corresponds to
    /// PostgreSQL's `AtEOXact_Aio` and `pgaio_error_cleanup`.
    pub fn end_scope(&mut self) -> Leaks {
        let handed_out = self.reclaim();
        if handed_out {
            self.completions().statistics().general().leaked.add(1);
        }
        let leaks =
            Leaks { handed_out, staged: self.staged.len(), batch: std::mem::take(&mut self.batch) };
        self.submit();
        leaks
    }

    fn completions(&self) -> &Completions {
        self.in_flight.completions()
    }

    fn handles(&self) -> &HandleTable {
        self.completions().handles()
    }

    fn slot(&self) -> &SessionSlot {
        self.completions().sessions().slot(self.id)
    }

    /// Releases a handle that was acquired but not used. Returns whether there was one.
    fn reclaim(&mut self) -> bool {
        let Some(io) = self.handed_out.take() else { return false };
        self.completions().release(io, self.id);
        true
    }

    /// Adds a STAGED handle to the batch. If there isn't a batch or the batch is full, submits the
    /// staged I/O.
    fn stage(&mut self, index: u32) {
        if self.staged.is_empty() {
            self.staged_since = clock::now();
        }
        self.staged.push(index);
        if !self.batch || self.staged.len() == STAGED_MAX {
            self.submit();
        }
    }

    /// Returns true if the session should try the page cache for a read. A read that is `large`
    /// may have any length. We count a miss in advance, and reset the count on a hit. If there have
    /// been many misses in a row, we try only one in 16 reads.
    fn looks_cached(&mut self, io: WaitRef, large: bool) -> bool {
        if !self.dispatcher.may_be_cached(io, large) {
            return false;
        }
        self.cache_misses = self.cache_misses.saturating_add(1);
        self.cache_misses <= TRY_CACHED_MISSES
            || self.cache_misses.is_multiple_of(TRY_CACHED_ONE_IN)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.handle_wait.leave();
        self.end_scope();
        if self.joined {
            self.handles().leave_all(self.id);
        }
        // Polled waits may outlive the session, but they must not keep its position in a queue.
        let completions = self.completions();
        completions.admission().session_ended(self.id, completions.sessions());
        // We must drop the wakers, because one of them may own a task that owns the instance, in
        // which case the instance would never be dropped.
        self.slot().event().clear_wakers();
        self.instance.session_ended(self.id);
    }
}
