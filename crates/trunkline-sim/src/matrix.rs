//! Test matrix of the contract suites. Each case runs under every I/O method, on the simulated disk
//! and on real files, with every applicable setting.
//!
//! Each case is written only once, and the matrix runs it under all methods. A method that doesn't
//! behave like the others therefore fails a test.
//! ```text
//!   Matrix         a list of environments
//!   Environment    one I/O method, simulated disk with a seed or real files, pool, settings
//!   Case           what runs in an environment: it starts what it needs, and checks it at the end
//!     io::check        a case of the I/O core: a function of the environment
//!     cluster::check   a case of the buffer pool: what it needs, and a function of a Cluster
//! ```
//! Simulated environments run first, because the scheduler reports a deadlock immediately, whereas
//! a case on real files would just hang. A failure prints the environment including its seed, which
//! is all we need to repeat a simulated run.
//! ```
//! use trunkline_sim::matrix::{self, Needs, cluster};
//!
//! cluster::check_simulated(Needs { seeds: 1, ..Needs::default() }, |cluster| {
//!     let mut backend = cluster.backend();
//!     let pin = backend.read(&cluster.relation(0), 3).unwrap();
//!     let page = backend.read_lock(pin.page()).unwrap();
//!     assert!(matrix::is_version(&*page, 0, 3, 0));
//! });
//! ```
//! This is test code: it panics on a failure, and the panic fails the case.

#![expect(clippy::expect_used, clippy::panic, reason = "test harness: a panic fails the case")]

pub mod cluster;
mod coverage;
mod environment;
mod faulty_files;
mod final_checks;
mod instance;
pub mod io;
mod page_reads;
mod page_writes;
mod pages;
mod threads;
mod write_checker;

pub use cluster::{Cluster, Needs, Pools};
pub use coverage::Coverage;
pub use environment::{Environment, InlineIo, Matrix, REAL, SIMULATED};
pub use faulty_files::{FaultyFiles, FileCall};
pub use instance::Instance;
pub use page_writes::Damage;
pub use pages::{is_sound, is_version, page, pages};
pub use threads::{TestThread, spawn};
pub use write_checker::WriteChecker;
