//! Asynchronous I/O: bounded handles, three methods, one contract.
//!
//! # Life of one I/O
//!
//! ```text
//!  session                      method                        whoever completes
//!  -------                      ------                        -----------------
//!  acquire   IDLE -> HANDED_OUT
//!  define    -> DEFINED         (file, offset, memory now belong to the I/O)
//!  stage     -> STAGED          (callbacks take over what else it needs)
//!  submit    -> SUBMITTED ----> sync: the session itself
//!                               worker: a thread of the pool
//!                               io_uring: a ring driver
//!                               raw result -> COMPLETED_IO -> claim (one compare-exchange)
//!                                                             callbacks -> COMPLETED_SHARED
//!  wait  <----------------------------------------- result in the slot -> COMPLETED_LOCAL
//!                                                             handle free -> IDLE, generation+1
//! ```
//!
//! Five nouns:
//! - [`Aio`]: an instance, with a fixed table of handles, a [`Region`] of page memory, threads.
//! - [`Session`]: who issues and waits. One event wakes it, whatever it waits for.
//! - [`Io`]: a handle that was handed out, about to become an I/O.
//! - [`Slots`]: the issuer's slots, which hold memory and results, not handles.
//! - [`WaitRef`]: names an I/O for ever, and never keeps its handle from being reused.
//!
//! The memory of an I/O is of one of two kinds. Leases in the issuer's slot are the I/O's alone, by
//! their types: that suits jobs that own a window. Frames by number ([`Io::read_frames`]) stay
//! leased by whoever shares them out, such as a buffer pool: others may look at them while they are
//! written, and may wait for the I/O by a [`WaitRef`] that the frame's descriptor keeps. Who may
//! touch what meanwhile is then a promise, the only one that the interface of this crate asks for.
//!
//! Someone always completes an I/O: the thread that executed it, the session that waits for it, a
//! helper of the worker pool, or the driver that reaped it. Dropping a waiter, a session or its
//! thread cancels nothing and frees nothing that the kernel may still use.

#![warn(missing_debug_implementations)]
#![cfg_attr(loom, expect(dead_code, reason = "only the lock-free pieces are modelled"))]

pub mod limits;

#[cfg(not(loom))]
pub mod clock;
pub mod sync;

mod bitmap;
mod event;
mod freelist;
mod mailbox;
mod outcome;
mod state;
mod wait;

#[cfg(not(loom))]
mod callback;
#[cfg(not(loom))]
mod capacity;
#[cfg(not(loom))]
mod core;
#[cfg(not(loom))]
mod fallback;
#[cfg(not(loom))]
mod file;
#[cfg(not(loom))]
mod graveyard;
#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
mod instance;
#[cfg(not(loom))]
mod method;
#[cfg(not(loom))]
mod methods;
#[cfg(not(loom))]
mod pace;
#[cfg(not(loom))]
mod probe;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod request;
#[cfg(not(loom))]
mod residency;
#[cfg(not(loom))]
mod session;
#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
mod wakes;

pub use outcome::{DETAIL_MAX, Outcome, Status};
pub use state::{STATES, State};
pub use wait::WaitRef;

#[cfg(not(loom))]
pub use api::*;

#[cfg(not(loom))]
mod api {
    pub use crate::callback::{Callback, Completion, Payload, Staging, Weight};
    pub use crate::core::{COMPLETERS, Completer, Core as InFlight, Reaped};
    pub use crate::fallback::{Cause, Fallback, Feature};
    pub use crate::file::{DIRECT_ALIGNMENT_DEFAULT, File, OpenOptions, file_system_name};
    pub use crate::instance::{Aio, Builder, TooManySessions};
    pub use crate::method::uring::{UringFeatures, UringSettings};
    pub use crate::method::worker::WorkerSettings;
    pub use crate::method::{Batch, Method, MethodKind, Submitted};
    pub use crate::methods::MethodStatus;
    pub use crate::probe::{Observed, Probe};
    pub use crate::region::{Lease, PageKind, Region};
    pub use crate::request::{Executor, Kernel, OPERATIONS, Operation, Request};
    pub use crate::residency::{Residency, residency, resident_blocks};
    pub use crate::session::{
        CLASSES, Cancelled, Canceller, Class, DefineError, Io, IoBatch, Leaks, Notifier, Session,
    };
    pub use crate::slots::Slots;
    pub use crate::snapshot::IoRow;
    pub use crate::stats::{Counters, Latencies, OperationCounters};
}
