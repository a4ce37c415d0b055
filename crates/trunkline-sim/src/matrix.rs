//! The test matrix of the contract suites. We run each test case with every I/O method, on the
//! simulated disk as well as on real files, and with all settings that apply to it.
//!
//! Each test case is written only once, and the matrix then runs it with all methods. If one of the
//! methods doesn't behave like the others, a test will therefore fail.
//! ```text
//!   Matrix         a list of environments
//!   Environment    one I/O method, simulated disk with a seed or real files, pool, settings
//!   Case           what runs in an environment: it starts what it needs, and checks it at the end
//!     io::check        a case of the I/O core: a function of the environment
//!     cluster::check   a case of the buffer pool: what it needs, and a function of a Cluster
//! ```
//! We run the simulated environments first, because the scheduler detects a deadlock immediately,
//! whereas a test on real files would just hang. If a test fails, we print the environment. This
//! includes the seed, so a simulated run can be repeated exactly.
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
//! Note that this is test code, so it simply panics if anything goes wrong. The panic makes the
//! test case fail.

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
