//! The rows that searches of an index lead to, without a plan around the scan.

use std::future::poll_fn;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trunkline_aio::facade::Mutex;
use trunkline_engine::heap::ToastBatch;
use trunkline_engine::index_scan::{MissingPage, look_up_row};
use trunkline_engine::read_stream::ParallelRange;
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::columns::ScanColumns;
use super::counters::ScanCounters;
use super::partition_reader::{PartitionReader, decode, has_toast, rows_of};
use super::row_decoder::RowDecoder;
use crate::access_path::{AccessPath, IndexSearch};
use crate::session_thread::is_session_thread;

/// Reads columns of the rows that searches lead to. It is meant for searches that lead to few rows, since
/// all of them are returned at once.
pub(crate) struct RowLookup {
    columns: ScanColumns,
    schema: SchemaRef,
    /// That of the last look-up, because making one takes longer than decoding a row.
    decoder: Mutex<Option<RowDecoder>>,
}

impl RowLookup {
    /// A look-up of columns, whose batches have this schema.
    pub(crate) fn new(columns: ScanColumns, schema: SchemaRef) -> Self {
        Self { columns, schema, decoder: Mutex::new(None) }
    }

    /// The columns.
    pub(crate) fn columns(&self) -> &ScanColumns {
        &self.columns
    }

    /// Reads the rows that a search leads to. The caller must check the search's conditions for each of
    /// them again. `access` must be of the table that the columns are of.
    ///
    /// # Errors
    /// Those of the index, of the table, and of its values; 57014 if the statement was cancelled.
    pub(crate) async fn rows(
        &self,
        access: TableAccess,
        search: &Arc<IndexSearch>,
    ) -> Result<Vec<RecordBatch>, SqlError> {
        if let Some(found) = self.without_scan(&access, search, MissingPage::GiveUp)? {
            return Ok(found);
        }
        if is_session_thread() {
            let _wait = access.cancellation.wait_for_io();
            if let Some(found) = self.without_scan(&access, search, MissingPage::Read)? {
                return Ok(found);
            }
        }
        let path = Arc::new(AccessPath::of_search(Arc::clone(search)));
        let (columns, schema) = (self.columns.clone(), Arc::clone(&self.schema));
        // The search, not a range of the table, says which pages are read.
        let (parts, counters) = (ParallelRange::new(0), (ScanCounters::default(), 0));
        let mut reader =
            PartitionReader::new((access, path), parts, false, columns, schema, counters);
        let mut batches = Vec::new();
        while let Some(batch) = poll_fn(|context| reader.poll_batch(context, Some(1))).await {
            batches.push(batch?);
        }
        Ok(batches)
    }

    /// The rows, if they can be found as [`look_up_row`] does. Values of TOAST are left to a scan, and so
    /// are errors.
    fn without_scan(
        &self,
        access: &TableAccess,
        search: &IndexSearch,
        missing: MissingPage,
    ) -> Result<Option<Vec<RecordBatch>>, SqlError> {
        let Some(ranges) = &search.ranges else { return Ok(Some(Vec::new())) };
        let mut backend = access.session()?;
        let table = access.indexed(search)?;
        let known = self.decoder.lock().take();
        let mut decoder = known.unwrap_or_else(|| {
            let (columns, schema) = (self.columns.clone(), Arc::clone(&self.schema));
            RowDecoder::new(columns, &access.files.rows, schema, 1)
        });
        let decoded = look_up_row(&mut backend, &table, ranges, missing, |page| match page {
            Some(page) if has_toast(&page) => Ok(false),
            Some(page) => {
                decode(&mut decoder, &rows_of(page.rows())?, &ToastBatch::new()).map(|()| true)
            }
            None => Ok::<bool, SqlError>(true),
        });
        Ok(match decoded.transpose()? {
            Some(true) => {
                let batch = (decoder.rows() > 0).then(|| decoder.finish()).transpose()?;
                *self.decoder.lock() = Some(decoder);
                Some(batch.into_iter().collect())
            }
            _ => None,
        })
    }
}
