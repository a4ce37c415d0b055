//! Groups of settings, as `pg_settings.category` names them.
//!
//! The words are those of PostgreSQL 18. A setting that only we have is in the group of the settings
//! that it resembles.

const CONNECTIONS: &str = "Connections and Authentication / Connection Settings";
const MEMORY: &str = "Resource Usage / Memory";
const DISK: &str = "Resource Usage / Disk";
const KERNEL: &str = "Resource Usage / Kernel Resources";
const BACKGROUND_WRITER: &str = "Resource Usage / Background Writer";
const IO: &str = "Resource Usage / I/O";
const WORKERS: &str = "Resource Usage / Worker Processes";
const CHECKPOINTS: &str = "Write-Ahead Log / Checkpoints";
const COSTS: &str = "Query Tuning / Planner Cost Constants";
const METHODS: &str = "Query Tuning / Planner Method Configuration";
const WHAT_TO_LOG: &str = "Reporting and Logging / What to Log";
const STATEMENTS: &str = "Client Connection Defaults / Statement Behavior";
const LOCALE: &str = "Client Connection Defaults / Locale and Formatting";
const COMPATIBILITY: &str = "Version and Platform Compatibility / Previous PostgreSQL Versions";
const DEVELOPER: &str = "Developer Options";
const PRESET: &str = "Preset Options";

/// The group of settings that extensions and users define.
pub(super) const CUSTOMIZED: &str = "Customized Options";

/// Groups by the names of settings in lower case. Those that aren't listed are preset.
const GROUPS: &[(&str, &[&str])] = &[
    (CONNECTIONS, &["max_sessions"]),
    (MEMORY, &["hash_mem_multiplier", "shared_buffers", "temp_buffers", "work_mem"]),
    (DISK, &["file_extend_method"]),
    (KERNEL, &["max_files_per_process"]),
    (
        BACKGROUND_WRITER,
        &[
            "bgwriter_delay",
            "bgwriter_flush_after",
            "bgwriter_lru_maxpages",
            "bgwriter_lru_multiplier",
        ],
    ),
    (
        IO,
        &[
            "backend_flush_after",
            "effective_io_concurrency",
            "io_combine_limit",
            "io_max_combine_limit",
            "io_max_concurrency",
            "io_max_workers",
            "io_method",
            "io_min_workers",
            "io_worker_idle_timeout",
            "io_worker_launch_interval",
            "io_workers",
            "maintenance_io_concurrency",
        ],
    ),
    (WORKERS, &["max_parallel_workers_per_gather"]),
    (
        CHECKPOINTS,
        &["checkpoint_completion_target", "checkpoint_flush_after", "checkpoint_timeout"],
    ),
    (
        COSTS,
        &[
            "cpu_index_tuple_cost",
            "cpu_operator_cost",
            "cpu_tuple_cost",
            "effective_cache_size",
            "measured_page_costs",
            "random_page_cost",
            "seq_page_cost",
        ],
    ),
    (
        METHODS,
        &[
            "enable_bitmapscan",
            "enable_hashjoin",
            "enable_indexonlyscan",
            "enable_indexscan",
            "enable_nestloop",
            "enable_seqscan",
        ],
    ),
    (WHAT_TO_LOG, &["application_name"]),
    (
        STATEMENTS,
        &[
            "bytea_output",
            "client_min_messages",
            "default_transaction_deferrable",
            "default_transaction_isolation",
            "default_transaction_read_only",
            "idle_in_transaction_session_timeout",
            "idle_session_timeout",
            "lock_timeout",
            "search_path",
            "statement_timeout",
            "transaction_timeout",
        ],
    ),
    (
        LOCALE,
        &[
            "client_encoding",
            "datestyle",
            "extra_float_digits",
            "intervalstyle",
            "lc_messages",
            "lc_monetary",
            "lc_numeric",
            "lc_time",
            "timezone",
        ],
    ),
    (COMPATIBILITY, &["standard_conforming_strings"]),
    (DEVELOPER, &["debug_io_direct", "ignore_checksum_failure", "io_direct", "zero_damaged_pages"]),
];

/// The group of a setting, by its name in lower case.
pub(super) fn category(key: &str) -> &'static str {
    let group = GROUPS.iter().find(|(_, names)| names.contains(&key));
    group.map_or(PRESET, |(category, _)| *category)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::definition::{Context, DEFINITIONS};
    use trunkline_engine::settings::specs;

    #[test]
    fn only_settings_that_cannot_change_are_preset() {
        for one in DEFINITIONS {
            let is_shown = !matches!(one.name, "session_authorization" | "is_superuser")
                && !one.name.starts_with("transaction_");
            if is_shown || one.name == "transaction_timeout" {
                let is_preset = category(&one.name.to_ascii_lowercase()) == PRESET;
                assert_eq!(is_preset, one.context == Context::Internal, "{}", one.name);
            }
        }
        assert!(specs().iter().all(|spec| category(spec.name) != PRESET));
    }
}
