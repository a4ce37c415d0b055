//! **Server methods**: `io_method` and `io_workers`, which a server reads when it starts, and the
//! other settings that make its work comparable with ours.

use trunkline_engine::settings::IoMethod;

/// How a server does its I/O.
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
}

impl ServerMethod {
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

    /// Its name in `io_method`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sync => "sync",
            Self::Worker(_) => "worker",
            Self::IoUring => "io_uring",
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
            Self::None => None,
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
pub(super) type Setting = (&'static str, String);

/// The settings for measuring. Nothing may run beside the query, and nothing may leave the machine.
pub(super) fn settings(major: u32, method: ServerMethod, sizes: Sizes) -> Vec<Setting> {
    let mut all: Vec<Setting> = QUIET.map(|(name, value)| (name, value.to_owned())).to_vec();
    all.push(("shared_buffers", format!("{}", sizes.buffers.max(16))));
    if major >= 18 {
        all.push(("io_method", method.name().to_owned()));
        all.push(("io_max_combine_limit", sizes.combine_max.to_string()));
        // By default, a small pool of buffers would allow fewer I/Os in flight than we have.
        all.push(("io_max_concurrency", sizes.concurrency_max.clamp(64, 1024).to_string()));
    }
    if let Some(workers) = method.workers() {
        all.extend(worker_settings(major, workers));
    }
    all
}

/// Version 19 starts and ends workers as needed, between two numbers.
fn worker_settings(major: u32, workers: u32) -> Vec<Setting> {
    let number = workers.to_string();
    match major {
        18 => vec![("io_workers", number)],
        _ => vec![("io_min_workers", number.clone()), ("io_max_workers", number)],
    }
}

/// The same for all servers.
const QUIET: [(&str, &str); 23] = [
    ("listen_addresses", ""),
    ("port", "5432"),
    // Relative to the data directory, because a socket's path may have only 107 bytes.
    ("unix_socket_directories", "../../socket"),
    ("unix_socket_permissions", "0700"),
    ("max_connections", "10"),
    ("shared_preload_libraries", ""),
    ("session_preload_libraries", ""),
    ("local_preload_libraries", ""),
    ("ssl", "off"),
    ("autovacuum", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("archive_mode", "off"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "1d"),
    ("max_parallel_workers_per_gather", "0"),
    ("max_parallel_maintenance_workers", "0"),
    ("jit", "off"),
    ("synchronize_seqscans", "off"),
    ("logging_collector", "off"),
    ("log_destination", "stderr"),
    ("lc_messages", "C"),
    ("restart_after_crash", "off"),
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
            let all = settings(major, method, sizes);
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
}
