//! Which function of the server has which implementation.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use trunkline_sql::SqlError;
use trunkline_sql::functions::{Argument, ServerFunctions};

use super::view::{ServerView, int4, oid};

impl ServerFunctions for ServerView {
    fn rows(
        &self,
        function: &str,
        arguments: &[Argument],
        row: usize,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        self.cancellation.check()?;
        // All functions with arguments here are strict, and a strict function has no rows then.
        match function {
            "pg_get_aios" => self.aios(),
            "pg_stat_get_io" => self.io_statistics(),
            "pg_buffercache_pages" => self.buffers(),
            "pg_buffercache_summary" => self.buffer_summary(),
            "pg_buffercache_usage_counts" => self.usage_counts(),
            "pg_buffercache_evict_all" => self.evict_all(),
            "pg_buffercache_evict" => match int4(arguments, 0, row) {
                Some(buffer) => self.evict_buffer(buffer),
                None => Ok(Vec::new()),
            },
            "pg_buffercache_evict_relation" => match oid(arguments, 0, row) {
                Some(relation) => self.evict_relation(relation),
                None => Ok(Vec::new()),
            },
            "read_stream_for_blocks" => self.stream_blocks(arguments, row),
            "trunkline_io_histogram" => self.latencies(),
            "trunkline_io_method" => self.io_method(),
            "trunkline_io_relations" => self.relation_totals(),
            "trunkline_residency" => self.residency(),
            "pg_get_sequence_data" => match oid(arguments, 0, row) {
                Some(relation) => self.sequence_data(relation),
                None => Ok(Vec::new()),
            },
            "pg_sequence_parameters" => match oid(arguments, 0, row) {
                Some(sequence) => self.sequence_parameters(sequence),
                None => Ok(Vec::new()),
            },
            _ => match &self.session_functions {
                Some(next) => next.rows(function, arguments, row),
                None => Err(SqlError::unsupported_function(function)),
            },
        }
    }

    fn values(
        &self,
        function: &str,
        arguments: &[Argument],
        rows: usize,
    ) -> Result<ArrayRef, SqlError> {
        match function {
            "pg_prewarm" => {
                let loaded = (0..rows).map(|row| self.prewarm(arguments, row).map(Some));
                Ok(Arc::new(loaded.collect::<Result<Int64Array, _>>()?))
            }
            "pg_stat_get_blocks_fetched" | "pg_stat_get_blocks_hit" => {
                let only_hits = function == "pg_stat_get_blocks_hit";
                let counts = self.blocks_by_relation(only_hits);
                let values = (0..rows).map(|row| {
                    let relation = oid(arguments, 0, row)?;
                    Some(counts.get(&relation).copied().unwrap_or_default())
                });
                Ok(Arc::new(values.collect::<Int64Array>()))
            }
            "pg_sequence_last_value" => {
                let values = (0..rows).map(|row| match oid(arguments, 0, row) {
                    Some(relation) => self.sequence_last_value(relation),
                    None => Ok(None),
                });
                Ok(Arc::new(values.collect::<Result<Int64Array, _>>()?))
            }
            // The results are void, whose text is empty.
            "pg_stat_reset_shared" => {
                let done = (0..rows).map(|row| {
                    let is_reset = self.reset_statistics(arguments, row)?;
                    Ok(is_reset.then_some(""))
                });
                Ok(Arc::new(done.collect::<Result<StringViewArray, SqlError>>()?))
            }
            _ => match &self.session_functions {
                Some(next) => next.values(function, arguments, rows),
                None => Err(SqlError::unsupported_function(function)),
            },
        }
    }
}
