//! Sessions: the users of the engine, which issue I/O and wait for it. A session corresponds to a
//! backend in PostgreSQL.
//!
//! A session belongs to one thread at a time, but it may move between threads. It acquires a
//! handle, defines one I/O on it, and stages it. A batch ([`crate::IoBatch`]) collects staged I/O
//! and submits it together. An [`crate::Io`] borrows its session, so the borrow checker ensures
//! that a session never has more than one acquired but unused handle. PostgreSQL checks the same
//! rule at run time.
//!
//! **Deadlock.** A session must never block while it holds staged I/O. Another session may be
//! waiting for that I/O while holding something the first session needs, in which case both would
//! wait forever. Therefore every wait submits first.
//!
//! The submodules: `io` (from the handle to submission), `define` (checks and iovecs), `wait`
//! (waiting), `cancel` (wake-ups from other threads).

pub(crate) mod cancel;
pub(crate) mod define;
pub(crate) mod io;
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
use crate::tables::class::Class;
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

/// Issues I/O and waits for it. Belongs to one thread at a time, and may move between threads.
///
/// A session acquires a handle, defines one I/O on it, and submits it immediately or together with
/// others at the end of a batch. Every wait submits first, so I/O that other sessions may wait for
/// never stays staged while this session sleeps. Dropping a session submits its staged I/O but
/// doesn't cancel anything: other threads complete its I/O.
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
    // Also reachable through the instance. This copy saves two pointer dereferences per I/O.
    dispatcher: Arc<Dispatcher>,
    in_flight: Arc<InFlight>,
    id: u32,
    /// The current [`crate::Io`]'s handle. We keep it here too, so that it can be reclaimed if the
    /// `Io` is leaked.
    handed_out: Option<WaitRef>,
    /// The admission queue the session is waiting in for a free handle, if any.
    queued: Option<Class>,
    /// Handles in STAGED, in the order they were defined.
    staged: Vec<u32>,
    /// When the oldest staged I/O was staged.
    staged_since: Time,
    /// A batch is open: staged I/O is submitted when the batch ends or contains 32 I/Os.
    batch: bool,
    /// Whether the session's thread may execute I/O itself where that's cheaper; see
    /// [`Session::set_may_block`].
    may_block: bool,
    /// Number of page cache tries that missed in a row.
    cache_misses: u32,
    waits: u64,
    wait_time: Duration,
    /// The session may still be registered as a joiner of some handles, because a polled join was
    /// abandoned.
    joined: bool,
}

impl Session {
    pub(crate) fn new(instance: Arc<Instance>, id: u32) -> Self {
        let dispatcher = Arc::clone(instance.dispatcher());
        let in_flight = Arc::clone(dispatcher.in_flight());
        in_flight.completions().sessions().slot(id).begin_session();
        Self {
            instance,
            dispatcher,
            in_flight,
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

    /// Sets whether the session's thread may execute I/O itself where that's cheaper. By default it
    /// may. Turn this off for a session polled by an async runtime, because a blocked thread delays
    /// all other tasks. Then even I/O that is needed immediately goes to the method. Under `sync`,
    /// or when the method has no room, the thread always executes its I/O.
    pub fn set_may_block(&mut self, may_block: bool) {
        self.may_block = may_block;
    }

    /// The current method. Costs just one atomic load. Under [`MethodKind::Sync`], read-ahead
    /// should use advice ([`Session::advise`]) instead of I/O.
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

    /// Number of handles all other sessions of the instance hold.
    pub fn others_in_flight(&self) -> u32 {
        self.handles().in_use().saturating_sub(self.in_flight())
    }

    /// Submits everything that is staged.
    pub fn submit(&mut self) {
        if !self.staged.is_empty() {
            self.dispatcher.submit(&self.staged);
            self.staged.clear();
        }
    }

    /// Submits the staged I/O if the oldest has been staged for too long. Acquiring a handle does
    /// this too. A session that computes for a while inside a batch should call it now and then, so
    /// that its I/O isn't delayed.
    pub fn submit_if_old(&mut self) {
        if !self.staged.is_empty()
            && clock::now().since(self.staged_since) > Duration::from_micros(STAGED_AGE_MAX_US)
        {
            self.submit();
        }
    }

    /// Under `sync`, issues `posix_fadvise` for a range that will be read soon; other methods read
    /// ahead with real I/O instead. Returns whether advice was issued.
    pub fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        let sync = self.method() == MethodKind::Sync;
        let advised = sync && !file.is_direct() && self.in_flight.advise(file, offset, length);
        if advised {
            self.completions().statistics().general().advised.add(1);
        }
        advised
    }

    /// Ends a scope, such as a statement or a transaction, even after an error. It releases a
    /// leaked handle, closes a leaked batch, and submits the staged I/O. I/O in flight continues.
    /// PostgreSQL's `AtEOXact_Aio` and `pgaio_error_cleanup` do the same.
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

    /// Adds a STAGED handle to the batch, and submits if there is no batch or it is full.
    fn stage(&mut self, index: u32) {
        if self.staged.is_empty() {
            self.staged_since = clock::now();
        }
        self.staged.push(index);
        if !self.batch || self.staged.len() == STAGED_MAX {
            self.submit();
        }
    }

    /// Whether the session should try the page cache for a read. Counts a miss in advance; a hit
    /// resets the count. After many misses in a row, only one read in 16 is tried.
    fn looks_cached(&mut self, io: WaitRef) -> bool {
        if !self.dispatcher.may_be_cached(io) {
            return false;
        }
        self.cache_misses = self.cache_misses.saturating_add(1);
        self.cache_misses <= TRY_CACHED_MISSES
            || self.cache_misses.is_multiple_of(TRY_CACHED_ONE_IN)
    }

    /// Leaves the queue for a free handle. If the session was woken for a handle it does not take,
    /// admission passes the wake-up on to another session.
    fn leave_queue(&mut self) {
        if let Some(class) = self.queued.take() {
            let completions = self.completions();
            completions.admission().deregister(class, self.id, completions.sessions());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave_queue();
        self.end_scope();
        if self.joined {
            self.handles().leave_all(self.id);
        }
        // The waker may own a task that owns the instance, which would then never be dropped.
        self.slot().event().clear_waker();
        self.instance.session_ended(self.id);
    }
}
