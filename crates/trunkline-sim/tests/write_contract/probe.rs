//! Looks at every write: what reached the disk is whole pages with the right checksum, and the log
//! was durable as far as they say when they were submitted.
//!
//! Runs on whatever thread completes the I/O, where a panic would end the process, so it notes what is
//! wrong, and the rig asks when the case is over.

use crate::files::Files;
use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Observed, Operation, Probe, State, WaitRef};
use trunkline_engine::log::{Log, PositionLog};
use trunkline_format::{BLOCK_SIZE, Lsn, page, page_checksum};
use trunkline_sim::Hooks;

/// See the module.
pub(crate) struct Watch {
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) log: PositionLog,
    files: Mutex<Option<Arc<Files>>>,
    /// Up to where the log was durable when a write was submitted.
    durable: Mutex<Map<WaitRef, Lsn>>,
    wrong: Mutex<Vec<String>>,
    seen: Mutex<u64>,
}

impl Watch {
    pub(crate) fn new(hooks: &Arc<Hooks>, log: &PositionLog) -> Self {
        Self {
            hooks: Arc::clone(hooks),
            log: log.clone(),
            files: Mutex::new(None),
            durable: Mutex::default(),
            wrong: Mutex::default(),
            seen: Mutex::new(0),
        }
    }

    /// From now on it knows where to look.
    pub(crate) fn look_at(&self, files: &Arc<Files>) {
        *self.files.lock() = Some(Arc::clone(files));
    }

    /// Lets go of the files.
    pub(crate) fn look_away(&self) {
        *self.files.lock() = None;
    }

    /// Pages looked at so far.
    pub(crate) fn seen(&self) -> u64 {
        *self.seen.lock()
    }

    /// What was wrong.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().clone()
    }

    fn judge(&self, io: &Observed, written: usize) {
        // It stays noted: a method may try again.
        let durable = self.durable.lock().get(&io.io).copied();
        let files = self.files.lock().clone();
        let Some((first, bytes)) = files.and_then(|files| files.written(io, written)) else {
            return;
        };
        for (found, block) in bytes.as_chunks::<BLOCK_SIZE>().0.iter().zip(first..) {
            *self.seen.lock() += 1;
            if page::is_new(found) {
                continue;
            }
            let header = page::PageHeader::parse(found);
            if u16::from_le_bytes([found[8], found[9]]) != page_checksum(found, block) {
                self.wrong.lock().push(format!("block {block}: the checksum, {io:?}"));
            }
            if Some(header.lsn) > durable {
                let log = format!("block {block}: {} in a log durable to {durable:?}", header.lsn);
                self.wrong.lock().push(log);
            }
        }
    }
}

impl Probe for Watch {
    fn transition(&self, io: &Observed, from: State, to: State) {
        if to == State::Submitted && io.operation == Operation::Writev {
            self.durable.lock().insert(io.io, self.log.durable());
        }
        self.hooks.transition(io, from, to);
    }

    fn raw_result(&self, io: &Observed, raw: i32) -> i32 {
        if io.operation == Operation::Writev && raw > 0 {
            self.judge(io, raw as usize);
        }
        self.hooks.raw_result(io, raw)
    }

    fn ring_enter(&self, submitting: usize) -> Option<i32> {
        self.hooks.ring_enter(submitting)
    }
}
