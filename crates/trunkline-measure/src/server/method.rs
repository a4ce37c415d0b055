//! **Server methods**: `io_method` and `io_workers`, which a server reads when it starts, and the
//! other settings that make its work comparable with ours.
//!
//! Instead of its methods, a server can be compared with itself, in two configurations:
//!
//! ```text
//!   methods          sync, worker 3, … each with our concurrency and size of I/Os
//!   defaults         the server's own defaults of everything that concerns I/O and the planner
//!   settings         the same, except for the user's lines
//! ```
//! [`settings`] owns which settings each of them has.

use trunkline_engine::settings::IoMethod;

use super::lines::ServerLines;
use super::quiet::{FEW_PROCESSES, QUIET};

/// How a server does its I/O: one of its methods, or a configuration, which also decides how many I/Os
/// are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMethod {
    /// Servers before version 18 have no choice.
    None,
    /// `io_method = sync`.
    Sync,
    /// `io_method = worker` with this number of `io_workers`.
    Worker(u32),
    /// `io_method = io_uring`.
    IoUring,
    /// A configuration: the server's defaults.
    Defaults,
    /// A configuration: the server's defaults, except for the user's lines.
    Settings,
}

impl ServerMethod {
    /// Both configurations.
    pub const CONFIGURATIONS: [ServerMethod; 2] = [ServerMethod::Defaults, ServerMethod::Settings];

    /// All methods of a server, or those that correspond to `only`. `workers` are the numbers of
    /// worker processes to try.
    pub fn all(major: u32, workers: &[u32], only: Option<IoMethod>) -> Vec<Self> {
        if major < 18 {
            return vec![Self::None];
        }
        let mut all = vec![Self::Sync];
        all.extend(workers.iter().map(|&number| Self::Worker(number)));
        all.push(Self::IoUring);
        all.retain(|method| only.is_none() || method.ours() == only);
        all
    }

    /// Whether it is a configuration, whose I/Os are up to its settings.
    pub(crate) fn is_configuration(self) -> bool {
        Self::CONFIGURATIONS.contains(&self)
    }

    /// Its name in `io_method`, or that of the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sync => "sync",
            Self::Worker(_) => "worker",
            Self::IoUring => "io_uring",
            Self::Defaults => "defaults",
            Self::Settings => "settings",
        }
    }

    /// What plots and texts call it: `worker 12`.
    pub(crate) fn label(self) -> String {
        match self {
            Self::Worker(number) => format!("worker {number}"),
            other => other.name().to_owned(),
        }
    }

    /// The number of worker processes, if it has them.
    pub(crate) fn workers(self) -> Option<u32> {
        match self {
            Self::Worker(number) => Some(number),
            _ => None,
        }
    }

    /// Our method of the same kind.
    pub(crate) fn ours(self) -> Option<IoMethod> {
        match self {
            Self::None | Self::Defaults | Self::Settings => None,
            Self::Sync => Some(IoMethod::Sync),
            Self::Worker(_) => Some(IoMethod::Worker),
            Self::IoUring => Some(IoMethod::IoUring),
        }
    }
}

/// The sizes that the server and our engine have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// `shared_buffers` in blocks.
    pub buffers: u32,
    /// The largest `effective_io_concurrency` of the plan.
    pub concurrency_max: u32,
    /// The largest `io_combine_limit` of the plan, in blocks.
    pub combine_max: u32,
}

/// A setting of the server.
pub(super) type Setting = (String, String);

pub(super) fn setting(name: &str, value: impl ToString) -> Setting {
    (name.to_owned(), value.to_string())
}

/// The settings for measuring. Nothing may run beside the query, and nothing may leave the machine.
/// `lines` are those of [`ServerMethod::Settings`].
pub(super) fn settings(
    major: u32,
    method: ServerMethod,
    sizes: Sizes,
    lines: &ServerLines,
) -> Vec<Setting> {
    let mut all: Vec<Setting> = QUIET.map(|(name, value)| setting(name, value)).to_vec();
    all.push(setting("shared_buffers", sizes.buffers.max(16)));
    if !method.is_configuration() {
        all.extend(FEW_PROCESSES.map(|(name, value)| setting(name, value)));
    }
    match method {
        ServerMethod::Defaults => {}
        ServerMethod::Settings => {
            all.extend(lines.iter().map(|(name, value)| setting(name, value)));
        }
        method if major >= 18 => {
            all.push(setting("io_method", method.name()));
            all.push(setting("io_max_combine_limit", sizes.combine_max));
            // By default, a small pool of buffers would allow fewer I/Os in flight than we have.
            all.push(setting("io_max_concurrency", sizes.concurrency_max.clamp(64, 1024)));
        }
        _ => {}
    }
    if let Some(workers) = method.workers() {
        all.extend(worker_settings(major, workers));
    }
    all
}

/// Version 19 starts and ends workers as needed, between two numbers.
fn worker_settings(major: u32, workers: u32) -> Vec<Setting> {
    match major {
        18 => vec![setting("io_workers", workers)],
        _ => vec![setting("io_min_workers", workers), setting("io_max_workers", workers)],
    }
}

/// The settings whose values in each configuration the report shows, beside those of the user's
/// lines. Older servers lack some of them.
pub(super) const SHOWN: [&str; 14] = [
    "io_method",
    "io_workers",
    "io_min_workers",
    "io_max_workers",
    "effective_io_concurrency",
    "maintenance_io_concurrency",
    "io_combine_limit",
    "io_max_combine_limit",
    "io_max_concurrency",
    "random_page_cost",
    "seq_page_cost",
    "effective_cache_size",
    "shared_buffers",
    "work_mem",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_those_of_the_version() {
        use ServerMethod::{IoUring, None as No, Sync, Worker};
        let all = ServerMethod::all;
        assert_eq!(all(17, &[3], None), [No]);
        assert_eq!(all(17, &[3], Some(IoMethod::Worker)), [No]);
        assert_eq!(all(18, &[3, 12], None), [Sync, Worker(3), Worker(12), IoUring]);
        assert_eq!(all(19, &[3, 12], Some(IoMethod::Worker)), [Worker(3), Worker(12)]);
    }

    #[test]
    fn settings_exist_in_their_version() {
        let sizes = Sizes { buffers: 2048, concurrency_max: 256, combine_max: 32 };
        let of = |major, method| {
            let all = settings(major, method, sizes, &ServerLines::default());
            move |name: &str| all.iter().find(|one| one.0 == name).map(|one| one.1.clone())
        };
        let (old, new) = (of(17, ServerMethod::None), of(18, ServerMethod::Worker(12)));
        let newest = of(19, ServerMethod::Worker(12));
        assert_eq!((old("shared_buffers"), old("io_method")), (Some("2048".into()), None));
        assert_eq!(
            (new("io_method"), new("io_workers")),
            (Some("worker".into()), Some("12".into()))
        );
        assert_eq!(new("io_max_concurrency"), Some("256".into()));
        assert_eq!((newest("io_workers"), newest("io_max_workers")), (None, Some("12".into())));
    }

    #[test]
    fn configurations_differ_in_the_lines_of_the_user_only() {
        let sizes = Sizes { buffers: 2048, concurrency_max: 256, combine_max: 32 };
        let lines = [("io_workers", "12"), ("random_page_cost", "1.1")];
        let taken = ServerLines::new(lines.map(|(name, value)| setting(name, value)));
        let taken = taken.expect("taken");
        for major in [15, 18, 19] {
            let of = |method| settings(major, method, sizes, &taken);
            let (defaults, all) = (of(ServerMethod::Defaults), of(ServerMethod::Settings));
            let (common, own) = all.split_at(defaults.len());
            assert_eq!(common, defaults);
            assert_eq!(own, lines.map(|(name, value)| setting(name, value)));
            let has = |name: &str| defaults.iter().any(|one| one.0 == name);
            assert!(has("shared_buffers") && has("max_parallel_workers_per_gather") && has("jit"));
            let own = ["io_method", "io_workers", "io_max_combine_limit", "io_max_concurrency"];
            // These decide how many buffers a session may pin.
            let processes = ["max_connections", "max_wal_senders", "max_worker_processes"];
            assert!(!own.into_iter().chain(processes).any(has), "{defaults:?}");
            // The lines are those of one configuration, and of no method.
            let sync = of(ServerMethod::Sync);
            assert!(!sync.contains(&setting("random_page_cost", "1.1")));
            assert!(sync.contains(&setting("max_connections", 10)));
        }
        assert!(ServerMethod::CONFIGURATIONS.into_iter().all(ServerMethod::is_configuration));
        assert!(!ServerMethod::None.is_configuration());
    }
}
