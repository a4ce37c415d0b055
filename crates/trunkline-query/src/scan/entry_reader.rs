//! Reads an index-only scan: entries, rows, batches.
//!
//! ```text
//!   IndexOnlyScan ── visible entries ──▶ EntryDecoder ──▶ batch
//! ```
//! What [`PartitionReader`](super::partition_reader::PartitionReader) is for pages of the table, this is for
//! entries of an index. It is simpler, because there are no TOAST values to wait for. The table is read by the
//! scan itself, for entries whose rows may not be visible, and nothing of it is decoded.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trunkline_engine::index_scan::IndexOnlyScan;
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::RegisteredStream;
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::batch_size::{BATCH_ROWS, BatchSize};
use super::cancellation::IoWait;
use super::columns::ScanColumns;
use super::counters::{IndexCounts, ScanCounters, ScanCounts};
use super::entry_decoder::EntryDecoder;
use super::failure::index_error;
use crate::access_path::IndexSearch;

/// Reads the only partition of an index-only scan.
pub(super) struct EntryReader {
    access: TableAccess,
    search: Arc<IndexSearch>,
    state: State,
    size: BatchSize,
    /// Where to count, and as which partition.
    counters: (ScanCounters, usize),
    /// The last poll ended before a page had been read.
    waiting: Option<IoWait>,
}

enum State {
    /// Nothing has been opened yet.
    Start {
        columns: ScanColumns,
        schema: SchemaRef,
    },
    Reading(Box<Open>),
    Ended,
}

/// A scan with its session.
struct Open {
    backend: Backend,
    /// `None` if no entry can match.
    scan: Option<RegisteredStream<IndexOnlyScan>>,
    decoder: EntryDecoder,
    counters: (ScanCounters, usize),
}

impl EntryReader {
    pub(super) fn new(
        (access, search): (TableAccess, Arc<IndexSearch>),
        columns: ScanColumns,
        schema: SchemaRef,
        counters: (ScanCounters, usize),
    ) -> Self {
        let (state, size) = (State::Start { columns, schema }, BatchSize::new());
        Self { access, search, state, size, counters, waiting: None }
    }

    /// Returns the next batch, or `None` at the end. After an error, the reader has ended. `wanted` are
    /// the rows that a limit still needs.
    pub(super) fn poll_batch(
        &mut self,
        context: &mut Context<'_>,
        wanted: Option<usize>,
    ) -> Poll<Option<Result<RecordBatch, SqlError>>> {
        let polled = ready!(self.poll(context, wanted));
        if !matches!(polled, Ok(Some(_))) {
            self.state = State::Ended;
        }
        Poll::Ready(polled.transpose())
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        wanted: Option<usize>,
    ) -> Poll<Result<Option<RecordBatch>, SqlError>> {
        self.waiting = None;
        loop {
            self.access.cancellation.check()?;
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Start { columns, schema } => {
                    self.state = State::Reading(Box::new(self.open(columns, schema)?));
                }
                State::Reading(mut open) => match open.poll_entries(context) {
                    Poll::Pending => {
                        self.state = State::Reading(open);
                        self.waiting = Some(self.access.cancellation.wait_for_io());
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(true)) => {
                        let batch = self.batch(&mut open.decoder, wanted);
                        self.state = State::Reading(open);
                        if let Some(batch) = batch {
                            return Poll::Ready(batch.map(Some));
                        }
                    }
                    Poll::Ready(Ok(false)) => {
                        return Poll::Ready(match open.decoder.rows() {
                            0 => Ok(None),
                            _ => open.decoder.finish().map(Some),
                        });
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                },
                State::Ended => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// The batch, if it is complete.
    fn batch(
        &mut self,
        decoder: &mut EntryDecoder,
        wanted: Option<usize>,
    ) -> Option<Result<RecordBatch, SqlError>> {
        if !self.size.is_complete(decoder.rows(), decoder.bytes(), wanted) {
            return None;
        }
        self.size.returned(decoder.rows(), decoder.bytes());
        Some(decoder.finish())
    }

    /// Opens a session and the scan.
    fn open(&self, columns: ScanColumns, schema: SchemaRef) -> Result<Open, SqlError> {
        let Self { access, search, counters, .. } = self;
        let decoder = EntryDecoder::new(columns, &search.index, schema, BATCH_ROWS)?;
        let mut backend = access.session()?;
        backend.session().set_may_block(false);
        let scan = match &search.ranges {
            None => None,
            Some(ranges) => {
                let table = access.indexed(search)?;
                let map = access.visibility_map();
                let (map, blocks) = map
                    .ok_or_else(|| SqlError::internal("the size of a visibility map is unknown"))?;
                let (ranges, options) = (ranges.clone(), access.index_options());
                let scan = IndexOnlyScan::new(&backend, &table, (&map, blocks), ranges, options);
                Some(access.streams.register(scan))
            }
        };
        let counters = counters.clone();
        counters.0.opened();
        Ok(Open { backend, scan, decoder, counters })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut counts = ScanCounts::default();
        if let Some(scan) = &self.scan {
            let found = scan.lock().counts();
            counts.streams = found.heap;
            counts.buffers = found.heap_buffers;
            counts.buffers.add(&found.index_buffers);
            counts.heap_fetches = found.heap_fetches;
            counts.indexes = vec![IndexCounts { streams: found.index, ..IndexCounts::default() }];
        }
        let (counters, partition) = &self.counters;
        counters.add(*partition, &counts);
        counters.closed();
    }
}

impl Open {
    /// Decodes the next entries. False at the end.
    fn poll_entries(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, SqlError>> {
        let Self { backend, scan, decoder, .. } = self;
        let Some(scan) = scan else { return Poll::Ready(Ok(false)) };
        let mut scan = scan.lock();
        let entries = ready!(scan.poll_entries(context, backend));
        Poll::Ready(match entries.map_err(|error| index_error(&error))? {
            Some(entries) => decoder.decode(entries).map(|()| true),
            None => Ok(false),
        })
    }
}
