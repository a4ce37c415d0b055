//! Where one run of a case is: under which method, on which storage, in which pool.
//!
//! A case that fails on a simulated disk says so with the whole bench and the seed, which is all that
//! it takes to run it again:
//! ```
//! use trunkline_aio::MethodKind;
//! use trunkline_sim::rig::Bench;
//!
//! let report = Bench::simulated(MethodKind::Worker, 7, false).run(|bench| {
//!     assert!(bench.is_simulated());
//! });
//! assert!(report.is_some());
//! assert!(Bench::real(MethodKind::Worker, true).run(|bench| assert!(bench.local)).is_none());
//! ```

use trunkline_aio::MethodKind;
use trunkline_aio::sync::sched;

/// The methods that can run under the scheduler.
pub const SIMULATED: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom];
/// The methods that run on real files.
pub const REAL: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bench {
    /// The method of the instance.
    pub method: MethodKind,
    /// Of the simulated disk; without one it is real files and real threads.
    pub seed: Option<u64>,
    /// The pool is one session's own.
    pub local: bool,
    /// Sessions make buffered writes themselves, as by default on local file systems.
    pub at_once: bool,
    /// One in so many switch points switches. Many: a thread goes far while another one stands between
    /// two steps.
    pub switch_one_in: u32,
}

/// As by [`sched::Config::new`].
const SWITCH_ONE_IN: u32 = 3;

impl Bench {
    /// Under the scheduler, on the simulated disk.
    pub fn simulated(method: MethodKind, seed: u64, local: bool) -> Self {
        Self { method, seed: Some(seed), local, at_once: false, switch_one_in: SWITCH_ONE_IN }
    }

    /// On real files, with real threads.
    pub fn real(method: MethodKind, local: bool) -> Self {
        Self { method, seed: None, local, at_once: false, switch_one_in: SWITCH_ONE_IN }
    }

    /// Whether it is a simulated disk, under the scheduler.
    pub fn is_simulated(&self) -> bool {
        self.seed.is_some()
    }

    /// Runs a case here; what the scheduler has to report, if there is one.
    ///
    /// # Panics
    /// As the case does; a simulated one also by a deadlock or a livelock.
    pub fn run(self, case: impl FnOnce(Bench) + Send + 'static) -> Option<sched::Report> {
        let Some(seed) = self.seed else {
            case(self);
            return None;
        };
        let switch_one_in = self.switch_one_in;
        let config = sched::Config { switch_one_in, ..sched::Config::new(seed) };
        let result = sched::run(config, move || case(self));
        Some(result.unwrap_or_else(|failure| panic!("{self:?}: {failure}")))
    }
}
