//! I/O method for the simulated disk: a device with a bounded queue that completes I/O out of
//! order.
//!
//! A session submits I/Os until the device's queue is full, and executes any further I/Os itself. A
//! single device thread executes the queued I/Os, in an order that depends on the seed:
//! ```text
//!   submit ──▶ arrived ──▶ each gets a time, from the seed and the plan ──▶ earliest first: reap
//! ```
//! To the I/O core, this method looks like a ring driver: the device thread reaps completions, and
//! may leave their callbacks for other threads to run. Simulated runs therefore exercise the same
//! code paths as io_uring, even on a machine where io_uring isn't available.

use crate::disk::Disk;
use crate::fault::{Fault, FaultPlan};
use std::collections::VecDeque;
use std::time::Duration;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::random::{self, Rng};
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_aio::{Batch, InFlight, Method, Reaped, Submitted};

/// Maximum latency, in microseconds, of an I/O that isn't struck by a delay fault. The latency of
/// each I/O is random, so I/Os don't complete in the order they were submitted.
const LATENCY_MAX_US: u64 = 200;

/// A simulated device as an I/O method.
#[derive(Debug)]
pub struct SimMethod {
    device: Arc<Device>,
    /// The device thread. The first submission starts it, because the core isn't known earlier.
    thread: Mutex<Option<thread::JoinHandle>>,
}

/// State shared between sessions and the device thread.
#[derive(Debug)]
struct Device {
    disk: Arc<Disk>,
    plan: FaultPlan,
    /// The queue depth.
    places: usize,
    queue: Mutex<Queue>,
}

/// The submission queue, protected by a mutex.
#[derive(Debug, Default)]
struct Queue {
    /// Submitted, but not yet admitted by the device thread.
    arrived: VecDeque<Submitted>,
    /// Number of queue places in use: I/Os in `arrived` and I/Os in the device.
    taken: usize,
    stopping: bool,
}

/// An I/O in the device, with its completion time.
struct Pending {
    io: Submitted,
    /// Needed to check whether the I/O's mount hangs.
    file_id: u64,
    fault: Option<Fault>,
    due: Time,
}

impl SimMethod {
    /// A device for `disk` with a queue depth of `places` and the faults of `plan`.
    pub fn new(disk: &Arc<Disk>, plan: FaultPlan, places: usize) -> Self {
        let device =
            Device { disk: Arc::clone(disk), plan, places, queue: Mutex::new(Queue::default()) };
        Self { device: Arc::new(device), thread: Mutex::new(None) }
    }

    /// Starts the device thread if it isn't already running. Returns false if the thread can't be
    /// started. In that case the I/Os stay in the session's batch, and the session executes them
    /// itself.
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
            // A panic in the device thread has already failed the run.
            let _ = thread.join();
        }
    }
}

impl Device {
    /// Main loop of the device thread. It takes in new I/Os, completes those that are due, and then
    /// sleeps until the next one is due or the disk changes. On shutdown, it completes all
    /// remaining I/Os before it exits.
    fn run(&self, core: &Arc<InFlight>) {
        let mut rng = Rng::new(random::seed());
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            // We must read the change count before we look at the queue. If an I/O is submitted
            // after we have looked, the count changes, so the wait below returns immediately.
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

    /// Admits an I/O into the device: draws its fault and its latency.
    fn admit(&self, core: &InFlight, mut io: Submitted, rng: &mut Rng) -> Pending {
        core.mark_started(&io);
        let request = core.request(&mut io);
        let file_id = request.file_id;
        let fault = self.plan.next_for(&request);
        let usual = Duration::from_micros(rng.below(LATENCY_MAX_US));
        let time = match fault {
            Some(Fault::Delay(time)) => time,
            // Completes after every I/O that's in the device now.
            Some(Fault::Reorder) => usual + Duration::from_micros(2 * LATENCY_MAX_US),
            _ => usual,
        };
        Pending { io, file_id, fault, due: clock::now().after(time) }
    }

    /// Executes the I/Os that are due, and reaps them in the order of their completion times.
    /// Returns false if no I/O was due. The callbacks of large I/Os may be left to helpers. To save
    /// wake-ups, we wake the helpers once, after we have reaped everything.
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
            // A retried I/O keeps its place in the queue and gets a new latency.
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
