//! Write checker: verifies the checksum of every page that a case writes, and that WAL came before
//! data.
//!
//! Each time a write is submitted, the checker records how far the WAL has been flushed. When the
//! result of the write arrives, the checker reads the pages back from the file and checks that none
//! of them has an LSN beyond that point. It does so on whichever thread completes the I/O, where a
//! panic would abort the process. The checker therefore only collects violations, and the cluster's
//! final checks report them.

use super::{FaultyFiles, is_sound};
use crate::probe::TestProbe;
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Observed, Operation, Probe, State, WaitRef};
use trunkline_engine::log::{Log, PositionLog};
use trunkline_format::{BLOCK_SIZE, Lsn, page};

/// A probe wrapped around the test probe.
#[derive(Debug)]
pub struct WriteChecker {
    probe: Arc<TestProbe>,
    log: PositionLog,
    /// The files to read the pages back from; `None` before and after the case. As long as this is
    /// set, it keeps the files and the instance alive.
    files: Mutex<Option<Arc<FaultyFiles>>>,
    /// Durable end of the log when each write was submitted.
    durable: Mutex<Map<WaitRef, Lsn>>,
    violations: Mutex<Vec<String>>,
    /// Number of pages checked.
    pages: Mutex<u64>,
}

impl WriteChecker {
    pub(super) fn new(probe: &Arc<TestProbe>, log: &PositionLog) -> Self {
        Self {
            probe: Arc::clone(probe),
            log: log.clone(),
            files: Mutex::new(None),
            durable: Mutex::default(),
            violations: Mutex::default(),
            pages: Mutex::new(0),
        }
    }

    /// Starts checking writes to these files.
    pub fn attach(&self, files: &Arc<FaultyFiles>) {
        *self.files.lock() = Some(Arc::clone(files));
    }

    /// Stops checking and drops the files. Needed by cases that don't use the cluster's log.
    pub fn detach(&self) {
        let files = self.files.lock().take();
        drop(files);
    }

    /// Number of pages checked so far.
    pub fn pages_checked(&self) -> u64 {
        *self.pages.lock()
    }

    /// Violations found so far.
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().clone()
    }

    /// Checks the pages of a write that transferred `written` bytes.
    fn check(&self, io: &Observed, written: usize) {
        // Don't remove the entry, because the method may retry the write.
        let durable = self.durable.lock().get(&io.io).copied();
        let files = self.files.lock().clone();
        let Some((first, bytes)) = files.and_then(|files| files.written(io, written)) else {
            return;
        };
        for (found, block) in bytes.as_chunks::<BLOCK_SIZE>().0.iter().zip(first..) {
            *self.pages.lock() += 1;
            if !is_sound(found, block) {
                self.violations.lock().push(format!("block {block}: wrong checksum, {io:?}"));
            }
            // Extension writes zeros, which have no LSN.
            if page::is_new(found) {
                continue;
            }
            let lsn = page::PageHeader::parse(found).lsn;
            // `None` sorts before any LSN, so a write without a recorded submission is also
            // reported as a violation.
            if Some(lsn) > durable {
                let violation = format!("block {block}: LSN {lsn}, log durable up to {durable:?}");
                self.violations.lock().push(violation);
            }
        }
    }
}

impl Probe for WriteChecker {
    fn transition(&self, io: &Observed, from: State, to: State) {
        if to == State::Submitted && io.operation == Operation::Writev {
            self.durable.lock().insert(io.io, self.log.durable());
        }
        self.probe.transition(io, from, to);
    }

    fn raw_result(&self, io: &Observed, raw: i32) -> i32 {
        if io.operation == Operation::Writev && raw > 0 {
            self.check(io, raw as usize);
        }
        self.probe.raw_result(io, raw)
    }

    fn ring_enter(&self, submitting: usize) -> Option<i32> {
        self.probe.ring_enter(submitting)
    }
}
