//! The one hook for tracing, pauses and injected results.
//!
//! A probe is given to the builder; an instance without one pays a null check per transition. Tests
//! use it to stop a thread at a transition until another has passed one, and to change raw results.

use crate::method::MethodKind;
use crate::request::Operation;
use crate::session::Class;
use crate::state::State;
use crate::wait::WaitRef;

/// An I/O as a probe sees it.
#[derive(Debug, Clone, Copy)]
pub struct Observed {
    /// Which I/O.
    pub io: WaitRef,
    /// The session that issued it.
    pub session: u32,
    /// Its class.
    pub class: Class,
    /// What it does; meaningful from DEFINED on, like the fields below.
    pub operation: Operation,
    /// The method it was submitted to; meaningful from SUBMITTED on.
    pub method: MethodKind,
    /// Executed by its issuer's own thread.
    pub synchronous: bool,
    /// The file.
    pub file_id: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// A hook for tracing, pauses and injected results ([`crate::Builder::probe`]). Called on whatever
/// thread makes the transition.
pub trait Probe: Send + Sync {
    /// After a handle went from one state to another. Must not use the session or the handle;
    /// between COMPLETED_IO and IDLE it must not block, except in a test that means to.
    fn transition(&self, _io: &Observed, _from: State, _to: State) {}

    /// Sees a raw result (bytes, or minus errno) and may change it.
    fn raw_result(&self, _io: &Observed, raw: i32) -> i32 {
        raw
    }

    /// Before a ring driver enters the kernel with `submitting` new entries; an errno makes it
    /// behave as if the kernel had answered that.
    fn ring_enter(&self, _submitting: usize) -> Option<i32> {
        None
    }
}
