//! Reads the rows of many keys: pages, rows, batches.
//!
//! ```text
//!   start(keys) ──▶ KeyedScan: pages with the rows of the keys, in the order of the keys
//!                     └─ RowDecoder ── filters of the scan ──▶ KeyedRows: rows with their keys' numbers
//! ```
//! As in a [`PartitionReader`](super::partition_reader), nothing is pinned by the reader between two
//! polls, and pages with TOAST pointers are copied until a thread for blocking work has fetched their
//! values. The session remains open from one set of keys to the next.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use trunkline_aio::clock::{self, Time};
use trunkline_engine::heap::{PageBatch, ToastBatch, ToastReader};
use trunkline_engine::index_scan::KeyedScan;
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{RegisteredStream, StreamOptions};
use trunkline_format::btree::KeyRanges;
use trunkline_sql::SqlError;

use super::access::TableAccess;
use super::batch_size::{BATCH_BYTES, BATCH_ROWS};
use super::cancellation::IoWait;
use super::columns::KEY_NUMBER;
use super::counters::{IndexCounts, ScanCounters, ScanCounts};
use super::exec::{ScanExec, filtered};
use super::failure::{index_error, read_error};
use super::look_ahead::LookAhead;
use super::partition_reader::{
    COPIED_PAGES_MAX, FETCH_BYTES, FetchResult, PAGES_PER_TURN, decode, has_toast, rows_of,
};
use super::row_decoder::RowDecoder;
use crate::access_path::IndexSearch;
use crate::error::to_datafusion;

/// Rows of some keys.
#[derive(Debug)]
pub(crate) struct KeyedRows {
    /// The rows that have passed the filters, with the columns of the scan.
    pub(crate) rows: RecordBatch,
    /// The number of the key of each row.
    pub(crate) keys: UInt32Array,
    /// All rows of the keys before this one have been returned.
    pub(crate) reached: u32,
}

/// Reads the rows of keys.
pub(crate) struct KeyedReader {
    access: TableAccess,
    search: Arc<IndexSearch>,
    decoder: RowDecoder,
    /// How many rows complete a batch.
    ahead: LookAhead,
    state: State,
    /// Pages that wait for TOAST values, and how many rows they have.
    copied: PageBatch,
    copied_rows: usize,
    may_toast: bool,
    /// The filters that the conditions on the index cover, and the others.
    filters: [Vec<Arc<dyn PhysicalExpr>>; 2],
    /// The number of the scan's columns.
    width: usize,
    /// What the reader itself has counted, where to add that, and as which partition.
    counts: ScanCounts,
    counters: (ScanCounters, usize),
    /// How often the scan had waited for I/O when it began with these keys.
    waits_before: u64,
    /// Since when the consumer has waited for rows.
    since: Option<Time>,
    /// The last poll ended before a page, or a value of TOAST, had been read.
    waiting: Option<IoWait>,
}

enum State {
    /// No session has been opened yet. The keys are what to begin with.
    Closed(Vec<Option<KeyRanges>>),
    Reading(Box<Open>),
    /// A thread fetches TOAST values. No more keys follow if `ended`.
    Fetching {
        scan: Box<OpenScan>,
        task: SpawnedTask<FetchResult>,
        ended: bool,
    },
    /// All rows of the keys have been read.
    Idle(Box<Open>),
    Failed,
}

/// A scan with its session.
struct Open {
    backend: Backend,
    scan: OpenScan,
}

struct OpenScan {
    pages: RegisteredStream<KeyedScan>,
    toast: Option<ToastReader>,
    values: ToastBatch,
    counters: (ScanCounters, usize),
}

impl Drop for OpenScan {
    fn drop(&mut self) {
        let counts = self.pages.lock().counts();
        let mut buffers = counts.heap_buffers;
        buffers.add(&counts.index_buffers);
        if let Some(toast) = &self.toast {
            buffers.add(&toast.buffer_usage());
        }
        let index = IndexCounts { streams: counts.index, ..IndexCounts::default() };
        let counts = ScanCounts {
            streams: counts.heap,
            buffers,
            indexes: vec![index],
            ..ScanCounts::default()
        };
        let (counters, partition) = &self.counters;
        counters.add(*partition, &counts);
    }
}

impl Drop for KeyedReader {
    fn drop(&mut self) {
        // The counts of an open scan are added before the reader is closed.
        self.state = State::Failed;
        let (counters, partition) = &self.counters;
        counters.add(*partition, &self.counts);
        counters.closed();
    }
}

impl KeyedReader {
    /// A reader of the rows that a search of an index leads to. What it counts is added to the counters
    /// of the scan, as those of this partition.
    pub(crate) fn new(scan: &ScanExec, search: &Arc<IndexSearch>, partition: usize) -> Self {
        let access = scan.access().clone();
        let columns = scan.columns().with_key_number();
        let mut fields: Vec<_> = scan.decoded().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(KEY_NUMBER, DataType::UInt32, true)));
        let schema = Arc::new(Schema::new(fields));
        let may_toast = access.files.toast.is_some() && columns.has_varlena();
        let decoder = RowDecoder::new(columns, &access.files.rows, schema, BATCH_ROWS);
        let counters = (scan.counters().clone(), partition);
        counters.0.opened();
        Self {
            search: Arc::clone(search),
            decoder,
            ahead: LookAhead::new(BATCH_ROWS),
            state: State::Closed(Vec::new()),
            copied: PageBatch::new(),
            copied_rows: 0,
            may_toast,
            filters: scan.divided_filters(),
            width: datafusion::physical_plan::ExecutionPlan::schema(scan).fields().len(),
            counts: ScanCounts { indexes: vec![IndexCounts::default()], ..ScanCounts::default() },
            counters,
            waits_before: 0,
            since: None,
            waiting: None,
            access,
        }
    }

    /// Sets the next keys. Rows of the keys before that have not been returned are given up. There must
    /// be none if the last call of [`KeyedReader::poll_rows`] has not returned yet.
    pub(crate) fn start(&mut self, keys: Vec<Option<KeyRanges>>) {
        self.copied.clear();
        self.copied_rows = 0;
        if let Some(counts) = self.counts.indexes.first_mut() {
            counts.loops += keys.len() as u64;
        }
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Closed(_) => State::Closed(keys),
            State::Reading(mut open) | State::Idle(mut open) => {
                let OpenScan { pages, values, .. } = &mut open.scan;
                values.clear();
                let mut pages = pages.lock();
                let counts = pages.counts();
                self.waits_before = counts.index.waits + counts.heap.waits;
                pages.start(keys);
                drop(pages);
                State::Reading(open)
            }
            other @ (State::Fetching { .. } | State::Failed) => other,
        };
    }

    /// Whether the reader had to wait for I/O since it got its keys.
    pub(crate) fn has_waited(&self) -> bool {
        let scan = match &self.state {
            State::Reading(open) | State::Idle(open) => &open.scan,
            State::Fetching { scan, .. } => &**scan,
            State::Closed(_) | State::Failed => return false,
        };
        let counts = scan.pages.lock().counts();
        counts.index.waits + counts.heap.waits > self.waits_before
    }

    /// Returns rows of the keys, in the order of the keys, or `None` after the last one. A batch may have
    /// no rows, if none has passed the filters. After an error, the reader can't be used any more.
    pub(crate) fn poll_rows(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<KeyedRows, DataFusionError>>> {
        let since = *self.since.get_or_insert_with(clock::now);
        let polled = ready!(self.poll(context)).map_err(to_datafusion);
        let rows = match polled {
            Ok(None) => None,
            Ok(Some(batch)) => Some(self.passed(batch)),
            Err(error) => Some(Err(error)),
        };
        if matches!(rows, Some(Err(_))) {
            self.state = State::Failed;
        }
        self.since = None;
        if let Some(counts) = self.counts.indexes.first_mut() {
            counts.time += clock::now().since(since);
        }
        Poll::Ready(rows)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>, SqlError>> {
        let mut pages = 0;
        self.waiting = None;
        loop {
            self.access.cancellation.check()?;
            match &mut self.state {
                State::Closed(keys) => {
                    let keys = std::mem::take(keys);
                    self.state = State::Reading(Box::new(self.open(keys)?));
                }
                State::Fetching { task, .. } => {
                    let polled = Pin::new(task).poll(context);
                    let fetched = ready!(self.io(polled));
                    self.fetched(fetched)?;
                }
                State::Idle(_) | State::Failed => {
                    return Poll::Ready(match self.decoder.rows() {
                        0 => Ok(None),
                        _ => self.finish().map(Some),
                    });
                }
                State::Reading(_) => {
                    if pages == PAGES_PER_TURN {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    pages += 1;
                    let polled = self.read_page(context);
                    ready!(self.io(polled))?;
                }
            }
            if self.decoder.rows() >= self.ahead.wanted() || self.decoder.bytes() >= BATCH_BYTES {
                return Poll::Ready(self.finish().map(Some));
            }
        }
    }

    /// Notes whether a poll has to wait for I/O.
    fn io<T>(&mut self, polled: Poll<T>) -> Poll<T> {
        if polled.is_pending() {
            self.waiting = Some(self.access.cancellation.wait_for_io());
        }
        polled
    }

    fn finish(&mut self) -> Result<RecordBatch, SqlError> {
        let rows = self.decoder.rows();
        let waited = self.has_waited();
        self.ahead.used(rows, waited);
        self.decoder.finish()
    }

    /// Opens a session and the scan.
    fn open(&mut self, keys: Vec<Option<KeyRanges>>) -> Result<Open, SqlError> {
        let mut backend = self.access.session()?;
        backend.session().set_may_block(false);
        let table = self.access.indexed(&self.search)?;
        let options = self.access.index_options();
        let mut scan = KeyedScan::new(&backend, &table, options);
        scan.start(keys);
        self.waits_before = 0;
        let pages = self.access.streams.register(scan);
        let toast = self.access.files.toast.clone().filter(|_| self.may_toast).map(|table| {
            let stream = StreamOptions { sequential: false, ..options.heap };
            ToastReader::new(&backend, table, &self.access.transactions, stream)
        });
        let (values, counters) = (ToastBatch::new(), self.counters.clone());
        Ok(Open { backend, scan: OpenScan { pages, toast, values, counters } })
    }

    /// Decodes the next page, or copies it if it must wait for TOAST values.
    fn read_page(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SqlError>> {
        let Self { state, decoder, copied, copied_rows, may_toast, ahead, .. } = self;
        let State::Reading(open) = state else { return Poll::Ready(Ok(())) };
        let Open { backend, scan } = &mut **open;
        let OpenScan { pages, values, .. } = scan;
        let ended = {
            let mut pages = pages.lock();
            let page = ready!(pages.poll_page(context, backend));
            match page.map_err(|error| index_error(&error))? {
                None => true,
                Some(page) => {
                    let rows = rows_of(page.rows())?;
                    if *may_toast && (!copied.is_empty() || has_toast(&page)) {
                        rows.iter().for_each(|row| decoder.pointers(row, values));
                    }
                    match copied.is_empty() && values.is_empty() {
                        true => decode(decoder, &rows, values)?,
                        false => {
                            *copied_rows += rows.len();
                            copied.push(&page);
                        }
                    }
                    false
                }
            }
        };
        let full = copied.len() >= COPIED_PAGES_MAX
            || values.bytes() >= FETCH_BYTES
            || decoder.rows() + *copied_rows >= ahead.wanted();
        if !copied.is_empty() && (ended || full) {
            self.fetch(ended);
        } else if ended {
            self.become_idle();
        }
        Poll::Ready(Ok(()))
    }

    fn become_idle(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Reading(open) => State::Idle(open),
            other => other,
        };
    }

    /// Starts to fetch the TOAST values of the copied pages.
    fn fetch(&mut self, ended: bool) {
        let State::Reading(open) = std::mem::replace(&mut self.state, State::Failed) else {
            return;
        };
        let Open { backend, mut scan } = *open;
        let Some(toast) = scan.toast.take() else { return };
        let task = FetchResult::spawn(backend, toast, std::mem::take(&mut scan.values));
        self.state = State::Fetching { scan: Box::new(scan), task, ended };
    }

    /// Decodes the copied pages after their TOAST values have been fetched.
    fn fetched(
        &mut self,
        fetched: Result<FetchResult, tokio::task::JoinError>,
    ) -> Result<(), SqlError> {
        let State::Fetching { mut scan, ended, .. } =
            std::mem::replace(&mut self.state, State::Failed)
        else {
            return Ok(());
        };
        let fetched = fetched.map_err(|error| SqlError::internal(error.to_string()))?;
        let FetchResult { backend, toast, mut values, result } = fetched;
        scan.toast = Some(toast);
        result.map_err(|error| read_error(&error))?;
        let rows = rows_of(self.copied.rows())?;
        decode(&mut self.decoder, &rows, &values)?;
        drop(rows);
        self.copied.clear();
        self.copied_rows = 0;
        values.clear();
        scan.values = values;
        let open = Box::new(Open { backend, scan: *scan });
        self.state = if ended { State::Idle(open) } else { State::Reading(open) };
        Ok(())
    }

    /// The rows of a decoded batch that pass the filters.
    fn passed(&mut self, batch: RecordBatch) -> Result<KeyedRows, DataFusionError> {
        let last = batch.num_columns().saturating_sub(1);
        let keys = |batch: &RecordBatch| batch.column(last).as_primitive::<UInt32Type>().clone();
        let all = keys(&batch);
        // The rows come in the order of the keys.
        let reached = all.len().checked_sub(1).map_or(0, |row| all.value(row));
        let read = batch.num_rows();
        let [covered, others] = &self.filters;
        let batch = filtered(batch, covered)?;
        let rechecked = batch.num_rows();
        let batch = filtered(batch, others)?;
        let passed = batch.num_rows();
        self.counts.removed_by_recheck += (read - rechecked) as u64;
        self.counts.removed += (rechecked - passed) as u64;
        if let Some(counts) = self.counts.indexes.first_mut() {
            counts.entries += passed as u64;
        }
        let columns: Vec<usize> = (0..self.width).collect();
        Ok(KeyedRows { rows: batch.project(&columns)?, keys: keys(&batch), reached })
    }
}
