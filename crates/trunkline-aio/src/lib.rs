//! Asynchronous and direct I/O for storage engines, with a bounded number of handles and three
//! methods that follow one contract.
//!
//! # The problem
//!
//! A database reads and writes 8 KiB pages, and there are three reasons why this is hard. To keep a
//! fast disk busy, many I/Os must be in flight, but we can't afford a thread for each of them.
//! Direct I/O bypasses the page cache, so it needs aligned memory that remains valid while the
//! kernel is using it. And if the issuer of an I/O is cancelled, the I/O must not get lost.
//! PostgreSQL 18 solved these problems with its asynchronous I/O subsystem. This crate implements
//! the same design in Rust, with threads in a single process. It deals only with file descriptors,
//! offsets and memory; the crates above it handle pages, relations and checksums.
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
//! - A [`Session`] issues I/O and waits for it. It uses a single event for everything it may have
//!   to wait for: its own I/O, another session's I/O, a free handle, or a notification. A session
//!   corresponds to a PostgreSQL backend, but it is an object that can be moved between threads
//!   rather than a process. Tasks of an async runtime poll it instead of sleeping, and each task
//!   uses its own [`PolledWait`].
//! - An [`Io`] is a handle that has been acquired but doesn't have an I/O yet. Since handles are
//!   scarce, every I/O belongs to a [`Class`], and each class has its own limit on the number of
//!   handles in use.
//! - [`Slots`] belong to the issuer. Each slot contains the memory, payload and result of one I/O.
//!   The result is not stored in the handle, so the handle can be reused even if the issuer hasn't
//!   looked at the result yet.
//! - A [`WaitRef`] always identifies the same I/O, so any session can use it to wait for that I/O.
//!   It doesn't prevent the handle from being reused.
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
//! Every I/O is completed, even if its issuer never waits for it. There are several threads that
//! may do this: the thread that executed the I/O, a session that waits for it, a helper in the
//! worker pool, or the driver that reaped it. The first one to claim the I/O completes it. If
//! slots, a session or its thread go away, that doesn't cancel any I/O, and nothing is freed that
//! the kernel may still be using.
//!
//! # Memory
//!
//! There are two kinds of memory for I/O. A [`Lease`] in the issuer's slot can be used only by that
//! one I/O, which the type system guarantees. Leases are suitable for jobs with private memory,
//! such as verification. Frames specified by number ([`Io::read_frames`]) belong to a buffer pool,
//! which leases them once and shares them among its sessions. A session may have a pointer to such
//! a frame while an I/O is using it, so the buffer pool must make sure that the session doesn't
//! touch the frame during that time. This is the only promise the crate requires from its caller,
//! and it's the reason why `read_frames` is `unsafe`.
//!
//! # The façade
//!
//! Time, threads, locks and randomness make it hard to reproduce a test run. For that reason, this
//! crate and all crates above it use them only through [`facade`] and [`clock`], where the
//! simulator can replace them. A single seed then determines the whole run.
//!
//! # Order of the modules
//!
//! The modules are organized in layers, and a file may use only the layers below its own. From the
//! bottom up, these are `facade` and `clock`, `lock_free`, `storage`, `tables`, `completion`,
//! `method`, `session`, and finally the instance. If you prefer to read the crate from the top
//! down, start with [`Builder`] and end with the state word in `lock_free`.

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
mod cpu_cache;
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
pub use cpu_cache::prefetch;
pub use lock_free::outcome::{DETAIL_MAX, Outcome, Status};
pub use lock_free::state::{STATES, State};
pub use lock_free::wait_ref::WaitRef;
pub use method::dispatcher::MethodStatus;
pub use method::fallback::{Cause, Fallback, Feature};
pub use method::ring::{UringFeatures, UringSettings};
pub use method::uring_probe::{OpenRings, UringProbe, UringTrial, open_rings, ring_bytes};
pub use session::call::Call;
pub use session::cancel::{Cancelled, Canceller, Notifier};
pub use session::define::DefineError;
pub use session::io::{Io, IoBatch};
pub use session::polled_wait::PolledWait;
pub use session::{Leaks, Session};
pub use storage::file::{DIRECT_ALIGNMENT_DEFAULT, File, OpenOptions};
pub use storage::file_system::file_system_name;
pub use storage::operation::{OPERATIONS, Operation};
pub use storage::page_cache::{
    Residency, is_residency_known, residency, resident_blocks, sampled_blocks,
};
pub use storage::region::{Lease, PageKind, Region};
pub use tables::callback::{Callback, Completion, Payload, Weight};
pub use tables::class::{CLASSES, Class};
pub use tables::completer::{COMPLETERS, Completer};
pub use tables::method_kind::MethodKind;
pub use tables::slots::Slots;
pub use tables::snapshot::IoRow;
pub use tables::statistics::{Counters, Latencies, OperationCounters};

/// These are the interfaces that the simulator implements: simulated storage, a simulated I/O
/// method, and a hook that is called at every state transition. They aren't part of the stable API.
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
