//! Functions that see the server, such as `pg_get_aios()` and `pg_prewarm(regclass)`.
//!
//! They have kernels like all other functions, but the kernels only pass the call on to
//! [`ServerFunctions`](super::call::ServerFunctions). Where there is no server, such as in a test of
//! kernels, a call is refused.

use arrow_array::ArrayRef;

use super::call::{Call, Kernel};
use super::set_rows::{AllRows, SetFunction};
use crate::error::SqlError;

/// Set-returning functions by `pg_proc.prosrc`.
macro_rules! sets {
    ($($name:literal)*) => {
        &[$(($name, |call, row| Ok(Box::new(rows($name, call, row)?)))),*]
    };
}

/// Other functions by `pg_proc.prosrc`.
macro_rules! values {
    ($($name:literal)*) => { &[$(($name, |call| values($name, call))),*] };
}

/// The set-returning functions of this area.
pub(super) const SETS: &[(&str, SetFunction)] = sets! {
    "pg_buffercache_evict"
    "pg_buffercache_evict_all"
    "pg_buffercache_evict_relation"
    "pg_buffercache_pages"
    "pg_buffercache_summary"
    "pg_buffercache_usage_counts"
    "pg_cursor"
    "pg_config"
    "pg_get_aios"
    "pg_get_replication_slots"
    "pg_get_sequence_data"
    "pg_get_shmem_allocations"
    "pg_get_shmem_allocations_numa"
    "pg_get_wait_events"
    "pg_lock_status"
    "pg_sequence_parameters"
    "pg_show_replication_origin_status"
    "pg_prepared_statement"
    "pg_prepared_xact"
    "pg_stat_get_archiver"
    "pg_stat_get_io"
    "pg_stat_get_progress_info"
    "pg_stat_get_recovery_prefetch"
    "pg_stat_get_subscription"
    "pg_stat_get_subscription_stats"
    "pg_stat_get_wal"
    "pg_stat_get_wal_receiver"
    "pg_stat_get_wal_senders"
    "pg_stat_get_activity"
    "read_stream_for_blocks"
    "show_all_settings"
    "trunkline_io_histogram"
    "trunkline_io_method"
    "trunkline_io_relations"
    "trunkline_residency"
};

/// The other functions of this area.
pub(super) const VALUES: &[(&str, Kernel)] = values! {
    "pg_backend_pid"
    "pg_blocking_pids"
    "pg_cancel_backend"
    "pg_client_encoding"
    "pg_conf_load_time"
    "pg_is_in_recovery"
    "pg_postmaster_start_time"
    "pg_prewarm"
    "pg_reload_conf"
    "pg_safe_snapshot_blocking_pids"
    "pg_sequence_last_value"
    "pg_stat_get_bgwriter_stat_reset_time"
    "pg_stat_get_blocks_fetched"
    "pg_stat_get_blocks_hit"
    "pg_stat_get_checkpointer_stat_reset_time"
    "pg_stat_get_db_numbackends"
    "pg_stat_reset_shared"
    "pg_terminate_backend"
    "pgsql_version"
    "set_config_by_name"
    "show_config_by_name"
    "show_config_by_name_missing_ok"
};

/// The error of a function that sees a server where there is none.
fn refused(name: &str) -> SqlError {
    SqlError::unsupported(format!("function {name} is not supported by trunkline here"))
}

fn rows(name: &str, call: &Call<'_>, row: usize) -> Result<AllRows, SqlError> {
    let server = call.settings.server.as_ref().ok_or_else(|| refused(name))?;
    Ok(AllRows::new(server.rows(name, call.arguments, row)?))
}

fn values(name: &str, call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let server = call.settings.server.as_ref().ok_or_else(|| refused(name))?;
    server.values(name, call.arguments, call.rows)
}
