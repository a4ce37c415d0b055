//! The rows that a search of an index leads to, without a plan around the scan.

use std::future::poll_fn;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trunkline_engine::heap::{ToastBatch, has_external};
use trunkline_engine::index_scan::look_up_in_pool;
use trunkline_engine::read_stream::ParallelRange;
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::columns::ScanColumns;
use super::counters::ScanCounters;
use super::failure::row_error;
use super::partition_reader::PartitionReader;
use super::row_decoder::{Fetched, RowDecoder};
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
    if let Some(found) = in_pool(&access, &search, &columns, &schema)? {
        return Ok(found);
    }
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

/// The rows, if all pages that lead to them are in the pool. Values of TOAST are left to the scan.
fn in_pool(
    access: &TableAccess,
    search: &IndexSearch,
    columns: &ScanColumns,
    schema: &SchemaRef,
) -> Result<Option<Vec<RecordBatch>>, SqlError> {
    let Some(ranges) = &search.ranges else { return Ok(Some(Vec::new())) };
    let mut backend = access.session()?;
    let table = access.indexed(search)?;
    let rows = &access.files.rows;
    let mut decoder = RowDecoder::new(columns.clone(), rows, Arc::clone(schema), 1);
    let decoded = look_up_in_pool(&mut backend, &table, ranges, |page| {
        let Some(page) = page else { return Ok(true) };
        let mut rows = Vec::with_capacity(1);
        for row in page.rows() {
            rows.push(row.map_err(|error| row_error(&error))?);
        }
        if rows.iter().any(|row| has_external(&row.tuple)) {
            return Ok(false);
        }
        decoder.decode(&rows, &mut Fetched { batch: &ToastBatch::new(), next: 0 })?;
        Ok::<bool, SqlError>(true)
    });
    Ok(match decoded.transpose()? {
        Some(true) if decoder.rows() == 0 => Some(Vec::new()),
        Some(true) => Some(vec![decoder.finish()?]),
        _ => None,
    })
}
