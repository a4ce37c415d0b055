//! Asynchronous and direct I/O for storage engines: bounded handles, three methods, one contract.
//!
//! # The problem
//!
//! A database reads and writes 8 KiB pages, and three requirements make this hard. A fast disk
//! needs many I/Os in flight, but not a thread for each of them. Direct I/O, which bypasses the
//! page cache, needs aligned memory that stays valid while the kernel uses it. And an I/O must not
//! be lost because its issuer was cancelled. PostgreSQL 18 solves these problems with its
//! asynchronous I/O subsystem. This crate implements that design in Rust, using threads in one
//! process. It deals only with descriptors, offsets and memory; pages, relations and checksums
//! belong to the crates above it.
//!
//! # An example
//!
//! One I/O reads sixteen blocks into leased memory:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trunkline_aio::{Builder, Class, OpenOptions, Slots};
//!
//! let aio = Builder::new().start()?;
//! let file = aio.open("data".as_ref(), OpenOptions::default())?;
//! let mut session = aio.session()?;
//! let mut slots = Slots::new(1);
//! slots.memory(0).ok_or("busy")?.push(aio.region().lease(16).ok_or("no memory")?);
//!
//! let io = session.acquire(Class::Foreground)?;
//! io.read(&file, 0, 16 * 8192, &mut slots, 0)?;
//! let outcome = session.wait(&mut slots, 0)?;
//! println!("{} bytes", outcome.count);
//! # Ok(()) }
//! ```
//!
//! The folder `examples/` contains complete programs: `read`, `write` and `random_batch`.
//!
//! # Concepts
//!
//! - [`Aio`] is an instance: a fixed table of handles, a [`Region`] of page memory, and threads.
//!   PostgreSQL keeps the table and the page memory in shared memory. [`Builder`] holds the
//!   settings.
//! - A [`Session`] issues I/O and waits for it. A single event wakes it, whatever it's waiting for:
//!   its own I/O, another session's I/O, a free handle, or a notification. A session corresponds to
//!   a backend, but it's an object that can move between threads, not a process.
//! - An [`Io`] is a handle that was acquired and is about to become an I/O. Handles are scarce, so
//!   the I/O's [`Class`] limits how many may be in use.
//! - [`Slots`] belong to the issuer. Each slot contains one I/O's memory, payload and result.
//!   Because the result isn't stored in the handle, the handle can be reused before the issuer
//!   looks at the result.
//! - A [`WaitRef`] identifies one I/O permanently, so any session can wait for it. It doesn't keep
//!   the handle from being reused.
//! - A [`Callback`] runs as part of the completion, for example to validate a page and unlock its
//!   buffer.
//! - The *method* ([`MethodKind`]) decides which thread talks to the kernel. It can be switched at
//!   run time.
//!
//! # The life of an I/O
//!
//! ```text
//!  session                      method                        completing thread
//!  -------                      ------                        -----------------
//!  acquire   IDLE -> HANDED_OUT
//!  define    -> DEFINED         (file, offset, memory now belong to the I/O)
//!  stage     -> STAGED          (alone, or collected in a batch)
//!  submit    -> SUBMITTED ----> sync: the session itself
//!                               worker: a thread of the pool
//!                               io_uring: a ring driver
//!                               raw result -> COMPLETED_IO -> claim (one compare-exchange)
//!                                                             callbacks -> COMPLETED_SHARED
//!  wait  <----------------------------------------- result in the slot -> COMPLETED_LOCAL
//!                                                             handle free -> IDLE, generation + 1
//! ```
//!
//! Every I/O is completed, even if its issuer never waits for it. The completing thread is
//! whichever gets there first: the thread that executed the I/O, a session waiting for it, a helper
//! in the worker pool, or the driver that reaped it. Dropping slots, a session or its thread
//! doesn't cancel I/O, and doesn't free anything the kernel may still use.
//!
//! # Memory
//!
//! An I/O uses one of two kinds of memory. A [`Lease`] in the issuer's slot belongs to the I/O
//! alone, which the type system guarantees. Leases suit jobs with a private window of memory, such
//! as verification. Frames given by number ([`Io::read_frames`]) belong to a buffer pool, which
//! leases them once and shares them among sessions. Another session may hold a pointer to such a
//! frame during the I/O, so the buffer pool must ensure that no session touches it. This is the
//! only promise the crate requires from its caller, and the reason why `read_frames` is `unsafe`.
//!
//! # The façade
//!
//! Time, threads, locks and randomness make test runs irreproducible. In this crate and all crates
//! above it, they're reachable only through [`facade`] and [`clock`]. The simulator replaces them
//! there, so a single seed determines the whole run.
//!
//! # Order of the modules
//!
//! The modules form layers, and each file uses only layers below it: `facade` and `clock`,
//! `lock_free`, `storage`, `tables`, `completion`, `method`, `session`, and the instance at the
//! top. To read the crate top-down, start with [`Builder`] and finish with the state word in
//! `lock_free`.

#![warn(missing_debug_implementations)]
#![cfg_attr(
    not(feature = "sim"),
    expect(dead_code, unreachable_pub, reason = "what only a simulator uses is not exported")
)]

pub mod clock;
pub mod facade;
pub mod limits;

mod aio;
mod builder;
mod completion;
mod instance;
mod lock_free;
mod method;
mod named_enum;
mod session;
mod storage;
mod tables;

pub use aio::{Aio, TooManySessions};
pub use builder::Builder;
pub use completion::roster::WorkerSettings;
pub use lock_free::outcome::{DETAIL_MAX, Outcome, Status};
pub use lock_free::state::{STATES, State};
pub use lock_free::wait_ref::WaitRef;
pub use method::dispatcher::MethodStatus;
pub use method::fallback::{Cause, Fallback, Feature};
pub use method::ring::{UringFeatures, UringSettings};
pub use session::cancel::{Cancelled, Canceller, Notifier};
pub use session::define::DefineError;
pub use session::io::{Io, IoBatch};
pub use session::{Leaks, Session};
pub use storage::file::{DIRECT_ALIGNMENT_DEFAULT, File, OpenOptions};
pub use storage::file_system::file_system_name;
pub use storage::operation::{OPERATIONS, Operation};
pub use storage::page_cache::{Residency, residency, resident_blocks};
pub use storage::region::{Lease, PageKind, Region};
pub use tables::callback::{Callback, Completion, Payload, Weight};
pub use tables::class::{CLASSES, Class};
pub use tables::completer::{COMPLETERS, Completer};
pub use tables::method_kind::MethodKind;
pub use tables::slots::Slots;
pub use tables::snapshot::IoRow;
pub use tables::statistics::{Counters, Latencies, OperationCounters};

/// The interfaces the simulator implements: its own storage, its own I/O method, and a hook called
/// at every state transition. They are not part of the stable API.
#[cfg(feature = "sim")]
mod sim {
    pub use crate::completion::in_flight::{InFlight, Reaped, Submitted};
    pub use crate::method::{Batch, Method};
    pub use crate::storage::executor::{Executor, Kernel};
    pub use crate::storage::request::Request;
    pub use crate::tables::probe::{Observed, Probe};
}
#[cfg(feature = "sim")]
pub use sim::*;
