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
pub use environment::{Environment, InlineIo};
pub use faulty_files::{FaultyFiles, FileCall};
pub use instance::Instance;
pub use pages::{Damage, is_sound, is_version, page, pages};
pub use threads::{TestThread, spawn};
pub use write_checker::WriteChecker;

use trunkline_aio::MethodKind;

/// The I/O methods that run on the simulated disk, under the scheduler.
pub const SIMULATED: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom];
/// The I/O methods that run on real files, with real threads.
pub const REAL: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

/// A test body that the matrix runs in each environment.
pub trait Case: Clone + Send + 'static {
    /// Runs the case once. A panic is a failure.
    fn run(self, environment: Environment);
}

impl<F: FnOnce(Environment) + Clone + Send + 'static> Case for F {
    fn run(self, environment: Environment) {
        self(environment);
    }
}

/// The environments a case runs in.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    environments: Vec<Environment>,
}

impl Matrix {
    /// Environments on the simulated disk: every method with every seed below `seeds`.
    pub fn simulated(methods: &[MethodKind], seeds: u64) -> Self {
        let each = methods
            .iter()
            .flat_map(|&method| (0..seeds).map(move |seed| Environment::simulated(method, seed)));
        Self { environments: each.collect() }
    }

    /// Environments on real files, one per method.
    pub fn real(methods: &[MethodKind]) -> Self {
        Self { environments: methods.iter().map(|&method| Environment::real(method)).collect() }
    }

    /// Appends the environments of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.environments.extend(other.environments);
        self
    }

    /// Replaces each environment with its variants.
    #[must_use]
    pub fn vary<I>(self, variants: impl Fn(Environment) -> I) -> Self
    where
        I: IntoIterator<Item = Environment>,
    {
        Self { environments: self.environments.into_iter().flat_map(variants).collect() }
    }

    /// Runs a case in all environments, one after the other.
    ///
    /// # Panics
    /// If the case fails in any environment.
    pub fn run(&self, case: impl Case) {
        for &environment in &self.environments {
            let case = case.clone();
            environment.run(move |environment| case.run(environment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::sync::{Arc, Mutex};

    #[test]
    fn a_case_runs_once_in_every_environment() {
        let matrix = Matrix::simulated(&SIMULATED, 2)
            .and(Matrix::real(&REAL))
            .vary(|environment| environment.with_both_pools());
        let visited = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&visited);
        matrix.run(move |environment| seen.lock().push(environment));
        let visited = visited.lock();
        assert_eq!(visited.len(), (3 * 2 + 3) * 2);
        assert_eq!(*visited, matrix.environments);
        assert!((1..visited.len()).all(|at| !visited[..at].contains(&visited[at])));
    }
}
