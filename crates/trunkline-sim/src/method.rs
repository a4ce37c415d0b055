//! The simulated disk as a method of its own: a device with few places that completes out of order.
//!
//! Sessions put I/Os into the device's queue, up to its places; what does not fit they execute
//! themselves. One device thread carries them out in an order that the run's seed decides:
//! ```text
//!   submit ──▶ arrived ──▶ each gets a time, from the seed and the plan ──▶ earliest first: reap
//! ```
//! It is to the core what a ring driver is, so all that is said of drivers is tested with it.

use crate::disk::Disk;
use crate::fault::{Fault, FaultPlan};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::random::{self, Rng};
use trunkline_aio::sync::{Arc, Mutex, thread};
use trunkline_aio::{Batch, InFlight, Method, Reaped, Submitted};

/// Longest time that the device has an I/O without being told to delay it, in microseconds.
const LATENCY_MAX_US: u64 = 200;

/// See the module.
pub struct SimMethod {
    device: Arc<Device>,
    thread: Mutex<Option<thread::JoinHandle>>,
}

struct Device {
    disk: Arc<Disk>,
    plan: FaultPlan,
    places: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
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
    /// A device before `disk` with room for `places` I/Os and the faults of `plan`.
    pub fn new(disk: &Arc<Disk>, plan: FaultPlan, places: usize) -> Self {
        let device =
            Device { disk: Arc::clone(disk), plan, places, state: Mutex::new(State::default()) };
        Self { device: Arc::new(device), thread: Mutex::new(None) }
    }

    /// Starts the device; false if there is no thread to be had.
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
            let mut state = self.device.state.lock();
            while state.taken < self.device.places
                && let Some(io) = batch.take()
            {
                state.arrived.push_back(io);
                state.taken += 1;
            }
        }
        self.device.disk.ring();
    }

    fn shut_down(&self) {
        self.device.state.lock().stopping = true;
        self.device.disk.ring();
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
            let seen = self.disk.bell_value();
            let stopping = {
                let mut state = self.state.lock();
                let arrived = state.arrived.drain(..);
                pending.extend(arrived.map(|io| self.admit(core, io, &mut rng)));
                state.stopping
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
            self.disk.wait_bell(seen, next.map(|due| due.since(now)));
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
            // Behind everything that is in the device now.
            Some(Fault::Reorder) => usual + Duration::from_micros(2 * LATENCY_MAX_US),
            _ => usual,
        };
        Pending { io, file_id, fault, due: clock::now().after(time) }
    }

    /// Carries out what is due; false if that was nothing.
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
            self.state.lock().taken -= 1;
        }
        if helpers {
            core.wake_helpers();
        }
        true
    }
}
