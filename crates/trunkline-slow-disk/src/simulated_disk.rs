//! The simulated disk of a mount: decides when each request completes, and counts.
//!
//! Two models run side by side. The one of the profile serves the files. The other one has the same
//! latency but no limits, and serves the file that measures our accuracy, so that a measurement
//! neither waits for a limit nor uses up credit.

use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::Mutex;

use crate::disk_model::DiskModel;
use crate::profile::Profile;
use crate::reply_queue::ReplyQueue;
use crate::statistics::{Counters, Statistics};

/// A reply this much after its time still counts as on time: copying a large request takes that long.
const ON_TIME: Duration = Duration::from_millis(1);

/// Which model serves a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A file of the directory.
    File,
    /// The measurement of our accuracy.
    Probe,
}

/// A disk that is being simulated.
pub(crate) struct SimulatedDisk {
    profile: Mutex<DiskModel>,
    probe: Mutex<DiskModel>,
    queue: ReplyQueue,
    counters: Counters,
}

impl SimulatedDisk {
    pub(crate) fn new(profile: &Profile, queue: ReplyQueue) -> SimulatedDisk {
        SimulatedDisk {
            profile: Mutex::new(DiskModel::new(profile)),
            probe: Mutex::new(DiskModel::new(&profile.without_limits())),
            queue,
            counters: Counters::default(),
        }
    }

    /// Admits a request that arrived at `arrival`. Returns when it completes.
    pub(crate) fn admit(&self, purpose: Purpose, arrival: Time, bytes: u64) -> Time {
        let model = match purpose {
            Purpose::File => &self.profile,
            Purpose::Probe => &self.probe,
        };
        model.lock().admit(arrival, bytes)
    }

    /// Sends a reply when its request completes.
    pub(crate) fn complete(&self, due: Time, send: impl FnOnce() + Send + 'static) {
        let now = clock::now();
        if now < due {
            self.queue.push(due, send);
            return;
        }
        if now.since(due) > ON_TIME {
            self.counters.count_late(now.since(due));
        }
        send();
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.counters.snapshot()
    }

    /// Ends the thread that sends replies.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}
