//! Names of the engine's settings that change while it runs.

/// The settings that `pg_reload_conf()` changes in the engine.
pub(crate) const LIVE: [&str; 5] = [
    "io_method",
    "io_min_workers",
    "io_max_workers",
    "io_worker_idle_timeout",
    "io_worker_launch_interval",
];

/// The name in version 18 of both bounds.
pub(crate) const BOTH_BOUNDS: &str = "io_workers";

/// Whether `pg_reload_conf()` changes this setting, whose name is in lower case.
pub(super) fn is_live(name: &str) -> bool {
    LIVE.contains(&name) || name == BOTH_BOUNDS
}
