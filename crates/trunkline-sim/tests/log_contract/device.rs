//! A device on which writes take time: it checks that no two of them write the same bytes at once, and a crash can tear a
//! durable write that has not ended.

use std::ops::Range;

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_aio::{Executor, File, Operation, Request};
use trunkline_sim::{Disk, FaultPlan, SimExecutor};

/// A write that has not ended: its file, and the bytes.
type InFlight = (String, Range<u64>);

/// How long a write takes at most, in turns of other threads.
const TURNS: u64 = 400;

/// Writes, as they are executed.
pub(crate) struct Device {
    disk: Arc<Disk>,
    inner: SimExecutor,
    rng: Mutex<Rng>,
    in_flight: Mutex<Vec<InFlight>>,
    /// The number of writes that began while another one was in flight.
    overlapping: Arc<Mutex<u64>>,
}

impl Device {
    pub(crate) fn new(
        disk: &Arc<Disk>,
        plan: &FaultPlan,
        rng: &mut Rng,
        overlapping: &Arc<Mutex<u64>>,
    ) -> Self {
        Self {
            disk: Arc::clone(disk),
            inner: SimExecutor::new(disk, plan.clone()),
            rng: Mutex::new(Rng::new(rng.below(u64::MAX))),
            in_flight: Mutex::default(),
            overlapping: Arc::clone(overlapping),
        }
    }

    /// Notes that a write has begun.
    fn begin(&self, name: &str, bytes: &Range<u64>) {
        let mut in_flight = self.in_flight.lock();
        for (other, theirs) in &*in_flight {
            let is_shared = other == name && theirs.start < bytes.end && bytes.start < theirs.end;
            assert!(!is_shared, "{name}: {bytes:?} is written while {theirs:?} is");
        }
        *self.overlapping.lock() += u64::from(!in_flight.is_empty());
        in_flight.push((name.to_owned(), bytes.clone()));
    }

    fn end(&self, name: &str, bytes: &Range<u64>) {
        let mut in_flight = self.in_flight.lock();
        let mine = in_flight.iter().position(|(other, theirs)| other == name && theirs == bytes);
        in_flight.swap_remove(mine.expect("begun"));
    }

    /// Executes a write. If it is durable, a crash before its end keeps any part of it.
    fn write(&self, request: &mut Request<'_>) -> i32 {
        if request.durable {
            request.durable = false;
            let written = self.inner.execute(request);
            request.durable = true;
            if written <= 0 {
                return written;
            }
        }
        // The page cache takes a write at once.
        if request.durable || request.direct {
            let turns = self.rng.lock().below(TURNS);
            (0..turns).for_each(|_| thread::yield_now());
        }
        self.inner.execute(request)
    }
}

impl Executor for Device {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        let name = self.disk.name_of(request.file_id);
        let (Operation::Writev, Some(name)) = (request.operation, name) else {
            return self.inner.execute(request);
        };
        let bytes = request.offset..request.offset + u64::from(request.length);
        self.begin(&name, &bytes);
        let written = self.write(request);
        self.end(&name, &bytes);
        written
    }

    fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        self.inner.advise(file, offset, length)
    }
}
