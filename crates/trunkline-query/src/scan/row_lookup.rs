//! The rows that a search of an index leads to, without a plan around the scan.

use std::future::poll_fn;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trunkline_engine::read_stream::ParallelRange;
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::columns::ScanColumns;
use super::counters::ScanCounters;
use super::partition_reader::PartitionReader;
use crate::access_path::{AccessPath, IndexSearch};

/// Reads the rows that a search leads to. It is meant for searches that lead to few rows, since all of
/// them are returned at once. The caller must check the search's conditions for each row again.
///
/// # Errors
/// Those of the index, of the table, and of its values; 57014 if the statement was cancelled.
pub(crate) async fn looked_up(
    access: TableAccess,
    search: IndexSearch,
    columns: ScanColumns,
    schema: SchemaRef,
) -> Result<Vec<RecordBatch>, SqlError> {
    let path = Arc::new(AccessPath::of_search(search));
    // The search, not a range of the table, says which pages are read.
    let (parts, counters) = (ParallelRange::new(0), (ScanCounters::default(), 0));
    let mut reader =
        PartitionReader::new((access, path), parts, false, columns, schema, counters, Some(1));
    let mut batches = Vec::new();
    while let Some(batch) = poll_fn(|context| reader.poll_batch(context)).await {
        batches.push(batch?);
    }
    Ok(batches)
}
