//! The method `io_uring`: sessions queue I/O, and ring drivers submit and reap it.
//!
//! A driver is a thread that owns one ring and runs until the instance is shut down. In PostgreSQL,
//! every backend submits I/O to its own ring, and any other backend may reap from that ring. We
//! can't let sessions submit I/O themselves, because a session's thread may exit at any time, and
//! the kernel cancels a thread's requests when the thread exits.
//!
//! A session passes I/O to a driver by putting handle indexes into the driver's inbox, which has
//! room for every handle. If the driver is asleep in the kernel, the session writes to an eventfd
//! to wake it. The ring contains a read of that eventfd, so the driver can wait for completions and
//! for new I/O with a single system call.
//!
//! ```text
//!   inbox -> lanes -> ring -> kernel -> reap -> completion (light) | waiter or helper (heavy)
//! ```
//!
//! Sessions pass the log's writes and durable buffered writes to the worker pool instead, because
//! in the kernel they could end up behind a write that hangs (decision 0011).
//!
//! **Sleeping.** Before it goes to sleep, the driver first sets `sleeping` and then checks its
//! inbox. A session does the opposite: it first adds its I/O to the inbox and then clears
//! `sleeping`. If the flag was set, the session writes to the eventfd. At least one of the two
//! threads must see the other's store, so a driver never sleeps while there is I/O in its inbox.
//!
//! **Failure.** When a ring fails, its driver passes all I/O that the kernel hasn't accepted to the
//! workers. Since I/O that the kernel has accepted can still write to memory, the driver must keep
//! waiting for it to complete.

use super::ring::{Ring, Setup, UringFeatures, UringSettings};
use super::{Batch, Method};
use crate::completion::in_flight::{InFlight, Reaped};
use crate::completion::lanes::{Lanes, Queued};
use crate::facade::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::facade::{Futex, Mutex, channel, thread};
use crate::limits::STAGED_MAX;
use crate::method::fallback::{Fallback, Feature};
use crate::method::in_force::MethodInForce;
use crate::storage::operation::Operation;
use crate::storage::request::Request;
use crate::tables::class::Class;
use crate::tables::wake_batch::WakeBatch;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// The rings of one io_uring start, and the threads that drive them.
#[derive(Debug)]
pub(crate) struct Uring {
    /// One inbox per driver. A session always uses the same driver.
    inboxes: Vec<Arc<Inbox>>,
    threads: Mutex<Vec<thread::JoinHandle>>,
    features: UringFeatures,
    rings: Arc<Rings>,
}

/// The state that one start's drivers share.
#[derive(Debug)]
struct Rings {
    /// The number of this start.
    number: u64,
    /// Number of drivers with a working ring. The driver that decrements it to 0 switches the
    /// instance to the workers.
    working: AtomicUsize,
    /// A ring could not register memory that was populated after the start.
    registration_failed: AtomicBool,
    method: Arc<MethodInForce>,
}

/// How sessions pass I/O to a driver.
#[derive(Debug)]
struct Inbox {
    /// There is enough capacity for every handle, so pushing never allocates.
    queue: Mutex<VecDeque<Queued>>,
    /// Set while the driver may be asleep in the kernel. Only the thread that clears this flag
    /// writes to the eventfd, so there is just one write for each sleep.
    sleeping: AtomicBool,
    /// Wakes the driver: the ring itself reads the eventfd.
    eventfd: OwnedFd,
    /// Set at shutdown.
    stopping: AtomicBool,
    /// Set when the ring has failed. We set it while holding the queue lock, so a session either
    /// sees the flag or has already queued its I/O, in which case the failing driver will find it
    /// in the queue.
    broken: AtomicBool,
}

/// A driver's first message: its ring's features, and the fallback if a feature is missing.
type Started = Result<(UringFeatures, Option<Fallback>), i32>;

impl Uring {
    /// Starts the drivers.
    ///
    /// # Errors
    /// The errno if no ring could be opened.
    pub(crate) fn start(
        in_flight: &Arc<InFlight>,
        method: &Arc<MethodInForce>,
        settings: UringSettings,
        number: u64,
    ) -> Result<(Self, Vec<Fallback>), i32> {
        let rings = Rings {
            number,
            working: AtomicUsize::new(0),
            registration_failed: AtomicBool::new(false),
            method: Arc::clone(method),
        };
        let mut uring = Self {
            inboxes: Vec::new(),
            threads: Mutex::default(),
            features: UringFeatures::default(),
            rings: Arc::new(rings),
        };
        let mut notes = Vec::new();
        for driver in 0..settings.drivers.max(1) {
            match uring.start_driver(in_flight, settings, driver) {
                Ok((features, note)) => {
                    uring.features = features;
                    notes.extend(note);
                }
                // We can continue with fewer rings than requested.
                Err(_) if driver > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        notes.dedup();
        Ok((uring, notes))
    }

    /// Starts one driver and waits until its ring is open.
    fn start_driver(
        &mut self,
        in_flight: &Arc<InFlight>,
        settings: UringSettings,
        driver: usize,
    ) -> Started {
        let handles = in_flight.completions().handles().len();
        let inbox = Arc::new(Inbox {
            queue: Mutex::new(VecDeque::with_capacity(handles)),
            sleeping: AtomicBool::new(false),
            eventfd: eventfd(0, EventfdFlags::CLOEXEC).map_err(rustix::io::Errno::raw_os_error)?,
            stopping: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        });
        let (sender, receiver) = channel::bounded(1);
        let (theirs, mine) = (Arc::clone(in_flight), Arc::clone(&inbox));
        let rings = Arc::clone(&self.rings);
        // The driver's thread has to open the ring itself, because the kernel ties the ring's task
        // work to the thread that submits.
        let body = move || match Ring::open(theirs.region(), settings) {
            Ok(Setup { ring, features, note }) => {
                rings.working.fetch_add(1, Ordering::SeqCst);
                let _ = sender.send(Ok((features, note)));
                drop(sender);
                Driver::new(&theirs, &mine, &rings, ring).run();
            }
            Err(errno) => {
                let _ = sender.send(Err(errno));
            }
        };
        let thread = thread::spawn_internal(&format!("aio ring {driver}"), body)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
        let started = receiver.receive().unwrap_or(Err(libc::EIO))?;
        self.inboxes.push(inbox);
        self.threads.lock().push(thread);
        Ok(started)
    }

    pub(crate) fn features(&self) -> UringFeatures {
        let failed = self.rings.registration_failed.load(Ordering::SeqCst);
        UringFeatures { registered: self.features.registered && !failed, ..self.features }
    }

    /// The number of this start, for [`MethodInForce`].
    pub(crate) fn number(&self) -> u64 {
        self.rings.number
    }

    /// Whether every ring has failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.rings.working.load(Ordering::SeqCst) == 0
    }
}

impl Method for Uring {
    fn submit(&self, in_flight: &Arc<InFlight>, batch: &mut Batch<'_>) {
        let Some(session) = batch.issuer() else { return };
        let inbox = &self.inboxes[session as usize % self.inboxes.len()];
        // Submitting must not allocate, and a batch is never larger than this.
        let mut for_workers = [None; STAGED_MAX];
        let (mut places, mut any_for_ring) = (for_workers.iter_mut(), false);
        {
            let mut queue = inbox.queue.lock();
            // We must check the flag while holding the lock. A failing driver empties its inbox
            // while holding the same lock, so no I/O can be added after that.
            if inbox.broken.load(Ordering::SeqCst) {
                return;
            }
            while queue.len() < queue.capacity()
                && let Some(mut io) = batch.take()
            {
                let queued = in_flight.queued(&io);
                if is_for_workers(&in_flight.request(&mut io), queued.class)
                    && let Some(place) = places.next()
                {
                    *place = Some(queued);
                } else {
                    queue.push_back(queued);
                    any_for_ring = true;
                }
            }
        }
        if any_for_ring {
            inbox.wake();
        }
        if for_workers[0].is_some() {
            in_flight.completions().pool().take_over(for_workers.into_iter().flatten());
        }
    }

    fn shut_down(&self) {
        for inbox in &self.inboxes {
            inbox.stopping.store(true, Ordering::SeqCst);
            inbox.wake();
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // If the driver panicked, it has already printed the message.
            let _ = thread.join();
        }
    }
}

/// Whether we leave an I/O to the worker pool, although the method is io_uring.
///
/// If a write to a regular file can't be started without blocking, a kernel thread executes it. For
/// this purpose the kernel assigns all such writes to 64 queues by the file's inode, and executes
/// only one write of each queue at a time. If a write to a mount that hangs is in the same queue as
/// a write of the log, the log has to wait for that mount, no matter how many kernel threads are
/// idle. Durable writes into the page cache always block, because they wait for the storage.
fn is_for_workers(request: &Request<'_>, class: Class) -> bool {
    let syncs = request.durable && !request.direct;
    request.operation == Operation::Writev && (class == Class::Log || syncs)
}

impl Inbox {
    /// Wakes the driver if it may be asleep.
    fn wake(&self) {
        if self.sleeping.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: it is written once per sleep.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }
}

/// The thread that owns one ring.
struct Driver<'a> {
    in_flight: &'a InFlight,
    inbox: &'a Inbox,
    rings: &'a Rings,
    ring: Ring,
    /// I/O not in the ring yet, by mount.
    waiting: Lanes,
    /// Reaped handle indexes and raw results. Kept here so that the allocation is reused.
    finished: Vec<(u32, i32)>,
    /// Reused for every batch.
    wakes: WakeBatch,
}

impl<'a> Driver<'a> {
    fn new(in_flight: &'a InFlight, inbox: &'a Inbox, rings: &'a Rings, ring: Ring) -> Self {
        let handles = in_flight.completions().handles().len();
        Self {
            in_flight,
            inbox,
            rings,
            ring,
            waiting: Lanes::new(handles, usize::MAX),
            finished: Vec::with_capacity(handles),
            wakes: WakeBatch::new(in_flight.completions().sessions().len()),
        }
    }

    /// The driver's loop: empty the inbox, fill the ring, enter the kernel, reap.
    fn run(mut self) {
        loop {
            for io in self.inbox.queue.lock().drain(..) {
                self.waiting.push(io);
            }
            let mut full = false;
            if self.inbox.broken.load(Ordering::SeqCst) {
                self.in_flight.completions().pool().take_over(self.waiting.drain());
                if self.ring.in_flight() == 0 {
                    break;
                }
            } else {
                self.register_populated();
                full = self.fill();
            }
            // Shutdown begins only when there is no I/O in flight, so an idle driver can exit.
            let idle = self.ring.in_flight() == 0 && self.waiting.queued() == 0;
            if idle && self.inbox.stopping.load(Ordering::SeqCst) {
                break;
            }
            let failed = self.enter(full);
            self.reap();
            if let Some(errno) = failed {
                self.give_up(errno);
            }
        }
        self.ring.close(&self.inbox.eventfd);
    }

    /// Registers the memory that has been populated in the meantime.
    fn register_populated(&mut self) {
        if let Some(errno) = self.ring.register_populated(self.in_flight.region()) {
            self.rings.registration_failed.store(true, Ordering::SeqCst);
            self.rings.method.note(Fallback::recognise(Feature::Registration, errno));
        }
    }

    /// Moves I/O from the lanes to the ring, as far as shares and the ring's size allow. Returns
    /// true if the submission queue is full, so that there may be more to move after the next
    /// submission.
    fn fill(&mut self) -> bool {
        let places = self.ring.places(self.waiting.active() > 1);
        while let Some(io) = self.waiting.take(&places) {
            if !self.ring.push(self.in_flight, &mut self.in_flight.token(io.index)) {
                self.waiting.put_back(io);
                return true;
            }
        }
        false
    }

    /// Submits, and sleeps if there is nothing to do. If the submission queue was full, the lanes
    /// may contain more I/O that can be started right away, so we must not sleep. Returns the errno
    /// of a permanent failure.
    fn enter(&mut self, full: bool) -> Option<i32> {
        let (inbox, ring) = (self.inbox, &mut self.ring);
        if inbox.broken.load(Ordering::SeqCst) {
            if ring.wait_only().is_some() {
                // The only I/O left is I/O that the kernel has already accepted, but we can't wait
                // for it because the system call fails. Poll the completion queue instead.
                Futex::new(0).wait(0, Some(Duration::from_millis(1)));
            }
            return None;
        }
        if !ring.watch(&inbox.eventfd) {
            return ring.enter(self.in_flight, false);
        }
        // From here on, a session that queues I/O also writes to the eventfd. We have to check the
        // inbox after this store, as explained at the top of this file.
        inbox.sleeping.store(true, Ordering::SeqCst);
        let stopping = inbox.stopping.load(Ordering::SeqCst) && ring.in_flight() == 0;
        let sleep = !full && inbox.queue.lock().is_empty() && !stopping;
        let errno = ring.enter(self.in_flight, sleep);
        inbox.sleeping.store(false, Ordering::SeqCst);
        errno
    }

    /// Completes the I/O the ring has finished, or leaves it to waiters and helpers.
    fn reap(&mut self) {
        // Copy the completions first: once an entry has been consumed, the kernel may overwrite it
        // at any time.
        self.ring.reap(&mut self.finished);
        let mut helpers = false;
        for (index, raw) in self.finished.drain(..) {
            let io = self.in_flight.token(index);
            let queued = self.in_flight.queued(&io);
            match self.in_flight.reap_in_batch(io, raw, Some(&mut self.wakes)) {
                Reaped::Done => self.waiting.finished(queued.lane, queued.class),
                Reaped::Helpers => {
                    self.waiting.finished(queued.lane, queued.class);
                    helpers = true;
                }
                // Put it ahead of the lane's other I/O, since it has already waited once.
                Reaped::Again(_) => self.waiting.put_back(queued),
            }
        }
        // Wake the issuers before the helpers, because the issuers have results to use.
        self.wakes.deliver(self.in_flight.completions().sessions());
        if helpers {
            self.in_flight.wake_helpers();
        }
    }

    /// Handles a permanent ring failure. I/O the kernel hasn't accepted goes to the workers, and
    /// the ring never submits again.
    fn give_up(&mut self, errno: i32) {
        let (in_flight, waiting) = (self.in_flight, &mut self.waiting);
        // Record the fallback before the inbox starts to refuse I/O, so that if a session's I/O
        // goes to a worker instead, the session can already find out why.
        self.rings.method.note(Fallback::recognise(Feature::IoUring, errno));
        {
            let mut queue = self.inbox.queue.lock();
            self.inbox.broken.store(true, Ordering::SeqCst);
            self.rings.working.fetch_sub(1, Ordering::SeqCst);
            for io in queue.drain(..) {
                waiting.push(io);
            }
        }
        // These I/Os count as busy in their lanes, so use `put_back` rather than `push`.
        let queued = |index| in_flight.queued(&in_flight.token(index));
        self.ring.take_back(|index| waiting.put_back(queued(index)));
        in_flight.completions().statistics().general().moved.add(waiting.queued() as u64);
        if self.rings.working.load(Ordering::SeqCst) == 0 {
            self.rings.method.leave_rings(self.rings.number);
        }
    }
}
