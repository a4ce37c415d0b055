//! State of a run of a pool workload, and its report.

use super::expectations::{Expectations, Failure};
use super::meter::{Counts, Meter};
use super::model::Model;
use super::parallel_scan::ParallelScan;
use super::settings::PoolWorkload;
use crate::clients::FirstFailure;
use crate::disk::Disk;
use crate::fault::FaultPlan;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_aio::{Aio, Canceller};
use trunkline_engine::pool::{Backend, Pool};
use trunkline_engine::storage::Relation;

/// Totals of a run.
#[derive(Debug, Clone, Default)]
pub struct PoolReport {
    /// Faults that struck.
    pub faults: u64,
    /// What the clients did.
    pub counts: Counts,
    /// Which fault struck which read.
    pub meter: Meter,
    /// Number of switch points passed.
    pub steps: u64,
}

/// State shared by all clients of a run.
pub(super) struct Run {
    pub(super) workload: PoolWorkload,
    pub(super) aio: Aio,
    pub(super) disk: Arc<Disk>,
    pub(super) plan: FaultPlan,
    /// The shared pool and the local pool.
    pub(super) pools: [Pool; 2],
    pub(super) relations: Vec<Relation>,
    pub(super) model: Arc<Model>,
    pub(super) expectations: Arc<Expectations>,
    /// Number of the last owner. Each stream and each single read is a separate owner.
    pub(super) owners: AtomicU64,
    /// Cancel handles for all sessions of the run, oldest first. Most of these sessions have ended.
    pub(super) cancellers: Mutex<Vec<Canceller>>,
    /// Set while a client waits for a cleanup lock or truncates a relation. We don't allow two
    /// clients to do this at the same time, because each could end up waiting for the other to
    /// release a pin.
    pub(super) exclusive: AtomicBool,
    /// Parallel scans started so far. Clients can still join the last one.
    pub(super) parallels: Mutex<Vec<Arc<ParallelScan>>>,
    /// The run's threads. A client that moves to another thread adds the new thread here.
    pub(super) threads: Mutex<Vec<thread::JoinHandle>>,
    pub(super) counts: Mutex<Counts>,
    pub(super) failure: FirstFailure,
}

impl Run {
    /// Records a failure.
    pub(super) fn fail(&self, text: String) {
        self.failure.record(text);
    }

    pub(super) fn new_owner(&self) -> u64 {
        self.owners.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Compares a session's warnings with the ones its owner must receive.
    pub(super) fn check_warnings(&self, backend: &mut Backend, owner: u64) {
        let (warnings, lost) = backend.take_warnings();
        for warning in warnings {
            let failure = Failure::Warning { zeroed: warning.zeroed };
            let block = warning.location.block().unwrap_or_default();
            if !self.expectations.receive(owner, block, failure) {
                self.fail(format!("{warning}: not expected by {owner}"));
            }
        }
        if lost > 0 {
            self.fail(format!("{lost} warnings lost"));
        }
    }

    /// Joins a parallel scan in progress, or starts a new one.
    pub(super) fn parallel(&self, rng: &mut Rng) -> Arc<ParallelScan> {
        let mut scans = self.parallels.lock();
        match scans.last() {
            Some(scan) if rng.below(4) > 0 => Arc::clone(scan),
            _ => {
                let relation = if self.workload.crowd { 1 } else { rng.below(2) as usize };
                let scan = Arc::new(ParallelScan::new(relation));
                scans.push(Arc::clone(&scan));
                scan
            }
        }
    }
}

/// The part of a client that all its sessions use.
pub(super) struct ClientState {
    pub(super) run: Arc<Run>,
    pub(super) number: u32,
    pub(super) rng: Rng,
    pub(super) counts: Counts,
}
