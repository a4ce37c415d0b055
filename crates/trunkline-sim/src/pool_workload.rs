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
//! The seed determines everything: sizes, methods, fault rates, the clients' steps, and how their
//! threads interleave. For each read, the probe knows which fault struck it and which stream issued
//! it, so we can expect one exact outcome instead of a set of permitted ones. A run fails if a page
//! has the wrong contents, if an error reaches an owner that did not issue the read, or if an owner
//! misses its own error.
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
