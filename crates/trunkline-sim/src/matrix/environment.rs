//! The environments in which test cases run, and the test matrix, which is a list of environments.
//! An environment consists of an I/O method, a kind of storage, a kind of pool, and some settings.
//!
//! An environment is plain data, so a failure can print it and a test can recreate it.
//! ```
//! use trunkline_aio::MethodKind;
//! use trunkline_sim::matrix::Environment;
//!
//! let simulated = Environment::simulated(MethodKind::Worker, 7);
//! let report = simulated.run(|environment| assert!(environment.is_simulated()));
//! assert!(report.is_some());
//! assert!(Environment::real(MethodKind::Worker).run(|_| {}).is_none());
//! ```

use trunkline_aio::facade::sched;
use trunkline_aio::{Builder, MethodKind};

/// The environment in which a case runs. We print it if the case fails, because it contains
/// everything that is needed to repeat a simulated run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Environment {
    /// The I/O method.
    pub method: MethodKind,
    /// Seed of the scheduler and the simulated disk. `None` means real files and real threads.
    pub seed: Option<u64>,
    /// The case uses a local pool, with a single session.
    pub local_pool: bool,
    /// Which I/Os a session executes itself instead of through the method.
    pub inline: InlineIo,
    /// At each switch point, the scheduler switches to another thread with a probability of 1 /
    /// `switch_one_in`. If the number is large, one thread can get a lot of work done while another
    /// thread is stopped between two steps. Some race conditions only show up in that case.
    pub switch_one_in: u32,
}

/// Which I/Os a session executes itself, although the method could execute them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlineIo {
    /// None: every I/O goes to the method.
    Off,
    /// Buffered writes of any length. The session blocks until the write is done, like a PostgreSQL
    /// backend in `FlushBuffer`.
    Writes,
    /// The default settings. The session itself executes short reads that hit the page cache, and
    /// short buffered writes.
    Default,
}

/// The default of [`sched::Config::new`].
const SWITCH_ONE_IN: u32 = 3;

impl Environment {
    /// An environment under the scheduler, on the simulated disk.
    pub fn simulated(method: MethodKind, seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::real(method) }
    }

    /// An environment on real files, with real threads.
    pub fn real(method: MethodKind) -> Self {
        let (local_pool, inline) = (false, InlineIo::Off);
        Self { method, seed: None, local_pool, inline, switch_one_in: SWITCH_ONE_IN }
    }

    /// Whether the case runs under the scheduler, on the simulated disk.
    pub fn is_simulated(&self) -> bool {
        self.seed.is_some()
    }

    /// Whether threads other than the session's execute I/O.
    pub fn is_asynchronous(&self) -> bool {
        self.method != MethodKind::Sync
    }

    /// Whether sessions execute all buffered writes themselves.
    pub fn writes_inline(&self) -> bool {
        self.inline == InlineIo::Writes
    }

    /// Returns two copies of this environment: one with a shared pool, and one with a local pool.
    pub fn with_both_pools(self) -> [Self; 2] {
        [false, true].map(|local_pool| Self { local_pool, ..self })
    }

    /// Applies the inline I/O setting to an instance.
    pub(super) fn configure(&self, builder: Builder) -> Builder {
        match self.inline {
            InlineIo::Off => builder.try_cached_below(0).inline_write_max(0),
            InlineIo::Writes => builder.try_cached_below(0).inline_write_max(u32::MAX),
            InlineIo::Default => builder,
        }
    }

    /// Runs `body` in this environment. For a simulated run, returns the scheduler's report. On
    /// real files, there is no report, so returns `None`.
    ///
    /// # Panics
    /// If `body` panics. A simulated run also panics on a deadlock or a livelock.
    pub fn run(self, body: impl FnOnce(Environment) + Send + 'static) -> Option<sched::Report> {
        let Some(seed) = self.seed else {
            body(self);
            return None;
        };
        let switch_one_in = self.switch_one_in;
        let config = sched::Config { switch_one_in, ..sched::Config::new(seed) };
        let result = sched::run(config, move || body(self));
        Some(result.unwrap_or_else(|failure| panic!("{self:?}: {failure}")))
    }
}

/// The I/O methods that run on the simulated disk, under the scheduler.
pub const SIMULATED: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom];
/// The I/O methods that run on real files, with real threads.
pub const REAL: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

/// The environments a case runs in.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    environments: Vec<Environment>,
}

impl Matrix {
    /// Returns environments on the simulated disk. There is one for each combination of a method
    /// and a seed less than `seeds`.
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
    pub fn run(&self, case: impl FnOnce(Environment) + Clone + Send + 'static) {
        for &environment in &self.environments {
            environment.run(case.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::facade::{Arc, Mutex};

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
