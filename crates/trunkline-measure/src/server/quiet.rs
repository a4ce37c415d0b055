//! **Quiet settings**: those of every server that we start, whatever is measured. Nothing runs beside
//! the query, and nothing leaves the machine.
//!
//! The number of processes is reduced only for methods. A session may pin at most `shared_buffers`
//! divided by the largest number of processes, and that limits the I/Os in flight. A configuration has
//! to be measured with the limit that it has on the user's server.

/// Names and values.
pub(super) const QUIET: [(&str, &str); 20] = [
    ("listen_addresses", ""),
    ("port", "5432"),
    // Relative to the data directory, because a socket's path may have only 107 bytes.
    ("unix_socket_directories", "../../socket"),
    ("unix_socket_permissions", "0700"),
    ("shared_preload_libraries", ""),
    ("session_preload_libraries", ""),
    ("local_preload_libraries", ""),
    ("ssl", "off"),
    ("autovacuum", "off"),
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

/// Those that reduce the number of processes. A server without `max_wal_senders` may have the lowest
/// `wal_level`, with which tables are created without a log.
pub(super) const FEW_PROCESSES: [(&str, &str); 3] =
    [("max_connections", "10"), ("max_wal_senders", "0"), ("wal_level", "minimal")];

/// Whether all servers have the same value of this setting.
pub(super) fn is_quiet(name: &str) -> bool {
    QUIET.iter().any(|(quiet, _)| *quiet == name)
}
