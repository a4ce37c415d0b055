//! `io_uring`: sessions queue, ring drivers submit and reap.
//!
//! A driver is a thread that lives as long as the instance and owns one ring: a thread that exits
//! takes its requests with it, so sessions never submit. A session puts indexes into the driver's
//! inbox, which has room for every handle, and wakes the driver through an eventfd that the ring
//! itself reads, if the driver sleeps. The driver never completes heavy I/O (see `Core::reap`).

use super::Batch;
use super::lanes::Lanes;
use super::ring::{Ring, Setup};
use crate::core::{Core, Reaped};
use crate::fallback::Fallback;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Futex, Mutex, channel, thread};
use crate::wakes::Wakes;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How to use io_uring. The defaults are what decision record 0001 found best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringSettings {
    /// Ring drivers; each has a thread and a ring.
    pub drivers: usize,
    /// Submission entries of a ring, a power of two; fewer where memory is short.
    pub entries: u32,
    /// Register the page region with the rings.
    pub register: bool,
    /// Buffered reads of at least this many bytes are executed by kernel threads, so that copies
    /// out of the page cache run in parallel.
    pub force_async_bytes: u32,
}

impl Default for UringSettings {
    fn default() -> Self {
        Self { drivers: 1, entries: 256, register: true, force_async_bytes: 128 * 1024 }
    }
}

/// What the running rings have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringFeatures {
    /// The page region is registered.
    pub registered: bool,
    /// Vectored reads and writes of registered memory.
    pub vectored_fixed: bool,
    /// Submission entries.
    pub entries: u32,
}

#[derive(Debug)]
pub(crate) struct Uring {
    drivers: Vec<Arc<Driver>>,
    threads: Mutex<Vec<thread::JoinHandle>>,
    pub(crate) features: UringFeatures,
}

#[derive(Debug)]
struct Driver {
    inbox: Mutex<VecDeque<u32>>,
    /// Set while the driver may be asleep in the kernel; who clears it must write the eventfd.
    sleeping: AtomicBool,
    wake: OwnedFd,
    stopping: AtomicBool,
    broken: AtomicBool,
}

/// A driver's first message: its ring's features and what it had to do without.
type Started = Result<(UringFeatures, Option<Fallback>), i32>;

impl Uring {
    /// Starts the drivers.
    ///
    /// # Errors
    /// The errno of what failed: no ring could be made.
    pub(crate) fn start(
        core: &Arc<Core>,
        settings: UringSettings,
    ) -> Result<(Self, Vec<Fallback>), i32> {
        let mut uring =
            Self { drivers: Vec::new(), threads: Mutex::default(), features: NO_FEATURES };
        let mut notes = Vec::new();
        for number in 0..settings.drivers.max(1) {
            match uring.start_driver(core, settings, number) {
                Ok((features, note)) => {
                    uring.features = features;
                    notes.extend(note);
                }
                // One ring is enough to go on with.
                Err(_) if number > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        notes.dedup();
        Ok((uring, notes))
    }

    fn start_driver(
        &mut self,
        core: &Arc<Core>,
        settings: UringSettings,
        number: usize,
    ) -> Started {
        let flags = EventfdFlags::CLOEXEC;
        let driver = Arc::new(Driver {
            inbox: Mutex::new(VecDeque::with_capacity(core.handles.len())),
            sleeping: AtomicBool::new(false),
            wake: eventfd(0, flags).map_err(rustix::io::Errno::raw_os_error)?,
            stopping: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        });
        let (sender, receiver) = channel::bounded(1);
        let (core, mine) = (Arc::clone(core), Arc::clone(&driver));
        // The thread that will submit makes the ring: a single-issuer ring belongs to its maker.
        let body = move || match Ring::open(&core, settings) {
            Ok(Setup { ring, features, note }) => {
                let _ = sender.send(Ok((features, note)));
                drop(sender);
                drive(&core, &mine, ring);
            }
            Err(errno) => {
                let _ = sender.send(Err(errno));
            }
        };
        let thread = thread::spawn_internal(&format!("aio ring {number}"), body)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
        let started = receiver.receive().unwrap_or(Err(libc::EIO))?;
        self.drivers.push(driver);
        self.threads.lock().push(thread);
        Ok(started)
    }

    pub(crate) fn submit(&self, batch: &mut Batch<'_>) {
        let Some(first) = batch.indexes.get(batch.taken) else { return };
        let view = &batch.core.handles[*first as usize].view;
        let session = view.session.load(Ordering::Relaxed) as usize;
        let driver = &self.drivers[session % self.drivers.len()];
        {
            let mut inbox = driver.inbox.lock();
            // Checked under the lock: a driver that breaks empties its inbox under it too.
            if driver.broken.load(Ordering::SeqCst) {
                return;
            }
            while inbox.len() < inbox.capacity()
                && let Some(io) = batch.take()
            {
                inbox.push_back(io.index());
            }
        }
        driver.wake();
    }

    /// Whether every driver has broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.drivers.iter().all(|d| d.broken.load(Ordering::SeqCst))
    }

    pub(crate) fn shut_down(&self) {
        for driver in &self.drivers {
            driver.stopping.store(true, Ordering::SeqCst);
            driver.wake();
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic there was printed by its own thread.
            let _ = thread.join();
        }
    }
}

pub(super) const NO_FEATURES: UringFeatures =
    UringFeatures { registered: false, vectored_fixed: false, entries: 0 };

impl Driver {
    fn wake(&self) {
        if self.sleeping.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: it is written once per sleep.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// The driver's loop: inbox to lanes, lanes to ring, ring to handles.
fn drive(core: &Arc<Core>, driver: &Driver, mut ring: Ring) {
    let mut waiting = Lanes::new(core.handles.len(), usize::MAX);
    let mut finished: Vec<(u32, i32)> = Vec::with_capacity(core.handles.len());
    loop {
        for index in driver.inbox.lock().drain(..) {
            waiting.push(core.lane(&core.token(index)), index);
        }
        if driver.broken.load(Ordering::SeqCst) {
            core.methods.pool().take_over(core, waiting.drain());
            if ring.in_flight() == 0 {
                break;
            }
        } else {
            fill(core, &mut ring, &mut waiting);
        }
        if ring.in_flight() == 0 && waiting.queued() == 0 && driver.stopping.load(Ordering::SeqCst)
        {
            break;
        }
        let failed = enter(core, driver, &mut ring);
        // Copied out before anything else looks at the ring: a slot of the completion queue may be
        // overwritten as soon as the head has moved.
        ring.reap(&mut finished);
        let mut helpers = false;
        let mut wakes = Wakes::new(&core.sessions);
        for (index, raw) in finished.drain(..) {
            let io = core.token(index);
            let lane = core.lane(&io);
            match core.reap_one_of(io, raw, &mut wakes) {
                Reaped::Done => waiting.finished(lane),
                Reaped::Helpers => {
                    waiting.finished(lane);
                    helpers = true;
                }
                Reaped::Again(io) => waiting.put_back(lane, io.index()),
            }
        }
        drop(wakes);
        if helpers {
            core.wake_helpers();
        }
        if let Some(errno) = failed {
            give_up(core, driver, &mut ring, &mut waiting, errno);
        }
    }
    ring.close(&driver.wake);
}

/// Moves what may go from the lanes to the ring.
fn fill(core: &Core, ring: &mut Ring, waiting: &mut Lanes) {
    // A mount that hangs must leave places to the others.
    let share = if waiting.active() <= 1 { usize::MAX } else { ring.share() };
    while let Some((lane, index)) = waiting.take(share) {
        if !ring.push(core, &mut core.token(index)) {
            waiting.put_back(lane, index);
            return;
        }
    }
}

/// Submits, and sleeps if there is nothing to do. An errno that ends the ring's service.
fn enter(core: &Core, driver: &Driver, ring: &mut Ring) -> Option<i32> {
    if driver.broken.load(Ordering::SeqCst) {
        if ring.wait_only().is_some() {
            // Only what the kernel has accepted is left, and it does not let us wait for it.
            Futex::new(0).wait(0, Some(Duration::from_millis(1)));
        }
        return None;
    }
    if !ring.watch(&driver.wake) {
        return ring.enter(core, false);
    }
    driver.sleeping.store(true, Ordering::SeqCst);
    let stopping = driver.stopping.load(Ordering::SeqCst) && ring.in_flight() == 0;
    let sleep = driver.inbox.lock().is_empty() && !stopping;
    let errno = ring.enter(core, sleep);
    driver.sleeping.store(false, Ordering::SeqCst);
    errno
}

/// The ring no longer serves. What the kernel has not accepted moves to the workers and the ring
/// never submits again; what it has accepted is still waited for, since it can still write memory.
fn give_up(core: &Core, driver: &Driver, ring: &mut Ring, waiting: &mut Lanes, errno: i32) {
    core.methods.uring_breaks(errno);
    {
        let mut inbox = driver.inbox.lock();
        driver.broken.store(true, Ordering::SeqCst);
        for index in inbox.drain(..) {
            waiting.push(core.lane(&core.token(index)), index);
        }
    }
    ring.take_back(|index| waiting.put_back(core.lane(&core.token(index)), index));
    core.stats.moved(waiting.queued());
    core.methods.leave_broken_uring();
}
