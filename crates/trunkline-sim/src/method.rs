//! I/O method on the simulated disk: a device with few places that completes I/O out of order.
//!
//! Sessions put I/Os into the queue of the device until its places are used. They execute the others
//! themselves. One device thread executes the queue in an order that the seed decides:
//! ```text
//!   submit ──▶ arrived ──▶ each gets a time, from the seed and the plan ──▶ earliest first: reap
//! ```
//! For the I/O core it is like a ring driver, so it tests all rules for drivers.

use crate::disk::Disk;
use crate::fault::{Fault, FaultPlan};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::random::{self, Rng};
use trunkline_aio::sync::{Arc, Mutex, thread};
use trunkline_aio::{Batch, InFlight, Method, Reaped, Submitted};

/// The longest time that the device takes for an I/O without a delay fault, in microseconds.
const LATENCY_MAX_US: u64 = 200;

/// A simulated device as an I/O method.
pub struct SimMethod {
    device: Arc<Device>,
    thread: Mutex<Option<thread::JoinHandle>>,
}

struct Device {
    disk: Arc<Disk>,
    plan: FaultPlan,
    places: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    arrived: VecDeque<Submitted>,
    /// I/Os arrived or in the device.
    taken: usize,
    stopping: bool,
}

/// An I/O in the device.
struct Pending {
    io: Submitted,
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

    /// Starts the device thread; false if no thread can be started.
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
    fn run(&self, core: &Arc<InFlight>) {
        let mut rng = Rng::new(random::seed());
        let mut pending: Vec<Pending> = Vec::new();
        loop {
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

    fn admit(&self, core: &InFlight, mut io: Submitted, rng: &mut Rng) -> Pending {
        core.mark_started(&io);
        let request = core.request(&mut io);
        let file_id = request.file_id;
        let fault = self.plan.next_for(&request);
        let usual = Duration::from_micros(rng.below(LATENCY_MAX_US));
        let time = match fault {
            Some(Fault::Delay(time)) => time,
            // After every I/O that is in the device now.
            Some(Fault::Reorder) => usual + Duration::from_micros(2 * LATENCY_MAX_US),
            _ => usual,
        };
        Pending { io, file_id, fault, due: clock::now().after(time) }
    }

    /// Executes the I/Os that are due; false if there are none.
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
