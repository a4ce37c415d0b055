//! I/O method on the simulated disk: a device with a bounded queue that completes I/O out of order.
//!
//! A session submits I/Os until the device's queue is full, and executes the rest itself. One
//! device thread executes the queue in an order that the seed decides:
//! ```text
//!   submit ──▶ arrived ──▶ each gets a time, from the seed and the plan ──▶ earliest first: reap
//! ```
//! The I/O core treats this method like a ring driver: the device thread reaps completions and may
//! pass their callbacks to other threads. Simulated runs therefore test the same paths as io_uring,
//! on a machine that may not have it.

use crate::disk::Disk;
use crate::fault::{Fault, FaultPlan};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::random::{self, Rng};
use trunkline_aio::sync::{Arc, Mutex, thread};
use trunkline_aio::{Batch, InFlight, Method, Reaped, Submitted};

/// The longest latency of an I/O without a delay fault, in microseconds. Each I/O draws its
/// latency, which is what reorders completions.
const LATENCY_MAX_US: u64 = 200;

/// A simulated device as an I/O method.
pub struct SimMethod {
    device: Arc<Device>,
    /// The device thread. It is started by the first submission, because only then the core is
    /// known.
    thread: Mutex<Option<thread::JoinHandle>>,
}

/// What sessions and the device thread share.
struct Device {
    disk: Arc<Disk>,
    plan: FaultPlan,
    /// The queue depth.
    places: usize,
    queue: Mutex<Queue>,
}

/// The submission queue, protected by a mutex.
#[derive(Default)]
struct Queue {
    /// Submitted, and not yet seen by the device thread.
    arrived: VecDeque<Submitted>,
    /// I/Os that use a place of the queue: those in `arrived` and those in the device.
    taken: usize,
    stopping: bool,
}

/// An I/O in the device, with the time at which it completes.
struct Pending {
    io: Submitted,
    /// To check whether its mount hangs.
    file_id: u64,
    fault: Option<Fault>,
    due: Time,
}

impl fmt::Debug for SimMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimMethod({} places)", self.device.places)
    }
}

impl SimMethod {
    /// A device in front of `disk` with room for `places` I/Os and the faults of `plan`.
    pub fn new(disk: &Arc<Disk>, plan: FaultPlan, places: usize) -> Self {
        let device =
            Device { disk: Arc::clone(disk), plan, places, queue: Mutex::new(Queue::default()) };
        Self { device: Arc::new(device), thread: Mutex::new(None) }
    }

    /// Starts the device thread unless it runs already. Returns false if the thread cannot be
    /// started; the batch then keeps its I/O, and the session executes it.
    fn start(&self, core: &Arc<InFlight>) -> bool {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let (core, device) = (Arc::clone(core), Arc::clone(&self.device));
            *thread = thread::spawn("sim device", move || device.run(&core)).ok();
        }
        thread.is_some()
    }
}

impl Method for SimMethod {
    fn submit(&self, core: &Arc<InFlight>, batch: &mut Batch<'_>) {
        if !self.start(core) {
            return;
        }
        {
            // The session executes whatever we leave in the batch.
            let mut queue = self.device.queue.lock();
            while queue.taken < self.device.places
                && let Some(io) = batch.take()
            {
                queue.arrived.push_back(io);
                queue.taken += 1;
            }
        }
        self.device.disk.notify();
    }

    fn shut_down(&self) {
        self.device.queue.lock().stopping = true;
        self.device.disk.notify();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // A panic there has failed the run already.
            let _ = thread.join();
        }
    }
}

impl Device {
    /// The device thread. It admits new I/Os, completes those that are due, and sleeps until the
    /// next is due or the disk changes. On shutdown it first completes everything it has.
    fn run(&self, core: &Arc<InFlight>) {
        let mut rng = Rng::new(random::seed());
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            // Before we look at the queue: a submission after this line changes the count, so the
            // wait below returns immediately.
            let seen = self.disk.change_count();
            let stopping = {
                let mut queue = self.queue.lock();
                let arrived = queue.arrived.drain(..);
                pending.extend(arrived.map(|io| self.admit(core, io, &mut rng)));
                queue.stopping
            };
            if stopping && pending.is_empty() {
                return;
            }
            let now = clock::now();
            let held: Vec<bool> = pending.iter().map(|p| self.disk.is_held(p.file_id)).collect();
            self.disk.set_held_in_device(held.iter().filter(|&&held| held).count());
            let mut held = held.into_iter();
            let (due, later): (Vec<_>, Vec<_>) =
                pending.into_iter().partition(|p| held.next() == Some(false) && p.due <= now);
            pending = later;
            if self.finish(core, due, &mut pending, &mut rng) {
                continue;
            }
            let next = pending.iter().filter(|p| p.due > now).map(|p| p.due).min();
            self.disk.wait_for_change(seen, next.map(|due| due.since(now)));
        }
    }

    /// Takes an I/O into the device: draws its fault and its latency.
    fn admit(&self, core: &InFlight, mut io: Submitted, rng: &mut Rng) -> Pending {
        core.mark_started(&io);
        let request = core.request(&mut io);
        let file_id = request.file_id;
        let fault = self.plan.next_for(&request);
        let usual = Duration::from_micros(rng.below(LATENCY_MAX_US));
        let time = match fault {
            Some(Fault::Delay(time)) => time,
            // After every I/O now in the device.
            Some(Fault::Reorder) => usual + Duration::from_micros(2 * LATENCY_MAX_US),
            _ => usual,
        };
        Pending { io, file_id, fault, due: clock::now().after(time) }
    }

    /// Executes the I/Os that are due and reaps them, in completion-time order. Returns false if
    /// none was due. The callbacks of a large I/O may be left to helpers, which are woken once for
    /// the whole set.
    fn finish(
        &self,
        core: &Arc<InFlight>,
        mut due: Vec<Pending>,
        pending: &mut Vec<Pending>,
        rng: &mut Rng,
    ) -> bool {
        if due.is_empty() {
            return false;
        }
        due.sort_by_key(|p| p.due);
        let mut helpers = false;
        for Pending { mut io, fault, .. } in due {
            let raw = self.disk.perform(&mut core.request(&mut io), fault);
            // A retry keeps its place in the queue and gets a new latency.
            match core.reap(io, raw) {
                Reaped::Again(io) => {
                    pending.push(self.admit(core, io, rng));
                    continue;
                }
                Reaped::Helpers => helpers = true,
                Reaped::Done => {}
            }
            self.queue.lock().taken -= 1;
        }
        if helpers {
            core.wake_helpers();
        }
        true
    }
}
