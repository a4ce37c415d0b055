//! Cumulative statistics that have one value only: what never happens here is 0, and what we don't count
//! is null.
//!
//! Statistics are those of this program, from its start on, as those of a server are that has lost its
//! statistics file. Nothing is ever written, vacuumed or analyzed, and there are no checkpoints. Scans
//! and transactions are not counted: the null of `pg_stat_database.xact_commit` says so, where a number
//! would be wrong. The blocks of relations are counted, so the views `pg_statio_…` show them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array};

use super::call::{Call, Kernel};
use crate::catalog::oids;
use crate::error::SqlError;

/// Functions by `pg_proc.prosrc`, all of which give the same.
macro_rules! functions {
    ($kernel:ident: $($name:literal)*) => { &[$(($name, $kernel as Kernel)),*] };
}

/// Counts of what never happens.
pub(super) const NEVER: &[(&str, Kernel)] = functions! {
    zero:
    "pg_stat_get_analyze_count"
    "pg_stat_get_autoanalyze_count"
    "pg_stat_get_autovacuum_count"
    "pg_stat_get_bgwriter_buf_written_checkpoints"
    "pg_stat_get_bgwriter_buf_written_clean"
    "pg_stat_get_bgwriter_maxwritten_clean"
    "pg_stat_get_bgwriter_requested_checkpoints"
    "pg_stat_get_bgwriter_timed_checkpoints"
    "pg_stat_get_buf_fsync_backend"
    "pg_stat_get_buf_written_backend"
    "pg_stat_get_checkpoint_sync_time"
    "pg_stat_get_checkpoint_write_time"
    "pg_stat_get_checkpointer_buffers_written"
    "pg_stat_get_checkpointer_num_performed"
    "pg_stat_get_checkpointer_num_requested"
    "pg_stat_get_checkpointer_num_timed"
    "pg_stat_get_checkpointer_restartpoints_performed"
    "pg_stat_get_checkpointer_restartpoints_requested"
    "pg_stat_get_checkpointer_restartpoints_timed"
    "pg_stat_get_checkpointer_slru_written"
    "pg_stat_get_checkpointer_sync_time"
    "pg_stat_get_checkpointer_write_time"
    "pg_stat_get_db_blk_write_time"
    "pg_stat_get_db_conflict_all"
    "pg_stat_get_db_conflict_bufferpin"
    "pg_stat_get_db_conflict_lock"
    "pg_stat_get_db_conflict_logicalslot"
    "pg_stat_get_db_conflict_snapshot"
    "pg_stat_get_db_conflict_startup_deadlock"
    "pg_stat_get_db_conflict_tablespace"
    "pg_stat_get_db_deadlocks"
    "pg_stat_get_db_tuples_deleted"
    "pg_stat_get_db_tuples_inserted"
    "pg_stat_get_db_tuples_updated"
    "pg_stat_get_total_analyze_time"
    "pg_stat_get_total_autoanalyze_time"
    "pg_stat_get_total_autovacuum_time"
    "pg_stat_get_total_vacuum_time"
    "pg_stat_get_tuples_deleted"
    "pg_stat_get_tuples_hot_updated"
    "pg_stat_get_tuples_inserted"
    "pg_stat_get_tuples_newpage_updated"
    "pg_stat_get_tuples_updated"
    "pg_stat_get_vacuum_count"
    "pg_stat_get_xact_tuples_deleted"
    "pg_stat_get_xact_tuples_hot_updated"
    "pg_stat_get_xact_tuples_inserted"
    "pg_stat_get_xact_tuples_newpage_updated"
    "pg_stat_get_xact_tuples_updated"
};

/// Counts and times that we don't have. Those of vacuuming and the like have never been.
pub(super) const NOT_COUNTED: &[(&str, Kernel)] = functions! {
    null:
    "pg_stat_get_buf_alloc"
    "pg_stat_get_db_active_time"
    "pg_stat_get_db_blk_read_time"
    "pg_stat_get_db_blocks_fetched"
    "pg_stat_get_db_blocks_hit"
    "pg_stat_get_db_checksum_failures"
    "pg_stat_get_db_checksum_last_failure"
    "pg_stat_get_db_idle_in_transaction_time"
    "pg_stat_get_db_parallel_workers_launched"
    "pg_stat_get_db_parallel_workers_to_launch"
    "pg_stat_get_db_session_time"
    "pg_stat_get_db_sessions"
    "pg_stat_get_db_sessions_abandoned"
    "pg_stat_get_db_sessions_fatal"
    "pg_stat_get_db_sessions_killed"
    "pg_stat_get_db_stat_reset_time"
    "pg_stat_get_db_temp_bytes"
    "pg_stat_get_db_temp_files"
    "pg_stat_get_db_tuples_fetched"
    "pg_stat_get_db_tuples_returned"
    "pg_stat_get_db_xact_commit"
    "pg_stat_get_db_xact_rollback"
    "pg_stat_get_dead_tuples"
    "pg_stat_get_function_calls"
    "pg_stat_get_function_self_time"
    "pg_stat_get_function_total_time"
    "pg_stat_get_ins_since_vacuum"
    "pg_stat_get_last_analyze_time"
    "pg_stat_get_last_autoanalyze_time"
    "pg_stat_get_last_autovacuum_time"
    "pg_stat_get_last_vacuum_time"
    "pg_stat_get_lastscan"
    "pg_stat_get_live_tuples"
    "pg_stat_get_mod_since_analyze"
    "pg_stat_get_numscans"
    "pg_stat_get_tuples_fetched"
    "pg_stat_get_tuples_returned"
    "pg_stat_get_xact_function_calls"
    "pg_stat_get_xact_function_self_time"
    "pg_stat_get_xact_function_total_time"
    "pg_stat_get_xact_numscans"
    "pg_stat_get_xact_tuples_fetched"
    "pg_stat_get_xact_tuples_returned"
};

/// 0, or null if the argument is null.
fn zero(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let rows = 0..call.rows;
    let is_null = |row: usize| call.arguments.iter().any(|argument| argument.is_null(row));
    match call.result_type {
        oids::INT8 => {
            Ok(Arc::new(rows.map(|row| (!is_null(row)).then_some(0)).collect::<Int64Array>()))
        }
        oids::FLOAT8 => {
            Ok(Arc::new(rows.map(|row| (!is_null(row)).then_some(0.0)).collect::<Float64Array>()))
        }
        _ => Err(SqlError::internal("a statistic of another type")),
    }
}

fn null(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    match call.result_type {
        oids::INT8 | oids::TIMESTAMPTZ => Ok(Arc::new(Int64Array::new_null(call.rows))),
        oids::FLOAT8 => Ok(Arc::new(Float64Array::new_null(call.rows))),
        _ => Err(SqlError::internal("a statistic of another type")),
    }
}
