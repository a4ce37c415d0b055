//! Measurements of a table on the user's own device: workloads, statistics of repeated runs, and
//! reports.
//!
//! `trunkline bench` is the command on top of this library. `trunkline-bench`, which compares the
//! engine with bare loops, uses its statistics.
//!
//! ```text
//!   Plan ──▶ cases ──▶ Bench: warm-up, rounds ──▶ samples ──▶ Report ──▶ JSON, CSV, page
//!                        │                                      ▲
//!                        └─ Runner: empty pool, page cache, work └─ a stored report to compare with
//! ```
//!
//! - **What is measured.** Reads go through the buffer pool with read streams, as queries do.
//!   `workload` lists the workloads, and `access` says which blocks range queries read.
//! - **Compared with what.** With a stored report, or with a PostgreSQL server that does the same work
//!   on the same files (`server`), in pairs of repetitions (`versus`).
//! - **How often.** Cases are interleaved and repeated until the confidence interval of the median
//!   is narrow (`repetition`, `estimate`). A case that is never steady is marked.
//! - **Where it writes.** Only into a scratch directory, which is cleaned even after `kill -9`
//!   (`scratch`), and never into a data directory (`place`).
//! - **What is reported.** Device time and wait time apart, from the engine's own histograms
//!   (`latency`), with the machine, the command line and the state of the page cache.

#![forbid(unsafe_code)]

mod access;
mod bench;
mod calibrate;
mod checkpoint_copy;
mod columns;
mod durable_file;
mod error;
mod estimate;
mod latency;
mod machine;
mod page;
mod place;
mod plot;
mod plots;
mod repetition;
mod report;
mod rounding;
mod row_sum;
mod runner;
mod sample;
mod scratch;
mod server;
mod sessions;
mod table;
mod versus;
mod watcher;
mod workload;

pub use access::{Dataset, Scan};
pub use bench::{Bench, Origin, Results};
pub use calibrate::{
    Burst, CALIBRATION_BYTES_BESIDE, CALIBRATION_BYTES_MIN, Calibrated, Calibration,
    CalibrationPlan, Case, ClusterFacts, Concurrency, Confidence, DeviceFindings, Limit, Line,
    Lines, ScratchFiles, Series, Step, Target,
};
pub use columns::to_csv;
pub use error::MeasureError;
pub use estimate::Estimate;
pub use latency::{Latency, Percentiles};
pub use machine::Machine;
pub use page::to_html;
pub use place::{cluster_around, refuse_cluster};
pub use repetition::{Ended, RepetitionRule};
pub use report::{
    Against, Change, DiskAccuracy, Key, MeasuredConfiguration, MeasuredServer, MeasuredTable,
    Measurement, Report, Skipped, SlowDisk, Times,
};
pub use runner::{Peer, ScratchTable};
pub use scratch::Scratch;
pub use server::{
    GuideTable, ROWS_PER_SCALE, Server, ServerError, ServerHandle, ServerLines, ServerMethod,
    Sizes, TablePlan, bytes_needed, end_processes, stop_leftovers,
};
pub use table::Table;
pub use versus::{Best, OverDefaults, Verdict, Versus};
pub use watcher::{Unwatched, Watcher};
pub use workload::{Cache, PLANNED, Plan, Workload};
