//! Random workload over buffer pools and read streams on the simulated disk, with an exact model.
//!
//! ```text
//!   Runner ── run(workload) ──▶ clients: sessions that read, stream, lock, evict, cancel, vanish
//!               │                  │ every page, error and warning        every result of every read
//!               │                  ▼                                                  ▼
//!               │               expectations: what each buffer contains,   ◀──── read probe
//!               │               which owner must receive which error
//!               └──▶ final check: no pin, lock, permit, handle, frame or file is left
//! ```
//! The seed determines everything: the sizes, the I/O methods, the fault rates, the steps of each
//! client, and how the threads are interleaved. The probe knows which fault struck each read and
//! which stream issued it, so there is exactly one correct outcome for every read. A run fails if a
//! page has the wrong contents, if a client gets an error from a read it didn't issue, or if it
//! doesn't get the error of a read it did issue.
//! ```no_run
//! use trunkline_sim::pool_workload::{Runner, PoolWorkload};
//! let report = Runner::new().run(PoolWorkload::of_seed(7))?;
//! println!("{} faults, {} pages", report.faults, report.counts.pages);
//! # Ok::<(), String>(())
//! ```

mod client;
mod expectations;
mod final_check;
mod meter;
mod model;
mod page_check;
mod parallel_scan;
mod pool_session;
mod read_probe;
mod reader;
mod run;
mod runner;
mod settings;

pub use meter::{Cell, CompletionPath, Counts, Kind, Meter, Waiters};
pub use run::PoolReport;
pub use runner::Runner;
pub use settings::PoolWorkload;
