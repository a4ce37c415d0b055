//! Probes: a single hook for tracing, for pausing threads in tests, and for injecting results.
//!
//! The handle table calls the instance's probe at every state transition. If there is no probe,
//! this costs only a null check. Tests use probes to hold a thread at one transition until another
//! thread has passed a different one, and to replace raw results. PostgreSQL uses injection points
//! for the same purpose.

use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::operation::Operation;
use crate::tables::class::Class;
use crate::tables::method_kind::MethodKind;

/// An I/O as a probe sees it.
#[derive(Debug, Clone, Copy)]
pub struct Observed {
    /// Identifies the I/O.
    pub io: WaitRef,
    /// The session that issued it.
    pub session: u32,
    /// Its class.
    pub class: Class,
    /// The operation. This and the fields below are valid from DEFINED on.
    pub operation: Operation,
    /// The method the I/O was submitted through. Valid from SUBMITTED on.
    pub method: MethodKind,
    /// Executed by the issuing thread.
    pub synchronous: bool,
    /// The file.
    pub file_id: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

/// A hook for tracing, pauses and injected results. It's called on the thread that makes the
/// transition.
pub trait Probe: Send + Sync {
    /// Called after each state transition of a handle. The probe must not use the session or the
    /// handle. Between COMPLETED_IO and IDLE, it must not block either, unless a test blocks there
    /// on purpose.
    fn transition(&self, _io: &Observed, _from: State, _to: State) {}

    /// Receives a raw result (bytes, or minus errno) and may replace it.
    fn raw_result(&self, _io: &Observed, raw: i32) -> i32 {
        raw
    }

    /// Called before a ring driver enters the kernel to submit new entries. The argument is the
    /// number of these entries. If the probe returns an errno, the driver acts as if the system
    /// call had failed with that errno.
    fn ring_enter(&self, _submitting: usize) -> Option<i32> {
        None
    }
}
